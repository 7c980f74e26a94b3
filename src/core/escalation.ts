import type { ReasonCode } from "./clauses/reason-codes.ts";
import type { Mode } from "./roles.ts";

export const DECISIONS = ["release", "partial_release", "refund", "dispute"] as const;
export type Decision = (typeof DECISIONS)[number];

export const ESCALATION_STATUSES = ["open", "disputed", "resolved"] as const;
export type EscalationStatus = (typeof ESCALATION_STATUSES)[number];

/** A warrant that waits for a person. `raisedBy` is the person who disputed it: another person must then resolve it. */
export type Escalation = {
  readonly id: string;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly warrantId: string;
  readonly checkId: string | null;
  readonly score: number | null;
  readonly reasonCodes: readonly ReasonCode[];
  readonly status: EscalationStatus;
  readonly decision: Decision | null;
  readonly releasedBps: number | null;
  readonly note: string | null;
  readonly raisedBy: string | null;
  readonly resolvedBy: string | null;
  readonly createdAt: number;
  readonly resolvedAt: number | null;
};
