import { Counter, Gauge, type Histogram, Registry } from "prom-client";
import type { AuditOutcome, JobState } from "../core/operation.ts";
import { SECOND_MS } from "../core/time.ts";
import { createBackupGauges } from "./backup-gauges.ts";
import type { Count, Counters, Distribution } from "./counters.ts";
import { createDatabaseGauges } from "./database-gauges.ts";
import { createDepositGauges } from "./deposit-gauges.ts";
import { descriptorLimit } from "./descriptors.ts";
import type { Figures } from "./figures.ts";
import type { MakeGauge, MakeTotal } from "./gauge-makers.ts";
import { createPayoutGauges } from "./payout-gauges.ts";
import { systemSockets } from "./sockets.ts";
import { createTreasuryGauges } from "./treasury-gauges.ts";
import { createWitnessGauges } from "./witness-gauges.ts";

/**
 * Writes what was counted, and what is read now, as Prometheus text.
 *
 * @param startedAt when the process started, epoch milliseconds
 */
export function createMetricsText(
  counters: Pick<Counters, "requests" | "requestSeconds" | "commitCommands" | "commitSeconds" | "attempts">,
  startedAt: number,
): (figures: Figures) => Promise<string> {
  const { requests, requestSeconds, commitCommands, commitSeconds, attempts } = counters;
  const registry = new Registry();
  const registers = [registry];
  const showRequests = countsOf(
    new Counter({
      name: "holdfast_http_requests_total",
      help: "Requests answered, by the route's pattern; other where there is no such route.",
      labelNames: ["method", "route", "status"],
      registers,
    }),
    requests,
  );
  registry.registerMetric(
    histogram(
      "holdfast_http_request_duration_seconds",
      "From a request's arrival to its answer; it includes reading the body and all waiting.",
      () => requestSeconds,
    ),
  );
  registry.registerMetric(
    histogram("holdfast_commit_commands", "Commands that shared a transaction and its fsync.", () => [
      commitCommands,
    ]),
  );
  registry.registerMetric(
    histogram(
      "holdfast_commit_duration_seconds",
      "A transaction, its fsync included; the main thread waits for it.",
      () => [commitSeconds],
    ),
  );
  const showAttempts = countsOf(
    new Counter({
      name: "holdfast_webhook_attempts_total",
      help: "Attempts to deliver an event: delivered (2xx), refused (another status), no_response.",
      labelNames: ["outcome"],
      registers,
    }),
    attempts,
  );
  const show = createGauges(registers, startedAt);
  return (figures) => {
    showRequests();
    showAttempts();
    show(figures);
    return registry.metrics();
  };
}

const countsOf = (counter: Counter, counts: readonly Count[]) => () => {
  counter.reset();
  for (const { labels, value } of counts) counter.inc(labels, value);
};

