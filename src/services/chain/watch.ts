import { mergeTransfers, type TransferInBlock } from "../../core/chain-transfer.ts";
import { isRefusal } from "../../core/errors.ts";
import { AMOUNT_MAX } from "../../core/money.ts";
import type { Treasury } from "../../core/treasury.ts";
import {
  type BlockId,
  expectedBalance,
  goneBackTo,
  newWatch,
  reconciledWith,
  type StopReason,
  scannedTo,
  type TreasuryWatch,
} from "../../core/treasury-watch.ts";
import type { Away } from "../../platform/ask-chain.ts";
import type { TreasuryChain } from "../../platform/treasury-chain.ts";
import type { Decision } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { type Judged, judgeTransfer } from "./credit.ts";
import { goBack } from "./go-back.ts";
import { isAsSeen, moveWatch } from "./move-watch.ts";
import { type OtherUnit, otherUnit } from "./unit.ts";

/**
 * Watches a treasury on its chain: keeps every transfer of its token up to the newest confirmed block, compares them with its
 * balance, and credits what came in. Each step is a command of its own, and goes on from what is in the ledger: a restart between
 * any two changes nothing. The server's job alone calls this, and a folder has one server.
 */
export type Watching = {
  readonly treasury: Treasury;
  readonly chain: TreasuryChain;
  /** How many blocks the node is asked for at once. It shrinks where the node refuses. */
  span: number;
  /** Called with what came of each transfer. */
  readonly onJudged: (watch: TreasuryWatch, judged: Judged) => void;
};

/** What came of a step. */
export type Watched =
  /** All is found up to the newest confirmed block. `newestTime` is that of the chain's newest block, epoch milliseconds. */
  | { readonly outcome: "up_to_date"; readonly watch: TreasuryWatch; readonly newestTime: number }
  /** More blocks are left to look at. */
  | { readonly outcome: "catching_up"; readonly blocksBehind: number }
  | WatchTrouble;

export type WatchTrouble =
  | { readonly outcome: "away"; readonly why: Away["away"] }
  /** The node has fewer blocks than were looked at. */
  | { readonly outcome: "behind" }
  /** The node does not answer even for one block. */
  | { readonly outcome: "refused"; readonly why: string }
  /** The node's logs are not what was asked for. */
  | { readonly outcome: "wrong" }
  /** The token counts in another unit than the ledger. */
  | ({ readonly outcome: "unit_differs" } & OtherUnit)
  | {
      readonly outcome: "stopped";
      readonly why: StopReason;
      readonly expected?: bigint;
      readonly balance?: bigint;
    };

export const SPAN_FIRST = 1_000;
const SPAN_MAX = 10_000;
/** How many questions for logs one run asks, and how many transfers one commit takes. */
const RANGES_MAX = 10;
const TRANSFERS_MAX = 1_000;
/** How many transfers one run credits. */
const JUDGED_MAX = 1_000;
const JUDGED_AT_ONCE = 50;

const isAway = (answer: object): answer is Away => "away" in answer;
const awayFor = ({ away }: Away) => ({ outcome: "away", why: away }) as const;
/** The chain changed between two questions: it is asked again. */
const CHANGED_MEANWHILE = { outcome: "away", why: "no_answer" } as const;

/** Does what is due. */
export async function stepWatch(ctx: Context, watching: Watching): Promise<Watched> {
  const { treasury, chain } = watching;
  const head = await chain.head();
  if (isAway(head)) return awayFor(head);
  const { confirmed, newestTime } = head;
  if (confirmed === null) return { outcome: "behind" };
  const known = await ctx.store.read(({ treasuryWatches }) => treasuryWatches.get(keyOf(treasury)));
  const begun = known ?? (await begin(ctx, watching, confirmed));
  if ("outcome" in begun) return begun;
  if (begun.asset !== treasury.asset) return stop(ctx, begun, { outcome: "stopped", why: "asset_changed" });
  if (confirmed.number < begun.last.number) return { outcome: "behind" };
  const standing = await goBack(ctx, chain, begun, confirmed);
  if (standing === "chain_replaced") return stop(ctx, begun, { outcome: "stopped", why: standing });
  if (isAway(standing)) return awayFor(standing);
  const scanned = await scan(ctx, watching, standing, confirmed);
  if ("outcome" in scanned) return scanned;
  const blocksBehind = confirmed.number - scanned.last.number;
  if (blocksBehind > 0) return { outcome: "catching_up", blocksBehind };
  const watch = await reconcile(ctx, chain, scanned);
  if ("outcome" in watch) return watch;
  await judge(ctx, watching, watch);
  return { outcome: "up_to_date", watch, newestTime };
}

