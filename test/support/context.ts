import { expect } from "bun:test";
import { UNSEEN_ANSWER } from "../../src/core/capsule.ts";
import { reachedEvidence } from "../../src/core/clauses/evidence.ts";
import { parseSchema } from "../../src/core/clauses/schema.ts";
import { createIds } from "../../src/core/ids.ts";
import { KNOWN_ASSETS } from "../../src/core/x402/assets.ts";
import { FREE_BYTES_MAX } from "../../src/core/x402/content.ts";
import { compressBody, decompressBody } from "../../src/platform/capsule-coding.ts";
import { decodeTransaction } from "../../src/platform/evm-wallet.ts";
import { noteSignerOf, verifyEd25519 } from "../../src/platform/note-keys.ts";
import { createPasskeyVerifier } from "../../src/platform/passkeys.ts";
import { createPlaces } from "../../src/platform/places.ts";
import { NO_SIGN_IN_LOG } from "../../src/platform/sign-in-log.ts";
import { signerAmong } from "../../src/platform/source-signature.ts";
import { createTokens, newSigningKey } from "../../src/platform/tokens.ts";
import { createVault } from "../../src/platform/vault.ts";
import { createWebPush, newPushKey } from "../../src/platform/web-push.ts";
import { createX402Client } from "../../src/platform/x402-request.ts";
import { callerNowIn } from "../../src/services/auth/callers.ts";
import { createSignInFailures } from "../../src/services/auth/failures.ts";
import { createKeyUses } from "../../src/services/auth/key-uses.ts";
import { createPendingChallenges } from "../../src/services/auth/passkeys/challenges.ts";
import { createStartLinks } from "../../src/services/auth/start-links.ts";
import { createSignInThrottle } from "../../src/services/auth/throttle.ts";
import type { After } from "../../src/services/auth/waiting-room.ts";
import type { Context } from "../../src/services/context.ts";
import { createLive } from "../../src/services/live/live.ts";
import { createDeliverySlots } from "../../src/services/webhooks/slots.ts";
import { ALONE } from "../../src/store/instances.ts";
import { tellingBy } from "./channels.ts";
import { OPEN_PASSWORDS } from "./cheap-passwords.ts";
import { evaluate } from "./evaluate.ts";
import { openTestLedger, type TestLedger } from "./ledger.ts";
import { newLedgerFolder, removeLedgerFolder } from "./new-ledger.ts";
import { openTestStore, type TestStore } from "./store.ts";

/** A context whose clock stands still, whose source answers 200 `{}` and whose passwords cost nothing. */
export type TestContext = Context & {
  /** The data folder; the file is `holdfast.db`. */
  readonly folder: string;
  /** Epoch milliseconds; a test moves it. Where the machine's clock is to be wrong, `aheadMs` says by how much. */
  readonly clock: { now: number; aheadMs: number };
  readonly store: TestStore;
  /** The ledger as it is stored, on a connection of its own. */
  readonly ledger: TestLedger;
  readonly reader: TestLedger["reader"];
  /**
   * Closes the store and removes the folder. A test that moved money audits the ledger here, and it must have no disagreement.
   *
   * @param planted what the audit may say of rows that the test made up
   */
  close(planted?: RegExp): Promise<void>;
};

/** Buys on this machine with vouchers: there is no wallet, and no chain to ask. */
export const NO_MONEY: Context["x402"] = {
  contentBytesMax: 1024 ** 3,
  freeBytesMax: FREE_BYTES_MAX,
  ...createX402Client({ allowNetworks: ["127.0.0.0/8"] }),
  wallets: { sandbox: null, live: null },
  assets: KNOWN_ASSETS,
  chains: { ids: [], find: async () => "none", balanceOf: async () => null },
  pause: async () => {},
  underWay: new Set(),
};

/** Witnesses nothing, and is witnessed by nobody. */
export const NO_WITNESSES: Context["witness"] = {
  logs: [],
  witnesses: [],
  signer: async () => noteSignerOf("holdfast/test/witness", "cosignature", new Uint8Array(32).fill(7)),
  verify: verifyEd25519,
  ask: async () => ({ failed: "source_unreachable" }),
};

