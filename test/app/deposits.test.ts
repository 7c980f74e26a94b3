import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { treasuriesWith } from "../../src/app/treasuries.ts";
import { watchingTreasuries } from "../../src/app/watching.ts";
import { NO_SECRETS, readConfig } from "../../src/config.ts";
import { createChainAsker } from "../../src/platform/ask-chain.ts";
import { createTreasuryChain } from "../../src/platform/treasury-chain.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { listDeposits } from "../../src/services/admin/balances.ts";
import { addDepositSender } from "../../src/services/admin/deposit-senders.ts";
import { listTreasuries } from "../../src/services/admin/treasuries.ts";
import { treasuryStates } from "../../src/services/chain/treasury-states.ts";
import { SPAN_FIRST, stepWatch } from "../../src/services/chain/watch.ts";
import type { Context } from "../../src/services/context.ts";
import { begunJobs } from "../support/begun-jobs.ts";
import { openConsole } from "../support/console.ts";
import { createTestContext } from "../support/context.ts";
import { type ModelToken, startModelToken, TOKEN } from "../support/model-token.ts";
import { newLedgerFolder } from "../support/new-ledger.ts";
import { must } from "../support/organisations.ts";
import { startTestServer, testSettings } from "../support/server.ts";
import { createStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

/** Deposits on a chain in a server: its jobs, what they say, and what people see. */

const KEY = `0x${"1f".repeat(32)}` as const;
const SECRETS = { treasurySandboxKey: KEY, treasuryLiveKey: `0x${"2e".repeat(32)}` as const };
const ACME = `0x${"ac".repeat(20)}`;
const STRANGER = `0x${"55".repeat(20)}`;
const METRICS_TOKEN = "0123456789abcdef";

let chain: ModelToken;
beforeEach(() => {
  chain = startModelToken(84_532, { [ACME]: 10_000_000n, [STRANGER]: 10_000_000n });
  chain.mine([], 3);
});
afterEach(() => chain.stop());

const settings = () => ({
  HOLDFAST_TREASURY_SANDBOX: `eip155:84532/${TOKEN}=USDC:5:50`,
  HOLDFAST_TREASURY_CONFIRMATIONS: "2",
  HOLDFAST_EVM_RPC: `eip155:84532=${chain.url},eip155:8453=http://127.0.0.1:1`,
});

/** The watch begins at the newest confirmed block. */
async function begin(ctx: Context): Promise<string> {
  const treasury = ctx.treasuries.find(({ mode }) => mode === "sandbox")!;
  await stepWatch(ctx, {
    ...{ treasury, span: SPAN_FIRST, onJudged: () => {} },
    chain: createTreasuryChain(createChainAsker(new Map([[84_532, chain.url]])), treasury, 2),
  });
  return treasury.address;
}

test("a server credits what comes in, shows where to pay in, and stays ready while the chain is away", async () => {
  const flags = Object.entries(settings()).map(([name, value]) => [name.replace("HOLDFAST_", ""), value]);
  const service = await startTestServer(Object.fromEntries(flags), {
    ...SECRETS,
    treasuryLiveKey: null,
    metricsToken: METRICS_TOKEN,
  });
  const home = await service.organisation(0n);
  const address = await begin(service.ctx);
  const browser = openConsole(service, await home.signIn(home.people.viewer, "sandbox"));
  const before = await browser.get("/console/money");
  expect(before.text).toContain("No address is registered as yours.");
  for (const shown of [address, TOKEN, "eip155:84532"]) expect(before.html).toContain(shown);
  must(
    await addDepositSender(service.ctx, {
      ...{ organisation_id: home.id, mode: "sandbox", address: ACME, note: "<Acme>" },
    }),
  );
  const paid = chain.transaction({ from: ACME, to: address, amount: 2_500_000n });
  const { hash } = paid[0]!;
  chain.mine([paid, chain.transaction({ from: STRANGER, to: address, amount: 7n })]);
  chain.mine();
  const metrics = async () =>
    (await fetch(`${service.url}/metrics`, { headers: { Authorization: `Bearer ${METRICS_TOKEN}` } })).text();
  await until("the job has credited it", async () =>
    (await metrics()).includes('holdfast_deposits_unassigned{mode="sandbox",asset="USDC"} 1'),
  );
  chain.intercept = () => new Response("", { status: 502 });
  const after = await browser.get("/console/money");
  expect(after.text).toContain("2.50 USDC");
  expect(after.text).toContain("Your registered addresses:");
  expect(after.html).toContain("&lt;Acme&gt;");
  expect(after.text).toContain(`eip155:84532:${hash}/0`);
  expect(after.text).toContain("block 5");
  expect(after.html).not.toContain(`href="https://`);
  // 2.50 is owed, and the wallet has what is nobody's besides.
  const solvency = (await browser.get("/console/money/solvency")).text;
  expect(solvency).toMatch(/2\.50 USDC 2\.500007 USDC 5 eip155:84532/);
  // Whoever is of another organisation sees where to pay in, and none of this.
  const elsewhere = await service.organisation(0n);
  const other = await openConsole(service, await elsewhere.signIn(elsewhere.people.viewer, "sandbox")).get(
    "/console/money",
  );
  expect(other.html).toContain(address);
  expect(other.html).not.toMatch(new RegExp(`${ACME}|${hash}|Acme`));
  // In live there is no treasury.
  expect((await openConsole(service, home.people.viewer.as).get("/console/money")).html).not.toContain(
    address,
  );
  const text = await metrics();
  for (const line of ["blocks_behind", "gone", "stopped"])
    expect(text).toContain(`holdfast_deposits_${line}{mode="sandbox",asset="USDC"} 0`);
  const { data } = must(await listTreasuries(service.ctx, MACHINE));
  expect(data[0]).toMatchObject({ block: 5, balance: "2500007", stopped: null, unassigned: 1, gone: 0 });
  expect((await service.get("/readyz")).status).toBe(200);
  await service.close();
}, 20_000);

test("live is looked at first, and a restored ledger credits nothing before somebody acknowledges it", async () => {
  const config = must(
    readConfig(testSettings(newLedgerFolder()), {
      ...settings(),
      HOLDFAST_TREASURY_LIVE: `eip155:8453/${TOKEN}=USDC:0:0`,
    }),
  );
  const ctx = createTestContext({ treasuries: treasuriesWith(config, { ...NO_SECRETS, ...SECRETS }) });
  const stage = await createStage(ctx, { funds: "0" });
  const scope = { organisation_id: stage.organisationId, mode: "sandbox" } as const;
  must(await addDepositSender(ctx, { ...scope, address: ACME }));
  const address = await begin(ctx);
  chain.mine([chain.transaction({ from: ACME, to: address, amount: 5n })], 2);
  const { jobs } = watchingTreasuries(ctx, config);
  expect(jobs.map(({ name }) => name)).toEqual(["deposits live USDC", "deposits sandbox USDC"]);
  const [, sandbox] = begunJobs(jobs, ctx);
  const acknowledgedAt = (time: number | null) =>
    ctx.store.execute({
      scope: null,
      needs: {},
      decide: ({ instance }) => ({
        answer: null,
        change: {
          put: [
            { kind: "instance", before: instance, row: { ...instance, restoredAt: 1, acknowledgedAt: time } },
          ],
        },
      }),
    });
  await acknowledgedAt(null);
  chain.asked.length = 0;
  await sandbox!.run();
  expect(chain.asked).toEqual([]);
  await acknowledgedAt(2);
  await sandbox!.run();
  expect(must(await listDeposits(ctx, MACHINE, scope)).data.map(({ amount }) => amount)).toEqual(["5"]);
  await ctx.close();
});

test("many transfers of a stranger are one line in the log a minute", async () => {
  const config = must(readConfig(testSettings(newLedgerFolder()), settings()));
  const secrets = { ...NO_SECRETS, ...SECRETS };
  const ctx = createTestContext({ treasuries: treasuriesWith(config, secrets) });
  const to = await begin(ctx);
  const dust = Array.from({ length: 30 }, () => chain.transaction({ from: STRANGER, to, amount: 1n }));
  chain.mine(dust, 2);
  const stderr = spyOn(process.stderr, "write").mockImplementation(() => true);
  await begunJobs(watchingTreasuries(ctx, config).jobs, ctx)[0]!.run();
  const lines = stderr.mock.calls.map(([line]) => JSON.parse(String(line)));
  stderr.mockRestore();
  expect(lines).toMatchObject([{ level: "warning", treasury: to, why: "nobody has registered its sender" }]);
  expect((await ctx.store.read(treasuryStates))[0]?.unassigned).toBe(30);
  // However many there are, no look at the metrics counts all of them.
  ctx.ledger.change(
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10001)
     INSERT INTO chain_transfers (rowid, watch, hash, ordinal, id, status, counterparty, amount, block, block_hash, created_at)
     SELECT 1000000 + i, watch, hash, ordinal + i, id || '_' || i, 'found', counterparty, amount, block, block_hash, created_at
     FROM (SELECT * FROM chain_transfers LIMIT 1) AS one, n`,
  );
  ctx.ledger.change("UPDATE chain_transfers SET status = 'unassigned'");
  expect(ctx.reader.chainTransfers.unassignedCount(ctx.reader.treasuryWatches.list()[0]!.id)).toBe(10_000);
  await ctx.close(/^(transfer|treasury) |more/);
});
