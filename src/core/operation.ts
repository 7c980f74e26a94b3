import type { ClockDisagreement } from "./clock.ts";
import type { DatabaseFigures, ReplicaFigures } from "./database.ts";
import type { Judgement, SeenTreasury } from "./solvency/judgement.ts";
import { SECOND_MS } from "./time.ts";

/** Whether a running service can do its work, judged by what it knows of itself. */

/** The state of a job. Times are epoch milliseconds; null where nothing of the kind has happened. */
export type JobState = {
  readonly name: string;
  readonly running: boolean;
  readonly runs: number;
  readonly failures: number;
  readonly lastOutcome: "succeeded" | "failed" | null;
  readonly lastStartedAt: number | null;
  readonly lastEndedAt: number | null;
  readonly lastDurationMs: number | null;
  /** How long the next run is overdue, or the current one has run beyond its interval; 0 where neither is late. */
  readonly lagMs: number;
  /** How long ago the last run succeeded. */
  readonly quietMs: number;
  /** No run has succeeded for longer than the job may go without one. */
  readonly stuck: boolean;
};

/** What the last audit found, and when it ended. */
export type AuditOutcome = {
  readonly disagreements: number;
  readonly endedAt: number;
  readonly durationMs: number;
};

/** What the service knows of itself. */
export type Vitals = {
  /** Whether the ledger can be read now, and whether the last attempt to write it succeeded. */
  readonly ledger: { readonly readable: boolean; readonly writable: boolean };
  /** The free bytes on the disk of the data folder; null where the system does not say. */
  readonly freeBytes: number | null;
  readonly jobs: readonly JobState[];
  /** Null before the first one has ended. */
  readonly audit: AuditOutcome | null;
  /** Null where the clock is right, as far as the service knows. */
  readonly clock: ClockDisagreement | null;
  /** The wallets that hold money on chains. */
  readonly treasuries: readonly SeenTreasury[];
  /** Null where the ledger is in the data folder. */
  readonly database: DatabaseFigures | null;
  /** The servers that copy the database's, as that reports them. */
  readonly replicas: readonly ReplicaFigures[];
};

/** The answer of `/readyz`. A check's message says what is wrong, or not known. Anybody may read it, so it holds nothing secret. */
export type Readiness = {
  readonly object: "readiness";
  readonly ready: boolean;
  readonly checks: readonly {
    readonly name: "ledger" | "database" | "disk" | "jobs" | "audit" | "clock" | "solvency";
    readonly ok: boolean;
    readonly message: string | null;
  }[];
};

/** With less free space, the write-ahead log and a backup of a small ledger may not fit. */
export const FREE_BYTES_MIN = 100 * 1024 * 1024;
/** With less, the sandbox begins nothing new, so that it does not take the space that live warrants need. */
export const FREE_BYTES_MIN_OF_SANDBOX = 2 * FREE_BYTES_MIN;

/** With less, no capsule of that mode is kept, so that neither the sandbox nor live warrants ever stop because of them. */
export const FREE_BYTES_MIN_OF_CAPSULES = { live: 4 * FREE_BYTES_MIN, sandbox: 6 * FREE_BYTES_MIN } as const;

export function readinessOf(vitals: Vitals): Readiness {
  const checks = (
    [
      ["ledger", ledgerProblem(vitals)],
      ["disk", diskProblem(vitals)],
      ["jobs", jobsProblem(vitals)],
      ["audit", auditProblem(vitals)],
      ["clock", vitals.clock && clockProblem(vitals.clock)],
    ] as const
  ).map(([name, message]) => ({ name, ok: message === null, message }));
  const all = [...checks, ...databaseChecks(vitals), solvencyCheck(vitals)];
  return { object: "readiness", ready: all.every(({ ok }) => ok), checks: all };
}

