import { refuseWithoutWallet } from "./app/anchoring.ts";
import { ensureBackupKey } from "./app/backup-keys.ts";
import { backupJobs } from "./app/backups.ts";
import { PURCHASE_JOBS } from "./app/buying.ts";
import { onChains } from "./app/chains.ts";
import { SELF } from "./app/children.ts";
import { type ConnectionPlan, guardConnections, planConnections } from "./app/connections.ts";
import { composeContext } from "./app/context.ts";
import { folderOf, refuseDatabaseOfServer, warnOfPlaintext } from "./app/database.ts";
import { joinInstances } from "./app/instances.ts";
import { keysOfServer } from "./app/keys.ts";
import { DRAIN_MS, listen, settledWithin } from "./app/listener.ts";
import { closeTelling } from "./app/notices.ts";
import { startOperation } from "./app/operation.ts";
import { warnOfPlainHttp } from "./app/plain-http.ts";
import { recoverLeftovers } from "./app/recovery.ts";
import { shareWithOthers } from "./app/sharing.ts";
import { sigstoreRootOf } from "./app/sigstore.ts";
import { consoleSite } from "./app/site.ts";
import { solvencyJobs } from "./app/solvency.ts";
import { openLedger, watchMigration } from "./app/store.ts";
import { refuseTreasuries } from "./app/treasuries.ts";
import { stopUnfit } from "./app/unfit.ts";
import { baseUrlOf, docsUrlOf } from "./app/urls.ts";
import { walCheckpointJob } from "./app/wal-checkpoint.ts";
import { witnessJobs, witnessKeyOfServer } from "./app/witnessing.ts";
import { type Config, NO_SECRETS, type Secrets } from "./config.ts";
import { receiptAssets, receiptPages } from "./console/receipt/page.ts";
import { sha256 } from "./core/canonical.ts";
import { isRefusal, type Refusal } from "./core/errors.ts";
import type { Instance } from "./core/instance.ts";
import { NO_PROGRESS, type Progress } from "./core/progress.ts";
import { isoTime } from "./core/time.ts";
import type { WebhookEndpoint } from "./core/webhook.ts";
import { createShell } from "./http/shell.ts";
import { warnOfOpenFolder } from "./platform/disk.ts";
import { logError, logWarning } from "./platform/log.ts";
import { createMetrics } from "./platform/metrics.ts";
import { createSignInLog } from "./platform/sign-in-log.ts";
import { steadyNow } from "./platform/steady-clock.ts";
import { offerSetUp } from "./services/admin/set-up.ts";
import type { Context } from "./services/context.ts";
import { awaitsAcknowledgement, isLostKey } from "./services/instance.ts";
import { keepRailStates } from "./services/rails/states.ts";
import { refuseHalfRestored, removeRestoreLeftover } from "./store/sqlite/restore.ts";
import { lockForServer } from "./store/sqlite/server-lock.ts";

const onStartFault = (error: unknown): void =>
  logError("a step of the start failed; the jobs try it again", error);

export type RunningServer = {
  /** Where it listens, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly ctx: Context;
  /** The link with which the first organisation is made; null where there is one. It is for the machine's operator alone. */
  readonly setUpUrl: string | null;
  /** Resolves where it must be stopped, with the reason; null where nothing like that can happen. */
  readonly mustStop: Promise<Refusal> | null;
  /** Waits up to 10 s for running requests and jobs, then closes. */
  stop(): Promise<void>;
};

/**
 * Listens, recovers what a crash left unfinished, and starts the jobs. Requests that come earlier wait for the recovery. It
 * refuses where another server runs on the folder, or where the master key does not decrypt the stored secrets. It throws where
 * the port is taken, or where the ledger cannot be opened. After a refusal or an error nothing is left running.
 *
 * @param progress shows how far a change of the tables has come
 */
