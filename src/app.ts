import { backupJobs } from "./app/backups.ts";
import { buyingWith, purchaseJobs, recoverPurchasesSoon } from "./app/buying.ts";
import { type Keys, keysOfCommand, keysOfServer } from "./app/keys.ts";
import { JOBS, onRecoveryFault, startOperation } from "./app/operation.ts";
import { openStore } from "./app/store.ts";
import { walCheckpointJob } from "./app/wal-checkpoint.ts";
import { type Config, NO_SECRETS, type Secrets } from "./config.ts";
import { consolePages } from "./console/pages.ts";
import { sha256 } from "./core/canonical.ts";
import { isRefusal, type Refusal } from "./core/errors.ts";
import { createIds } from "./core/ids.ts";
import { SECOND_MS } from "./core/time.ts";
import { ATTEMPT_TIMEOUT_MS } from "./core/webhook.ts";
import { createShell, type Shell } from "./http/shell.ts";
import { recoverAtStart } from "./jobs/recover.ts";
import { createEvaluator } from "./platform/evaluator.ts";
import { createFetcher } from "./platform/fetcher.ts";
import { logError, logWarning } from "./platform/log.ts";
import { createMetrics, type Figures, type Metrics } from "./platform/metrics.ts";
import { createPasskeyVerifier } from "./platform/passkeys.ts";
import { createPasswords } from "./platform/passwords.ts";
import { random40, randomByte } from "./platform/random.ts";
import { createWebhookSender } from "./platform/webhook-sender.ts";
import { createKeyUses } from "./services/auth/key-uses.ts";
import { createPendingChallenges } from "./services/auth/passkeys/challenges.ts";
import { createSignInThrottle } from "./services/auth/throttle.ts";
import type { Context } from "./services/context.ts";
import { awaitsAcknowledgement, rememberServer, serverHasRun } from "./services/instance.ts";
import { createCheckLimiter } from "./services/warrants/check-limiter.ts";
import { CHECK_RUN_MS_MAX, CHECK_WAIT_MS_MAX } from "./services/warrants/interrupt.ts";
import { recoverDeliveriesAtStart } from "./services/webhooks/recover.ts";
import { createDeliverySlots } from "./services/webhooks/slots.ts";
import { hasLedger } from "./store/sqlite/open.ts";
import { refuseHalfRestored, removeRestoreLeftover } from "./store/sqlite/restore.ts";
import { lockForServer } from "./store/sqlite/server-lock.ts";
import type { SqliteStore } from "./store/sqlite/store.ts";

export { hasLedger, refuseHalfRestored };

/** How long a stop waits for what is running (decisions.md: a stop drains). */
const DRAIN_MS = 10 * SECOND_MS;
const DRAIN_STEP_MS = 5;
const CLAUSE_TIMEOUT_MS = SECOND_MS;
const BENCH_RUN_TIMEOUT_MS = 2 * SECOND_MS;
/**
 * Longer than a check can take, so that a quiet connection is not cut under it; the most that Bun takes. A purchase whose chain is
 * slow may take longer still: then its answer is a replay's.
 */
const IDLE_SECONDS = 255;
/** Bun would answer a bare 413. The shell enforces the real caps, with an envelope, and stops reading there. */
const BODY_BYTES_MAX = Number.MAX_SAFE_INTEGER;

/** How to start this executable again. */
const SELF = import.meta.dir.startsWith("/$bunfs/")
  ? [process.execPath]
  : [process.execPath, `${import.meta.dir}/main.ts`];
export const EVALUATOR_ARGUMENT = "evaluator-child";
const EVALUATOR_COMMAND = [...SELF, EVALUATOR_ARGUMENT];

type Listener = { readonly address: string; readonly port: number };

type Parts = {
  readonly config: Config;
  readonly secrets: Secrets;
  readonly store: SqliteStore;
  readonly keys: Keys;
  readonly baseUrl: string;
  readonly warmChildren: number;
  readonly listeners: () => readonly Listener[];
  readonly metrics: Metrics | null;
};

type Composed = { readonly ctx: Context; readonly evaluators: () => Figures["evaluators"] };

