import { WEI_OF_GWEI } from "./anchor-settings.ts";
import type { ChainRules } from "./chain-transaction.ts";
import { AMOUNT_MAX, parseAmount } from "./money.ts";
import type { Mode } from "./roles.ts";
import { type ChainOfMode, chainOfCaip2, chainOfMode } from "./x402/chains.ts";

/** Where real money is: wallets on EVM chains, and the tokens that stand for assets of the ledger (docs/money, "On a chain"). */

/**
 * A token that stands for an asset of one mode. What is sent to the treasury's address is a deposit, and payouts of the asset are
 * sent from there. The sandbox has test networks only, and live has none of them.
 */
export type TreasuryToken = {
  readonly [M in Mode]: {
    readonly mode: M;
    readonly chainId: ChainOfMode<M>;
    /** The token's address, in lower case. */
    readonly token: string;
    /** The asset in the ledger. One unit of the token's smallest is one unit of the ledger. */
    readonly asset: string;
    readonly limits: PayoutLimits;
  };
}[Mode];

/** What payouts are sent without a person, of one organisation, in the smallest unit. 0: none. */
export type PayoutLimits = {
  /** The most of one payout. */
  readonly payoutMax: bigint;
  /** The most in 24 hours. */
  readonly dayMax: bigint;
};

/** A token with the wallet that holds it. */
export type Treasury = TreasuryToken & {
  /** The wallet's address, with its checksum. */
  readonly address: string;
};

/** How money comes in and goes out on chains. */
export type TreasuryPlan = {
  /** The tokens of both modes; none where people pay by their own means. */
  readonly tokens: readonly TreasuryToken[];
  /** How transactions are made and waited for. */
  readonly rules: ChainRules;
  /** How often what is owed is paid out. */
  readonly payoutMinutes: number;
};

/** The settings by their names; those that are left out have defaults. */
export const treasuryPlanOf = ({
  TREASURY_SANDBOX: sandbox = [],
  TREASURY_LIVE: live = [],
  TREASURY_CONFIRMATIONS: confirmations = 12,
  TREASURY_FEE_MAX: feeMax = 100n * WEI_OF_GWEI,
  PAYOUT_MINUTES: payoutMinutes = 10,
}: {
  readonly TREASURY_SANDBOX?: readonly TreasuryToken[];
  readonly TREASURY_LIVE?: readonly TreasuryToken[];
  readonly TREASURY_CONFIRMATIONS?: number;
  readonly TREASURY_FEE_MAX?: bigint;
  readonly PAYOUT_MINUTES?: number;
}): TreasuryPlan => ({ tokens: [...sandbox, ...live], rules: { confirmations, feeMax }, payoutMinutes });

type Problem = { readonly problem: string };

const TOKEN = /^(eip155:[0-9]+)\/(0x[0-9a-fA-F]{40})=([A-Za-z0-9._-]{1,32}):([0-9]+):([0-9]+)$/;

const EXAMPLE = { sandbox: "eip155:84532", live: "eip155:8453" } as const;

/** Reads the tokens of a mode: chain and contract, asset in the ledger, the most of one payout and of 24 hours. */
export const parseTreasury =
  (mode: Mode) =>
  (text: string): readonly TreasuryToken[] | Problem => {
    const tokens: TreasuryToken[] = [];
    for (const entry of text.split(",").map((entry) => entry.trim())) {
      const token = tokenOf(mode, entry);
      if ("problem" in token) return token;
      const isNamed = tokens.some(
        ({ asset, chainId, token: address }) =>
          asset === token.asset || (chainId === token.chainId && address === token.token),
      );
      if (isNamed)
        return { problem: `must be tokens, each named once, and one for each asset; not ${entry} too` };
      tokens.push(token);
    }
    return tokens;
  };

function tokenOf(mode: Mode, entry: string): TreasuryToken | Problem {
  const [, chain = "", address = "", asset = "", payout = "", day = ""] = TOKEN.exec(entry) ?? [];
  const chainId = chainOfCaip2(chain);
  const [payoutMax, dayMax] = [parseAmount(payout), parseAmount(day)];
  if (chainId === null || payoutMax === null || dayMax === null) {
    return {
      problem: `must be tokens such as ${EXAMPLE[mode]}/0x…=USDC:5000000:50000000 (the most of one payout, and of 24 hours, each at most ${AMOUNT_MAX}); ${entry} is not one`,
    };
  }
  const rest = { token: address.toLowerCase(), asset, limits: { payoutMax, dayMax } };
  if (mode === "sandbox") {
    const test = chainOfMode(mode, chainId);
    return test === null
      ? { problem: `must be tokens on test networks; ${chain} is not known as one` }
      : { mode, chainId: test, ...rest };
  }
  const real = chainOfMode(mode, chainId);
  return real === null
    ? { problem: `must be tokens on chains with real money; ${chain} is a test network` }
    : { mode, chainId: real, ...rest };
}
