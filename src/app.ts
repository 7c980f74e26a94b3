import { uptime } from "node:os";
import { backupJobs } from "./app/backups.ts";
import { purchaseJobs, recoverPurchasesSoon } from "./app/buying.ts";
import { SELF } from "./app/children.ts";
import { composeContext } from "./app/context.ts";
import { keysOfServer } from "./app/keys.ts";
import { JOBS, onRecoveryFault, startOperation } from "./app/operation.ts";
import { openStore } from "./app/store.ts";
import { baseUrlOf, docsUrlOf } from "./app/urls.ts";
import { walCheckpointJob } from "./app/wal-checkpoint.ts";
import { type Config, NO_SECRETS, type Secrets } from "./config.ts";
import { consolePages } from "./console/pages.ts";
import { sha256 } from "./core/canonical.ts";
import { isRefusal, type Refusal } from "./core/errors.ts";
import { SECOND_MS } from "./core/time.ts";
import { createShell, type Shell } from "./http/shell.ts";
import { recoverAtStart } from "./jobs/recover.ts";
import { logError, logInfo, logWarning } from "./platform/log.ts";
import { createMetrics } from "./platform/metrics.ts";
import type { Context } from "./services/context.ts";
import { awaitsAcknowledgement, rememberServer } from "./services/instance.ts";
import { recoverDeliveriesAtStart } from "./services/webhooks/recover.ts";
import { refuseHalfRestored, removeRestoreLeftover } from "./store/sqlite/restore.ts";
import { lockForServer } from "./store/sqlite/server-lock.ts";
import type { SqliteStore } from "./store/sqlite/store.ts";

/** How long a stop waits for the requests and jobs that are running. */
const DRAIN_MS = 10 * SECOND_MS;
const DRAIN_STEP_MS = 5;
/**
 * How long a connection may be silent. It is the most that Bun allows, and longer than a check takes. A purchase on a slow chain
 * may take longer: then its connection is cut, and the caller repeats the request to get the answer.
 */
const IDLE_SECONDS = 255;
/** No limit here, since Bun would answer a bare 413. The shell holds the real limits, and answers with the error envelope. */
const BODY_BYTES_MAX = Number.MAX_SAFE_INTEGER;

const onStartFault = (error: unknown): void =>
  logError("a step of the start failed; the jobs try it again", error);

export type RunningServer = {
  /** Where it listens, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly ctx: Context;
  /** Waits up to 10 s for running requests and jobs, then closes. */
  stop(): Promise<void>;
};

/**
 * Listens, recovers what a crash left unfinished, and starts the jobs. Requests that come earlier wait for the recovery. It
 * refuses where another server runs on the folder, or where the master key does not decrypt the stored secrets. It throws where
 * the port is taken, or where the ledger cannot be opened. After a refusal or an error nothing is left running.
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
  const store = openStore(config.data, {
    onCommitted: metrics.committed,
    onPending: (changes) => logInfo("bringing the ledger's tables up to date", { changes }),
  });
  opened.defer(store.close);
  const endpoints = await store.read((reader) => reader.webhooks.enabled());
  const keys = keysOfServer(config, secrets, endpoints);
  if (isRefusal(keys)) return keys;
  const listeners = () => [{ address: config.host, port }];
  const { ctx, warmUp, evaluators } = composeContext(
    { config, secrets, store, keys, baseUrl, warmChildren: 2, listeners, metrics },
    opened,
  );
  const walCheckpoint = walCheckpointJob(config, SELF, store.finishWalCheckpoint);
  // Needed where a later step of the start fails. Nobody waits for the child's end then.
  opened.defer(() => void walCheckpoint.stop());
  await recover(ctx, store);
  const backups = backupJobs(config, SELF);
  const { operation, onAnswered, stop } = startOperation({
    ...{ config, secrets, ctx, metrics, evaluators },
    lastSeenAt: store.newestIdTime,
    // In whole seconds. It counts while the machine is suspended, as the clock does: that is no jump.
    monotonicNow: () => uptime() * SECOND_MS,
    self: SELF,
    newestBackup: backups.newestBackup,
    jobs: [...backups.jobs, walCheckpoint.job, ...purchaseJobs(ctx)],
  });
  opened.defer(async () => {
    // The backup is stopped first: a job that waits for it would delay the stop.
    backups.stop();
    // A hanging chain, or a child that waits for the disk, must not delay the stop.
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
  // Children start after the requests that came during the start, since both need the processor.
  setImmediate(warmUp);
  return {
    url: `http://${config.host.includes(":") ? `[${config.host}]` : config.host}:${port}`,
    ctx,
    async stop() {
      ctx.places.close();
      await drain(ctx.deliverySlots);
      await opened.disposeAsync();
    },
  };
}

/** Listens at once, so that the port is known and taken. Requests wait for the shell, which comes after the recovery. */
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
  /**
   * Both counts are needed. Bun's lacks requests that are still worked on after their client has left; ours
   * lacks answers that are still being sent.
   */
  async function allAnswered(): Promise<void> {
    const deadline = Date.now() + DRAIN_MS;
    while ((running > 0 || listener.pendingRequests > 0) && Date.now() < deadline) {
      await Bun.sleep(DRAIN_STEP_MS);
    }
  }
  return {
    listener,
    /** Answers the requests that wait, and all that follow. */
    ready(recovered: Shell): void {
      shell = recovered;
      ready.resolve(recovered);
    },
    /** Accepts no new requests, and waits for the running ones. */
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
    logWarning("no live money moves until `holdfast restore acknowledge`", {
      instance_id: instance.id,
    });
  }
  await recoverAtStart(ctx, onRecoveryFault);
  await recoverPurchasesSoon(ctx).catch(onStartFault);
  // Where these fail, as on a full disk, the service must still answer reads. The jobs try them again.
  await rememberServer(ctx).catch(onStartFault);
  await recoverDeliveriesAtStart(ctx).catch(onStartFault);
  await JOBS.agents(ctx).catch(onStartFault);
  try {
    // The last process may have left a long log. Later requests would wait while it is copied, so it is copied now.
    store.finishWalCheckpoint();
  } catch (error) {
    onStartFault(error);
  }
}

/** Resolves when all promises have settled, or when the time is up. */
async function settledWithin(promises: Iterable<Promise<unknown>>, timeoutMs: number): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, timeoutMs);
  await Promise.race([Promise.allSettled([...promises]), late.promise]);
  clearTimeout(timer);
}