/** The composition root: config and adapters make the context that every verb works with. What is to be closed is `opened`'s. */
function composeContext(parts: Parts, opened: AsyncDisposableStack): Composed {
  const { config, secrets, store, keys, baseUrl, warmChildren, listeners, metrics } = parts;
  const newId = createIds(Date.now, random40, store.newestIdTime);
  const evaluator = createEvaluator({
    command: EVALUATOR_COMMAND,
    clauseTimeoutMs: CLAUSE_TIMEOUT_MS,
    runTimeoutMs: CHECK_RUN_MS_MAX,
    waitTimeoutMs: CHECK_WAIT_MS_MAX,
    size: warmChildren,
  });
  opened.defer(evaluator.close);
  const benchEvaluator = createEvaluator({
    command: EVALUATOR_COMMAND,
    clauseTimeoutMs: CLAUSE_TIMEOUT_MS,
    runTimeoutMs: BENCH_RUN_TIMEOUT_MS,
    size: Math.min(warmChildren, 1),
    sizeMax: 4,
  });
  opened.defer(benchEvaluator.close);
  const fetcher = createFetcher({
    allowNetworks: config.allowNetworks,
    timeoutMs: config.fetchSeconds * SECOND_MS,
    ownListeners: listeners,
  });
  const webhookSender = createWebhookSender({
    allowNetworks: config.allowNetworks,
    timeoutMs: ATTEMPT_TIMEOUT_MS,
    ownListeners: listeners,
  });
  const ctx: Context = {
    store,
    now: Date.now,
    newId,
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
    ...keys,
    x402: buyingWith(config, secrets, listeners),
    async sendWebhook(request) {
      const result = await webhookSender.send(request);
      metrics?.webhookAttempted(result.code);
      return result;
    },
    deliverySlots: createDeliverySlots(),
    deliveryFailures: { exhausted: 0, notSent: 0 },
    baseUrl,
  };
  return {
    ctx,
    evaluators: () => [
      { pool: "verify", ...evaluator.stats() },
      { pool: "bench", ...benchEvaluator.stats() },
    ],
  };
}

const onStartFault = (error: unknown): void => logError("something is left to do after the start", error);

const baseUrlOf = (config: Config, port: number): string => config.baseUrl ?? `http://localhost:${port}`;

/** Where the links in errors lead: the service's own pages, unless the configuration says otherwise. */
export const docsUrlOf = (config: Config, port = config.port): string =>
  config.docsUrl ?? `${baseUrlOf(config, port)}/docs`;

/** The ledger without a server: for the command line, beside a server that may be running. */
export async function openForCommands(
  config: Config,
  secrets = NO_SECRETS,
): Promise<{ readonly ctx: Context; close(): Promise<void> }> {
  await using opening = new AsyncDisposableStack();
  const store = openStore(config.data);
  opening.defer(store.close);
  const instance = await store.read((reader) => reader.instance.get());
  const keys = keysOfCommand(config, secrets, serverHasRun(instance));
  // Beside a server, what is written down leads to where that one is reached.
  const baseUrl = config.baseUrl ?? instance.baseUrl ?? baseUrlOf(config, config.port);
  // The server's, which may be running: what a command sends must not reach it either.
  const listeners = () => [{ address: config.host, port: config.port }];
  const alone = { warmChildren: 0, listeners, metrics: null };
  const { ctx } = composeContext({ config, secrets, store, keys, baseUrl, ...alone }, opening);
  const opened = opening.move();
  return { ctx, close: () => opened.disposeAsync() };
}

export type RunningServer = {
  /** Where it listens, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly ctx: Context;
  /** Drains what is running, within 10 s, then closes. */
  stop(): Promise<void>;
};

/**
 * Recovers what a crash left, starts the jobs, and listens. Refused where another server has the folder, or its keys do not
 * open what they sealed; throws where the port is taken, or the ledger cannot be opened. Nothing goes on running then.
 */
export async function startServer(
  config: Config,
  secrets: Secrets = NO_SECRETS,
): Promise<RunningServer | Refusal> {
  const refused = refuseHalfRestored(config.data);
  if (refused) return refused;
  const lock = lockForServer(config.data);
  if (isRefusal(lock)) return lock;
  const opened = new AsyncDisposableStack();
  opened.defer(lock.release);
  let server: RunningServer | Refusal | null = null;
  try {
    removeRestoreLeftover(config.data);
    server = await startLocked(config, secrets, opened);
    return server;
  } finally {
    if (server === null || isRefusal(server)) await opened.disposeAsync();
  }
}