/** A histogram from our own counters. The registry needs only its name and `get`. */
function histogram(name: string, help: string, distributions: () => readonly Distribution[]): Histogram {
  const valuesOf = ({ labels, bounds, counts, sum }: Distribution) => {
    let count = 0;
    const buckets = [...bounds, "+Inf"].map((le, index) => {
      count += counts[index] ?? 0;
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  };
  const get = async () => ({ name, help, type: "histogram", values: distributions().flatMap(valuesOf) });
  return { name, get } as unknown as Histogram;
}

/** The most assets that are shown, in order of mode and name: deposits can name any number of assets. */
const MONEY_MAX = 500;

/** The gauges, which are set each time the text is asked for. */
function createGauges(registers: Registry[], startedAt: number): (figures: Figures) => void {
  const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Gauge<Label>({ name, help, labelNames: [...labelNames], registers });
  /** A counter whose value is kept elsewhere. Without a value it is missing. */
  const total = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) => {
    const counter = new Counter<Label>({ name, help, labelNames: [...labelNames], registers });
    return (values: readonly (readonly [labels: Partial<Record<Label, string>>, value: number])[]) => {
      counter.reset();
      // The reset gave a counter without labels the value 0.
      if (values.length === 0 && labelNames.length === 0) counter.remove();
      for (const [labels, value] of values) counter.inc(labels, value);
    };
  };
  const inUnits =
    "in the asset's smallest unit. A figure above 2^53 is rounded here, since Prometheus counts in doubles; the ledger does not round.";
  const warrants = gauge("holdfast_warrants", "Warrants by state, of both modes.", ["state"]);
  const overdue = gauge("holdfast_warrants_overdue", "Held warrants past their deadline, not yet swept.");
  const money = gauge("holdfast_money", `Money in the ledger, ${inUnits}`, ["mode", "asset", "state"]);
  const escalations = gauge("holdfast_escalations_open", "Escalations that wait for a person.");
  const oldest = gauge("holdfast_escalation_oldest_seconds", "How long the oldest of them has waited.");
  const showClosed = total(
    "holdfast_connections_closed_total",
    "Connections closed since there were too many, in all or of one address.",
  );
  const showCapsulesNotKept = total(
    "holdfast_capsules_not_kept_total",
    "Checks whose capsule could not be kept: the disk was nearly full, or the ledger could not be written.",
  );
  const free = gauge(
    "holdfast_disk_free_bytes",
    "Free space on the disk of the data folder. Missing where it is not known.",
  );
  const ready = gauge("holdfast_ready", "1 where /readyz answers 200, 0 where it does not.");
  const clockDisagrees = gauge(
    "holdfast_clock_disagrees",
    "1 where the clock is behind the ledger's last commit, or has jumped: deadlines, retention, recovery and payouts on chains wait.",
  );
  const showDeliveries = createDeliveryGauges(gauge, total);
  const showPurchases = createPurchaseGauges(gauge);
  const showBackups = createBackupGauges(gauge);
  const showAnchors = createAnchorGauges(gauge);
  const showJobs = createJobGauges(gauge, total);
  const showPlaces = createPlaceGauges(gauge);
  const showEvaluators = createEvaluatorGauges(gauge, total);
  const showAudit = createAuditGauges(gauge);
  const showDeposits = createDepositGauges(gauge);
  const showWitnesses = createWitnessGauges(gauge, total);
  const showPayouts = createPayoutGauges(gauge);
  const showTreasuries = createTreasuryGauges(gauge);
  const showDatabase = createDatabaseGauges(gauge, total);
  const showProcess = createProcessGauges(gauge, total, startedAt);
  return (figures) => {
    for (const [state, count] of Object.entries(figures.warrantsByState)) warrants.set({ state }, count);
    overdue.set(figures.warrantsOverdue);
    money.reset();
    for (const { amount, ...labels } of figures.money.slice(0, MONEY_MAX)) money.set(labels, Number(amount));
    escalations.set(figures.escalations.count);
    oldest.set(figures.escalations.oldestMs / SECOND_MS);
    showDeliveries(figures.deliveries);
    showPurchases(figures.purchases);
    showBackups(figures.newestBackup);
    showAnchors(figures);
    if (figures.freeBytes === null) free.remove();
    else free.set(figures.freeBytes);
    showClosed([[{}, figures.connectionsClosed]]);
    showCapsulesNotKept([[{}, figures.capsulesNotKept]]);
    ready.set(figures.ready ? 1 : 0);
    clockDisagrees.set(figures.clockDisagrees ? 1 : 0);
    showJobs(figures.jobs);
    showPlaces(figures.places);
    showEvaluators(figures.evaluators);
    showAudit(figures.audit);
    showDeposits(figures.deposits);
    showWitnesses(figures.witnesses);
    showPayouts(figures.rails);
    showTreasuries(figures.treasuries);
    showDatabase(figures);
    showProcess();
  };
}

function createDeliveryGauges(
  gauge: MakeGauge,
  total: MakeTotal,
): (deliveries: Figures["deliveries"]) => void {
  const waiting = gauge("holdfast_webhook_deliveries_waiting", "Deliveries that have not ended.");
  const late = gauge("holdfast_webhook_late_seconds", "How long the longest due attempt has waited.");
  const showExhausted = total(
    "holdfast_webhook_exhausted_total",
    "Deliveries given up after their fourth attempt: events that their endpoint has not received.",
  );
  const showNotSent = total(
    "holdfast_webhook_not_sent_total",
    "Attempts that failed on this side, before anything was sent; the log says why.",
  );
  return ({ waiting: count, lateMs, exhausted, notSent }) => {
    waiting.set(count);
    late.set(lateMs / SECOND_MS);
    showExhausted([[{}, exhausted]]);
    showNotSent([[{}, notSent]]);
  };
}

function createPurchaseGauges(gauge: MakeGauge): (purchases: Figures["purchases"]) => void {
  const unfinished = gauge("holdfast_purchases_unfinished", "Purchases under way, or cut off.");
  const unknown = gauge("holdfast_payments_unknown", "Payments that the chain is still to be asked about.");
  const unknownLate = gauge(
    "holdfast_payments_late_seconds",
    "How long the longest due question about a payment has waited.",
  );
  const contradicted = gauge(
    "holdfast_payments_contradicted",
    "Payments of which the chain says otherwise than the person who attested them.",
  );
  return (purchases) => {
    unfinished.set(purchases.unfinished);
    unknown.set(purchases.unknown);
    unknownLate.set(purchases.lateMs / SECOND_MS);
    contradicted.set(purchases.contradicted);
  };
}

function createAnchorGauges(
  gauge: MakeGauge,
): (anchors: Pick<Figures, "anchorLateMs" | "leavesToAnchor">) => void {
  const late = gauge(
    "holdfast_chain_anchor_late_seconds",
    "For how long an anchor of the log on a chain has been due or under way. Missing where the log is not anchored on a chain.",
  );
  const leaves = gauge(
    "holdfast_chain_anchor_entries_waiting",
    "Entries of the log that no chain has confirmed. Missing where the log is not anchored on a chain.",
  );
  late.remove();
  leaves.remove();
  return ({ anchorLateMs, leavesToAnchor }) => {
    if (anchorLateMs === null) return;
    late.set(anchorLateMs / SECOND_MS);
    leaves.set(leavesToAnchor);
  };
}

function createJobGauges(gauge: MakeGauge, total: MakeTotal): (jobs: readonly JobState[]) => void {
  const labels = ["job"] as const;
  const showRuns = total("holdfast_job_runs_total", "Runs that ended.", labels);
  const showFailures = total("holdfast_job_failures_total", "Runs that failed.", labels);
  const running = gauge("holdfast_job_running", "1 while it runs.", labels);
  const lastRun = gauge("holdfast_job_last_run_timestamp_seconds", "When its last run began.", labels);
  const duration = gauge("holdfast_job_last_duration_seconds", "How long its last run took.", labels);
  const failed = gauge("holdfast_job_last_failed", "1 where its last run failed.", labels);
  const lag = gauge("holdfast_job_lag_seconds", "How long its next run is overdue.", labels);
  const stuck = gauge("holdfast_job_stuck", "1 where no run has succeeded for too long.", labels);
  return (jobs) => {
    showRuns(jobs.map(({ name, runs }) => [{ job: name }, runs]));
    showFailures(jobs.map(({ name, failures }) => [{ job: name }, failures]));
    for (const state of jobs) {
      const job = { job: state.name };
      running.set(job, state.running ? 1 : 0);
      if (state.lastStartedAt !== null) lastRun.set(job, state.lastStartedAt / SECOND_MS);
      if (state.lastDurationMs !== null) duration.set(job, state.lastDurationMs / SECOND_MS);
      failed.set(job, state.lastOutcome === "failed" ? 1 : 0);
      lag.set(job, state.lagMs / SECOND_MS);
      stuck.set(job, state.stuck ? 1 : 0);
    }
  };
}

function createPlaceGauges(gauge: MakeGauge): (places: Figures["places"]) => void {
  const labels = ["mode"] as const;
  const taken = gauge("holdfast_places_taken", "Checks and purchases by x402 under way.", labels);
  const waiting = gauge("holdfast_places_waiting", "Checks and purchases that wait for a place.", labels);
  return (places) => {
    for (const { mode, ...figures } of places) {
      taken.set({ mode }, figures.taken);
      waiting.set({ mode }, figures.waiting);
    }
  };
}

function createEvaluatorGauges(
  gauge: MakeGauge,
  total: MakeTotal,
): (evaluators: Figures["evaluators"]) => void {
  const labels = ["pool"] as const;
  const children = gauge("holdfast_evaluator_children", "Evaluator processes.", labels);
  const busy = gauge("holdfast_evaluator_busy", "Evaluator processes at work.", labels);
  const waiting = gauge("holdfast_evaluator_waiting", "Evaluations that wait for a process.", labels);
  const showRestarts = total(
    "holdfast_evaluator_restarts_total",
    "Evaluator processes that crashed, or were killed for their time or memory.",
    labels,
  );
  return (evaluators) => {
    showRestarts(evaluators.map(({ pool, restarts }) => [{ pool }, restarts]));
    for (const stats of evaluators) {
      const pool = { pool: stats.pool };
      children.set(pool, stats.size);
      busy.set(pool, stats.busy);
      waiting.set(pool, stats.waiting);
    }
  };
}

function createAuditGauges(gauge: MakeGauge): (audit: AuditOutcome | null) => void {
  const disagreements = gauge(
    "holdfast_audit_disagreements",
    "How many disagreements the last audit of the ledger found; -1 before the first audit.",
  );
  const endedAt = gauge(
    "holdfast_audit_last_timestamp_seconds",
    "When the last audit ended; 0 before the first.",
  );
  const duration = gauge("holdfast_audit_duration_seconds", "How long the last audit took.");
  return (audit) => {
    disagreements.set(audit?.disagreements ?? -1);
    endedAt.set((audit?.endedAt ?? 0) / SECOND_MS);
    duration.set((audit?.durationMs ?? 0) / SECOND_MS);
  };
}

function createProcessGauges(gauge: MakeGauge, total: MakeTotal, startedAt: number): () => void {
  const resident = gauge("process_resident_memory_bytes", "Memory of the server's process.");
  const heap = gauge("process_heap_bytes", "The part of this memory that objects take.");
  const showCpu = total("process_cpu_seconds_total", "Time on a processor.");
  const descriptors = gauge("process_open_fds", "Open descriptors: connections, files and pipes.");
  gauge("process_max_fds", "How many descriptors it may have.").set(descriptorLimit() ?? 0);
  gauge("process_start_time_seconds", "When it started.").set(startedAt / SECOND_MS);
  return () => {
    const { rss, heapUsed } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    resident.set(rss);
    descriptors.set(systemSockets()?.count() ?? 0);
    heap.set(heapUsed);
    showCpu([[{}, (user + system) / 1_000_000]]);
  };
}
