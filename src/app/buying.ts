import type { Config, Secrets } from "../config.ts";
import type { ByteBudget } from "../core/byte-budget.ts";
import type { Mode } from "../core/roles.ts";
import { SECOND_MS } from "../core/time.ts";
import type { PrivateKey } from "../core/wallet-key.ts";
import { KNOWN_ASSETS } from "../core/x402/assets.ts";
import { FREE_BYTES_MAX } from "../core/x402/content.ts";
import { reconcilePurchases, recoverPurchases, recoverPurchasesAtStart } from "../jobs/purchases.ts";
import type { Job } from "../jobs/scheduler.ts";
import type { EvmChains } from "../platform/evm-chain.ts";
import type { EvmPayer } from "../platform/evm-payer.ts";
import { logFault, logWarning } from "../platform/log.ts";
import { createX402Client } from "../platform/x402-request.ts";
import type { Buying, Context } from "../services/context.ts";

/**
 * viem takes 20 ms to load, so it is loaded when it is first needed: with the first payment by a wallet, or the first question to
 * a chain. By `require`, for the reason in `platform/passkeys.ts`.
 */
const evmChain = (): typeof import("../platform/evm-chain.ts") => require("../platform/evm-chain.ts");
const evmPayer = (): typeof import("../platform/evm-payer.ts") => require("../platform/evm-payer.ts");

/** The wallet of a private key that the configuration has checked. */
function walletOf(mode: Mode, privateKey: PrivateKey): EvmPayer {
  let made: EvmPayer | null = null;
  const payer = (): EvmPayer => {
    made ??= evmPayer().createEvmPayer(mode, privateKey);
    return made;
  };
  return {
    mode,
    get address() {
      return payer().address;
    },
    sign: async (order, now) => payer().sign(order, now),
  };
}

export function buyingWith(
  config: Config,
  secrets: Secrets,
  listeners: () => readonly { readonly address: string; readonly port: number }[],
  budget: ByteBudget,
): Buying {
  let chains: EvmChains | null = null;
  const chainsOnce = (): EvmChains => {
    chains ??= evmChain().createEvmChains(config.evmRpc);
    return chains;
  };
  const { x402SandboxKey, x402LiveKey } = secrets;
  return {
    ...createX402Client({ allowNetworks: config.x402AllowNetworks, ownListeners: listeners, budget }),
    wallets: {
      sandbox: x402SandboxKey && walletOf("sandbox", x402SandboxKey),
      live: x402LiveKey && walletOf("live", x402LiveKey),
    },
    // The first rule for a token counts, so the operator's rules come first.
    assets: [...config.x402Assets, ...KNOWN_ASSETS],
    chains: {
      ids: [...config.evmRpc.keys()].toSorted((one, other) => one - other),
      find: async (question) =>
        evmChain().findingOf(
          await chainsOnce().authorizationState(question),
          question.validBefore,
          Date.now(),
        ),
      async balanceOf(...question) {
        const found = await chainsOnce().balanceOf(...question);
        return "away" in found ? null : found;
      },
    },
    pause: Bun.sleep,
    underWay: new Set(),
    contentBytesMax: config.contentBytes,
    freeBytesMax: FREE_BYTES_MAX,
  };
}

const onPurchaseFault = (error: unknown, purchaseId: string): void =>
  logFault("a purchase could not be ended", error, { purchase_id: purchaseId });

const onContradiction = (purchaseId: string): void =>
  logWarning(
    "a chain contradicts what a person said of a payment; nothing was moved, `holdfast x402 show` has both, `holdfast x402 acknowledge` ends the alarm",
    { purchase_id: purchaseId },
  );

/** Finishes the purchases that a crash interrupted, where no chain has to be asked. */
export const recoverPurchasesSoon = (ctx: Context) => recoverPurchasesAtStart(ctx, onPurchaseFault);

export const PURCHASE_JOBS: readonly Job[] = [
  {
    ...{ name: "purchases", doneBy: "one", everyMs: 2 * SECOND_MS },
    begin: () => (at) => recoverPurchases(at, onPurchaseFault),
  },
  {
    ...{ name: "payments", doneBy: "one", everyMs: 2 * SECOND_MS },
    begin: () => (at) => reconcilePurchases(at, onPurchaseFault, onContradiction),
  },
];
