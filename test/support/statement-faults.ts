/** Which statement fails. Transactions and their statements count from 1; the BEGIN is a transaction's first. */
export type Fault = {
  readonly transaction: number;
  readonly statement: number | "COMMIT";
  /**
   * Whether it fails before it does anything, or does its work and then its answer is lost: SQLite reports a failure, and the connection
   * to PostgreSQL ends.
   */
  readonly when: "before" | "after";
  /** Whether every later statement fails too, until the run is over. */
  readonly lasts?: boolean;
};

export type Struck = {
  /** The SQL that failed; null where the run had no such statement. */
  readonly sql: string | null;
};

/** Makes one statement at a time fail, in the ledgers that are opened from now on. */
export type FailingStatements = {
  /** Runs `run` with a fault. Only statements of transactions that write are counted. */
  during<T>(fault: Fault, run: () => Promise<T>): Promise<Struck & { readonly result: T }>;
  /** How many statements the transaction of the last fault had, up to its end or to the one that failed. */
  readonly counted: number;
  /** On a connection that only reads, the first statement with this text fails. */
  whileReading<T>(sql: string, run: () => Promise<T>): Promise<Struck & { readonly result: T }>;
  /** Leaves databases that are opened later as they are. */
  restore(): void;
};
