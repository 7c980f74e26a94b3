import type { ExchangeCounts } from "../core/rate.ts";

/**
 * What all instances that share a ledger remember together, beside the ledger. Nothing in it is money, and all of it ends soon. An
 * instance that has its ledger for itself keeps the same in its own memory. Times are the database's, in milliseconds. Tokens and
 * keys are kept by their hashes. Every function rejects with an `UnsharedFault` where the database does not answer.
 */
export type SharedMemory = {
  /** Uses a token for so long. False where it is in use. */
  useOnce(token: string, ms: number): Promise<boolean>;
  /** Ends the use of a token. */
  release(token: string): Promise<void>;
  /** Keeps a value until it is taken, for so long at most. Of one owner the newest are kept, `most` of them. */
  keep(kept: KeptValue, ms: number): Promise<void>;
  /** Takes a value out: whoever else asks gets null, as where it was never kept or its time is over. */
  take(token: string): Promise<TakenValue | null>;
  readonly attempts: SharedAttempts;
  readonly exchangeCounts: ExchangeCounts;
  /** Deletes some of what has ended. */
  forgetEnded(): Promise<void>;
};

export type KeptValue = {
  /** Whoever has it takes the value. */
  readonly token: string;
  readonly value: string;
  readonly owner: string;
  readonly most: number;
};

export type TakenValue = { readonly value: string; readonly msLeft: number };

/** Counters of attempts that may fail. A window begins with the first attempt, and nothing is kept of attempts that succeeded. */
export type SharedAttempts = {
  /** The counters among these that have anything to count. */
  read(keys: readonly string[]): Promise<Attempts>;
  /** Begins an attempt in each of these. The counters, this attempt included. */
  begin(counters: readonly AttemptCounter[]): Promise<Attempts>;
  /** Ends an attempt. */
  end(counters: readonly AttemptCounter[], failed: boolean): Promise<void>;
  /** Forgets the failures of a counter. */
  forgive(key: string): Promise<void>;
};

export type AttemptCounter = { readonly key: string; readonly windowMs: number };
export type Attempts = ReadonlyMap<string, AttemptsOfKey>;
export type AttemptsOfKey = {
  readonly failures: number;
  /** Attempts that may still fail. Those that began with an instance that died are forgotten after a minute. */
  readonly underWay: number;
  readonly endsInMs: number;
};
