import { hashJson } from "./canonical.ts";
import type { ClauseResult } from "./clauses/evidence.ts";
import type { ReasonCode } from "./clauses/reason-codes.ts";
import type { Outcome } from "./policy.ts";
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
