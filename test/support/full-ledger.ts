import { chainPayoutsJob } from "../../src/jobs/chain-payouts.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { correctBalance, decideCorrection } from "../../src/services/admin/corrections.ts";
import { failPayoutOf, markPaid, submitPayouts } from "../../src/services/admin/payouts.ts";
import { createSession } from "../../src/services/admin/sessions.ts";
import { addSourceKey, removeSourceKey } from "../../src/services/admin/source-keys.ts";
import { setPasskeyThreshold } from "../../src/services/admin/switches.ts";
import { beginAnchor } from "../../src/services/chain/anchor.ts";
import { stepTransactions } from "../../src/services/chain/wallet.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { keepRailStates } from "../../src/services/rails/states.ts";
import { signStatement } from "../../src/services/solvency/sign.ts";
import type { Put } from "../../src/store/change.ts";
import { createTestContext, type TestContext } from "./context.ts";
import { buildGoodLedger } from "./good-ledger.ts";
import { buildGoodPurchases } from "./good-purchases.ts";
import { openMarket } from "./market.ts";
import { createModelChain } from "./model-chain.ts";
import { createModelTreasury } from "./model-treasury.ts";
import { ALICE, BOB, CAROL, PAYOUT_MS, treasuryOf } from "./paying.ts";
import {
  ALL_PASS,
  createCaller,
  createStage,
  must,
  open,
  SCRIPTED,
  type Stage,
  settle,
  verify,
  warrantIn,
} from "./stage.ts";
import { transferredOnChain } from "./treasury-in-memory.ts";
import { until } from "./until.ts";

