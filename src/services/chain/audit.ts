import type { Signing, WalletTransaction } from "../../core/chain-transaction.ts";
import type { Context } from "../context.ts";

const TRANSACTIONS_AT_ONCE = 1_000;

/** The transactions of the instance's wallets whose signings are of something else than their rows say, one message each. */
export async function auditTransactions(ctx: Context): Promise<readonly string[]> {
  const problems: string[] = [];
  for (let last: WalletTransaction | null = null; ; ) {
    let page: readonly WalletTransaction[];
    try {
      page = await ctx.store.read(({ chainTransactions }) =>
        chainTransactions.after(last, TRANSACTIONS_AT_ONCE),
      );
    } catch (error) {
      return [...problems, `the transactions cannot be read: ${String(error)}`];
    }
    for (const transaction of page)
      for (const [index, signing] of transaction.signings.entries()) {
        const { chainId, wallet, nonce } = transaction;
        const wrong = await wrongIn(ctx, transaction, signing);
        if (wrong !== null)
          problems.push(
            `transaction ${nonce} of ${wallet} on eip155:${chainId}: ${wrong} of signing ${index + 1} is not what was signed`,
          );
      }
    last = page.at(-1) ?? null;
    if (last === null) return problems;
  }
}

/** What the row says otherwise than the signed bytes; null where they agree. */
async function wrongIn(
  { chain }: Context,
  { chainId, wallet, nonce, to, data, gas }: WalletTransaction,
  { hash, raw, fees }: Signing,
): Promise<string | null> {
  const signed = await chain.decode(raw);
  if (signed === null) return "the transaction";
  const same = {
    "the chain": signed.chainId === chainId,
    "the wallet": signed.wallet === wallet,
    "the nonce": signed.nonce === nonce,
    "the address": signed.to.toLowerCase() === to.toLowerCase(),
    "the data": signed.data === data,
    "the gas": signed.gas === gas,
    "the hash": signed.hash === hash,
    "the fee": signed.fees.max === fees.max && signed.fees.priority === fees.priority,
  };
  return Object.entries(same).find(([, isSame]) => !isSame)?.[0] ?? null;
}
