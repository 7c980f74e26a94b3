import { type ChainTransfer, referenceOf } from "../../core/chain-transfer.ts";
import type { Deposit } from "../../core/deposit.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { AMOUNT_MAX } from "../../core/money.ts";
import { type Balance, deposit as depositLegs, NO_BALANCE } from "../../core/postings.ts";
import type { TreasuryWatch } from "../../core/treasury-watch.ts";
import type { Put } from "../../store/change.ts";
import type { Scope } from "../../store/scope.ts";
import type { Context } from "../context.ts";

/** How transfers to a treasury become deposits (docs/money, "Deposits on a chain"). */

/** What a command that credits a transfer has to find. */
export const creditNeeds = (watch: TreasuryWatch, transfer: ChainTransfer) => {
  const { chainId, token, address, asset } = watch;
  return {
    treasuryWatch: { chainId, token, address },
    chainTransfer: transfer,
    balance: asset,
    depositReferenced: { asset, reference: referenceOf(chainId, transfer) },
  };
};

type Found = {
  readonly treasuryWatch: TreasuryWatch | null;
  readonly chainTransfer: ChainTransfer | null;
  readonly balance: Balance | null;
  readonly depositReferenced: Deposit | null;
  readonly recordedAt: number;
};

/**
 * The deposit of a transfer and what is written for it; or why it cannot be one: it is one already, it is in no confirmed block, or
 * the balance is full. A deposit that was recorded by hand with the transfer's reference and amount is its deposit.
 */
export function creditOf(
  { treasuryWatch: watch, chainTransfer: transfer, balance, depositReferenced, recordedAt }: Found,
  scope: Scope,
  depositId: string,
): { readonly deposit: Deposit; readonly put: readonly Put[] } | Refusal {
  if (!watch || !transfer) throw new Error("a transfer that was read is gone");
  const refused = refuseCredit(watch, transfer);
  if (refused) return refused;
  const { amount } = transfer;
  const reference = referenceOf(watch.chainId, transfer);
  const creditedTo = (deposit: Deposit): Put => ({
    kind: "chainTransfer",
    before: transfer,
    row: { ...transfer, status: "credited", depositId: deposit.id },
  });
  if (depositReferenced)
    return depositReferenced.amount === amount
      ? { deposit: depositReferenced, put: [creditedTo(depositReferenced)] }
      : refuse(
          "deposit_reference_used",
          `reference: the deposit ${depositReferenced.id} of ${depositReferenced.amount} ${watch.asset} has it, and the transfer brought ${amount}.`,
        );
  const { available, held, paid } = balance ?? NO_BALANCE;
  const room = AMOUNT_MAX - available - held - paid;
  if (amount > room)
    return refuseField("amount", `a balance holds at most ${AMOUNT_MAX} of an asset; ${room} more fits`);
  const { asset } = watch;
  const deposit: Deposit = { ...scope, id: depositId, asset, amount, reference, createdAt: recordedAt };
  const posting = { ...scope, asset, legs: depositLegs(amount), causeId: depositId, payee: null, recordedAt };
  return {
    deposit,
    put: [
      { kind: "deposit", row: deposit },
      { kind: "posting", row: { ...posting, kind: "deposit" } },
      creditedTo(deposit),
    ],
  };
}

function refuseCredit(watch: TreasuryWatch, { id, status, block, depositId }: ChainTransfer): Refusal | null {
  if (status === "sent")
    return refuse(
      "illegal_transition",
      `The transfer ${id} left the treasury; only one that came in is a deposit.`,
    );
  if (depositId !== null)
    return refuse("illegal_transition", `The transfer ${id} is the deposit ${depositId} already.`);
  if (block === null)
    return refuse(
      "illegal_transition",
      `The transfer ${id} is in no block any more: a reorganisation took it out.`,
    );
  return block > watch.reconciled.number
    ? refuse(
        "illegal_transition",
        `The transfer ${id} is in block ${block}, and the treasury's transfers add up to its balance up to block ${watch.reconciled.number} so far.`,
      )
    : null;
}

/** What came of a transfer: whose deposit it is, or why a person has to say whose it is. */
export type Judged =
  | { readonly outcome: "credited"; readonly deposit: Deposit }
  | { readonly outcome: "unassigned"; readonly why: string }
  /** It has changed meanwhile, and is looked at again. */
  | { readonly outcome: "changed" };

/** Credits a transfer to the organisation that has its sender, or leaves it to a person where nobody has. */
export async function judgeTransfer(
  ctx: Context,
  watch: TreasuryWatch,
  transfer: ChainTransfer,
): Promise<Judged> {
  const name = { mode: watch.mode, address: transfer.counterparty };
  const sender = await ctx.store.read(({ depositSenders }) => depositSenders.get(name));
  if (sender === null) return leaveUnassigned(ctx, transfer, "nobody has registered its sender");
  const { organisationId } = sender;
  const scope: Scope = { organisationId, mode: watch.mode };
  const depositId = ctx.newId("deposit");
  const answer = await ctx.store.execute({
    scope,
    needs: { ...creditNeeds(watch, transfer), depositSender: name },
    decide(found) {
      const isAsSeen =
        found.chainTransfer?.status === "found" && found.depositSender?.organisationId === organisationId;
      if (!isAsSeen) return { answer: null };
      const credit = creditOf(found, scope, depositId);
      return isRefusal(credit)
        ? { answer: credit }
        : { answer: { deposit: credit.deposit }, change: { put: credit.put } };
    },
  });
  if (answer === null) return { outcome: "changed" };
  return isRefusal(answer)
    ? leaveUnassigned(ctx, transfer, answer.message)
    : { outcome: "credited", ...answer };
}

async function leaveUnassigned(ctx: Context, transfer: ChainTransfer, why: string): Promise<Judged> {
  const isLeft = await ctx.store.execute({
    scope: null,
    needs: { chainTransfer: transfer },
    decide({ chainTransfer: before }) {
      if (before?.status !== "found") return { answer: false };
      const row = { ...before, status: "unassigned" } as const;
      return { answer: true, change: { put: [{ kind: "chainTransfer", before, row }] } };
    },
  });
  return isLeft === true ? { outcome: "unassigned", why } : { outcome: "changed" };
}