/** Nobody waits: tests of waits bring timers of their own. */
const atOnce: After = (_, then) => {
  queueMicrotask(then);
  return { cancel() {} };
};

const inTime: After = (ms, then) => {
  const timer = setTimeout(then, ms);
  return { cancel: () => clearTimeout(timer) };
};

export const TEST_NOW = Date.UTC(2030, 0, 15, 12);

/** Keeps capsules as a server does. */
export const newCapsules = (changed: Partial<Context["capsules"]> = {}): Context["capsules"] => ({
  bytesMax: 64 * 1024 * 1024,
  days: 90,
  compress: compressBody,
  decompress: decompressBody,
  notKept: { count: 0 },
  ...changed,
});

/** @param folder a data folder that may have a ledger already; by default a new one */
export function createTestContext(
  overrides: Partial<Omit<Context, "store">> = {},
  folder = newLedgerFolder(),
): TestContext {
  const clock = { now: TEST_NOW, aheadMs: 0 };
  const now = () => clock.now + clock.aheadMs;
  const random40 = () => Number(crypto.getRandomValues(new BigUint64Array(1))[0]! >> 24n);
  const store = openTestStore(folder, { now, steadyNow: () => clock.now });
  const ledger = openTestLedger(folder);
  const inProcess: Context["evaluate"] = async ({ clauses, evidence, schemas, now: at }) =>
    evaluate(clauses, evidence, schemas, at);
  const live = createLive({
    store,
    callerNow: callerNowIn({ store, now }),
    after: inTime,
    randomByte: () => 7,
  });
  return {
    store,
    instances: ALONE,
    shared: null,
    ledger,
    reader: ledger.reader,
    now,
    newId: createIds(now, random40, store.newestIdTime),
    randomByte: () => crypto.getRandomValues(new Uint8Array(1))[0]!,
    passwords: OPEN_PASSWORDS,
    signInThrottle: createSignInThrottle({ after: atOnce, secret: "test" }),
    signInLog: NO_SIGN_IN_LOG,
    signInFailures: createSignInFailures(),
    startLinks: createStartLinks(() => clock.now),
    passkeys: createPasskeyVerifier(),
    passkeyChallenges: createPendingChallenges(),
    keyUses: createKeyUses(),
    places: createPlaces(),
    fetchEvidence: async () => {
      const body = Buffer.from("{}");
      return {
        evidence: reachedEvidence({ status: 200, body }),
        status: 200,
        bytes: body.length,
        durationMs: 1,
        answer: UNSEEN_ANSWER,
      };
    },
    withTrySeller: () => Promise.reject(new Error("no seller for a try")),
    evaluate: inProcess,
    parseSchema: async (schema) => parseSchema(schema),
    evaluateBench: inProcess,
    tokens: createTokens(newSigningKey()),
    x402: NO_MONEY,
    capsules: newCapsules(),
    signerAmong,
    sigstore: null,
    webPush: createWebPush(Buffer.from(newPushKey(), "base64")),
    vault: createVault(crypto.getRandomValues(new Uint8Array(32))),
    sendWebhook: async () => ({ code: 200, responseStart: "", durationMs: 1 }),
    witness: NO_WITNESSES,
    treasuries: [],
    holdingOf: async () => ({ away: "none" }),
    chain: { anchors: false, decode: decodeTransaction },
    deliverySlots: createDeliverySlots(),
    deliveryFailures: { exhausted: 0, notSent: 0, endpoints: new Map() },
    messaging: null,
    notices: tellingBy({}),
    live,
    baseUrl: "http://localhost:8080",
    ...overrides,
    folder,
    clock,
    async close(planted) {
      const auditing = await Promise.allSettled([store.audit()]); // Whatever it says, the rest is closed.
      ledger.close();
      live.close();
      await store.close();
      removeLedgerFolder(folder);
      const [audited] = auditing;
      if (audited.status === "rejected") throw audited.reason;
      expect(audited.value.filter((problem) => !planted?.test(problem))).toEqual([]);
    },
  };
}
