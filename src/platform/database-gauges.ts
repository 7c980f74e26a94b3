import { SECOND_MS } from "../core/time.ts";
import type { Figures } from "./figures.ts";
import type { MakeGauge, MakeTotal } from "./gauge-makers.ts";

/** Where the ledger is in the data folder none of these has a value. */
export function createDatabaseGauges(
  gauge: MakeGauge,
  total: MakeTotal,
): (figures: Pick<Figures, "database" | "replicas">) => void {
  const reachable = gauge(
    "holdfast_database_reachable",
    "1 where the database answered what it was asked last, else 0.",
  );
  const roundTrip = gauge(
    "holdfast_database_round_trip_seconds",
    "How long the last question to the database took. Missing before the first.",
  );
  const lanes = gauge("holdfast_database_lanes", "Connections that commit.");
  const busy = gauge("holdfast_database_lanes_busy", "Those that are at a transaction.");
  const waiting = gauge("holdfast_database_commands_waiting", "Commands that wait for one.");
  const lag = gauge(
    "holdfast_database_replica_lag_seconds",
    "For how long a replica has not had what was committed. Missing where the server does not say.",
    ["replica", "synchronous"],
  );
  const showReadReplicas = createReadReplicaGauges(gauge, total);
  const showBatches = total("holdfast_database_transactions_total", "Transactions of commands.");
  const showCommands = total("holdfast_database_commands_total", "Commands in these transactions.");
  const showRetries = total(
    "holdfast_database_retries_total",
    "Transactions that were made again, after a conflict with another instance or a lost connection.",
  );
  const showUndecided = total(
    "holdfast_database_undecided_total",
    "Commits of which it is not known whether they happened.",
  );
  // Without a database these series are missing, so that no alert fires.
  for (const one of [reachable, roundTrip, lanes, busy, waiting]) one.remove();
  for (const show of [showBatches, showCommands, showRetries, showUndecided]) show([]);
  return ({ database, replicas }) => {
    lag.reset();
    showReadReplicas(database);
    for (const { name, lagMs, isSynchronous } of replicas) {
      if (lagMs !== null) lag.set({ replica: name, synchronous: `${isSynchronous}` }, lagMs / SECOND_MS);
    }
    if (database === null) return;
    reachable.set(database.isReachable ? 1 : 0);
    if (database.roundTripMs !== null) roundTrip.set(database.roundTripMs / SECOND_MS);
    lanes.set(database.lanes);
    busy.set(database.busy);
    waiting.set(database.waiting);
    showBatches([[{}, database.batches]]);
    showCommands([[{}, database.commands]]);
    showRetries([[{}, database.retries]]);
    showUndecided([[{}, database.undecided]]);
  };
}

/** Of the replicas that reads may go to. Where none is named none of these has a value. */
function createReadReplicaGauges(gauge: MakeGauge, total: MakeTotal) {
  const lag = gauge(
    "holdfast_database_read_replica_lag_seconds",
    "For how long a replica that reads may go to has lacked something that was committed. Missing where that is not known.",
    ["replica"],
  );
  const up = gauge("holdfast_database_read_replica_up", "1 where reads go to a replica, else 0.", [
    "replica",
  ]);
  const showReads = total(
    "holdfast_database_read_replica_reads_total",
    "Reads that a replica has answered.",
    ["replica"],
  );
  const showFallbacks = total(
    "holdfast_database_read_replica_fallbacks_total",
    "Reads that could have gone to a replica and went to the primary, by why: no_replica, failed or not_found.",
    ["reason"],
  );
  return (database: Figures["database"]): void => {
    const replicas = database?.readReplicas ?? [];
    lag.reset();
    up.reset();
    for (const { name, state, lagMs } of replicas) {
      up.set({ replica: name }, state === "in_use" ? 1 : 0);
      if (lagMs !== null) lag.set({ replica: name }, lagMs / SECOND_MS);
    }
    showReads(replicas.map(({ name, reads }) => [{ replica: name }, reads]));
    const fallbacks = replicas.length === 0 ? [] : Object.entries(database?.fallbacks ?? {});
    showFallbacks(fallbacks.map(([reason, count]) => [{ reason }, count]));
  };
}
