import { hashJson } from "./canonical.ts";
import type { ClauseResult } from "./clauses/evidence.ts";
import type { ReasonCode } from "./clauses/reason-codes.ts";
import type { Outcome } from "./policy.ts";
import { isoTime } from "./time.ts";

/** One verification: what the source answered, the result of each clause, and what the policy decided. */
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

/** A check as the API shows it. `check_hash` is the hash of this form: a new field would change the hashes of old checks. */
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