async function startLocked(
  config: Config,
  secrets: Secrets,
  opened: AsyncDisposableStack,
): Promise<RunningServer | Refusal> {
  const { listener, ready, drain } = listen(config);
  opened.defer(() => listener.stop(true));
  const port = listener.port ?? config.port;
  const baseUrl = baseUrlOf(config, port);
  const metrics = createMetrics();
  const store = openStore(config.data, { onCommitted: metrics.committed });
  opened.defer(store.close);
  const endpoints = await store.read((reader) => reader.webhooks.enabled());
  const keys = keysOfServer(config, secrets, endpoints);
  if (isRefusal(keys)) return keys;
  const listeners = () => [{ address: config.host, port }];
  const { ctx, evaluators } = composeContext(
    { config, secrets, store, keys, baseUrl, warmChildren: 2, listeners, metrics },
    opened,
  );
  const walCheckpoint = walCheckpointJob(config, SELF, store.finishWalCheckpoint);
  // For a start that fails: nobody needs to wait for it.
  opened.defer(() => void walCheckpoint.stop());
  await recover(ctx, store);
  const backups = backupJobs(config, SELF);
  const { operation, onAnswered, stop } = startOperation({
    ...{ config, secrets, ctx, metrics, evaluators },
    lastSeenAt: store.newestIdTime,
    monotonicNow: () => performance.now(),
    self: SELF,
    newestBackupAt: backups.newestBackupAt,
    jobs: [...backups.jobs, walCheckpoint.job, ...purchaseJobs(ctx)],
  });
  opened.defer(async () => {
    // The jobs that wait for these would hold up the stop.
    backups.stop();
    // A chain that hangs does not, nor a child that the disk does not let go.
    await settledWithin([walCheckpoint.stop(), stop()], DRAIN_MS);
  });
  ready(
    createShell(ctx, {
      docsUrl: docsUrlOf(config, port),
      pages: consolePages(baseUrl),
      rateLimits: config.rateLimits,
      trustedProxies: config.trustProxy,
      workerSecretHash: secrets.workerSecret === null ? null : sha256(secrets.workerSecret),
      onFault: (error, requestId) => logError("request failed", error, { request_id: requestId }),
      operation,
      onAnswered,
    }),
  );
  return {
    url: `http://${config.host.includes(":") ? `[${config.host}]` : config.host}:${port}`,
    ctx,
    async stop() {
      await drain(ctx.deliverySlots);
      await opened.disposeAsync();
    },
  };
}

/** The port is known, and ours, once this listens; requests wait for the shell, before which all is recovered. */
function listen(config: Config) {
  const ready = Promise.withResolvers<Shell>();
  let running = 0;
  let shell: Shell = async (request, socketAddress) => (await ready.promise)(request, socketAddress);
  const listener = Bun.serve({
    hostname: config.host,
    port: config.port,
    idleTimeout: IDLE_SECONDS,
    maxRequestBodySize: BODY_BYTES_MAX,
    async fetch(request, server) {
      running += 1;
      try {
        return await shell(request, () => server.requestIP(request)?.address);
      } finally {
        running -= 1;
      }
    },
  });
  /** Bun does not count a request whose client has left, though its work goes on. We do not count an answer that is being sent. */
  async function allAnswered(): Promise<void> {
    const deadline = Date.now() + DRAIN_MS;
    while ((running > 0 || listener.pendingRequests > 0) && Date.now() < deadline) {
      await Bun.sleep(DRAIN_STEP_MS);
    }
  }
  return {
    listener,
    /** Answers the requests that wait, and all that come. */
    ready(recovered: Shell): void {
      shell = recovered;
      ready.resolve(recovered);
    },
    /** Takes nothing new, and waits for what is running. */
    async drain(deliverySlots: Context["deliverySlots"]): Promise<void> {
      const stopped = listener.stop();
      await settledWithin([allAnswered(), deliverySlots.close()], DRAIN_MS);
      await listener.stop(true);
      await stopped;
    },
  };
}

async function recover(ctx: Context, store: SqliteStore): Promise<void> {
  const instance = await store.read((reader) => reader.instance.get());
  if (awaitsAcknowledgement(instance)) {
    logWarning("live warrants are refused until `holdfast restore acknowledge`", {
      instance_id: instance.id,
    });
  }
  await recoverAtStart(ctx, onRecoveryFault);
  await recoverPurchasesSoon(ctx).catch(onStartFault);
  // A full disk, say, must not keep the service from being read: the jobs try these again.
  await rememberServer(ctx).catch(onStartFault);
  await recoverDeliveriesAtStart(ctx).catch(onStartFault);
  await JOBS.agents(ctx).catch(onStartFault);
  try {
    // What the last process left in the log is long, perhaps: later requests would wait for it.
    store.finishWalCheckpoint();
  } catch (error) {
    onStartFault(error);
  }
}

/** Resolves when all of them have settled, or when the time is up. */
async function settledWithin(promises: Iterable<Promise<unknown>>, timeoutMs: number): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, timeoutMs);
  await Promise.race([Promise.allSettled([...promises]), late.promise]);
  clearTimeout(timer);
}
