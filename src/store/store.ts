import type { ApiKey } from "../core/api-key.ts";
import type { Refusal } from "../core/errors.ts";
import type { Change } from "./change.ts";
import type { Always, Complete, Found, Needs, Snapshot } from "./needs.ts";
import type { Reader } from "./reader.ts";
import type { Scope } from "./scope.ts";

/**
 * THE SEAM between what Holdfast decides and where it is kept, in domain types.
 *
 * A command says what it needs, as ids, and how to decide. The engine loads that, lets it decide inside a transaction, and
 * writes the Change: all of it or none. The answer comes back when the Change is durable.
 */
export interface Store {
  /** Refused with `organisation_not_found` where the scope names no organisation. */
  execute<N extends Needs, Answer>(command: ScopedCommand<N, Answer>): Promise<Answer | Refusal>;
  /** For what no organisation owns: the instance itself, and organisations that are made. */
  execute<N extends Needs, Answer>(command: InstanceCommand<N, Answer>): Promise<Answer | Refusal>;
  /**
   * Reads from one snapshot of everything that was committed before. `use` waits for reads only, never for a command or
   * the network: the snapshot is let go when it ends.
   */
  read<Result>(use: (reader: Reader) => Result | Promise<Result>): Promise<Result>;
  /**
   * The key of a secret's SHA-256; null where there is none. Keys are remembered, so that most requests wait for nothing; a
   * key that another process changed is read again.
   */
  apiKey(secretHash: string): ApiKey | Promise<ApiKey | null>;
  /** The time that the newest record carries, as far as this process knows; epoch milliseconds, -1 where there is none. */
  lastRecordedAt(): number;
  /** Every disagreement in the ledger, one message each. */
  audit(): Promise<readonly string[]>;
  /** Deletes what nobody needs any more, at most `rowsMax` rows of a kind; how many it deleted. */
  forget(retention: Retention, rowsMax: number): Promise<number>;
  /** Writes to the disk what changes nothing. Rejects where the ledger cannot be written, as where the disk is full. */
  probe(): Promise<void>;
  /** Commits what is queued, then closes. */
  close(): Promise<void>;
}

/** Rows older than these times are forgotten; epoch milliseconds. */
export type Retention = {
  /** Idempotency keys with an outcome, by when they were bound. */
  readonly idempotencyKeysBefore: number;
  /** Sign-ins, reset links and approvals, by when they ended. */
  readonly endedBefore: number;
  /** Deliveries that will not be tried again, by when they were made. */
  readonly deliveriesBefore: number;
};

/**
 * A command of an organisation. `decide` is pure, since an engine may run it again on a fresher snapshot. It gets exactly
 * what `needs` names, and `now`, the clock's time when it decides: deadlines, expiries and ages are judged by that.
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

/** A refusal may carry a Change: a late verify expires the warrant and is still refused. */
export type Decision<Answer> = { readonly answer: Answer | Refusal; readonly change?: Change };
