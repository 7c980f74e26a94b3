import { amount, form, integer, is, object, oneOf, orNull, text, time, type Wire } from "../core/form.ts";
import { PAYOUT_STATUSES, type PayeeAccount, type Payout } from "../core/payout.ts";
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
    rail: is("book"),
    status: oneOf(PAYOUT_STATUSES),
    version: integer,
    reference: orNull(text),
    reason: orNull(text),
    created_at: orNull(time),
    ended_at: orNull(time),
  }),
);
export type PayoutResource = Wire<typeof payoutForm>;

export const payoutResource = (payout: Payout): PayoutResource => ({
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
  created_at: isoTime(payout.createdAt),
  ended_at: payout.endedAt === null ? null : isoTime(payout.endedAt),
});

/** What is owed to a payee and in no payout yet. */
export const owedResource = (
  { organisationId, mode }: Pick<Payout, "organisationId" | "mode">,
  { payee, asset, balance }: PayeeAccount,
): PayoutResource => ({
  id: null,
  object: "payout",
  organisation_id: organisationId,
  mode,
  payee,
  asset,
  amount: balance.payable.toString(),
  rail: "book",
  status: "owed",
  version: 0,
  reference: null,
  reason: null,
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
