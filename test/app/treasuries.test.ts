import { expect, test } from "bun:test";
import { payoutJobs } from "../../src/app/payouts.ts";
import { treasuriesWith } from "../../src/app/treasuries.ts";
import { startServer } from "../../src/app.ts";
import { NO_SECRETS, readConfig, type Secrets } from "../../src/config.ts";
import { HOUR_MS } from "../../src/core/time.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { listTreasuries } from "../../src/services/admin/treasuries.ts";
import { keepRailStates } from "../../src/services/rails/states.ts";
import { createTestContext } from "../support/context.ts";
import { newLedgerFolder } from "../support/new-ledger.ts";
import { must } from "../support/organisations.ts";
import { testSettings } from "../support/server.ts";

/** Which wallets hold the money on chains, and with which settings a server does not start. */

const TOKEN = `0x${"ab".repeat(20)}`;
const KEY = `0x${"1f".repeat(32)}` as const;
const ENDPOINTS = "eip155:84532=http://127.0.0.1:1,eip155:8453=http://127.0.0.1:1/the-key";
const SETTINGS = {
  HOLDFAST_TREASURY_SANDBOX: `eip155:84532/${TOKEN}=USDC:5:50`,
  HOLDFAST_TREASURY_LIVE: `eip155:8453/${TOKEN}=USDC:0:0`,
  HOLDFAST_EVM_RPC: ENDPOINTS,
};
const SECRETS: Secrets = { ...NO_SECRETS, treasurySandboxKey: KEY, treasuryLiveKey: `0x${"2e".repeat(32)}` };

const config = (more: Record<string, string> = {}) =>
  must(readConfig(testSettings(newLedgerFolder()), { ...SETTINGS, ...more }));

const ANCHORS = { HOLDFAST_ANCHOR: "evm", HOLDFAST_ANCHOR_RPC: "eip155:84532=http://127.0.0.1:1" };

const REFUSED: readonly (readonly [what: string, Record<string, string>, Partial<Secrets>, start: string])[] =
  [
    [
      "the key of a treasury",
      {},
      { treasuryLiveKey: null },
      "HOLDFAST_TREASURY_LIVE_KEY: must be set where HOLDFAST_TREASURY_LIVE is, or HOLDFAST_TREASURY_LIVE_KEY_FILE",
    ],
    [
      "an endpoint of its chain",
      { HOLDFAST_EVM_RPC: "eip155:84532=http://127.0.0.1:1/the-key" },
      {},
      "HOLDFAST_EVM_RPC: must have an endpoint of eip155:8453, the chain of HOLDFAST_TREASURY_LIVE",
    ],
    [
      "a wallet of its own",
      ANCHORS,
      { anchorKey: KEY },
      "HOLDFAST_TREASURY_SANDBOX_KEY: must be another wallet than that of HOLDFAST_ANCHOR_KEY",
    ],
  ];
for (const [what, settings, secrets, start] of REFUSED) {
  test(`without ${what} a server does not start, and says what to set`, async () => {
    const refusal = await startServer(config(settings), { ...SECRETS, ...secrets });
    expect(refusal).toMatchObject({ refused: "validation_failed", message: expect.stringContaining(start) });
    expect(JSON.stringify(refusal)).not.toMatch(/the-key|1f1f/);
  });
}

test("another wallet, or one on another chain, may make the log's anchors", async () => {
  const elsewhere = { ...ANCHORS, HOLDFAST_ANCHOR_RPC: "eip155:11155111=http://127.0.0.1:1" };
  for (const [settings, anchorKey] of [
    [ANCHORS, `0x${"33".repeat(32)}`],
    [elsewhere, KEY],
  ] as const) {
    const server = must(await startServer(config(settings), { ...SECRETS, anchorKey }));
    await server.stop();
  }
});

test("the wallets are listed with their addresses and limits, and never with their keys", async () => {
  const ctx = createTestContext({ treasuries: treasuriesWith(config(), SECRETS) });
  const listed = must(await listTreasuries(ctx, MACHINE));
  const notLookedAt = {
    ...{ block: null, balance: null, stopped: null, unassigned: 0, gone: 0 },
    ...{ waits_for: null, unknown_until_nonce: null },
  };
  expect(listed.data).toEqual([
    {
      ...{ object: "treasury", mode: "sandbox", asset: "USDC", chain: "eip155:84532", token: TOKEN },
      ...{ address: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/), payout_max: "5", day_max: "50" },
      ...notLookedAt,
    },
    {
      ...{ object: "treasury", mode: "live", asset: "USDC", chain: "eip155:8453", token: TOKEN },
      ...{ address: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/), payout_max: "0", day_max: "0" },
      ...notLookedAt,
    },
  ]);
  expect(listed.data[0]?.address).not.toBe(listed.data[1]?.address);
  expect(JSON.stringify(listed)).not.toMatch(/1f1f|2e2e/);
  await ctx.close();
});

test("a command without the key of a mode knows no wallet of it", () => {
  expect(treasuriesWith(config(), { ...SECRETS, treasuryLiveKey: null }).map(({ mode }) => mode)).toEqual([
    "sandbox",
  ]);
});

test("each mode has a job of its own, live first, where it has a wallet", async () => {
  const names = async (secrets: Secrets) => {
    const ctx = createTestContext({ treasuries: treasuriesWith(config(), secrets) });
    const jobs = payoutJobs(ctx, config(), secrets).map(({ name }) => name);
    await ctx.close();
    return jobs;
  };
  expect(await names(SECRETS)).toEqual(["payouts-live", "payouts-sandbox"]);
  expect(await names({ ...SECRETS, treasuryLiveKey: null })).toEqual(["payouts-sandbox"]);
  expect(await names(NO_SECRETS)).toEqual([]);
  const ctx = createTestContext({ treasuries: treasuriesWith(config(), SECRETS) });
  const jobs = payoutJobs(ctx, config(), SECRETS);
  // A node that answers each of hundreds of questions just in time is no failure of the service.
  expect(jobs.map(({ patienceMs }) => patienceMs)).toEqual([HOUR_MS, HOUR_MS]);
  // A clock a day ahead would free all limits of 24 hours.
  expect(jobs.map(({ needsTheClock }) => needsTheClock)).toEqual([true, true]);
  await ctx.close();
});

test("what a server has no token for any more is kept by that, and goes on when it has it again", async () => {
  const ctx = createTestContext({ treasuries: treasuriesWith(config(), SECRETS) });
  const codes = () => ctx.reader.rails.states().map(({ mode, code }) => [mode, code]);
  await keepRailStates(ctx);
  expect(codes()).toEqual([
    ["live", null],
    ["sandbox", null],
  ]);
  const [sandbox] = ctx.treasuries;
  await keepRailStates({ ...ctx, treasuries: [sandbox!] });
  expect(codes()).toEqual([
    ["live", "no_treasury"],
    ["sandbox", null],
  ]);
  await keepRailStates(ctx);
  expect(codes()[0]).toEqual(["live", null]);
  await ctx.close();
});