export async function startServer(
  config: Config,
  secrets: Secrets = NO_SECRETS,
  progress: Progress = NO_PROGRESS,
): Promise<RunningServer | Refusal> {
  const folder = folderOf(config, secrets);
  const refused = folder === null ? refuseDatabaseOfServer(config, secrets) : refuseHalfRestored(folder);
  if (refused) return refused;
  const noWallet = refuseWithoutWallet(config, secrets) ?? refuseTreasuries(config, secrets);
  if (noWallet) return noWallet;
  const plan = planConnections(config);
  if (isRefusal(plan)) return plan;
  const lock = folder === null ? null : lockForServer(folder);
  if (isRefusal(lock)) return lock;
  const opened = new AsyncDisposableStack();
  if (lock) opened.defer(lock.release);
  let server: RunningServer | Refusal | null = null;
  try {
    if (folder !== null) removeRestoreLeftover(folder);
    server = await startLocked(config, secrets, plan, opened, progress);
    return server;
  } finally {
    if (server === null || isRefusal(server)) await opened.disposeAsync();
  }
}

const hashOf = (secret: string | null): string | null => (secret === null ? null : sha256(secret));

const warnOfProxy = (header: string): void =>
  logWarning(
    "a proxy is not trusted: name it in HOLDFAST_TRUST_PROXY, or limits take all its clients for one",
    { header },
  );

async function startLocked(
  config: Config,
  secrets: Secrets,
  plan: ConnectionPlan,
  opened: AsyncDisposableStack,
  progress: Progress,
): Promise<RunningServer | Refusal> {
  const { listener, ready, drain, close } = listen(config);
  opened.defer(close);
  const port = listener.port ?? config.port;
  const baseUrl = baseUrlOf(config, port);
  warnOfPlainHttp(config, baseUrl);
  const metrics = createMetrics();
  warnOfPlaintext(secrets);
  const watched = { onCommitted: metrics.committed, migrationWatch: watchMigration(progress) };
  const ledger = await openLedger(config, secrets, watched);
  const { store, newestIdTime, finishWalCheckpoint, database, instances, shared, unfit } = ledger;
  opened.defer(store.close);
  if (shared) opened.defer(shared.close);
  const endpoints = await store.read((reader) => reader.webhooks.enabled());
  const trust = trustOfServer(config, secrets, endpoints);
  if (isRefusal(trust)) return trust;
  const { ctx, warmUp, evaluators } = composeContext(
    {
      ...{ config, secrets, ...ledger, ...trust, baseUrl, metrics, warmChildren: 2 },
      ...{ listeners: () => [{ address: config.host, port }], signInLog: createSignInLog() },
    },
    opened,
  );
  const walCheckpoint = finishWalCheckpoint && walCheckpointJob(config, SELF, finishWalCheckpoint);
  opened.defer(() => void walCheckpoint?.stop()); // Where a later step of the start fails, nobody waits for the child's end.
  opened.defer(instances.leave);
  const differs = await joinInstances(config, secrets, ctx);
  if (differs) return differs;
  const { restoredAt } = await recover(ctx, finishWalCheckpoint);
  const connections = guardConnections(config, port, plan);
  opened.defer(async () => connections.stop());
  const backups = backupJobs(config, SELF);
  const { anchoring, deposits, jobs: chainJobs } = onChains(ctx, config, secrets);
  const witnesses = witnessJobs(ctx);
  const solvency = solvencyJobs(ctx, config);
  const sharing = shareWithOthers(shared, config.rateLimits, ctx.now);
  const { operation, onAnswered, stop } = startOperation({
    ...{ config, secrets, ctx, metrics, evaluators, anchorLateMs: anchoring.lateMs },
    ...{ lastSeenAt: newestIdTime, monotonicNow: steadyNow, self: SELF, database },
    ...{ newestBackup: backups.newestBackup, connectionsClosed: connections.closed },
    ...{ witnesses: witnesses.figures, deposits, treasuries: solvency.seen },
    jobs: [
      ...[...backups.jobs, ...(walCheckpoint ? [walCheckpoint.job] : []), ...PURCHASE_JOBS],
      ...[...witnesses.jobs, ...chainJobs, ...solvency.jobs, ...sharing.jobs],
    ],
  });
  opened.defer(async () => {
    // The backup is stopped first: a job that waits for it would delay the stop.
    backups.stop();
    // A hanging chain, or a child that waits for the disk, must not delay the stop.
    await settledWithin([...(walCheckpoint ? [walCheckpoint.stop()] : []), stop()], DRAIN_MS);
  });
  ready(
    createShell(ctx, {
      docsUrl: docsUrlOf(config, port),
      pages: receiptAssets,
      ...{ receiptPages, site: consoleSite({ operation, backups, anchoring, witnesses }) },
      ...{ rateLimits: config.rateLimits, ...sharing.options },
      trustedProxies: config.trustProxy,
      secretHashes: { worker: hashOf(secrets.workerSecret), messaging: hashOf(secrets.messagingSecret) },
      onFault: (error, requestId, who) =>
        logError("request failed", error, { request_id: requestId, ...who }),
      onUntrustedProxy: warnOfProxy,
      operation,
      onAnswered,
    }),
  );
  // Here at last: a start that is refused says nothing else.
  if (!secrets.database) warnOfOpenFolder(config.data);
  const setUpUrl = await offerSetUp(ctx);
  // Children start after the requests that came during the start, since both need the processor.
  setImmediate(warmUp);
  return {
    url: `http://${config.host.includes(":") ? `[${config.host}]` : config.host}:${port}`,
    ctx,
    setUpUrl,
    mustStop: unfit?.then((why) => stopUnfit(config, secrets, why, restoredAt)) ?? null,
    async stop() {
      ctx.places.close();
      ctx.signInThrottle.close();
      ctx.live.close();
      // All at once: a mail server that hangs takes no time of its own.
      await Promise.all([drain(ctx.deliverySlots), settledWithin(closeTelling(ctx), DRAIN_MS)]);
      await opened.disposeAsync();
    },
  };
}

