import { hashJson } from "./canonical.ts";
import type { ClauseResult } from "./clauses/evidence.ts";
import { clauseResultForm, reasonCodesForm } from "./clauses/form.ts";
import type { ReasonCode } from "./clauses/reason-codes.ts";
import {
  arrayOf,
  boolean,
  count,
  form,
  hash,
  idOf,
  integer,
  is,
  object,
  oneOf,
  orNull,
  score,
  text,
  time,
  type Wire,
} from "./form.ts";
import { OUTCOMES, type Outcome } from "./policy.ts";
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

/** A check as the API shows it (docs/clauses, "What a verify fetches"). It is in core, since `check_hash` is the hash of what is shown. */
export const checkForm = form("Check", () =>
  object({
    id: idOf("check"),
    object: is("check"),
    warrant_id: idOf("warrant"),
    source_url: text,
    http_status: orNull(integer),
    bytes: count,
    duration_ms: count,
    score,
    passed: boolean,
    reason_codes: reasonCodesForm(),
    evidence_hash: hash,
    details: arrayOf(clauseResultForm()),
    outcome: oneOf(OUTCOMES),
    band_label: orNull(text),
    evaluated_at: time,
    evaluator_version: orNull(integer),
    signed_by: orNull(text),
    capsule_hash: orNull(hash),
  }),
);

type CheckWire = Wire<typeof checkForm>;
type NewerField = "evaluator_version" | "signed_by" | "capsule_hash";

export const checkResource = (check: Check): CheckWire => ({ ...firstForm(check), ...newerFields(check) });

const newerFields = (check: Check): Pick<CheckWire, NewerField> => ({
  evaluator_version: check.evaluatorVersion,
  signed_by: check.signedBy,
  capsule_hash: check.capsuleHash,
});

/** The fields of the checks that have no evaluator's version. */
const firstForm = (check: Check): Omit<CheckWire, NewerField> => ({
  id: check.id,
  object: "check",
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
