import {
  type BlockId,
  expectedBalance,
  goneBackTo,
  REORGANISED_BLOCKS_MAX,
  type TreasuryWatch,
} from "../../core/treasury-watch.ts";
import type { Away } from "../../platform/ask-chain.ts";
import type { TreasuryChain } from "../../platform/treasury-chain.ts";
import type { Context } from "../context.ts";
import { moveWatch } from "./move-watch.ts";

/** What a treasury's watch does where a reorganisation has taken out blocks that it has looked at. */

const AGAIN: Away = { away: "no_answer" };

/**
 * The watch where its last block is still on the chain; else the watch gone back to a block that is. `chain_replaced` where there is
 * none within reach: nothing is undone then.
 */
export async function goBack(
  ctx: Context,
  chain: TreasuryChain,
  watch: TreasuryWatch,
  confirmed: BlockId,
): Promise<TreasuryWatch | Away | "chain_replaced"> {
  const { last, first } = watch;
  const standing =
    last.number === confirmed.number ? confirmed.hash === last.hash : await stands(chain, last);
  if (typeof standing === "object") return standing;
  if (standing) return watch;
  const known = await newestStanding(ctx, chain, watch);
  if ("away" in known) return known;
  const floor = last.number - REORGANISED_BLOCKS_MAX;
  if (known.firstGone <= floor) return "chain_replaced";
  if (known.number === null) return beginAgain(ctx, chain, watch);
  const number = Math.max(known.number, floor, first.number);
  const answer = await chain.block(number);
  if ("away" in answer) return answer;
  if (answer.block === null) return AGAIN;
  const sums = await ctx.store.read(({ chainTransfers }) => chainTransfers.sums(watch.id, -1, number));
  const back = goneBackTo(watch, answer.block, sums);
  return (await moveWatch(ctx, watch, back)) ? back : AGAIN;
}

/** Whether the chain still has a block. */
async function stands(chain: TreasuryChain, { number, hash }: BlockId): Promise<boolean | Away> {
  const answer = await chain.block(number);
  if ("away" in answer) return answer;
  // A node that does not have the block at all says nothing about it.
  return answer.block === null ? AGAIN : answer.block.hash === hash;
}

/**
 * The newest known block that the chain still has, and the oldest one that it does not have. A block that stands has all blocks before
 * it, so that the transfers' blocks are halved until it is found.
 */
async function newestStanding(
  ctx: Context,
  chain: TreasuryChain,
  { id, first, last }: TreasuryWatch,
): Promise<{ readonly number: number | null; readonly firstGone: number } | Away> {
  const firstStands = await stands(chain, first);
  if (typeof firstStands === "object") return firstStands;
  if (!firstStands) return { number: null, firstGone: first.number };
  const count = await ctx.store.read(({ chainTransfers }) => chainTransfers.countUntil(id, last.number));
  let [standing, gone] = [-1, count];
  let [number, firstGone] = [first.number, last.number];
  while (gone - standing > 1) {
    const middle = Math.floor((standing + gone) / 2);
    const row = await ctx.store.read(({ chainTransfers }) => chainTransfers.at(id, last.number, middle));
    if (row === null || row.block === null || row.blockHash === null) return AGAIN;
    const answer = await stands(chain, { number: row.block, hash: row.blockHash });
    if (typeof answer === "object") return answer;
    if (answer) [standing, number] = [middle, row.block];
    else [gone, firstGone] = [middle, row.block];
  }
  return { number, firstGone };
}

/** The first block itself is gone: the watch begins again at that number, with the balance that is there now. */
async function beginAgain(
  ctx: Context,
  chain: TreasuryChain,
  watch: TreasuryWatch,
): Promise<TreasuryWatch | Away> {
  const answer = await chain.block(watch.first.number);
  if ("away" in answer) return answer;
  if (answer.block === null) return AGAIN;
  const first = answer.block;
  const opening = await chain.balanceAt(first);
  if ("away" in opening) return opening;
  if (opening.balance === null) return AGAIN;
  const sums = { received: 0n, sent: 0n };
  const begun = goneBackTo({ ...watch, first, opening: opening.balance }, first, sums);
  return (await moveWatch(ctx, watch, { ...begun, balance: expectedBalance(begun) })) ? begun : AGAIN;
}
