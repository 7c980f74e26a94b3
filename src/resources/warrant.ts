import { Type } from "@sinclair/typebox";
import { specForm } from "../core/clauses/form.ts";
import {
  amount,
  boolean,
  form,
  hash,
  integer,
  is,
  object,
  oneOf,
  orNull,
  share,
  text,
  time,
  type Wire,
} from "../core/form.ts";
import { BUILT_IN_RULES_HASH } from "../core/policy.ts";
import { HOUR_MS, isoTime, isoTimeOrNull } from "../core/time.ts";
import type { WarrantThen } from "../core/trace.ts";
import { heldWarrant, NOTHING_CHOSEN, STATES, type Warrant, type WarrantEncoding } from "../core/warrant.ts";
import {
  amountInput,
  assetInput,
  closed,
  id,
  literals,
  pageLimit,
  payeeInput,
  plainText,
  releasedBps,
  specInput,
  urlInput,
} from "./input.ts";
import { listForm } from "./list.ts";

/** A warrant (docs/concepts, "The states of a warrant"), and a page of them. */

export const warrantForm = form("Warrant", () =>
  object({
    id: text,
    object: is("warrant"),
    state: oneOf(STATES),
    version: Type.Integer({ minimum: 1 }),
    amount,
    asset: text,
    released_bps: share,
    payee: text,
    spec_hash: hash,
    spec: specForm(),
    agent_id: orNull(text),
    verifier_id: orNull(text),
    policy_id: orNull(text),
    policy_version: orNull(integer),
    deadline: time,
    opened_at: time,
    settled_at: orNull(time),
    created_at: time,
  }),
);

export const warrantResource = (warrant: WarrantThen): Wire<typeof warrantForm> => ({
  id: warrant.id,
  object: "warrant",
  state: warrant.state,
  version: warrant.version,
  amount: warrant.amount.toString(),
  asset: warrant.asset,
  released_bps: warrant.releasedBps,
  payee: warrant.payee,
  spec_hash: warrant.specHash,
  spec: warrant.spec,
  agent_id: warrant.agentId,
  verifier_id: warrant.verifierId,
  policy_id: warrant.policyId,
  policy_version: warrant.policyVersion,
  deadline: isoTime(warrant.deadline),
  opened_at: isoTime(warrant.openedAt),
  settled_at: isoTimeOrNull(warrant.settledAt),
  created_at: isoTime(warrant.openedAt),
});

/** A warrant that does not exist, just opened, for examples. */
export const exampleWarrant = (of: Pick<Warrant, "id" | "organisationId" | "mode" | "openedAt">): Warrant =>
  heldWarrant({
    ...of,
    amount: 8_400_000n,
    asset: "USDC",
    payee: "example-payee",
    spec: { clauses: [{ kind: "http.status", equals: 200 }] },
    ...NOTHING_CHOSEN,
    openedBy: null,
    sessionId: null,
    policyVersion: null,
    rulesHash: BUILT_IN_RULES_HASH,
    deadline: of.openedAt + HOUR_MS,
  });

/**
 * How an answer shows a warrant, by the number of the form. An Idempotency-Key stores this number, so a
 * replay writes the same bytes again. A new form gets a new number; the old ones stay.
 */
export const WARRANT_ENCODERS: Readonly<Record<WarrantEncoding, (warrant: WarrantThen) => object>> = {
  1: warrantResource,
};
/** The form of new answers. */
export const WARRANT_ENCODING: WarrantEncoding = 1;

/** The orders of a list. */
const SORTS = ["deadline", "created"] as const;

export const warrantListForm = form("WarrantList", () =>
  listForm(warrantForm(), {
    has_more: boolean,
    sort: oneOf(SORTS),
    next_offset: orNull(integer),
    next_cursor: orNull(text),
  }),
);
type WarrantList = Wire<typeof warrantListForm>;

export const warrantListResource = (
  warrants: readonly Warrant[],
  { has_more, sort, next_offset, next_cursor }: Omit<WarrantList, "object" | "data">,
): WarrantList => ({
  object: "list",
  data: warrants.map(warrantResource),
  has_more,
  sort,
  next_offset,
  next_cursor,
});

export const openBody = Type.Object(
  {
    amount: amountInput,
    asset: assetInput,
    payee: payeeInput,
    deadline: plainText({ lengthMax: 64, description: "an ISO 8601 time with a zone" }),
    spec: specInput,
    agent_id: Type.Optional(id),
    verifier_id: Type.Optional(id),
    policy_id: Type.Optional(id),
  },
  closed,
);

export const verifyBody = Type.Object({ source_url: urlInput }, closed);

export const partialBody = Type.Object({ released_bps: releasedBps }, closed);

/** The largest offset of a list. `sort=created` has cursors instead, without such a limit. */
export const OFFSET_MAX = 100_000;

export const listQuery = Type.Object(
  {
    state: Type.Optional(literals(STATES)),
    agent_id: Type.Optional(id),
    sort: Type.Optional(literals(SORTS)),
    limit: pageLimit,
    offset: Type.Optional(
      Type.Integer({ minimum: 0, maximum: OFFSET_MAX, description: "an integer from 0 to 100000" }),
    ),
    starting_after: Type.Optional(id),
    ending_before: Type.Optional(id),
  },
  closed,
);
