import type { Config } from "./config.ts";
import { consolePages } from "./console/pages.ts";
import { type Refusal, refuseField } from "./core/errors.ts";
import { createIds } from "./core/ids.ts";
import { MINUTE_MS, SECOND_MS } from "./core/time.ts";
import { createShell, type Shell } from "./http/shell.ts";
import { followAgents } from "./jobs/agents.ts";
import { sweepDeadlines } from "./jobs/deadlines.ts";
import { writeKeyUses } from "./jobs/key-uses.ts";
import { recoverAtStart, recoverOverdueChecks } from "./jobs/recover.ts";
import { startScheduler } from "./jobs/scheduler.ts";
import { createEvaluator } from "./platform/evaluator.ts";
import { createFetcher } from "./platform/fetcher.ts";
import { logError } from "./platform/log.ts";
import { createPasskeyVerifier } from "./platform/passkeys.ts";
import { createPasswords } from "./platform/passwords.ts";
import { random40, randomByte } from "./platform/random.ts";
import { createKeyUses } from "./services/auth/key-uses.ts";
import { createPendingChallenges } from "./services/auth/passkeys/challenges.ts";
import { createSignInThrottle } from "./services/auth/throttle.ts";
import type { Context } from "./services/context.ts";
import { createCheckLimiter } from "./services/warrants/check-limiter.ts";
import { CHECK_RUN_MS_MAX, CHECK_WAIT_MS_MAX } from "./services/warrants/interrupt.ts";
import { hasLedger } from "./store/sqlite/open.ts";
import { lockForServer, type ServerLock } from "./store/sqlite/server-lock.ts";
import { openSqliteStore } from "./store/sqlite/store.ts";

export { hasLedger };

/** How long a stop waits for what is running (decisions.md: a stop drains). */
const DRAIN_MS = 10 * SECOND_MS;
const CLAUSE_TIMEOUT_MS = SECOND_MS;
const BENCH_RUN_TIMEOUT_MS = 2 * SECOND_MS;
/** Longer than a check can take, so that a quiet connection is not cut under it. */
const IDLE_SECONDS = 150;
/** Bun would answer a bare 413. The shell enforces the real caps, with an envelope, and stops reading there. */
const BODY_BYTES_MAX = Number.MAX_SAFE_INTEGER;

/** How to start this executable again as an evaluator child. */
export const EVALUATOR_ARGUMENT = "evaluator-child";
const EVALUATOR_COMMAND = import.meta.dir.startsWith("/$bunfs/")
  ? [process.execPath, EVALUATOR_ARGUMENT]
  : [process.execPath, `${import.meta.dir}/main.ts`, EVALUATOR_ARGUMENT];

type Opened = { readonly ctx: Context; close(): Promise<void> };

type Listener = { readonly address: string; readonly port: number };

/** The composition root: config and adapters make the context that every verb works with. */
function openContext(
  config: Config,
  baseUrl: string,
  warmChildren: number,
  listeners: () => readonly Listener[],
): Opened {
  const store = openSqliteStore(config.data);
  const evaluator = createEvaluator({
    command: EVALUATOR_COMMAND,
    clauseTimeoutMs: CLAUSE_TIMEOUT_MS,
    runTimeoutMs: CHECK_RUN_MS_MAX,
    waitTimeoutMs: CHECK_WAIT_MS_MAX,
    size: warmChildren,
  });
  const benchEvaluator = createEvaluator({
    command: EVALUATOR_COMMAND,
    clauseTimeoutMs: CLAUSE_TIMEOUT_MS,
    runTimeoutMs: BENCH_RUN_TIMEOUT_MS,
    size: Math.min(warmChildren, 1),
    sizeMax: 4,
  });
  const fetcher = createFetcher({
    allowNetworks: config.allowNetworks,
    timeoutMs: config.fetchSeconds * SECOND_MS,
    ownListeners: listeners,
  });
  const ctx: Context = {
    store,
    now: Date.now,
    newId: createIds(Date.now, random40, store.reader.newestIdTime()),
    randomByte,
    passwords: createPasswords(),
    signInThrottle: createSignInThrottle(),
    passkeys: createPasskeyVerifier(),
    passkeyChallenges: createPendingChallenges(),
    keyUses: createKeyUses(),
    checkLimiter: createCheckLimiter(),
    fetchEvidence: fetcher.fetch,
    evaluate: evaluator.evaluate,
    parseSchema: evaluator.parseSchema,
    evaluateBench: benchEvaluator.evaluate,
    baseUrl,
  };
  return {
    ctx,
    async close() {
      evaluator.close();
      benchEvaluator.close();
      await store.close();
    },
  };
}

