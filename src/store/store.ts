import type { ApiKey } from "../core/api-key.ts";
import type { Refusal } from "../core/errors.ts";
import type { SignedCheckpoint } from "../core/log.ts";
import type { Mode } from "../core/roles.ts";
import type { KeptStatement } from "../core/solvency/statement.ts";
import type { Change, Write } from "./change.ts";
import type { Always, Complete, Found, Needs, Snapshot } from "./needs.ts";
import type { Reader } from "./reader.ts";
import type { Scope } from "./scope.ts";

/**
 * THE SEAM between what Holdfast decides and where it is stored, in domain types.
 *
 * A command names what it needs, by ids, and how to decide. The engine loads that, lets the command decide
 * inside a transaction, and writes the whole Change or nothing. The answer comes when the Change is durable.
 */
export interface Store {
  /** Refused with `organisation_not_found` where the scope names no organisation. */
  execute<N extends Needs, Answer>(command: ScopedCommand<N, Answer>): Promise<Answer | Refusal>;
  /** For commands outside organisations: on the instance itself, or to create an organisation. */
  execute<N extends Needs, Answer>(command: InstanceCommand<N, Answer>): Promise<Answer | Refusal>;
  /**
   * Reads from one snapshot of everything that was committed before. `use` may wait only for reads, never for
   * a command or the network. The snapshot ends with it. It may run again, from another snapshot.
   */
  read<Result>(use: Use<Result>, from?: From<Result>): Promise<Result>;
  /**
   * The API key for a secret's SHA-256; null where there is none. Keys are remembered, so most requests need
   * no read. A key that another process has changed is read again.
   */
  apiKey(secretHash: string): ApiKey | Promise<ApiKey | null>;
  /**
   * The time in the newest record, as far as this process knows; epoch milliseconds, -1 where there is no
   * record. It is no read: the engine has known it since it opened the ledger.
   */
  lastRecordedAt(): number;
  /** Calls back with what a transaction of this process has written, after it is on disk. Answers how to end that. */
  watch(onWritten: (writes: readonly Write[]) => void): () => void;
  /**
   * The news of what other processes have committed since this was last asked, each as its process has written it with the commit;
   * null where they may have changed anything.
   */
  newsOfOthers(): readonly string[] | null;
  /**
   * Every disagreement in the ledger, one message each.
   *
   * @param onProgress is called with how many rows were read, and how many there are
   */
  audit(onProgress?: (done: number, total: number) => void): Promise<readonly string[]>;
  /** Deletes old rows, at most `rowsMax` of a kind, and answers how many it deleted. */
  forget(retention: Retention, rowsMax: number): Promise<number>;
  /**
   * Appends to the log, in one commit, the oldest entries of the trace, and then the statements of solvency, that it does not have
   * yet, at most `entriesMax`. Answers how many it appended.
   */
  extendLog(entriesMax: number): Promise<number>;
  /**
   * Keeps a signed checkpoint under the next number. Answers false, and keeps nothing, where the log already has one of that size
   * or more: another process was faster.
   */
  keepCheckpoint(checkpoint: SignedCheckpoint): Promise<boolean>;
  /** Keeps a signed statement of solvency. Answers false, and keeps nothing, where its number is not the next: another process was faster. */
  keepStatement(statement: KeptStatement): Promise<boolean>;
  /**
   * Tests whether the ledger can be written, by a write that changes nothing. Rejects where it cannot, for
   * example on a full disk.
   */
  probe(): Promise<void>;
  /** Whether the disk has space for something new in this mode. The sandbox is without it before live is. */
  hasSpace(mode: Mode): boolean;
  /** Whether it has space for a capsule of this mode besides. */
  hasSpaceForCapsule(mode: Mode): boolean;
  /** Commits the queued commands, then closes. */
  close(): Promise<void>;
}

/** Reads. `isCopy` is true where the snapshot is of a copy, and not of the ledger itself. */
export type Use<Result> = (reader: Reader, isCopy?: boolean) => Result | Promise<Result>;

/** Where a read may come from, and what it must have. */
export type From<Result> = FromCopy<Result> | AfterAll;

/**
 * The snapshot has what all commands commit, of any process, that are under way when it is asked for. Positions are taken before a
 * commit, and another process may commit lower ones later: up to the newest one that was seen before such a read, nothing is missing in it.
 */
export type AfterAll = { readonly afterAll: true };

/**
 * How a read may come from a copy of the ledger that is a little late, where the engine has one. Where the copy cannot give what is
 * said here, it is read from the ledger itself.
 */
export type FromCopy<Result> = {
  /** A snapshot of the ledger itself that the caller holds at that time, if any: then no other is taken of it. */
  readonly otherwise?: () => Reader | null;
} & (
  | {
      /** Whether a result is right, although what was committed in the last seconds may be missing from it. */
      readonly suffices: (result: Result) => boolean;
    }
  | {
      /**
       * A piece of work of several reads. Everything that was committed before the first of them is there, and none of them sees
       * less than one before.
       */
      readonly work: object;
    }
);

/** The times before which rows are deleted; epoch milliseconds. */
export type Retention = {
  /** Idempotency keys with an outcome, by the time of their first request. */
  readonly idempotencyKeysBefore: number;
  /** Sign-ins, reset links and approvals, by when they ended. */
  readonly endedBefore: number;
  /** Deliveries and notices that will not be tried again, by the time of their creation. */
  readonly deliveriesBefore: number;
};

/**
 * A command of an organisation. `decide` must be pure, since an engine may run it again on a newer snapshot.
 * It gets exactly what `needs` names, and `now`, the clock's time at the decision, by which deadlines,
 * expiries and ages are judged.
 */
export type ScopedCommand<N extends Needs, Answer> = {
  readonly scope: Scope;
  readonly needs: N & Complete<N>;
  readonly decide: (snapshot: Snapshot<N>, now: number) => Decision<Answer>;
};

/** A command that belongs to no organisation. */
export type InstanceCommand<N extends Needs, Answer> = {
  readonly scope: null;
  readonly needs: N & Complete<N>;
  readonly decide: (snapshot: Found<N> & Always, now: number) => Decision<Answer>;
};

/**
 * An answer or refusal, and the Change. A refusal may carry one too: a late verify is refused and still
 * expires the warrant.
 */
export type Decision<Answer> = { readonly answer: Answer | Refusal; readonly change?: Change };
