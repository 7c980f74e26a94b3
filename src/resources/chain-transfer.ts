import { type ChainTransfer, referenceOf, TRANSFER_STATUSES } from "../core/chain-transfer.ts";
import type { DepositSender } from "../core/deposit-sender.ts";
import { amount, form, integer, is, object, oneOf, orNull, text, time, type Wire } from "../core/form.ts";
import { MODES } from "../core/roles.ts";
import { isoTime } from "../core/time.ts";
import type { TreasuryWatch } from "../core/treasury-watch.ts";
import { caip2Of } from "../core/x402/chains.ts";

const transferForm = form("ChainTransfer", () =>
  object({
    id: text,
    object: is("chain_transfer"),
    mode: oneOf(MODES),
    asset: text,
    amount,
    /** CAIP-2. */
    chain: text,
    /** The treasury's address, and the other side's. */
    treasury: text,
    counterparty: text,
    transaction: text,
    /** Null where a reorganisation has taken it out of the chain. */
    block: orNull(integer),
    /** What its deposit is called. */
    reference: text,
    status: oneOf(TRANSFER_STATUSES),
    deposit_id: orNull(text),
    created_at: time,
  }),
);
export type TransferResource = Wire<typeof transferForm>;

export const transferResource = (watch: TreasuryWatch, transfer: ChainTransfer): TransferResource => ({
  id: transfer.id,
  object: "chain_transfer",
  mode: watch.mode,
  asset: watch.asset,
  amount: transfer.amount.toString(),
  chain: caip2Of(watch.chainId),
  treasury: watch.address,
  counterparty: transfer.counterparty,
  transaction: transfer.hash,
  block: transfer.block,
  reference: referenceOf(watch.chainId, transfer),
  status: transfer.status,
  deposit_id: transfer.depositId,
  created_at: isoTime(transfer.createdAt),
});

const senderForm = form("DepositSender", () =>
  object({
    object: is("deposit_sender"),
    organisation_id: text,
    mode: oneOf(MODES),
    address: text,
    note: orNull(text),
    created_at: time,
  }),
);
export type SenderResource = Wire<typeof senderForm>;

export const senderResource = (sender: DepositSender): SenderResource => ({
  object: "deposit_sender",
  organisation_id: sender.organisationId,
  mode: sender.mode,
  address: sender.address,
  note: sender.note,
  created_at: isoTime(sender.createdAt),
});
