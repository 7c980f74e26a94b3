import { TypeCompiler } from "@sinclair/typebox/compiler";
import { canonicalJson, hashJson, sha256 } from "../../core/canonical.ts";
import { answerOf, type CapsuleFacts, evidenceOf } from "../../core/capsule.ts";
import { EVALUATOR_VERSION } from "../../core/clauses/evaluator-version.ts";
import type { ClauseResult, Evaluation } from "../../core/clauses/evidence.ts";
import { CLAUSE_CODES } from "../../core/clauses/reason-codes.ts";
import { parseClauses } from "../../core/clauses/registry.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { scoreInBps } from "../../core/policy.ts";
import { isSigstore, thumbprintOf } from "../../core/source-key.ts";
import type { holdsItsDigest, signerAmong } from "../../platform/source-signature.ts";
import { type CheckExport, checkExportForm } from "../../resources/check-export.ts";
import type { Evaluate, VerifyingBundles } from "../context.ts";

/** A signature that needs a trusted root which is not there is not checked. */
type Said = "same" | "different" | "not_checked";
type Seen = Pick<ClauseResult, "passed" | "reason_code" | "observed">;
type Compared<Value> = { readonly result: Said; readonly recorded: Value; readonly replayed: Value };

/** What became of a check that was made again. */
export type CheckReplay = {
  readonly object: "check_replay";
  readonly check_id: string;
  readonly result: Said;
  readonly evaluated_at: string;
  readonly evaluator_version: { readonly recorded: number; readonly replayed: number };
  readonly clauses: readonly (Compared<Seen> & { readonly kind: string })[];
  readonly score: Compared<number>;
  readonly reason_codes: Compared<readonly string[]>;
  /** Who has signed the source's answer. */
  readonly signed_by: Compared<string | null>;
};

/** What makes a check again. */
export type Replaying = {
  readonly evaluate: Evaluate;
  readonly holdsItsDigest: typeof holdsItsDigest;
  readonly signerAmong: typeof signerAmong;
  /** Null without a trusted root. */
  readonly sigstore: VerifyingBundles | null;
};

const UNCHECKED = Symbol("not checked");

/** Whoever replays waits for nobody else. */
const NOBODY = { organisationId: "replay", mode: "sandbox" } as const;

/**
 * Makes a check again, from its export alone and at its own time, and compares each clause and who has signed (docs/security,
 * "Capsules").
 *
 * @param given the JSON of an export
 */
export async function replayCheck(replaying: Replaying, given: unknown): Promise<CheckReplay | Refusal> {
  const form = TypeCompiler.Compile(checkExportForm());
  if (!form.Check(given)) {
    const error = form.Errors(given).First();
    const path = error?.path.slice(1).replaceAll("/", ".") || "the file";
    return refuseField(path, "is not as `holdfast checks export` writes it");
  }
  const file = given;
  const body = Buffer.from(file.body ?? "", "base64");
  const refused = refuseAltered(file, body);
  if (refused) return refused;
  const clauses = parseClauses(file.spec.clauses, "spec.clauses");
  if (isRefusal(clauses)) return clauses;
  const [evaluation, signedBy] = await Promise.all([
    replaying.evaluate({
      clauses,
      evidence: evidenceOf(file.capsule, body),
      schemas: file.schemas,
      now: Date.parse(file.capsule.evaluated_at),
      party: NOBODY,
    }),
    signedAgain(replaying, file.capsule, body),
  ]);
  return comparisonOf(file, evaluation, signedBy);
}

/** Who has signed the answer, by what is kept of it; null where nobody has. */
async function signedAgain(
  replaying: Replaying,
  facts: CapsuleFacts,
  body: Uint8Array,
): Promise<string | typeof UNCHECKED | null> {
  const { signed_with, sigstore_bundle: bundle } = facts;
  if (signed_with === null) return null;
  if (isSigstore(signed_with)) {
    if (replaying.sigstore === null) return UNCHECKED;
    if (bundle === null) return null;
    const identity = await replaying.sigstore.signerOf({ bundle, body, identities: [signed_with] }, NOBODY);
    return identity && thumbprintOf(identity);
  }
  const answer = answerOf(facts);
  // Its digest is of the bytes as they were sent. Where these were coded, they are not kept.
  const isCoded = answer.headers?.some(([name]) => name === "content-encoding") ?? false;
  const holdsItsDigest = isCoded
    ? facts.holds_its_digest
    : await replaying.holdsItsDigest(answer.headers, body);
  const signer = await replaying.signerAmong({
    answer: { ...answer, holdsItsDigest },
    method: facts.method,
    keys: [signed_with],
    now: Date.parse(facts.evaluated_at),
  });
  return signer && thumbprintOf(signer);
}

