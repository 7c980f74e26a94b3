/** What an instance knows of the server of its database, where its ledger is in one (docs/postgresql, "Watch it"). */
export type DatabaseFigures = {
  /** Whether the last thing that was asked of it was answered in time. */
  readonly isReachable: boolean;
  /** How long the last round trip took; null before the first. */
  readonly roundTripMs: number | null;
  /** Connections that commit, how many of them are at it, and how many commands wait for one. */
  readonly lanes: number;
  readonly busy: number;
  readonly waiting: number;
  /** Since this process started: transactions of commands, and the commands in them. */
  readonly batches: number;
  readonly commands: number;
  /** Transactions that were made again after a conflict with another instance's. */
  readonly retries: number;
  /** Commits of which it is not known whether they happened. */
  readonly undecided: number;
};

/** A server that copies the database's, as that reports it. */
export type ReplicaFigures = {
  readonly name: string;
  /** For how long it has not had what was committed; null where the server does not say. */
  readonly lagMs: number | null;
  /** Whether a commit waits for it. */
  readonly isSynchronous: boolean;
};
