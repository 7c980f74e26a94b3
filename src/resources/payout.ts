import { amount, form, integer, is, object, oneOf, orNull, text, time, type Wire } from "../core/form.ts";
import { PAYOUT_STATUSES, type PayeeAccount, type Payout, RAILS } from "../core/payout.ts";
import { type Waiting, waitSentence } from "../core/rail.ts";
import { MODES } from "../core/roles.ts";
import { isoTime } from "../core/time.ts";

const payoutForm = form("Payout", () =>
  object({
    /** Null while it is owed: a payout gets its id when it is submitted. */
    id: orNull(text),
    object: is("payout"),
    organisation_id: text,
    mode: oneOf(MODES),
    payee: text,
    asset: text,
    amount,
    rail: oneOf(RAILS),
    status: oneOf(PAYOUT_STATUSES),
    version: integer,
    reference: orNull(text),
    reason: orNull(text),
    /** Why it is owed, or submitted and not paid; null where people pay it by their own means, and where it has ended. */
    waits_for: orNull(object({ code: text, message: text, until: orNull(time) })),
    /** The newest transaction that pays it, such as `eip155:84532:0x…`; null on the rail `book`. */
    transaction: orNull(text),
    created_at: orNull(time),
    ended_at: orNull(time),
  }),
);
export type PayoutResource = Wire<typeof payoutForm>;

/** What the chain has to do with a payout. */
export type OnChain = { readonly waiting: Waiting | null; readonly transaction: string | null };

const NOT_ON_CHAIN: OnChain = { waiting: null, transaction: null };

const waitsFor = (waiting: Waiting | null): PayoutResource["waits_for"] =>
  waiting && {
    code: waiting.code,
    message: waitSentence(waiting),
    until: waiting.until === null ? null : isoTime(waiting.until),
  };

export const payoutResource = (
  payout: Payout,
  { waiting, transaction }: OnChain = NOT_ON_CHAIN,
): PayoutResource => ({
  id: payout.id,
  object: "payout",
  organisation_id: payout.organisationId,
  mode: payout.mode,
  payee: payout.payee,
  asset: payout.asset,
  amount: payout.amount.toString(),
  rail: payout.rail,
  status: payout.status,
  version: payout.version,
  reference: payout.reference,
  reason: payout.reason,
  waits_for: waitsFor(waiting),
  transaction,
  created_at: isoTime(payout.createdAt),
  ended_at: payout.endedAt === null ? null : isoTime(payout.endedAt),
});

/** What is owed to a payee and in no payout yet. */
export const owedResource = (
  { organisationId, mode }: Pick<Payout, "organisationId" | "mode">,
  { payee, asset, balance }: Pick<PayeeAccount, "payee" | "asset" | "balance">,
  rail: Payout["rail"],
  waiting: Waiting | null,
): PayoutResource => ({
  id: null,
  object: "payout",
  organisation_id: organisationId,
  mode,
  payee,
  asset,
  amount: balance.payable.toString(),
  rail,
  status: "owed",
  version: 0,
  reference: null,
  reason: null,
  waits_for: waitsFor(waiting),
  transaction: null,
  created_at: null,
  ended_at: null,
});

/** A page of payouts, or of what is owed. `next_cursor` is null at the end. */
export type PayoutList = {
  readonly object: "list";
  readonly data: readonly PayoutResource[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
};
