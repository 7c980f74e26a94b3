import type { ChainTransfer } from "../core/chain-transfer.ts";
import type { DepositSender, SenderName } from "../core/deposit-sender.ts";
import type { Tally, TransferSums, TreasuryWatch, WatchKey } from "../core/treasury-watch.ts";
import type { Scope } from "./scope.ts";

/** The part of the reads that is about treasuries on chains. Blocks are those after the first number and up to the second. */
export interface ChainTransfersReader {
  readonly treasuryWatches: {
    get(key: WatchKey): Promise<TreasuryWatch | null>;
    find(id: string): Promise<TreasuryWatch | null>;
    /** All of them, oldest first: there are as many as treasuries were ever configured. */
    list(): Promise<readonly TreasuryWatch[]>;
  };
  readonly chainTransfers: {
    find(id: string): Promise<ChainTransfer | null>;
    /** Of a deposit; null where no chain brought it. */
    ofDeposit(depositId: string): Promise<ChainTransfer | null>;
    /** In the order of blocks. */
    inBlocks(watchId: string, after: number, until: number, limit: number): Promise<readonly ChainTransfer[]>;
    /** All transfers of a transaction to and from a treasury. */
    ofTransaction(watchId: string, hash: string): Promise<readonly ChainTransfer[]>;
    /** The sums of what came in and left in these blocks. */
    sums(watchId: string, after: number, until: number): Promise<TransferSums>;
    /** How many there are up to a block, and the one at a place in their order (0 is the first). */
    countUntil(watchId: string, until: number): Promise<number>;
    at(watchId: string, until: number, offset: number): Promise<ChainTransfer | null>;
    /** Those that are in a block up to this one and not judged yet, in the order in which they were found. */
    found(watchId: string, until: number, limit: number): Promise<readonly ChainTransfer[]>;
    /** Those that are in a block and wait for a person, newest first. */
    unassigned(watchId: string, olderThan: string | null, limit: number): Promise<readonly ChainTransfer[]>;
    /** How many those are; at most ten thousand are counted, since anybody can send any number of them. */
    unassignedCount(watchId: string): Promise<number>;
    /** Those that were credited and are in no block any more. */
    gone(watchId: string): Promise<Tally>;
  };
  readonly depositSenders: {
    get(name: SenderName): Promise<DepositSender | null>;
    /** In the order of addresses. */
    list(scope: Scope, after: string | null, limit: number): Promise<readonly DepositSender[]>;
  };
}
