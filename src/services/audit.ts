import { auditTransactions } from "./chain/audit.ts";
import type { Context } from "./context.ts";
import { fromCopy } from "./from-copy.ts";
import { auditSignatures, countSignatures, signersOf } from "./log/audit.ts";
import { auditNewestStatements } from "./solvency/audit.ts";
import { auditReceipts } from "./warrants/audit-receipts.ts";

/**
 * Computes everything anew that is kept, and compares: the ledger with itself, the signatures with their keys, and some receipts
 * with what their readers check. One message for each disagreement.
 *
 * @param receipts how many receipts of settled warrants are made, spread over all of them
 * @param onProgress is called with how much is done, and how much there is to do: rows, signatures and receipts together
 */
export async function auditInstance(
  given: Context,
  receipts: number,
  onProgress: (done: number, total: number) => void,
): Promise<readonly string[]> {
  const ctx = fromCopy(given);
  const settled = await ctx.store.read(({ warrants }) => warrants.someSettled(receipts));
  const more = (await countSignatures(ctx.store)) + settled.length;
  let [done, total] = [0, more];
  const did = (things: number): void => {
    done += things;
    onProgress(done, total);
  };
  const rows = await ctx.store.audit((read, all) => {
    [done, total] = [read, all + more];
    onProgress(done, total);
  });
  const signatures = await auditSignatures(ctx.store, signersOf(ctx), did);
  const sent = await auditTransactions(ctx);
  const stated = await auditNewestStatements(ctx);
  return [...rows, ...signatures, ...sent, ...stated, ...(await auditReceipts(ctx, settled, did))];
}
