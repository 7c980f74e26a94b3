import type { Deposit } from "../core/deposit.ts";
import { amount, form, is, object, oneOf, orNull, text, time, type Wire } from "../core/form.ts";
import { MODES } from "../core/roles.ts";
import { isoTime } from "../core/time.ts";

const depositForm = form("Deposit", () =>
  object({
    id: text,
    object: is("deposit"),
    organisation_id: text,
    mode: oneOf(MODES),
    asset: text,
    amount,
    reference: orNull(text),
    created_at: time,
  }),
);

export const depositResource = (deposit: Deposit): Wire<typeof depositForm> => ({
  id: deposit.id,
  object: "deposit",
  organisation_id: deposit.organisationId,
  mode: deposit.mode,
  asset: deposit.asset,
  amount: deposit.amount.toString(),
  reference: deposit.reference,
  created_at: isoTime(deposit.createdAt),
});
