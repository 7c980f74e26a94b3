import type { Config, Secrets } from "../config.ts";
import { createIds } from "../core/ids.ts";
import { SECOND_MS } from "../core/time.ts";
import { ATTEMPT_TIMEOUT_MS } from "../core/webhook.ts";
import { compressBody, decompressBody } from "../platform/capsule-coding.ts";
import { createEvaluator } from "../platform/evaluator.ts";
import { EvaluatorMemory } from "../platform/evaluator-memory.ts";
import { createEvidenceBudget } from "../platform/evidence-room.ts";
import { createFetcher } from "../platform/fetcher.ts";
import type { Figures, Metrics } from "../platform/metrics.ts";
import { createPasskeyVerifier } from "../platform/passkeys.ts";
import { createPasswords } from "../platform/passwords.ts";
import { createPlaces } from "../platform/places.ts";
import { random40, randomByte } from "../platform/random.ts";
import type { SignInLog } from "../platform/sign-in-log.ts";
import { signerAmong } from "../platform/source-signature.ts";
import { steadyNow } from "../platform/steady-clock.ts";
import { createTrySeller } from "../platform/try-seller.ts";
import { createWebhookSender } from "../platform/webhook-sender.ts";
import { callerNowIn } from "../services/auth/callers.ts";
import { createSignInFailures } from "../services/auth/failures.ts";
import { createKeyUses } from "../services/auth/key-uses.ts";
import { createPendingChallenges } from "../services/auth/passkeys/challenges.ts";
import { createSharedChallenges } from "../services/auth/passkeys/shared-challenges.ts";
import { createSharedStartLinks, createStartLinks } from "../services/auth/start-links.ts";
import { createSharedSignInThrottle, createSignInThrottle } from "../services/auth/throttle.ts";
import { newToken } from "../services/auth/tokens.ts";
import type { After } from "../services/auth/waiting-room.ts";
import type { Context } from "../services/context.ts";
import { createLive } from "../services/live/live.ts";
import { CHECK_RUN_MS_MAX, CHECK_WAIT_MS_MAX } from "../services/warrants/interrupt.ts";
import { createDeliverySlots } from "../services/webhooks/slots.ts";
import type { Instances } from "../store/instances.ts";
import type { SharedMemory } from "../store/shared-memory.ts";
import type { Store } from "../store/store.ts";
import { ownChainWith } from "./anchoring.ts";
import { buyingWith } from "./buying.ts";
import { EVALUATOR_ARGUMENT, SELF } from "./children.ts";
import type { Keys } from "./keys.ts";
import { messagingWith } from "./messaging.ts";
import { tellingWith } from "./notices.ts";
import { sigstoreWith } from "./sigstore.ts";
import { holdingsWith, treasuriesWith } from "./treasuries.ts";
import { type WitnessSeed, witnessingWith } from "./witnessing.ts";

export const CLAUSE_TIMEOUT_MS = SECOND_MS;
const BENCH_RUN_TIMEOUT_MS = 2 * SECOND_MS;
export const EVALUATOR_COMMAND = [...SELF, EVALUATOR_ARGUMENT];

const after: After = (ms, then) => {
  const timer = setTimeout(then, ms);
  return { cancel: () => clearTimeout(timer) };
};

type Listener = { readonly address: string; readonly port: number };

export type ContextParts = {
  readonly config: Config;
  readonly secrets: Secrets;
  readonly store: Store;
  /** The time in the newest id of the ledger, epoch milliseconds: new ids come after it. */
  readonly newestIdTime: number;
  readonly instances: Instances;
  /** What the instances that share the ledger remember together; null where this one has it for itself. */
  readonly shared: SharedMemory | null;
  readonly keys: Keys;
  readonly witnessSeed: WitnessSeed;
  /** The text of the trusted root of Sigstore; null where no bundle is looked at. */
  readonly sigstoreRoot: string | null;
  /** The base URL of the server on this folder. The links that are printed or sent start with it. */
  readonly baseUrl: string;
  /** How many evaluators of checks are kept running for the next check. */
  readonly warmChildren: number;
  readonly listeners: () => readonly Listener[];
  readonly metrics: Metrics | null;
  readonly signInLog: SignInLog;
};

type Composed = {
  readonly ctx: Context;
  /** Starts the evaluators that are kept warm. A check that comes earlier starts its own. */
  warmUp(): void;
  readonly evaluators: () => Figures["evaluators"];
};

const capsulesWith = (config: Config): Context["capsules"] => ({
  bytesMax: config.capsuleBytes,
  days: config.capsuleDays,
  compress: compressBody,
  decompress: decompressBody,
  notKept: { count: 0 },
});

