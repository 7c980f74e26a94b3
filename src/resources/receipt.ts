import { Type } from "@sinclair/typebox";
import { sha256 } from "../core/canonical.ts";
import type { Check } from "../core/check.ts";
import { reasonCodesForm, specForm } from "../core/clauses/form.ts";
import { REASON_CODES } from "../core/clauses/reason-codes.ts";
import { CLAUSE_KINDS } from "../core/clauses/registry.ts";
import { EVIDENCE_KINDS } from "../core/evidence-kinds.ts";
import {
  amount,
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
  share,
  text,
  time,
  type Wire,
} from "../core/form.ts";
import type { Anchor } from "../core/log.ts";
import type { Organisation } from "../core/organisation.ts";
import { OUTCOMES } from "../core/policy.ts";
import { MODES } from "../core/roles.ts";
import { isoTime } from "../core/time.ts";
import type { TraceEntry } from "../core/trace.ts";
import { isSettled, SETTLED_STATES, type Warrant } from "../core/warrant.ts";
import { traceEntryForm, traceEntryResource } from "./trace-entry.ts";

/** The public receipt of a settled warrant (docs/security, "Receipts"). */

/**
 * The parts of a check that a public receipt shows: each clause's result, but not the observed value; the
 * source's origin, but not its path.
 */
const receiptCheckForm = () =>
  object({
    id: text,
    source_origin: text,
    source_url_hash: hash,
    http_status: orNull(integer),
    bytes: count,
    score,
    passed: boolean,
    reason_codes: reasonCodesForm(),
    evidence_hash: hash,
    details: arrayOf(
      object({
        kind: oneOf(CLAUSE_KINDS),
        passed: boolean,
        reason_code: orNull(oneOf(REASON_CODES)),
      }),
    ),
    outcome: oneOf(OUTCOMES),
    evaluated_at: time,
    // Not there in a check of before there were versions: its receipt stays as it was.
    evaluator_version: Type.Optional(integer),
    evidence: Type.Optional(oneOf(EVIDENCE_KINDS)),
    signed_by: Type.Optional(orNull(text)),
  });

const receiptCheck = (check: Check): Wire<typeof receiptCheckForm> => ({
  id: check.id,
  source_origin: new URL(check.sourceUrl).origin,
  source_url_hash: sha256(check.sourceUrl),
  http_status: check.httpStatus,
  bytes: check.bytes,
  score: check.score,
  passed: check.passed,
  reason_codes: check.reasonCodes,
  evidence_hash: check.evidenceHash,
  details: check.details.map(({ kind, passed, reason_code }) => ({ kind, passed, reason_code })),
  outcome: check.outcome,
  evaluated_at: isoTime(check.evaluatedAt),
  ...(check.evaluatorVersion !== null && {
    evaluator_version: check.evaluatorVersion,
    evidence: EVIDENCE_KINDS[check.signedBy === null ? 0 : 1],
    signed_by: check.signedBy,
  }),
});

/** That the settling entry is in the log: null until a checkpoint covers it. `chain_ref` may be null for longer, where a chain has to confirm it. */
const anchorForm = () =>
  object({
    leaf_index: count,
    tree_size: count,
    root: hash,
    proof: arrayOf(hash),
    checkpoint: text,
    chain_ref: orNull(text),
  });

const anchorResource = ({
  leafIndex,
  size,
  root,
  proof,
  note,
  chainRef,
}: Anchor): Wire<typeof anchorForm> => ({
  leaf_index: leafIndex,
  tree_size: size,
  root: root.toHex(),
  proof: proof.map((node) => node.toHex()),
  checkpoint: note,
  chain_ref: chainRef,
});

export const receiptForm = form("Receipt", () =>
  object({
    object: is("receipt"),
    mode: oneOf(MODES),
    warrant: object({
      id: idOf("warrant"),
      state: oneOf(SETTLED_STATES),
      amount,
      asset: text,
      released_bps: share,
      payee: text,
      spec_hash: hash,
      spec: orNull(specForm()),
      policy_version: orNull(integer),
      rules_hash: hash,
      opened_at: time,
      settled_at: time,
    }),
    checks: arrayOf(receiptCheckForm()),
    trace: Type.Array(traceEntryForm(), { minItems: 1 }),
    anchor: orNull(anchorForm()),
    signature: text,
  }),
);

/** What a receipt shows of the log. */
type Logged = {
  /** Of each entry of the trace, in their order. */
  readonly chainRefs: readonly (string | null)[];
  readonly anchor: Anchor | null;
};

/** A receipt without its signature, which is over the rest. */
export function unsignedReceipt(
  warrant: Warrant,
  checks: readonly Check[],
  trace: readonly TraceEntry[],
  { hidesSpecs }: Pick<Organisation, "hidesSpecs">,
  { chainRefs, anchor }: Logged,
): Omit<Wire<typeof receiptForm>, "signature"> {
  const { state, settledAt } = settlementOf(warrant);
  return {
    object: "receipt",
    mode: warrant.mode,
    warrant: {
      id: warrant.id,
      state,
      amount: warrant.amount.toString(),
      asset: warrant.asset,
      released_bps: warrant.releasedBps,
      payee: warrant.payee,
      spec_hash: warrant.specHash,
      spec: hidesSpecs ? null : warrant.spec,
      policy_version: warrant.policyVersion,
      rules_hash: warrant.rulesHash,
      opened_at: isoTime(warrant.openedAt),
      settled_at: isoTime(settledAt),
    },
    checks: checks.map(receiptCheck),
    trace: trace.map((entry, index) => traceEntryResource(entry, chainRefs[index] ?? null)),
    anchor: anchor && anchorResource(anchor),
  };
}

/** @throws for a warrant that is not settled, since it has no receipt */
function settlementOf({ id, state, settledAt }: Warrant) {
  if (!isSettled(state) || settledAt === null) throw new Error(`the warrant ${id} is not settled`);
  return { state, settledAt };
}
