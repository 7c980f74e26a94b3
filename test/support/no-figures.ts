import type { Figures } from "../../src/platform/metrics.ts";

/** The figures of a ledger in which nothing is. */
export const NO_FIGURES: Figures = {
  warrantsByState: { held: 0 },
  warrantsOverdue: 0,
  money: [],
  escalations: { count: 0, oldestMs: 0 },
  capsulesNotKept: 0,
  deliveries: { waiting: 0, lateMs: 0, exhausted: 0, notSent: 0 },
  purchases: { unfinished: 0, unknown: 0, lateMs: 0, contradicted: 0 },
  jobs: [],
  places: [],
  evaluators: [],
  audit: null,
  freeBytes: null,
  newestBackup: null,
  anchorLateMs: null,
  leavesToAnchor: 0,
  ...{ database: null, replicas: [] },
  ready: true,
  connectionsClosed: 0,
  witnesses: [],
  rails: [],
  deposits: [],
  treasuries: [],
  clockDisagrees: false,
};