/** Null where everything in the file has the hash that the file gives for it. */
function refuseAltered({ check, ...file }: CheckExport, body: Uint8Array): Refusal | null {
  const hashes = new Map(Object.entries(file.capsule.schema_hashes));
  const given: readonly (readonly [field: string, found: string | null, expected: string | null])[] = [
    ["check_hash", hashJson(check), file.check_hash],
    ["spec_hash", hashJson(file.spec), file.spec_hash],
    ["capsule_hash", hashJson(file.capsule), file.capsule_hash],
    ["check.capsule_hash", file.capsule_hash, check.capsule_hash],
    ["capsule.check_id", file.capsule.check_id, check.id],
    ["capsule.warrant_id", file.capsule.warrant_id, check.warrant_id],
    ["capsule.evaluated_at", file.capsule.evaluated_at, check.evaluated_at],
    [
      "capsule.signed_with",
      file.capsule.signed_with && thumbprintOf(file.capsule.signed_with),
      check.signed_by,
    ],
    ["capsule.evidence_hash", sha256(body), file.capsule.evidence_hash],
    ["check.evidence_hash", file.capsule.evidence_hash, check.evidence_hash],
    ...Object.entries(file.schemas).map(
      ([name, { schema }]) => [`schemas.${name}`, hashJson(schema), hashes.get(name) ?? null] as const,
    ),
    ...[...hashes].map(
      ([name, hash]) => [`capsule.schema_hashes.${name}`, file.schemas[name]?.hash ?? null, hash] as const,
    ),
  ];
  const wrong = given.find(([, found, expected]) => found !== expected);
  return wrong
    ? refuse(
        "validation_failed",
        `The file was altered: its ${wrong[0]} is ${wrong[2]}, and what that stands for gives ${wrong[1]}.`,
      )
    : null;
}

const said = (isSame: boolean): "same" | "different" => (isSame ? "same" : "different");

function comparisonOf(
  { check, capsule }: CheckExport,
  evaluation: Evaluation,
  signedBy: string | typeof UNCHECKED | null,
): CheckReplay {
  const count = Math.max(check.details.length, evaluation.details.length);
  const clauses = Array.from({ length: count }, (_, index) =>
    clauseOf(check.details[index], evaluation.details[index]),
  );
  const score = { recorded: check.score, replayed: scoreInBps(evaluation.score) };
  // A policy's decision may have added codes of its own.
  const recorded = check.reason_codes.filter((code) => CLAUSE_CODES.some((one) => one === code));
  const reasonCodes = { recorded, replayed: evaluation.reasonCodes };
  const compared = {
    score: compare(score),
    reason_codes: compare<readonly string[]>(reasonCodes),
    signed_by:
      signedBy === UNCHECKED
        ? ({ result: "not_checked", recorded: check.signed_by, replayed: null } as const)
        : compare({ recorded: check.signed_by, replayed: signedBy }),
  };
  const isSame = [...clauses, ...Object.values(compared)].every(({ result }) => result !== "different");
  return {
    object: "check_replay",
    check_id: check.id,
    result: said(isSame),
    evaluated_at: capsule.evaluated_at,
    evaluator_version: { recorded: capsule.evaluator_version, replayed: EVALUATOR_VERSION },
    clauses,
    ...compared,
  };
}

const compare = <Value>(values: Omit<Compared<Value>, "result">): Compared<Value> => ({
  result: said(canonicalJson(values.recorded) === canonicalJson(values.replayed)),
  ...values,
});

const MISSING = { passed: false, reason_code: null, observed: null };

function clauseOf(
  recorded: ClauseResult | undefined,
  replayed: ClauseResult | undefined,
): CheckReplay["clauses"][number] {
  const isSame = canonicalJson(recorded ?? null) === canonicalJson(replayed ?? null);
  const seen = ({ passed, reason_code, observed }: Seen): Seen => ({
    passed,
    reason_code,
    observed,
  });
  return {
    kind: (recorded ?? replayed)?.kind ?? "",
    result: said(isSame),
    recorded: seen(recorded ?? MISSING),
    replayed: seen(replayed ?? MISSING),
  };
}
