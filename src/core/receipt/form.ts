import {
  amount,
  count,
  exactly,
  hash,
  integerFrom,
  kind,
  list,
  orAbsent,
  ordinal,
  orNull,
  record,
  text,
  time,
  yesOrNo,
} from "../shapes.ts";
import type { State } from "../warrant.ts";
import { STATES } from "../warrant.ts";

/** The form of a receipt. Fields that are not named here are allowed: the signature covers them. */

const score = integerFrom(0, 10_000);
const share = orNull(integerFrom(1, 10_000));
const state = kind("a state of a warrant", (value) => STATES.some((one) => one === value));

const actor = record({ kind: text, id: orNull(text) });

const payload = record({
  warrant_id: text,
  mode: text,
  from: orNull(state),
  to: state,
  version: ordinal,
  actor,
  recorded_at: time,
  amount,
  asset: text,
  payee: text,
  released_bps: share,
  spec_hash: hash,
  agent_id: orNull(text),
  policy_id: orNull(text),
  policy_version: orNull(ordinal),
  rules_hash: hash,
  check_id: orAbsent(text),
  score: orAbsent(score),
  reason_codes: orAbsent(list(text)),
  evidence_hash: orAbsent(hash),
  check_hash: orAbsent(hash),
});

const entry = record({
  to: state,
  from: orNull(state),
  actor,
  recorded_at: time,
  payload_hash: hash,
  rules_hash: hash,
  chain_ref: orNull(text),
  sequence: count,
  payload,
  entry_hash: hash,
});

const check = record({
  id: text,
  source_origin: text,
  source_url_hash: hash,
  http_status: orNull(count),
  bytes: count,
  score,
  passed: yesOrNo,
  reason_codes: list(text),
  evidence_hash: hash,
  details: list(record({ kind: text, passed: yesOrNo, reason_code: orNull(text) })),
  outcome: text,
  evaluated_at: time,
  evaluator_version: orAbsent(ordinal),
  evidence: orAbsent(text),
  signed_by: orAbsent(orNull(text)),
});

const receipt = record(
  {
    object: exactly("receipt"),
    mode: kind("live or sandbox", (value) => value === "live" || value === "sandbox"),
    warrant: record({
      id: text,
      state,
      amount,
      asset: text,
      released_bps: share,
      payee: text,
      spec_hash: hash,
      spec: orNull(record({ clauses: list(record({ kind: text })) })),
      policy_version: orNull(ordinal),
      rules_hash: hash,
      opened_at: time,
      settled_at: time,
    }),
    checks: list(check),
    trace: list(entry),
    anchor: orNull(
      record({
        leaf_index: count,
        tree_size: ordinal,
        root: hash,
        proof: list(hash),
        checkpoint: text,
        chain_ref: orNull(text),
      }),
    ),
    signature: orNull(text),
  },
  "a receipt",
);

export type Payload = Readonly<Record<string, unknown>> & {
  readonly from: State | null;
  readonly to: State;
  readonly actor: { readonly kind: string; readonly id: string | null };
  readonly recorded_at: string;
  readonly released_bps: number | null;
  readonly check_id?: string;
};

export type Entry = Readonly<Record<string, unknown>> & {
  readonly payload_hash: string;
  readonly entry_hash: string;
  readonly chain_ref: string | null;
  readonly payload: Payload;
};

/** Its other fields are those of its kind. */
export type ClauseOfSpec = Readonly<Record<string, unknown>> & { readonly kind: string };

export type ReceiptCheck = {
  readonly id: string;
  readonly source_origin: string;
  readonly source_url_hash: string;
  readonly http_status: number | null;
  readonly bytes: number;
  readonly score: number;
  readonly passed: boolean;
  readonly reason_codes: readonly string[];
  readonly evidence_hash: string;
  readonly details: readonly {
    readonly kind: string;
    readonly passed: boolean;
    readonly reason_code: string | null;
  }[];
  readonly outcome: string;
  readonly evaluated_at: string;
  /** These three are absent in checks of before there were versions. */
  readonly evaluator_version?: number;
  readonly evidence?: string;
  readonly signed_by?: string | null;
};

export type Anchor = {
  readonly leaf_index: number;
  readonly tree_size: number;
  readonly root: string;
  readonly proof: readonly string[];
  /** A signed note. */
  readonly checkpoint: string;
  readonly chain_ref: string | null;
};

/** A receipt as `GET /t/:id` answers it (docs/security, "Receipts"). */
export type Receipt = {
  readonly mode: "live" | "sandbox";
  readonly warrant: {
    readonly id: string;
    readonly state: State;
    readonly amount: string;
    readonly asset: string;
    readonly released_bps: number | null;
    readonly payee: string;
    readonly spec_hash: string;
    readonly spec: { readonly clauses: readonly ClauseOfSpec[] } | null;
    readonly policy_version: number | null;
    readonly rules_hash: string;
    readonly opened_at: string;
    readonly settled_at: string;
  };
  readonly checks: readonly ReceiptCheck[];
  readonly trace: readonly Entry[];
  readonly anchor: Anchor | null;
  readonly signature: string | null;
};

/** Why a value is no receipt, each as a sentence; none where it is one. */
export const problemsOfForm = (value: unknown): Iterable<string> => receipt(value, "");
