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
  const showBatches = total("holdfast_database_transactions_total", "Transactions of commands.");
  const showCommands = total("holdfast_database_commands_total", "Commands in these transactions.");
  const showRetries = total(
    "holdfast_database_retries_total",
    "Transactions that were made again after a conflict with another instance.",
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
