import type { ChainCommand } from "./chain-commands.ts";
import type { Step } from "./commands.ts";

/** Steps of histories with a treasury that are made of others. */

/** A person opens a warrant and releases it. */
export function owing({ payee, amount }: Extract<ChainCommand, { do: "owe" }>): readonly Step[] {
  const sent = { who: { role: "operator" }, ifMatch: null, reuse: null } as const;
  const terms = { payee, amount, agent: "none", asset: "USDC", policy: null, minutes: 600 } as const;
  const decision = { verb: "settle", warrant: 0, decision: "release", bps: 1 } as const;
  return [
    { do: "open", ...sent, ...terms },
    { do: "decide", ...sent, ...decision },
  ];
}

const paidByHand = (payee: "acme" | "acme labs"): Step => ({
  ...{ do: "submit", by: "machine", payee, asset: "USDC", byHand: true },
});
const mined = { blocks: 4, reverts: false } as const;
const payouts: Step = { do: "payouts", mined, dies: null };

/**
 * How a history ends: the chain is well again, and what is under way is confirmed. What is still owed is paid by other means, so that
 * no later history in the same ledger pays it.
 */
export const SETTLING: readonly Step[] = [
  { do: "node", is: "well", token: "plain" },
  ...[payouts, payouts, payouts, paidByHand("acme"), paidByHand("acme labs"), payouts],
  { do: "look", mined, dies: null },
];
