import type { ChangedTransfer, TransferInBlock } from "./chain-transfer.ts";
import { AMOUNT_MAX } from "./money.ts";
import type { Mode } from "./roles.ts";

/** How far a treasury's transfers were looked for on its chain, and what they add up to (docs/money, "Deposits on a chain"). */

/**
 * Why nothing is credited. `balance_differs`: the transfers do not add up to the treasury's balance; no payout begins either.
 * `asset_changed`: the token stood for another asset. `chain_replaced`: the chain has none of the blocks that are known. `too_large`:
 * the sums are more than the ledger can hold.
 */
export const STOP_REASONS = ["balance_differs", "asset_changed", "chain_replaced", "too_large"] as const;
export type StopReason = (typeof STOP_REASONS)[number];

/** Whether it is not known what of a treasury's money is whose, so that nothing leaves it either. */
export const keepsPayouts = (watch: Pick<TreasuryWatch, "stopped"> | null): boolean =>
  watch?.stopped === "balance_differs";

/** A block by its number and its hash, `0x` and 64 hex digits. */
export type BlockId = { readonly number: number; readonly hash: string };

/** Which treasury is watched: a wallet (with its checksum) and a token (in lower case) on a chain. */
export type WatchKey = { readonly chainId: number; readonly token: string; readonly address: string };

export const watchKey = ({ chainId, token, address }: WatchKey): string => `${chainId} ${token} ${address}`;

/** The state of a treasury's watch. `opening + received - sent` is the treasury's balance at `block`. */
export type TreasuryWatch = WatchKey & {
  readonly id: string;
  readonly mode: Mode;
  /** The asset that the token stands for. */
  readonly asset: string;
  /** The block at which the watch began; what is in it and before it is no deposit. */
  readonly first: BlockId;
  /** The treasury's balance at that block. */
  readonly opening: bigint;
  /** The last block that was looked at. */
  readonly last: BlockId;
  /** What came in and what left since the first block, up to the last one. */
  readonly received: bigint;
  readonly sent: bigint;
  /** The last block at which the transfers added up to the balance, and that balance. What is after it is not credited. */
  readonly reconciled: BlockId;
  readonly balance: bigint;
  /** Why nothing is credited at the moment; null where all is as it should be. */
  readonly stopped: StopReason | null;
  readonly createdAt: number;
};

/** What came in and what left, summed up. */
export type TransferSums = Pick<TreasuryWatch, "received" | "sent">;

/** No reorganisation goes back so far: beyond it the watch stops, and a person decides. */
export const REORGANISED_BLOCKS_MAX = 10_000;

/** A watch that begins at a block. */
export const newWatch = (
  of: WatchKey & Pick<TreasuryWatch, "id" | "mode" | "asset" | "createdAt">,
  first: BlockId,
  opening: bigint,
): TreasuryWatch => ({
  ...of,
  ...{ first, opening, last: first, reconciled: first, balance: opening },
  ...{ received: 0n, sent: 0n, stopped: null },
});

/**
 * The watch after a scan from its last block up to another one; `too_large` where the ledger cannot hold the sums, so that nothing of
 * it is kept.
 */
export function scannedTo(
  watch: TreasuryWatch,
  last: BlockId,
  found: readonly TransferInBlock[],
  changed: readonly ChangedTransfer[],
): TreasuryWatch | "too_large" {
  const sums = { received: watch.received, sent: watch.sent };
  for (const { direction, amount } of found) sums[direction] += amount;
  // What is in another block than before was in the sums already, unless its block is one that is looked at again.
  for (const { before } of changed)
    if (before !== null && before.block !== null && before.block <= watch.last.number)
      sums[before.status === "sent" ? "sent" : "received"] -= before.amount;
  const isTooLarge = sums.sent > AMOUNT_MAX || watch.opening + sums.received > AMOUNT_MAX;
  return isTooLarge ? "too_large" : { ...watch, last, ...sums };
}

/** What the treasury's balance has to be at the last block. */
export const expectedBalance = ({ opening, received, sent }: TreasuryWatch): bigint =>
  opening + received - sent;

/** The watch after its transfers were compared to the balance at its last block. */
export const reconciledWith = (watch: TreasuryWatch, balance: bigint): TreasuryWatch | null =>
  expectedBalance(watch) === balance ? { ...watch, reconciled: watch.last, balance, stopped: null } : null;

/**
 * The watch gone back to an earlier block.
 *
 * @param sums what came in and left up to that block
 */
export function goneBackTo(watch: TreasuryWatch, last: BlockId, sums: TransferSums): TreasuryWatch {
  const back = { ...watch, last, ...sums };
  return last.number <= watch.reconciled.number
    ? { ...back, reconciled: last, balance: expectedBalance(back) }
    : back;
}

/** How many transfers there are, and their sum. */
export type Tally = { readonly count: number; readonly amount: bigint };
