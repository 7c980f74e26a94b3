import { hashJson } from "./canonical.ts";
import type { ClauseResult } from "./clauses/evidence.ts";
import type { ReasonCode } from "./clauses/reason-codes.ts";
import type { Outcome } from "./policy.ts";
import type { Mode } from "./roles.ts";
import { isoTime } from "./time.ts";

/** What one verification saw and what the policy made of it (decisions.md, Check and escalation records). */
export type Check = {
  readonly id: string;
  readonly warrantId: string;
  readonly sourceUrl: string;
  readonly httpStatus: number | null;
  readonly bytes: number;
  readonly durationMs: number;
  /** Basis points, 0 to 10000. */
  readonly score: number;
  readonly passed: boolean;
  readonly reasonCodes: readonly ReasonCode[];
  readonly evidenceHash: string;
  readonly details: readonly ClauseResult[];
  readonly outcome: Outcome;
  readonly bandLabel: string | null;
  readonly evaluatedAt: number;
};

/** A check as the wire shows it, and as `check_hash` pins it for good: a new field would change old hashes. */
export const checkResource = (check: Check) => ({
  id: check.id,
  object: "check" as const,
  warrant_id: check.warrantId,
  source_url: check.sourceUrl,
  http_status: check.httpStatus,
  bytes: check.bytes,
  duration_ms: check.durationMs,
  score: check.score,
  passed: check.passed,
  reason_codes: check.reasonCodes,
  evidence_hash: check.evidenceHash,
  details: check.details,
  outcome: check.outcome,
  band_label: check.bandLabel,
  evaluated_at: isoTime(check.evaluatedAt),
});

export const checkHashOf = (check: Check): string => hashJson(checkResource(check));

export const DECISIONS = ["release", "partial_release", "refund", "dispute"] as const;
export type Decision = (typeof DECISIONS)[number];

/** A warrant that waits for a person. `raisedBy` is who disputed it: somebody else must resolve it then. */
export type Escalation = {
  readonly id: string;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly warrantId: string;
  readonly checkId: string | null;
  readonly score: number | null;
  readonly reasonCodes: readonly ReasonCode[];
  readonly status: "open" | "disputed" | "resolved";
  readonly decision: Decision | null;
  readonly releasedBps: number | null;
  readonly note: string | null;
  readonly raisedBy: string | null;
  readonly resolvedBy: string | null;
  readonly createdAt: number;
  readonly resolvedAt: number | null;
};