const keyOf = ({ chainId, token, address }: Treasury) => ({ chainId, token, address });

async function begin(
  ctx: Context,
  { treasury, chain }: Watching,
  first: BlockId,
): Promise<TreasuryWatch | WatchTrouble> {
  const unit = await otherUnit(treasury.asset, chain.decimals);
  if (unit !== null) return isAway(unit) ? awayFor(unit) : { outcome: "unit_differs", ...unit };
  const opening = await chain.balanceAt(first);
  if (isAway(opening)) return awayFor(opening);
  const { balance } = opening;
  if (balance === null) return CHANGED_MEANWHILE;
  if (balance > AMOUNT_MAX) return { outcome: "stopped", why: "too_large" };
  const { mode, asset } = treasury;
  const id = ctx.newId("treasuryWatch");
  const watch = await ctx.store.execute({
    scope: null,
    needs: { treasuryWatch: keyOf(treasury) },
    decide({ treasuryWatch, recordedAt }) {
      if (treasuryWatch) return { answer: treasuryWatch };
      const row = newWatch({ ...keyOf(treasury), id, mode, asset, createdAt: recordedAt }, first, balance);
      return { answer: row, change: { put: [{ kind: "treasuryWatch", before: null, row }] } };
    },
  });
  if (isRefusal(watch)) throw new Error(watch.message);
  return watch;
}

/** Looks at the blocks up to the confirmed one, as many as one run may. */
async function scan(
  ctx: Context,
  watching: Watching,
  from: TreasuryWatch,
  confirmed: BlockId,
): Promise<TreasuryWatch | WatchTrouble> {
  const { chain } = watching;
  let watch = from;
  for (let asked = 0; asked < RANGES_MAX && watch.last.number < confirmed.number; asked++) {
    const after = watch.last.number;
    const until = await untilOf(ctx, watch, Math.min(after + watching.span, confirmed.number));
    const end = until === confirmed.number ? { block: confirmed } : await chain.block(until);
    if (isAway(end)) return awayFor(end);
    const answer = await chain.transfers({ after, until });
    const blocks = until - after;
    const isTooMuch = "transfers" in answer ? answer.transfers.length > TRANSFERS_MAX : "refused" in answer;
    if (isTooMuch && blocks > 1) {
      watching.span = Math.ceil(blocks / 2);
      continue;
    }
    if (!("transfers" in answer)) {
      // So many blocks may be what took the node too long.
      if (isAway(answer) && answer.away === "timeout") watching.span = Math.ceil(blocks / 2);
      if (isAway(answer)) return awayFor(answer);
      return "wrong" in answer ? { outcome: "wrong" } : { outcome: "refused", why: answer.refused };
    }
    const { transfers } = answer;
    const still = await chain.block(until);
    if (isAway(still)) return awayFor(still);
    const isOfChain = ({ block, blockHash }: TransferInBlock) =>
      block !== until || blockHash === end.block?.hash;
    if (end.block === null || still.block?.hash !== end.block.hash || !transfers.every(isOfChain))
      return CHANGED_MEANWHILE;
    const kept = await keep(ctx, watch, end.block, transfers);
    if (kept === "too_large") return stop(ctx, watch, { outcome: "stopped", why: kept });
    if (kept === null) return CHANGED_MEANWHILE;
    watch = kept;
    watching.span = Math.min(SPAN_MAX, watching.span * 2);
  }
  return watch;
}

/** The end of a range with no more known transfers than one commit takes, but with one block at least. */
async function untilOf(ctx: Context, { id, last }: TreasuryWatch, until: number): Promise<number> {
  const known = await ctx.store.read(({ chainTransfers }) =>
    chainTransfers.inBlocks(id, last.number, until, TRANSFERS_MAX + 1),
  );
  const tooFar = known[TRANSFERS_MAX]?.block ?? null;
  return tooFar === null ? until : Math.max(last.number + 1, tooFar - 1);
}

type Kept = TreasuryWatch | "too_large" | null;