/** The keys of a server, some of which its first start makes, and whom it trusts. */
function trustOfServer(config: Config, secrets: Secrets, endpoints: readonly WebhookEndpoint[]) {
  const keys = keysOfServer(config, secrets, endpoints);
  if (isRefusal(keys)) return keys;
  const noBackupKey = secrets.database ? null : ensureBackupKey(config, secrets);
  if (noBackupKey) return noBackupKey;
  const witnessKey = witnessKeyOfServer(config, secrets);
  if (isRefusal(witnessKey)) return witnessKey;
  const sigstoreRoot = sigstoreRootOf(config);
  return isRefusal(sigstoreRoot) ? sigstoreRoot : { keys, witnessSeed: () => witnessKey, ...sigstoreRoot };
}

/** Ends what was left unfinished, and warns. Answers the instance as it began. */
async function recover(ctx: Context, finishWalCheckpoint: (() => void) | null): Promise<Instance> {
  const instance = await ctx.store.read((reader) => reader.instance.get());
  if (awaitsAcknowledgement(instance)) {
    logWarning("no live money moves until `holdfast restore acknowledge`", {
      instance_id: instance.id,
    });
  }
  if (instance.restoredUnverifiedAt !== null) {
    logWarning("the ledger was restored from a backup that no key verified", {
      instance_id: instance.id,
      restored_unverified_at: isoTime(instance.restoredUnverifiedAt),
    });
  }
  if (ctx.witness.logs.length > 0 && isLostKey(instance, (await ctx.witness.signer()).key)) {
    logWarning(
      "no log is cosigned: this witness was restored with its former key; remove witness.key, or change HOLDFAST_WITNESS_KEY",
      { instance_id: instance.id },
    );
  }
  await recoverLeftovers(ctx, onStartFault);
  await keepRailStates(ctx).catch(onStartFault);
  try {
    // The last process may have left a long log. Later requests would wait while it is copied, so it is copied now.
    finishWalCheckpoint?.();
  } catch (error) {
    onStartFault(error);
  }
  return instance;
}
