import type { State } from "../warrant.ts";
import { STATES } from "../warrant.ts";

/**
 * What a receipt must look like before anything in it is compared. TypeBox is not used: this also runs in the page of a receipt,
 * which loads no more than it needs. Fields that are not named here are allowed, as later versions may add some; the signature
 * covers them.
 */

/** What is wrong with a value, each in words that begin with its path. Whoever asks takes no more than it needs. */
type Shape = (value: unknown, path: string) => Iterable<string>;

const kind = (must: string, fits: (value: unknown) => boolean): Shape =>
  function* (value, path) {
    if (!fits(value)) yield `${path} must be ${must}`;
  };

const record = (fields: Readonly<Record<string, Shape>>): Shape =>
  function* (value, path) {
    if (!isRecord(value)) return yield `${path === "" ? "a receipt" : path} must be an object`;
    for (const [name, shape] of Object.entries(fields))
      yield* shape(
        Object.hasOwn(value, name) ? value[name] : undefined,
        path === "" ? name : `${path}.${name}`,
      );
  };

const list = (item: Shape): Shape =>
  function* (value, path) {
    if (!Array.isArray(value)) return yield `${path} must be a list`;
    for (const [index, one] of value.entries()) yield* item(one, `${path}[${index}]`);
  };

const orNull =
  (shape: Shape): Shape =>
  (value, path) =>
    value === null ? [] : shape(value, path);

const orAbsent =
  (shape: Shape): Shape =>
  (value, path) =>
    value === undefined ? [] : shape(value, path);

const matching = (must: string, pattern: RegExp): Shape =>
  kind(must, (value) => typeof value === "string" && pattern.test(value));

const integerFrom = (minimum: number, maximum: number): Shape =>
  kind(
    maximum === Number.MAX_SAFE_INTEGER ? "a count" : `an integer from ${minimum} to ${maximum}`,
    (value) => Number.isSafeInteger(value) && (value as number) >= minimum && (value as number) <= maximum,
  );

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const text = kind("a string", (value) => typeof value === "string");
const yesOrNo = kind("true or false", (value) => typeof value === "boolean");
const count = integerFrom(0, Number.MAX_SAFE_INTEGER);
const version = integerFrom(1, Number.MAX_SAFE_INTEGER);
const score = integerFrom(0, 10_000);
const share = orNull(integerFrom(1, 10_000));
const hash = matching("64 hexadecimal digits in lower case", /^[0-9a-f]{64}$/);
const amount = matching("an amount in digits", /^(0|[1-9][0-9]{0,18})$/);
const time = kind("a time such as 2030-01-15T12:00:00.000Z", isTime);
const state = kind("a state of a warrant", (value) => STATES.some((one) => one === value));
const exactly = (only: string): Shape => kind(`"${only}"`, (value) => value === only);

function isTime(value: unknown): boolean {
  if (typeof value !== "string" || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value)) return false;
  const milliseconds = Date.parse(value);
  return Number.isFinite(milliseconds) && new Date(milliseconds).toISOString() === value;
}

const actor = record({ kind: text, id: orNull(text) });

const payload = record({
  warrant_id: text,
  mode: text,
  from: orNull(state),
  to: state,
  version,
  actor,
  recorded_at: time,
  amount,
  asset: text,
  payee: text,
  released_bps: share,
  spec_hash: hash,
  agent_id: orNull(text),
  policy_id: orNull(text),
  policy_version: orNull(version),
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
  evaluator_version: orAbsent(version),
  evidence: orAbsent(text),
  signed_by: orAbsent(orNull(text)),
});

const receipt = record({
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
    policy_version: orNull(version),
    rules_hash: hash,
    opened_at: time,
    settled_at: time,
  }),
  checks: list(check),
  trace: list(entry),
  anchor: orNull(
    record({
      leaf_index: count,
      tree_size: version,
      root: hash,
      proof: list(hash),
      checkpoint: text,
      chain_ref: orNull(text),
    }),
  ),
  signature: orNull(text),
});

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