type Remembered = Pick<Context, "signInThrottle" | "startLinks" | "passkeyChallenges">;

const rememberedAlone = (): Remembered => ({
  signInThrottle: createSignInThrottle({ after, secret: newToken({ randomByte }) }),
  startLinks: createStartLinks(steadyNow),
  passkeyChallenges: createPendingChallenges(),
});

const rememberedTogether = (shared: SharedMemory, { vault }: Keys): Remembered => ({
  signInThrottle: createSharedSignInThrottle(
    // All instances have to choose the same counters.
    { after, secret: vault.mac("", "sign-in throttle").toString("hex") },
    shared.attempts,
  ),
  startLinks: createSharedStartLinks(shared, createStartLinks(steadyNow)),
  passkeyChallenges: createSharedChallenges(shared, vault),
});

/**
 * Makes the context of all verbs from the configuration and the adapters. What must be closed later is added
 * to `opened`.
 */
export function composeContext(parts: ContextParts, opened: AsyncDisposableStack): Composed {
  const { config, secrets, store, instances, shared, keys, baseUrl, listeners, metrics, signInLog } = parts;
  const newId = createIds(Date.now, random40, parts.newestIdTime);
  const memory = new EvaluatorMemory();
  const evaluator = createEvaluator({
    command: EVALUATOR_COMMAND,
    memory,
    clauseTimeoutMs: CLAUSE_TIMEOUT_MS,
    runTimeoutMs: CHECK_RUN_MS_MAX,
    waitTimeoutMs: CHECK_WAIT_MS_MAX,
    size: parts.warmChildren,
  });
  opened.defer(evaluator.close);
  const benchEvaluator = createEvaluator({
    command: EVALUATOR_COMMAND,
    memory,
    clauseTimeoutMs: CLAUSE_TIMEOUT_MS,
    runTimeoutMs: BENCH_RUN_TIMEOUT_MS,
    waitTimeoutMs: CHECK_WAIT_MS_MAX,
    size: Math.min(parts.warmChildren, 1),
    // All runs of the bench count as sandbox, which has half of them.
    sizeMax: 8,
  });
  opened.defer(benchEvaluator.close);
  const reaching = { allowNetworks: config.allowNetworks, ownListeners: listeners };
  const budget = createEvidenceBudget();
  const fetching = { budget, timeoutMs: config.fetchSeconds * SECOND_MS, ownListeners: listeners };
  const fetcher = createFetcher({ ...fetching, ...reaching });
  const sender = createWebhookSender({ ...reaching, timeoutMs: ATTEMPT_TIMEOUT_MS });
  const sending = { store, newId, now: Date.now, post: sender.send };
  const messaging = messagingWith(config, secrets, listeners);
  const ctx: Context = {
    ...{ store, instances },
    now: Date.now,
    newId,
    randomByte,
    passwords: createPasswords(),
    shared,
    signInLog,
    signInFailures: createSignInFailures(),
    passkeys: createPasskeyVerifier(),
    ...(shared ? rememberedTogether(shared, keys) : rememberedAlone()),
    keyUses: createKeyUses(),
    places: createPlaces(),
    fetchEvidence: fetcher.fetch,
    withTrySeller: createTrySeller(fetching),
    ...{ evaluate: evaluator.evaluate, parseSchema: evaluator.parseSchema },
    evaluateBench: benchEvaluator.evaluate,
    ...keys,
    x402: buyingWith(config, secrets, listeners, budget),
    signerAmong,
    sigstore: sigstoreWith(parts.sigstoreRoot, evaluator, fetcher),
    capsules: capsulesWith(config),
    witness: witnessingWith(config, store, parts.witnessSeed, listeners),
    chain: ownChainWith(config),
    treasuries: treasuriesWith(config, secrets),
    holdingOf: holdingsWith(config),
    async sendWebhook(request) {
      const result = await sender.send(request);
      metrics?.webhookAttempted(result.code);
      return result;
    },
    deliverySlots: createDeliverySlots(),
    deliveryFailures: { exhausted: 0, notSent: 0, endpoints: new Map() },
    messaging,
    notices: tellingWith(config, secrets, { ...keys, ...sending, messaging, baseUrl }),
    live: createLive({ store, callerNow: callerNowIn({ store, now: Date.now }), after, randomByte }),
    baseUrl,
  };
  return {
    ctx,
    warmUp() {
      evaluator.warmUp();
      benchEvaluator.warmUp();
    },
    evaluators: () => [
      { pool: "verify", ...evaluator.stats() },
      { pool: "bench", ...benchEvaluator.stats() },
    ],
  };
}