const KEY = { kty: "OKP", crv: "Ed25519", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" } as const;

/** A data folder whose ledger has rows in every table of money, verdicts, purchases, the log and its witnesses. Its store is closed. */
export async function buildFullLedger(): Promise<string> {
  const never = new Promise<never>(() => {});
  const ctx = createTestContext({
    ...SCRIPTED,
    fetchEvidence: (url, ...asked) => (url.includes("hang") ? never : SCRIPTED.fetchEvidence(url, ...asked)),
    signerAmong: async ({ keys: [key] }) => key ?? null,
  });
  const stage = await createStage(ctx);
  await signedAndLimited(ctx, stage);
  await buildGoodLedger(ctx);
  await paidOutAndCorrected(ctx);
  await anchor(ctx);
  ctx.clock.now += 1_000;
  const caller = await createCaller(stage);
  const checking = warrantIn(await open(stage, caller)).id;
  void verify(stage, caller, checking, ["hang" as never]);
  await until("it is being verified", () => ctx.reader.warrants.find(checking)?.state === "verifying");
  await anchor(ctx);
  await witnessed(ctx);
  await anchoredOnChain(ctx);
  await paidOnChain(ctx);
  await transferredOnChain(ctx, stage.organisationId);
  for (let signed = 0; signed < 2; signed++) must(await signStatement(ctx));
  await ctx.store.close();
  const market = openMarket();
  const bought = createTestContext({ x402: market.x402, tokens: ctx.tokens }, ctx.folder);
  bought.clock.now = ctx.clock.now + 1_000;
  const sandbox = await createStage(bought, { mode: "sandbox", funds: "10000" });
  await buildGoodPurchases(sandbox, market);
  await bought.store.close();
  return ctx.folder;
}

/** Checks whose answers their source signed, under sessions that are limited in every way; one session and one key have ended. */
async function signedAndLimited(ctx: TestContext, stage: Stage): Promise<void> {
  const { organisationId } = stage;
  const source = { organisation_id: organisationId, origin: "http://source.example" };
  must(await addSourceKey(ctx, MACHINE, { ...source, key: KEY }));
  const other = must(await addSourceKey(ctx, MACHINE, { ...source, origin: "https://b.example", key: KEY }));
  must(await removeSourceKey(ctx, MACHINE, { source_key_id: other.id }));
  const agent = await createCaller(stage);
  const limits = {
    ...{ agent_id: agent.agentId, amount_ceiling: "1000", warrant_limit: 5, per_warrant_max: "500" },
    ...{ hourly_max: "900", daily_max: "900", payees: ["acme"], source_origins: ["http://source.example"] },
  };
  for (let round = 0; round < 2; round++) {
    must(await createSession(ctx, MACHINE, limits));
    for (let hold = 0; hold < 2; hold++) {
      ctx.clock.now += 1_000;
      const id = warrantIn(await open(stage, agent, { agent_id: agent.agentId })).id;
      if (hold === 0) must(await verify(stage, agent, id, ALL_PASS));
    }
  }
}

/** Payouts in every status, and corrections in every status. */
async function paidOutAndCorrected(ctx: TestContext): Promise<void> {
  const stage = await createStage(ctx);
  const { organisationId, admin, owner } = stage;
  const scope = { organisation_id: organisationId, mode: "live" } as const;
  for (const payee of ["owed", "submitted", "paid", "failed", "returned", "owed"]) {
    const { id } = warrantIn(await open(stage, stage.operator, { payee, amount: "10" }));
    must(await settle(stage, stage.operator, id, "release"));
    if (payee === "owed") continue;
    const [payout] = must(await submitPayouts(ctx, MACHINE, { ...scope, payee })).data;
    const named = { payout_id: payout?.id ?? "" };
    if (payee === "paid" || payee === "returned")
      must(await markPaid(ctx, admin, { ...named, reference: "wire" }));
    if (payee === "failed") must(await failPayoutOf(ctx, admin, { ...named, reason: "refused" }));
    if (payee === "returned")
      must(await failPayoutOf(ctx, admin, { ...named, reason: "closed", returned: true }));
  }
  const setThreshold = (amount: string | null) =>
    setPasskeyThreshold(ctx, MACHINE, { organisation_id: organisationId, amount }).then(must);
  await setThreshold("100");
  for (const [amounts, decision] of [
    [["90", "95"], null],
    [["500"], "approve"],
    [["500"], "withdraw"],
    [["500"], null],
  ] as const) {
    const deposit = must(await fundBalance(ctx, MACHINE, { ...scope, amount: "100" }));
    for (const amount of amounts) {
      const correction = must(
        await correctBalance(ctx, admin, { deposit_id: deposit.id, amount, reason: "typed wrongly" }),
      );
      if (decision === null) continue;
      // Above it a passkey would be asked for.
      await setThreshold(null);
      must(await decideCorrection(ctx, owner, { correction_id: correction.id, decision }));
      await setThreshold("100");
    }
  }
}

/** An anchor on a chain, with the block that has it. */
async function anchoredOnChain(ctx: TestContext): Promise<void> {
  const chain = createModelChain(1);
  const rules = { confirmations: 1, feeMax: 1_000n };
  const sending = { wallet: chain.wallet, rules, onTakenOut: () => {} };
  await beginAnchor(ctx, sending);
  await stepTransactions(ctx, sending);
  chain.mine(1);
  await stepTransactions(ctx, sending);
}

/** A payout on a chain that is paid, one that is under way, and a payee that waits. */
async function paidOnChain(ctx: TestContext): Promise<void> {
  const stage = await createStage(ctx, { mode: "sandbox" });
  const chain = createModelTreasury(1);
  const on = { ...ctx, treasuries: [treasuryOf(chain, { payoutMax: 50n, dayMax: 1_000n })] };
  await keepRailStates(on);
  let time = 0;
  const job = chainPayoutsJob(on, {
    paying: () => ({
      ...{ wallet: chain.wallet, rules: { confirmations: 1, feeMax: 1_000n } },
      ...{ tokens: on.treasuries, onTakenOut: () => {} },
    }),
    ...{ everyMs: 1, monotonicNow: () => time, random: () => 0, onTrouble: () => {}, onAlarm: () => {} },
  });
  for (const [payee, amount] of [
    [ALICE, "50"],
    [CAROL, "51"],
    [BOB, "40"],
  ] as const) {
    const { id } = warrantIn(await open(stage, stage.operator, { payee, amount }));
    must(await settle(stage, stage.operator, id, "release"));
    time += PAYOUT_MS;
    await job.run();
    if (payee !== BOB) chain.mine(1);
  }
}

/** What a witness has signed of the log, and what this instance has signed of others. */
async function witnessed(ctx: TestContext): Promise<void> {
  const newest = await ctx.store.read(({ log }) => log.newestCheckpoint());
  const put: readonly Put[] = [
    {
      kind: "cosignature",
      before: null,
      row: { size: newest?.size ?? 0, witness: "witness.example", line: "— witness.example AAAA\n" },
    },
    {
      kind: "witnessedLog",
      before: null,
      row: { origin: "log.example", note: "log.example\n1\nAAAA\n", cosignedAt: ctx.now() },
    },
  ];
  await ctx.store.execute({ scope: null, needs: {}, decide: () => ({ answer: null, change: { put } }) });
}
