import { EVIDENCE_KINDS } from "../evidence-kinds.ts";
import { BPS_WHOLE } from "../money.ts";
import { STATE_OF } from "../warrant.ts";
import type { ClauseOfSpec, Receipt, ReceiptCheck } from "./form.ts";
import { same, shown } from "./say.ts";

/**
 * What is wrong with the checks: each is one that an entry of the trace names, says what that entry says of it, and follows from
 * the results of its clauses. `check_hash` is over more than a receipt shows (docs/security, "Receipts"), so it is not computed here.
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
  const clauses = warrant.spec?.clauses;
  const kinds = clauses?.map((clause) => clause.kind);
  for (const [index, check] of checks.entries()) {
    const at = `checks[${index}]`;
    const entry = named[index]?.payload.check_id === check.id ? named[index] : undefined;
    const payload = entry?.payload;
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
    yield* problemsOfAnswer(check, clauses ?? [], at);
    yield* problemsOfEvidence(check, at);
  }
}

/** SHA-256 of no bytes. */
const HASH_OF_NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** As `URL.origin` writes one: printable ASCII, without a path, a query, credentials or a backslash. */
const ORIGIN = /^https?:\/\/[!"$-.0->A-[\]-~]+$/;

/** What is said of the answer agrees with itself, and with those clauses that ask for what a receipt shows of it. */
function* problemsOfAnswer(
  check: ReceiptCheck,
  clauses: readonly ClauseOfSpec[],
  at: string,
): Generator<string> {
  const { source_origin, bytes, evidence_hash, details } = check;
  if (!ORIGIN.test(source_origin))
    yield `${at}.source_origin is ${shown(source_origin)}, which is no origin of http or https`;
  if ((bytes === 0) !== (evidence_hash === HASH_OF_NOTHING))
    yield `${at}.bytes is ${bytes}, but ${at}.evidence_hash is ${bytes === 0 ? "not " : ""}that of no bytes`;
  for (const [index, clause] of clauses.entries()) {
    const [detail, seen] = [details[index], seenBy(clause, check)];
    if (!detail || !seen || detail.kind !== clause.kind) continue;
    // With any other code the clause has failed whatever the answer was.
    const isJudged = detail.passed || seen.codes.includes(detail.reason_code ?? "");
    if (isJudged && detail.passed !== (seen.value === seen.asked))
      yield `${at}.details[${index}] says that ${clause.kind} ${detail.passed ? "passed" : "failed"}, but it asks for ${shown(seen.asked)} and ${at}.${seen.name} is ${shown(seen.value)}`;
  }
}

/** What a clause compares, where a receipt shows it, and the codes that say that the two differ. */
function seenBy({ kind, equals, digest }: ClauseOfSpec, { http_status, evidence_hash }: ReceiptCheck) {
  switch (kind) {
    case "http.status":
      return {
        ...{ name: "http_status", asked: equals, value: http_status },
        codes: ["status_mismatch", "source_not_found"],
      };
    case "file.sha256":
      return {
        ...{ name: "evidence_hash", asked: String(digest).toLowerCase(), value: evidence_hash },
        codes: ["digest_mismatch"],
      };
    default:
      return null;
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
