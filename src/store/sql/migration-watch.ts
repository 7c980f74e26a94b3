/** Follows a change of the tables, which takes minutes where a large table is made anew or gets digests. */
export type MigrationWatch = {
  /** Called before the work on a ledger that is not new, with how many changes are to be made. */
  onPending(changes: number): void;
  /** Called after each of these, and now and then while rows are written again. */
  onProgress(step: MigrationStep): void;
};

/** How many of the changes are made; or how many rows of a table have their digests. */
export type MigrationStep = {
  readonly of: "changes" | { readonly rowsOf: string };
  readonly done: number;
  readonly total: number;
};
