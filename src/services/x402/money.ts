import { SECOND_MS } from "../../core/time.ts";
import { type Finding, type Known, knownOf, type Purchase } from "../../core/x402/purchase.ts";
import type { Context } from "../context.ts";

/** Whether the seller was paid, and who said so. */
export type Money = { readonly known: Known; readonly knownBy: Purchase["knownBy"] };

export const UNPAID: Money = { known: "unpaid", knownBy: null };
export const NOT_KNOWN: Money = { known: "unknown", knownBy: null };

/**
 * Waits before the chain is asked again. The seller has a receipt of a settlement, and the chain's endpoint
 * may learn of it, or confirm it, a little later.
 */
const RECEIPT_WAITS_MS = [SECOND_MS, 2 * SECOND_MS, 4 * SECOND_MS];

/** What the chain says of a purchase's authorization. */
export function findAuthorization(
  ctx: Context,
  { quote, payer, nonce, validBefore }: Purchase,
): Promise<Finding> {
  if (quote?.pays.kind !== "exact" || payer === null || nonce === null || validBefore === null)
    throw new Error("no chain knows of a voucher");
  const { chainId, contract } = quote.pays;
  return ctx.x402.chains.find({ chainId, contract, authorizer: payer, nonce, validBefore });
}

/** Whether the seller was paid, as far as is known when the paid request is over. */
export async function moneyOf(ctx: Context, purchase: Purchase): Promise<Money> {
  const { quote, attempt } = purchase;
  if (quote?.pays.kind !== "exact" || attempt === "never_connected") return UNPAID;
  const finding = await findingNow(ctx, purchase);
  const known = knownOf("exact", attempt ?? "no_answer", finding);
  if (known === "unknown") return NOT_KNOWN;
  return { known, knownBy: finding === "none" ? "receipt" : "chain" };
}

async function findingNow(ctx: Context, purchase: Purchase): Promise<Finding> {
  let finding = await findAuthorization(ctx, purchase);
  for (const waitMs of purchase.attempt === "receipted" ? RECEIPT_WAITS_MS : []) {
    if (finding !== "open") break;
    await ctx.x402.pause(waitMs);
    finding = await findAuthorization(ctx, purchase);
  }
  return finding;
}

const CHECK_MS_MIN = 5 * SECOND_MS;
/** The longest wait before the chain is asked again. */
export const CHECK_MS_MAX = 3_600 * SECOND_MS;

/** When the chain is asked again. The wait grows with the time that has passed since the answer. */
export function nextCheckAt({ answeredAt, createdAt }: Purchase, now: number): number {
  const elapsedMs = now - (answeredAt ?? createdAt);
  return now + Math.min(CHECK_MS_MAX, Math.max(CHECK_MS_MIN, Math.floor(elapsedMs / 2)));
}
