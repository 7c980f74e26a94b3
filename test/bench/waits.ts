import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { AUDIT_ARGUMENT } from "../../src/app/children.ts";
import { type Filled, filledFolder } from "./filled.ts";
import { costOf, ledgerFileOf, type Running, startServer } from "./holdfast.ts";
import { loadBeside, type Target } from "./load.ts";
import { openMany } from "./open-many.ts";
import { inWords, type Scale, say } from "./scale.ts";
import { atMost, noted, type Row, under } from "./table.ts";
import { slowest, startWaiting, WARM_MS } from "./waiting.ts";

const AUDIT_SECONDS_MAX = 60;
/** Of a million warrants as of ten million: it reads in slices. */
const AUDIT_MB_MAX = 768;
const LOG_MB_MAX = 256;
const MILLION = 1_000_000;
const MB = 1_048_576;

const QUIET_MS = 10_000;
const OVERDUE = 5_000;
const OVERDUE_AHEAD_MS = 20_000;
const LOAD_SECONDS = 15;
const LOAD_CONNECTIONS = 8;
/** The latest time after the start at which the server's first audit begins. */
const AUDIT_BEGINS_MS_MAX = 70_000;
const AUDIT_MS_MAX = 3_600_000;
/** The size to which a log is cut that grew during a long read. */
const LOG_MB_KEPT = 64;
const LOG_COPIED_MS_MAX = 120_000;

/** The slowest of small requests while the server or its operator does something large, on the large folder. */
export async function measureWaits(scale: Scale): Promise<Row[]> {
  const filled = await filledFolder(scale.warrantsLarge, scale.folder);
  const rows = [
    ...(await duringJobs(filled, scale)),
    ...(await duringBackup(filled, scale)),
    ...(await auditAlone(filled)),
    ...(await duringAudit(filled)),
  ];
  return under(`With ${inWords(scale.warrantsLarge)} warrants`, rows);
}

const targetOf = (server: Running, { facts }: Filled): Target => ({ url: server.url, secret: facts.secret });

/**
 * Measures without other work, then during the sweep of deadlines, then during the checkpoints of a log that
 * others write.
 */
async function duringJobs(filled: Filled, { folder }: Scale): Promise<Row[]> {
  await using server = await startServer(filled.data);
  const target = targetOf(server, filled);
  await using client = startWaiting(target, filled.idsFile);
  say("waits: quiet, then a sweep, then checkpoints");
  await Bun.sleep(WARM_MS);
  const quiet = await client.during(() => Bun.sleep(QUIET_MS));
  const deadline = Date.now() + OVERDUE_AHEAD_MS;
  await openMany(target, OVERDUE, deadline);
  await Bun.sleep(deadline - Date.now());
  const swept = await client.during(() => untilSwept(target));
  const checkpoints = await client.during(() =>
    loadBeside({ target, kind: "open", seconds: LOAD_SECONDS, folder, connections: LOAD_CONNECTIONS }),
  );
  return [
    noted("slowest request when nothing else happens", `${quiet.slowestMs.toFixed(1)} ms`),
    slowest(`during the sweep of ${inWords(OVERDUE)} deadlines`, swept),
    slowest(`during checkpoints, beside ${LOAD_CONNECTIONS} connections that open`, checkpoints),
  ];
}

/** Resolves when no held warrant is past its deadline. */
async function untilSwept({ url, secret }: Target): Promise<void> {
  await until(AUDIT_BEGINS_MS_MAX, async () => {
    const response = await fetch(`${url}/v1/warrants?state=held&sort=deadline&limit=1`, {
      headers: { Authorization: `Bearer ${secret}` },
    });
    const { data } = (await response.json()) as { readonly data: readonly { readonly deadline: string }[] };
    return data.every(({ deadline }) => Date.parse(deadline) > Date.now());
  });
}

