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
  /** Transactions that were made again, after a conflict with another instance's or a lost connection. */
  readonly retries: number;
  /** Commits of which it is not known whether they happened. */
  readonly undecided: number;
  /** The replicas that reads may go to. */
  readonly readReplicas: readonly ReadReplicaFigures[];
  /** Reads that may have gone to one of these and went to the primary. */
  readonly fallbacks: Readonly<Record<ReadFallback, number>>;
};

/**
 * Why a read went to the primary: no replica was near enough; the one that was asked failed, or lacked too much; it did not have what
 * was looked for.
 */
export type ReadFallback = "no_replica" | "failed" | "not_found";

/** How a replica stands: reads go to it; it lacks too much of what was committed; it does not answer. */
export type ReadReplicaState = "in_use" | "late" | "away";

/** A replica that reads may go to, as this instance knows it. */
export type ReadReplicaFigures = {
  /** Its host, port and database. */
  readonly name: string;
  /** Null before it was asked. */
  readonly state: ReadReplicaState | null;
  /** For how long it has lacked something that was committed, in milliseconds, by this instance's own commits; null where it is not known. */
  readonly lagMs: number | null;
  /** Reads that it answered since this process started. */
  readonly reads: number;
};

/** A server that copies the database's, as that reports it. */
export type ReplicaFigures = {
  readonly name: string;
  /** For how long it has not had what was committed; null where the server does not say. */
  readonly lagMs: number | null;
  /** Whether a commit waits for it. */
  readonly isSynchronous: boolean;
};
