import { afterEach, beforeEach, expect, test } from "bun:test";
import { sharedSettings } from "../../src/app/instances.ts";
import { NO_SECRETS, readConfig, type Secrets } from "../../src/config.ts";
import type { Given } from "../../src/core/setting-values.ts";
import { createTokens, newSigningKey } from "../../src/platform/tokens.ts";
import { createWebPush, newPushKey } from "../../src/platform/web-push.ts";
import type { Context } from "../../src/services/context.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { must } from "../support/organisations.ts";
import { testSettings } from "../support/server.ts";

/** What all instances of a ledger must have in common, as they tell it to each other. */

const KEY = `0x${"1f".repeat(32)}` as const;
const ASSET = "eip155:84532/0x036CbD53842c5426634e7929541eC2318f3dCF7e=TEST:Test Coin:1";
const MASTER = new Uint8Array(32).fill(0x2e);

let ctx: TestContext;
beforeEach(() => {
  ctx = createTestContext();
});
afterEach(() => ctx.close());

const prefixed = (given: Given): Given =>
  Object.fromEntries(Object.entries(given).map(([name, value]) => [`HOLDFAST_${name}`, value]));

const settings = (
  secrets: Partial<Secrets> = {},
  overrides: Partial<Context> = {},
  environment: Readonly<Record<string, string>> = {},
) =>
  sharedSettings(
    must(readConfig({}, { ...prefixed(testSettings(ctx.folder)), ...environment })),
    { ...NO_SECRETS, masterKey: MASTER, ...secrets },
    { ...ctx, ...overrides },
  );

/** The names of what differs from an instance without further settings. */
const differing = async (of: ReturnType<typeof settings>): Promise<readonly string[]> => {
  const [usual, other] = [await settings(), await of];
  return Object.keys(usual).filter((name) => usual[name] !== other[name]);
};

test("the same settings agree", async () => {
  expect(await differing(settings())).toEqual([]);
});

test.each<[string, () => ReturnType<typeof settings>]>([
  ["HOLDFAST_BASE_URL", () => settings({}, { baseUrl: "https://other.example" })],
  [
    "HOLDFAST_EVM_RPC",
    () => settings({}, { x402: { ...ctx.x402, chains: { ...ctx.x402.chains, ids: [8453] } } }),
  ],
  ["HOLDFAST_RATE_READ", () => settings({}, {}, { HOLDFAST_RATE_READ: "3" })],
  ["HOLDFAST_RATE_WRITE", () => settings({}, {}, { HOLDFAST_RATE_WRITE: "3" })],
  ["HOLDFAST_RATE_BENCH", () => settings({}, {}, { HOLDFAST_RATE_BENCH: "3" })],
  ["HOLDFAST_IDEMPOTENCY_DAYS", () => settings({}, {}, { HOLDFAST_IDEMPOTENCY_DAYS: "3" })],
  ["HOLDFAST_CAPSULE_DAYS", () => settings({}, {}, { HOLDFAST_CAPSULE_DAYS: "3" })],
  ["HOLDFAST_CONTENT_BYTES", () => settings({}, {}, { HOLDFAST_CONTENT_BYTES: `${2 ** 31}` })],
  ["HOLDFAST_TREASURY_CONFIRMATIONS", () => settings({}, {}, { HOLDFAST_TREASURY_CONFIRMATIONS: "7" })],
  ["HOLDFAST_X402_ASSETS", () => settings({}, {}, { HOLDFAST_X402_ASSETS: ASSET })],
  ["HOLDFAST_SIGNING_KEY", () => settings({}, { tokens: createTokens(newSigningKey()) })],
  ["HOLDFAST_PUSH_KEY", () => settings({}, { webPush: createWebPush(Buffer.from(newPushKey(), "base64")) })],
  ["HOLDFAST_MASTER_KEY", () => settings({ masterKey: new Uint8Array(32).fill(1) })],
  ["HOLDFAST_X402_SANDBOX_KEY", () => settings({ x402SandboxKey: KEY })],
  ["HOLDFAST_X402_LIVE_KEY", () => settings({ x402LiveKey: KEY })],
  ["HOLDFAST_ANCHOR_KEY", () => settings({ anchorKey: KEY })],
  ["HOLDFAST_TREASURY_SANDBOX_KEY", () => settings({ treasurySandboxKey: KEY })],
  ["HOLDFAST_TREASURY_LIVE_KEY", () => settings({ treasuryLiveKey: KEY })],
])("another %s is named, and nothing else", async (name, other) => {
  expect(await differing(other())).toEqual([name]);
});

test("another key of the witness, and other treasuries, are named", async () => {
  const signer = async () => {
    const made = await ctx.witness.signer();
    return { ...made, key: { ...made.key, publicKey: new Uint8Array(32).fill(3) } };
  };
  expect(await differing(settings({}, { witness: { ...ctx.witness, signer } }))).toEqual([
    "HOLDFAST_WITNESS_KEY",
  ]);
  const treasury = {
    HOLDFAST_TREASURY_SANDBOX: "eip155:84532/0x036CbD53842c5426634e7929541eC2318f3dCF7e=USDC:5:50",
    HOLDFAST_EVM_RPC: "eip155:84532=http://127.0.0.1:1",
  };
  expect(await differing(settings({}, {}, treasury))).toEqual(["HOLDFAST_TREASURY_SANDBOX"]);
});

test("no key can be read in them", async () => {
  const told = JSON.stringify(await settings({ x402LiveKey: KEY, treasuryLiveKey: KEY }));
  expect(told).not.toContain("1f1f1f");
  expect(told).not.toContain("2e2e2e");
  expect(told).not.toContain(Buffer.from(MASTER).toString("base64"));
});
