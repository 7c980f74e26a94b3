import { EVIDENCE_KINDS } from "../evidence-kinds.ts";
import { BPS_WHOLE } from "../money.ts";
import { STATE_OF } from "../warrant.ts";
import type { Receipt, ReceiptCheck } from "./form.ts";
import { same, shown } from "./say.ts";

/**
 * What is wrong with the checks: each is one that an entry of the trace names, says what that entry says of it, and follows from
 * the results of its clauses. `check_hash` is over more than a receipt shows (README, "Receipts"), so it is not computed here.
 */
export function* problemsOfChecks({ checks, trace, warrant }: Receipt): Generator<string> {
  const named = trace.filter(({ payload }) => payload.check_id !== undefined);
  if (
    !same(
      named.map(({ payload }) => payload.check_id),
      checks.map(({ id }) => id),
    )
  )
    yield "the checks are not those that the trace names, in its order";
  const kinds = warrant.spec?.clauses.map((clause) => clause.kind);
  for (const [index, check] of checks.entries()) {
    const at = `checks[${index}]`;
    const payload = named[index]?.payload.check_id === check.id ? named[index].payload : undefined;
    for (const name of ["score", "reason_codes", "evidence_hash"] as const)
      if (payload && !same(check[name], payload[name]))
        yield `${at}.${name} is ${shown(check[name])}, but the trace says ${shown(payload[name])}`;
    if (payload && stateAfter(check.outcome) !== payload.to)
      yield `${at}.outcome is ${shown(check.outcome)}, but the trace says that the warrant was ${shown(payload.to)} then`;
    if (
      kinds &&
      !same(
        check.details.map((detail) => detail.kind),
        kinds,
      )
    )
      yield `${at}.details are not of the spec's clauses`;
    yield* problemsOfResults(check, at);
    yield* problemsOfEvidence(check, at);
  }
}

/** What it says of who vouches for the evidence follows from whether it names a key of the source. */
function* problemsOfEvidence(
  { evaluator_version, evidence, signed_by }: ReceiptCheck,
  at: string,
): Generator<string> {
  const fields = [evaluator_version, evidence, signed_by];
  if (fields.every((field) => field === undefined)) return;
  if (fields.includes(undefined))
    yield `${at} has some of evaluator_version, evidence and signed_by, and lacks others`;
  const expected = EVIDENCE_KINDS[signed_by === null ? 0 : 1];
  if (evidence !== expected) yield `${at}.evidence is ${shown(evidence)}, not ${shown(expected)}`;
}

const stateAfter = (outcome: string): string | null =>
  Object.hasOwn(STATE_OF, outcome) ? STATE_OF[outcome as keyof typeof STATE_OF] : null;

/** Score, `passed` and reason codes follow from the results of the clauses. A decision may add codes of its own. */
function* problemsOfResults(
  { details, score, passed, reason_codes }: ReceiptCheck,
  at: string,
): Generator<string> {
  const failed = details.filter((detail) => !detail.passed);
  const share = details.length === 0 ? 0 : (details.length - failed.length) / details.length;
  if (score !== Math.round(share * BPS_WHOLE))
    yield `${at}.score is ${score}, but ${details.length - failed.length} of ${details.length} clauses passed`;
  if (passed !== (details.length > 0 && failed.length === 0))
    yield `${at}.passed is ${passed}, but ${failed.length} of ${details.length} clauses failed`;
  for (const [index, detail] of details.entries())
    if (detail.passed !== (detail.reason_code === null))
      yield `${at}.details[${index}] says passed ${detail.passed} with the reason ${shown(detail.reason_code)}`;
  const codes = [...new Set(failed.map(({ reason_code }) => reason_code))];
  if (!same(reason_codes.slice(0, codes.length), codes))
    yield `${at}.reason_codes do not begin with those of its clauses`;
}