const onRecoveryFault = (error: unknown, warrantId: string): void =>
  logError("a check could not be undone", error, { warrant_id: warrantId });

const baseUrlOf = (config: Config, port: number): string => config.baseUrl ?? `http://localhost:${port}`;

/** Where the links in errors lead: the service's own pages, unless the configuration says otherwise. */
export const docsUrlOf = (config: Config, port = config.port): string =>
  config.docsUrl ?? `${baseUrlOf(config, port)}/docs`;

/** The ledger without a server: for the command line, beside a server that may be running. */
export const openForCommands = (config: Config): Opened =>
  openContext(config, baseUrlOf(config, config.port), 0, () => []);

export type RunningServer = {
  /** Where it listens, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly ctx: Context;
  /** Drains what is running, within 10 s, then closes. */
  stop(): Promise<void>;
};

/** Recovers what a crash left, starts the jobs, and listens. Refused where another server has the folder; throws where the port is taken. */
export async function startServer(config: Config): Promise<RunningServer | Refusal> {
  const lock = lockForServer(config.data);
  if (!lock) {
    return refuseField(
      "HOLDFAST_DATA",
      `another server runs on ${config.data}; stop it first, or choose another folder`,
    );
  }
  try {
    return await startLocked(config, lock);
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function startLocked(config: Config, lock: ServerLock): Promise<RunningServer> {
  const inFlight = new Set<Promise<Response>>();
  // The port is known, and ours, once the server listens; what comes before all is recovered waits for that.
  const ready = Promise.withResolvers<Shell>();
  const server = Bun.serve({
    hostname: config.host,
    port: config.port,
    idleTimeout: IDLE_SECONDS,
    maxRequestBodySize: BODY_BYTES_MAX,
    async fetch(request, listener) {
      const answer = ready.promise.then((shell) =>
        shell(request, () => listener.requestIP(request)?.address),
      );
      inFlight.add(answer);
      try {
        return await answer;
      } finally {
        inFlight.delete(answer);
      }
    },
  });
  const port = server.port ?? config.port;
  const baseUrl = baseUrlOf(config, port);
  const { ctx, close } = openContext(config, baseUrl, 2, () => [{ address: config.host, port }]);
  await recoverAtStart(ctx, onRecoveryFault);
  await followAgents(ctx);
  ready.resolve(
    createShell(ctx, {
      docsUrl: docsUrlOf(config, port),
      pages: consolePages(baseUrl),
      rateLimits: config.rateLimits,
      trustedProxies: config.trustProxy,
      onFault: (error, requestId) => logError("request failed", error, { request_id: requestId }),
    }),
  );
  const scheduler = startScheduler(
    [
      { name: "deadlines", everyMs: 500, run: () => sweepDeadlines(ctx) },
      { name: "agents", everyMs: MINUTE_MS, run: () => followAgents(ctx) },
      { name: "key-uses", everyMs: 10 * SECOND_MS, run: () => writeKeyUses(ctx) },
      { name: "recover", everyMs: MINUTE_MS / 4, run: () => recoverOverdueChecks(ctx, onRecoveryFault) },
    ],
    (job, error) => logError("job failed", error, { job }),
  );
  return {
    url: `http://${config.host.includes(":") ? `[${config.host}]` : config.host}:${port}`,
    ctx,
    async stop() {
      const stopped = server.stop();
      await settledWithin(inFlight, DRAIN_MS);
      await server.stop(true);
      await stopped;
      await scheduler.stop();
      await writeKeyUses(ctx).catch((error: unknown) => logError("job failed", error, { job: "key-uses" }));
      await close();
      lock.release();
    },
  };
}

/** Resolves when all of them have settled, or when the time is up. */
async function settledWithin(promises: Iterable<Promise<unknown>>, timeoutMs: number): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, timeoutMs);
  await Promise.race([Promise.allSettled([...promises]), late.promise]);
  clearTimeout(timer);
}
