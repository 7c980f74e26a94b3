import { MINUTE_MS } from "../time.ts";
import type { Treasury } from "../treasury.ts";
import type { Owed } from "./owed.ts";

/** What a treasury held at a confirmed block, as a node said. */
export type Holding = {
  /** In the token's smallest unit. */
  readonly balance: bigint;
  readonly block: number;
  /** `0x` and 64 hex digits. */
  readonly blockHash: string;
  /** Epoch milliseconds. */
  readonly blockTime: number;
  /** The time of the chain's newest block. It is old where the node stands still; epoch milliseconds. */
  readonly newestTime: number;
};

/**
 * What the ledger owed at a moment, and what it has submitted since. A payout is submitted before it is sent, so that what left the
 * chain up to that moment was submitted before it, or since.
 */
export type OwedThen = { readonly owed: Owed; readonly submittedSince: bigint };

/** Whether a treasury held enough. `unknown` where the chain did not say. */
export type Judgement = "enough" | "short" | "unknown";

/**
 * Which moment of the ledger is compared with a block: so long before the time of the block that no deposit which is credited by then
 * is in a later block, though the clocks differ a little.
 */
export const CLOCKS_DIFFER_MS = MINUTE_MS;

/**
 * Whether the chain held at a block what was then owed for certain: nothing that was under way, or was submitted since, since a block
 * may have it although the ledger does not know that yet. A deposit that is not credited yet only adds to what the chain holds.
 */
export function judge(holding: Holding | null, { owed, submittedSince }: OwedThen): Judgement {
  if (holding === null) return "unknown";
  return holding.balance < owed.available + owed.held + owed.payable - submittedSince ? "short" : "enough";
}

/** What was seen of a treasury last. */
export type SeenTreasury = Pick<Treasury, "mode" | "asset"> & {
  /** CAIP-2. */
  readonly chain: string;
  readonly judgement: Judgement;
  /** Null where the chain has not answered since the start. */
  readonly seen: { readonly balance: bigint; readonly block: number; readonly ageMs: number } | null;
};

/** After so long without a new block nobody knows whether there is still enough. What was short stays so until it is seen again. */
export const SEEN_MS_MAX = 15 * MINUTE_MS;

/** What is known now of a treasury, from what was found at a block that was the newest one so long ago. */
export const judgeSeen = (found: Judgement, ageMs: number): Judgement =>
  found === "enough" && ageMs > SEEN_MS_MAX ? "unknown" : found;

/** What the ledger owes of an asset in one mode, beside what its treasury holds. */
export type SolvencyLine = Pick<Treasury, "mode" | "asset"> & {
  readonly owed: Owed;
  /** Null where no treasury holds the asset on a chain. */
  readonly held: HeldLine | null;
};

export type HeldLine = {
  readonly treasury: Treasury;
  /** Null where the chain did not say. */
  readonly holding: Holding | null;
  /** Why it did not. */
  readonly away: string | null;
  readonly judgement: Judgement;
};