async function duringBackup(filled: Filled, { folder }: Scale): Promise<Row[]> {
  await using server = await startServer(filled.data);
  await using client = startWaiting(targetOf(server, filled), filled.idsFile);
  say("waits: a backup");
  await Bun.sleep(WARM_MS);
  let seconds = 0;
  const waited = await client.during(async () => {
    ({ seconds } = await costOf(filled.data, "backup", join(folder, "bench.backup")));
  });
  return [slowest(`during a backup of ${seconds.toFixed(0)} s`, waited)];
}

async function auditAlone(filled: Filled): Promise<Row[]> {
  say("waits: holdfast audit");
  const { seconds, megabytes } = await costOf(filled.data, "audit");
  return [
    perMillionEntries(filled, "holdfast audit", seconds),
    atMost("its memory", megabytes, { required: AUDIT_MB_MAX }, " MB"),
  ];
}

const perMillionEntries = ({ facts }: Filled, what: string, seconds: number): Row =>
  atMost(
    `${what}, for a million trace entries`,
    (seconds * MILLION) / facts.traceEntries,
    { required: AUDIT_SECONDS_MAX },
    " s",
    `${inWords(facts.traceEntries)} in ${seconds.toFixed(0)} s`,
  );

/** The server's own audit, which begins a minute after its start. */
async function duringAudit(filled: Filled): Promise<Row[]> {
  await using server = await startServer(filled.data);
  await using client = startWaiting(targetOf(server, filled), filled.idsFile);
  say("waits: the hourly audit, which begins in a minute");
  await until(AUDIT_BEGINS_MS_MAX, async () => isAuditing(server));
  const log = { bytes: 0 };
  const watch = setInterval(() => {
    log.bytes = Math.max(log.bytes, logBytesOf(filled.data));
  }, 100);
  const begun = { at: performance.now(), opened: client.opened() };
  let seconds = 0;
  let opens = 0;
  const waited = await client.during(async () => {
    await until(AUDIT_MS_MAX, async () => !isAuditing(server));
    seconds = (performance.now() - begun.at) / 1_000;
    opens = client.opened() - begun.opened;
  });
  clearInterval(watch);
  const copied = await client.during(() =>
    becomes(LOG_COPIED_MS_MAX, async () => logBytesOf(filled.data) <= LOG_MB_KEPT * MB),
  );
  if (server.log().includes('"level":"error"')) throw new Error(server.log());
  return [
    slowest("during the hourly audit", waited),
    copied.requests === 0
      ? noted("slowest request after it, while its log is copied", "it was short already")
      : slowest("after it, while its log is copied", copied),
    perMillionEntries(filled, "the hourly audit", seconds),
    atMost(
      "the log's length while it runs",
      log.bytes / MB,
      { required: LOG_MB_MAX },
      " MB",
      `${inWords(opens)} opens meanwhile`,
    ),
  ];
}

/**
 * Whether the server's child process is auditing. The metrics would show it too, but collecting them is work
 * for the server.
 */
function isAuditing({ pid }: Running): boolean {
  const threads = readdirSync(`/proc/${pid}/task`);
  const children = threads.flatMap((thread) => readNow(`/proc/${pid}/task/${thread}/children`).split(" "));
  return children.some((child) => child !== "" && readNow(`/proc/${child}/cmdline`).includes(AUDIT_ARGUMENT));
}

/** Empty where the process or its thread has just ended. */
function readNow(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

const logBytesOf = (data: string): number => {
  const file = `${ledgerFileOf(data)}-wal`;
  return existsSync(file) ? statSync(file).size : 0;
};

/** Waits until the condition holds. Throws where it does not in time. */
async function until(msMax: number, isSo: () => Promise<boolean>): Promise<void> {
  if (!(await becomes(msMax, isSo))) throw new Error("the server did not do what was waited for");
}

async function becomes(msMax: number, isSo: () => Promise<boolean>): Promise<boolean> {
  const startedAt = performance.now();
  while (!(await isSo())) {
    if (performance.now() - startedAt > msMax) return false;
    await Bun.sleep(100);
  }
  return true;
}
