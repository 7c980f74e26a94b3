import type { LogPlace } from "../core/log.ts";
import type { Mode } from "../core/roles.ts";
import type { Owed } from "../core/solvency/owed.ts";
import type { KeptStatement } from "../core/solvency/statement.ts";

/** What an account owes to its organisation and to its payees. */
export type AccountOwed = {
  readonly position: number;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly asset: string;
  readonly owed: Owed;
};

/** What is owed to a payee of an account. */
export type PayeeOwed = Pick<Owed, "payable" | "submitted"> & {
  readonly position: number;
  readonly account: number;
  readonly payee: string;
};

/** How a posting moved what is owed. */
export type MovedOwed = {
  readonly position: number;
  readonly account: number;
  /** The payee whose account it moved; null where none. */
  readonly payee: number | null;
  readonly owed: Owed;
};

/** The part of the reads that is about what the ledger owes: in steps, each after a position, in the order of positions. */
export interface SolvencyReader {
  /** What is owed now. */
  accounts(after: number, limit: number): Promise<readonly AccountOwed[]>;
  payees(after: number, limit: number): Promise<readonly PayeeOwed[]>;
  postings(after: number, limit: number): Promise<readonly MovedOwed[]>;
  /** The position of the newest posting; 0 where there is none. */
  newestPosting(): Promise<number>;
  /** A statement by its number, or the newest one; null where there is none. */
  statement(number: number | null): Promise<KeptStatement | null>;
  /** Newest first, those before a number. */
  statements(before: number, limit: number): Promise<readonly KeptStatement[]>;
  /** Where a statement is in the log. */
  placeOf(number: number): Promise<LogPlace>;
}
