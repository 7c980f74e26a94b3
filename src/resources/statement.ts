import { form, is, object, oneOf, orNull, text, time, type Wire } from "../core/form.ts";
import { type Legs, POSTING_KINDS, type PostingKind } from "../core/postings.ts";
import { isoTime } from "../core/time.ts";

const lineForm = form("StatementLine", () =>
  object({
    object: is("statement_line"),
    recorded_at: time,
    asset: text,
    kind: oneOf(POSTING_KINDS),
    /** The deposit, correction, warrant or payout. */
    cause_id: text,
    payee: orNull(text),
    /** By how much each balance changed: whole numbers, negative ones with a minus. */
    available: text,
    held: text,
    paid: text,
    payable: text,
    submitted: text,
    /** The balances after it. */
    available_after: text,
    held_after: text,
    paid_after: text,
    payable_after: text,
    submitted_after: text,
  }),
);
export type StatementLine = Wire<typeof lineForm>;

/** A posting as a statement shows it. */
export type StatedPosting = {
  readonly asset: string;
  readonly kind: PostingKind;
  readonly causeId: string;
  readonly payee: string | null;
  readonly recordedAt: number;
  readonly legs: Legs;
  /** The balances after it. */
  readonly after: Legs;
};

export const statementLine = ({ legs, after, ...posting }: StatedPosting): StatementLine => ({
  object: "statement_line",
  recorded_at: isoTime(posting.recordedAt),
  asset: posting.asset,
  kind: posting.kind,
  cause_id: posting.causeId,
  payee: posting.payee,
  available: legs.available.toString(),
  held: legs.held.toString(),
  paid: legs.paid.toString(),
  payable: legs.payable.toString(),
  submitted: legs.submitted.toString(),
  available_after: after.available.toString(),
  held_after: after.held.toString(),
  paid_after: after.paid.toString(),
  payable_after: after.payable.toString(),
  submitted_after: after.submitted.toString(),
});
