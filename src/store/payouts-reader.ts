import type { Correction } from "../core/correction.ts";
import type { Deposit } from "../core/deposit.ts";
import type { PayeeAccount, PayeeName, Payout } from "../core/payout.ts";
import type { Legs, PayeeBalance } from "../core/postings.ts";
import type { Posting } from "./rows.ts";
import type { Scope } from "./scope.ts";

/** A posting with the id of its cause, and the payee of its warrant or payout. */
type PostingInStatement = Pick<Posting, "legs" | "kind" | "causeId" | "payee" | "recordedAt"> & {
  readonly position: number;
};

/** The part of the reads that is about money in and out: deposits and their corrections, payees, payouts and statements. */
export interface PayoutsReader {
  /** What is owed to payees, in the order in which each was first paid. `at` is where a list goes on: 0 for the first one. */
  readonly payees: {
    list(scope: Scope, after: number, limit: number): Promise<readonly PayeeAccount[]>;
    /** Those that something is owed to, of every asset or of one. */
    owed(scope: Scope, after: number, limit: number, asset?: string): Promise<readonly PayeeAccount[]>;
    /** That payee alone; nobody where nothing is owed to it. */
    owedTo(scope: Scope, name: PayeeName): Promise<readonly PayeeAccount[]>;
    /** What is owed, and what is in payouts under way, of each asset. */
    totals(
      scope: Scope,
    ): Promise<readonly (Pick<PayeeBalance, "payable" | "submitted"> & { readonly asset: string })[]>;
  };
  /** Newest first, those older than the given one. */
  readonly payouts: {
    /** A payout of any organisation, by its id. */
    get(id: string): Promise<Payout | null>;
    list(
      scope: Scope,
      status: Payout["status"] | null,
      olderThan: string | null,
      limit: number,
    ): Promise<readonly Payout[]>;
  };
  /** Newest first, those older than the given one. */
  readonly corrections: {
    /** A correction of any organisation, by its id. */
    get(id: string): Promise<Correction | null>;
    list(scope: Scope, olderThan: string | null, limit: number): Promise<readonly Correction[]>;
    /** The newest one of a deposit that was not withdrawn. */
    newestOf(depositId: string): Promise<Correction | null>;
  };
  /** Newest first, those older than the given one. */
  readonly deposits: {
    /** A deposit of any organisation, by its id. */
    get(id: string): Promise<Deposit | null>;
    list(scope: Scope, olderThan: string | null, limit: number): Promise<readonly Deposit[]>;
  };
  /** The postings of an account from a position on (not included) to another one (included), in order. */
  readonly statements: {
    /** The position before the first of them of this time or later. */
    since(account: number, time: number): Promise<number>;
    /** The sums of the next `limit` of them; `last` is where they end, null where there are none. */
    sums(
      account: number,
      after: number,
      until: number,
      limit: number,
    ): Promise<{ readonly legs: Legs; readonly last: number | null }>;
    postings(
      account: number,
      after: number,
      until: number,
      limit: number,
    ): Promise<readonly PostingInStatement[]>;
  };
}
