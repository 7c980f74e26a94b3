import type { Config, Secrets } from "../config.ts";
import { SECOND_MS } from "../core/time.ts";
import { KNOWN_ASSETS } from "../core/x402/assets.ts";
import { reconcilePurchases, recoverPurchases, recoverPurchasesAtStart } from "../jobs/purchases.ts";
import type { Job } from "../jobs/scheduler.ts";
import { createEvmChains, findingOf } from "../platform/evm-chain.ts";
import { createEvmPayer } from "../platform/evm-payer.ts";
import { logFault } from "../platform/log.ts";
import { createX402Client } from "../platform/x402-request.ts";
import type { Buying, Context } from "../services/context.ts";

export function buyingWith(
  config: Config,
  secrets: Secrets,
  listeners: () => readonly { readonly address: string; readonly port: number }[],
): Buying {
  const chains = createEvmChains(config.evmRpc);
  const { x402SandboxKey, x402LiveKey } = secrets;
  return {
    ...createX402Client({ allowNetworks: config.x402AllowNetworks, ownListeners: listeners }),
    wallets: {
      sandbox: x402SandboxKey && createEvmPayer("sandbox", x402SandboxKey),
      live: x402LiveKey && createEvmPayer("live", x402LiveKey),
    },
    // Of two rules for a token the first counts, so the operator's come first.
    assets: [...config.x402Assets, ...KNOWN_ASSETS],
    chains: {
      ids: [...config.evmRpc.keys()],
      find: async (question, at) =>
        findingOf(await chains.authorizationState(question, at), question.validBefore, Date.now()),
      async balanceOf(...question) {
        const found = await chains.balanceOf(...question);
        return "away" in found ? null : found;
      },
    },
    pause: Bun.sleep,
    underWay: new Set(),
  };
}

const onPurchaseFault = (error: unknown, purchaseId: string): void =>
  logFault("a purchase could not be ended", error, { purchase_id: purchaseId });

/** What a crash cut off of purchases, as far as it needs no chain. */
export const recoverPurchasesSoon = (ctx: Context) => recoverPurchasesAtStart(ctx, onPurchaseFault);

export const purchaseJobs = (ctx: Context): readonly Job[] => [
  { name: "purchases", everyMs: 2 * SECOND_MS, run: () => recoverPurchases(ctx, onPurchaseFault) },
  { name: "payments", everyMs: 2 * SECOND_MS, run: () => reconcilePurchases(ctx, onPurchaseFault) },
];
