import { sha256Bytes } from "../../core/canonical.ts";
import { isRefusal } from "../../core/errors.ts";
import { verifyReceipt } from "../../core/receipt/verify.ts";
import type { Context } from "../context.ts";
import { readReceipt } from "./read.ts";

/** How many receipts an audit makes where nothing else is asked. Each takes about a millisecond. */
export const RECEIPTS = 200;

/**
 * Makes the receipts of warrants, as anybody may ask for them, and verifies each as whoever gets it would: its signature, hashes,
 * moves, checks, place in the log and checkpoint. No receipt is kept, so there is nothing else of them to check. One message for
 * each that does not hold.
 *
 * @param warrantIds of settled warrants
 * @param did is called with how many more were made
 */
export async function auditReceipts(
  ctx: Context,
  warrantIds: readonly string[],
  did: (receipts: number) => void,
): Promise<readonly string[]> {
  const problems: string[] = [];
  try {
    for (const id of warrantIds) {
      const found = await problemsOfReceipt(ctx, id);
      problems.push(...found.map((problem) => `the receipt of warrant ${id}: ${problem}`));
      did(1);
    }
  } catch (error) {
    if (!isRefusal(error)) throw error;
    problems.push(`no receipt can be made: ${error.message}`);
  }
  return problems;
}

/** Throws a refusal where none can be made, since the key is missing. */
async function problemsOfReceipt(ctx: Context, id: string): Promise<readonly string[]> {
  try {
    const receipt = await readReceipt(ctx, id);
    if (isRefusal(receipt)) return [receipt.message];
    const against = { jwks: ctx.tokens.jwks, witnesses: [] };
    return (await verifyReceipt(JSON.parse(JSON.stringify(receipt)), against, sha256Bytes)).problems;
  } catch (error) {
    if (isRefusal(error)) throw error;
    // A damaged row cannot be read. The other receipts are worth verifying all the same.
    return [`cannot be made: ${error instanceof Error ? error.message : String(error)}`];
  }
}
