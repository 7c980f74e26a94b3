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
  /** By which version of the evaluation (`EVALUATOR_VERSION`); null in checks of before there were versions. */
  readonly evaluatorVersion: number | null;
  /** The thumbprint of the registered key with which the source has signed its answer; null where none has. */
  readonly signedBy: string | null;
  /** The hash of the facts in its capsule, also once the capsule is gone; null in checks of before there were capsules. */
  readonly capsuleHash: string | null;
};

const newerFields = (check: Check) => ({
  evaluator_version: check.evaluatorVersion,
  signed_by: check.signedBy,
  capsule_hash: check.capsuleHash,
});

/** A check as the API shows it. */
export const checkResource = (check: Check) => ({ ...firstForm(check), ...newerFields(check) });

/** The form of the checks that have no evaluator's version. */
const firstForm = (check: Check) => ({
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

/**
 * `check_hash`: the hash of the form that the API shows. A check without an evaluator's version was hashed without the fields that
 * came with it.
 */
export const checkHashOf = (check: Check): string =>
  hashJson(check.evaluatorVersion === null ? firstForm(check) : checkResource(check));
