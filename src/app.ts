import { type Config, NO_SECRETS, type Secrets } from "./config.ts";
import { type Refusal, refuseField } from "./core/errors.ts";
import { createIds } from "./core/ids.ts";
import { MINUTE_MS, SECOND_MS } from "./core/time.ts";
import { KNOWN_ASSETS } from "./core/x402/assets.ts";
import { createShell, type Shell } from "./http/shell.ts";
import { followAgents } from "./jobs/agents.ts";
import { sweepDeadlines } from "./jobs/deadlines.ts";
import { reconcilePurchases, recoverPurchases, recoverPurchasesAtStart } from "./jobs/purchases.ts";
import { recoverAtStart, recoverOverdueChecks } from "./jobs/recover.ts";
import { startScheduler } from "./jobs/scheduler.ts";
import { createEvaluator } from "./platform/evaluator.ts";
import { createEvmChains, findingOf } from "./platform/evm-chain.ts";
import { createEvmPayer } from "./platform/evm-payer.ts";
import { createFetcher } from "./platform/fetcher.ts";
import { KEY_FILES, keyFile } from "./platform/key-files.ts";
import { logError } from "./platform/log.ts";
import { createPasswords } from "./platform/passwords.ts";
import { random40, randomByte } from "./platform/random.ts";
import { createTokens, newSigningKey } from "./platform/tokens.ts";
import { createX402Client } from "./platform/x402-request.ts";
import { createSignInThrottle } from "./services/auth/throttle.ts";
import type { Buying, Context } from "./services/context.ts";
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
/**
 * Longer than a check can take, so that a quiet connection is not cut under it; the most that Bun takes. A purchase whose chain is
 * slow may take longer still: then its answer is a replay's.
 */
const IDLE_SECONDS = 255;
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
  secrets: Secrets,
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
    checkLimiter: createCheckLimiter(),
    fetchEvidence: fetcher.fetch,
    evaluate: evaluator.evaluate,
    parseSchema: evaluator.parseSchema,
    evaluateBench: benchEvaluator.evaluate,
    tokens: createTokens(secrets.signingKey ?? keyFile(config.data, KEY_FILES.signing, newSigningKey)),
    x402: buyingWith(config, secrets, listeners),
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

function buyingWith(config: Config, secrets: Secrets, listeners: () => readonly Listener[]): Buying {
  const chains = createEvmChains(config.evmRpc);
  const { x402SandboxKey, x402LiveKey } = secrets;
  return {
    ...createX402Client({ allowNetworks: config.x402AllowNetworks, ownListeners: listeners }),
    wallets: {
      sandbox: x402SandboxKey && createEvmPayer("sandbox", x402SandboxKey),
      live: x402LiveKey && createEvmPayer("live", x402LiveKey),
    },
    // Of two rules for a token the first counts, so the operator's come first.
    assets: [...config.x402Assets, ...KNOWN_ASSETS],
    chains: {
      has: chains.has,
      find: async (question, at) =>
        findingOf(await chains.authorizationState(question, at), question.validBefore),
      async balanceOf(...question) {
        const found = await chains.balanceOf(...question);
        return "away" in found ? null : found.balance;
      },
    },
    pause: Bun.sleep,
    underWay: new Set(),
  };
}

const onPurchaseFault = (error: unknown, purchaseId: string): void =>
  logError("a purchase could not be ended", error, { purchase_id: purchaseId });

const onRecoveryFault = (error: unknown, warrantId: string): void =>
  logError("a check could not be undone", error, { warrant_id: warrantId });

const baseUrlOf = (config: Config, port: number): string => config.baseUrl ?? `http://localhost:${port}`;

/** Where the links in errors lead: the service's own pages, unless the configuration says otherwise. */
export const docsUrlOf = (config: Config, port = config.port): string =>
  config.docsUrl ?? `${baseUrlOf(config, port)}/docs`;

/** The ledger without a server: for the command line, beside a server that may be running. */
export const openForCommands = (config: Config, secrets = NO_SECRETS): Opened =>
  openContext(config, secrets, baseUrlOf(config, config.port), 0, () => []);

export type RunningServer = {
  /** Where it listens, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly ctx: Context;
  /** Drains what is running, within 10 s, then closes. */
  stop(): Promise<void>;
};

/** Recovers what a crash left, starts the jobs, and listens. Refused where another server has the folder; throws where the port is taken. */
export async function startServer(config: Config, secrets = NO_SECRETS): Promise<RunningServer | Refusal> {
  const lock = lockForServer(config.data);
  if (!lock) {
    return refuseField(
      "HOLDFAST_DATA",
      `another server runs on ${config.data}; stop it first, or choose another folder`,
    );
  }
  try {
    return await startLocked(config, secrets, lock);
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function startLocked(config: Config, secrets: Secrets, lock: ServerLock): Promise<RunningServer> {
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
  const { ctx, close } = openContext(config, secrets, baseUrl, 2, () => [{ address: config.host, port }]);
  await recoverAtStart(ctx, onRecoveryFault);
  await recoverPurchasesAtStart(ctx, onPurchaseFault);
  await followAgents(ctx);
  ready.resolve(
    createShell(ctx, {
      docsUrl: docsUrlOf(config, port),
      rateLimits: config.rateLimits,
      trustedProxies: config.trustProxy,
      onFault: (error, requestId) => logError("request failed", error, { request_id: requestId }),
    }),
  );
  const scheduler = startScheduler(
    [
      { name: "deadlines", everyMs: 500, run: () => sweepDeadlines(ctx) },
      { name: "agents", everyMs: MINUTE_MS, run: () => followAgents(ctx) },
      { name: "recover", everyMs: MINUTE_MS / 4, run: () => recoverOverdueChecks(ctx, onRecoveryFault) },
      { name: "purchases", everyMs: 2 * SECOND_MS, run: () => recoverPurchases(ctx, onPurchaseFault) },
      { name: "payments", everyMs: 2 * SECOND_MS, run: () => reconcilePurchases(ctx, onPurchaseFault) },
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
      // A chain that hangs does not hold up the stop.
      await settledWithin([scheduler.stop()], DRAIN_MS);
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