/** A ledger in the data folder has no such check. */
function databaseChecks({ database, replicas }: Vitals): Readiness["checks"] {
  if (database === null) return [];
  const { isReachable, roundTripMs, lanes, busy, waiting, retries, readReplicas } = database;
  if (!isReachable) return [{ name: "database", ok: false, message: "The database does not answer." }];
  const answered = roundTripMs === null ? "" : `It answered in ${Math.ceil(roundTripMs)} ms; `;
  const said = [
    `${answered}${busy} of ${lanes} lanes are busy, ${waiting} commands wait, ${retries} transactions were made again.`,
  ];
  if (replicas.length > 0) said.push(`It reports ${replicas.length} replicas${lateWords(replicas)}.`);
  // Without a replica its reads go to the primary, and everybody is served.
  const used = readReplicas.filter(({ state }) => state === "in_use");
  if (readReplicas.length > 0)
    said.push(`Reads go to ${used.length} of ${readReplicas.length} replicas${lateWords(used)}.`);
  return [{ name: "database", ok: true, message: said.join(" ") }];
}

/** How late the latest of some replicas is; nothing where that is not known of any. */
function lateWords(replicas: readonly { readonly lagMs: number | null }[]): string {
  const lags = replicas.flatMap(({ lagMs }) => (lagMs === null ? [] : [lagMs]));
  return lags.length === 0 ? "" : `, the latest of them by ${Math.ceil(Math.max(...lags))} ms`;
}

/** A chain that does not answer keeps nobody from being served, so that is said, and is no failure. */
function solvencyCheck({ treasuries }: Vitals): Readiness["checks"][number] {
  const named = (judgement: Judgement): readonly string[] =>
    treasuries
      .filter((treasury) => treasury.judgement === judgement)
      .map(({ mode, asset, chain, seen }) => `${mode} ${asset} on ${chain}, ${seenWords(seen)}`);
  const [short, unknown] = [named("short"), named("unknown")];
  if (short.length > 0) {
    const message = `The chain holds less than the ledger owes; \`holdfast solvency\` shows it: ${short.join("; ")}.`;
    return { name: "solvency", ok: false, message };
  }
  const message = unknown.length === 0 ? null : `What the chain holds is not known: ${unknown.join("; ")}.`;
  return { name: "solvency", ok: true, message };
}

const seenWords = (seen: SeenTreasury["seen"]): string =>
  seen === null ? "not seen since the start" : `seen ${Math.round(seen.ageMs / SECOND_MS)} s ago`;

function ledgerProblem({ ledger }: Vitals): string | null {
  if (!ledger.readable) return "The ledger cannot be read.";
  return ledger.writable ? null : "The ledger cannot be written; the log says why.";
}

const diskProblem = ({ freeBytes }: Vitals): string | null =>
  freeBytes !== null && freeBytes < FREE_BYTES_MIN ? "The disk has less than 100 MiB left." : null;

function jobsProblem({ jobs }: Vitals): string | null {
  const stuck = jobs.filter((job) => job.stuck);
  return stuck.length === 0
    ? null
    : `No run has succeeded for too long: ${stuck.map(({ name, quietMs }) => `${name}, for ${Math.round(quietMs / SECOND_MS)} s`).join("; ")}.`;
}

const auditProblem = ({ audit }: Vitals): string | null =>
  audit === null || audit.disagreements === 0
    ? null
    : "The last audit found disagreements in the ledger; `holdfast audit` lists them.";

/** What is wrong with the clock, what waits because of it, and what to do. */
export function clockProblem({ behindLedgerMs, jumpedMs }: ClockDisagreement): string {
  const found: string[] = [];
  if (behindLedgerMs > 0) found.push(`is ${secondsOf(behindLedgerMs)} behind the ledger's last commit`);
  if (jumpedMs !== 0) {
    const direction = jumpedMs > 0 ? "forwards" : "back";
    found.push(`has jumped ${secondsOf(Math.abs(jumpedMs))} ${direction} since the service started`);
  }
  // A restart forgets a jump, as after a machine was suspended. A commit keeps its time.
  const waits = behindLedgerMs > 0 ? " If it is right, this ends once it has passed that commit." : "";
  return `The clock ${found.join(" and ")}: deadlines, retention, recovery and payouts on chains wait. Set the clock right, and restart the service.${waits}`;
}

const secondsOf = (ms: number): string => `${Math.max(1, Math.round(ms / SECOND_MS))} s`;