/** Keeps what was found up to a block; null where another process has changed the watch meanwhile. */
async function keep(
  ctx: Context,
  seen: TreasuryWatch,
  last: BlockId,
  found: readonly TransferInBlock[],
): Promise<Kept> {
  const blocks = { after: seen.last.number, until: last.number };
  const known = await ctx.store.read(async ({ chainTransfers }) => {
    const hashes = [...new Set(found.map(({ hash }) => hash))];
    const ofTransactions = await Promise.all(
      hashes.map((hash) => chainTransfers.ofTransaction(seen.id, hash)),
    );
    const inBlocks = await chainTransfers.inBlocks(
      seen.id,
      blocks.after,
      blocks.until,
      Number.MAX_SAFE_INTEGER,
    );
    return new Map([...inBlocks, ...ofTransactions.flat()].map((row) => [row.id, row]));
  });
  const ids = found.map(() => ctx.newId("chainTransfer"));
  const answer = await ctx.store.execute({
    scope: null,
    needs: { treasuryWatch: seen, chainTransfers: [...known.values()] },
    decide({ treasuryWatch: before, chainTransfers, recordedAt }): Decision<Kept> {
      if (before === null || !isAsSeen(before, seen)) return { answer: null };
      let made = 0;
      const changed = mergeTransfers(chainTransfers, found, blocks, (one, ordinal) => {
        const { direction, hash, counterparty, amount, block, blockHash } = one;
        const id = ids[made++] ?? "";
        const status = direction === "sent" ? "sent" : "found";
        return {
          ...{ id, watchId: before.id, hash, ordinal, status, counterparty, amount, block, blockHash },
          ...{ depositId: null, createdAt: recordedAt },
        };
      });
      const row = scannedTo(before, last, found, changed);
      if (row === "too_large") return { answer: row };
      const transfers = changed.map(({ before: was, after }) => ({ before: was, row: after }));
      return {
        answer: row,
        change: {
          put: [
            ...transfers.map((transfer) => ({ kind: "chainTransfer", ...transfer }) as const),
            { kind: "treasuryWatch", before, row },
          ],
        },
      };
    },
  });
  if (answer !== null && answer !== "too_large" && isRefusal(answer)) throw new Error(answer.message);
  return answer;
}

/** Compares the transfers up to the last block with the treasury's balance there. */
async function reconcile(
  ctx: Context,
  chain: TreasuryChain,
  watch: TreasuryWatch,
): Promise<TreasuryWatch | WatchTrouble> {
  if (watch.reconciled.hash === watch.last.hash && watch.stopped === null) return watch;
  const answer = await chain.balanceAt(watch.last);
  if (isAway(answer)) return awayFor(answer);
  const { balance } = answer;
  if (balance === null) return CHANGED_MEANWHILE;
  const reconciled = reconciledWith(watch, balance);
  if (reconciled === null) {
    const expected = expectedBalance(watch);
    return stop(ctx, watch, { outcome: "stopped", why: "balance_differs", expected, balance });
  }
  return (await moveWatch(ctx, watch, reconciled)) ? reconciled : CHANGED_MEANWHILE;
}

/** Stops crediting. The blocks since the last reconciled one are looked at again: a node may have hidden logs. */
async function stop<Stopped extends WatchTrouble & { readonly outcome: "stopped" }>(
  ctx: Context,
  watch: TreasuryWatch,
  stopped: Stopped,
): Promise<Stopped> {
  const { reconciled, last } = watch;
  if (watch.stopped === stopped.why && last.hash === reconciled.hash) return stopped;
  const sums = await ctx.store.read(({ chainTransfers }) =>
    chainTransfers.sums(watch.id, -1, reconciled.number),
  );
  await moveWatch(ctx, watch, { ...goneBackTo(watch, reconciled, sums), stopped: stopped.why });
  return stopped;
}

/** Credits what came in up to the reconciled block. */
async function judge(ctx: Context, { onJudged }: Watching, watch: TreasuryWatch): Promise<void> {
  for (let done = 0; done < JUDGED_MAX; done += JUDGED_AT_ONCE) {
    const found = await ctx.store.read(({ chainTransfers }) =>
      chainTransfers.found(watch.id, watch.reconciled.number, JUDGED_AT_ONCE),
    );
    // One after the other: deposits are in the order in which they came in.
    for (const transfer of found) onJudged(watch, await judgeTransfer(ctx, watch, transfer));
    if (found.length < JUDGED_AT_ONCE) return;
  }
}
