import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Holding } from "../../../src/core/solvency/judgement.ts";
import type { Treasury } from "../../../src/core/treasury.ts";
import { chainOfMode } from "../../../src/core/x402/chains.ts";
import { solvencyWatch } from "../../../src/jobs/solvency.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { fundBalance } from "../../../src/services/admin/balances.ts";
import { markPaid, submitPayouts } from "../../../src/services/admin/payouts.ts";
import { showSolvency } from "../../../src/services/solvency/figures.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { createStage, must, open, type Stage, settle, warrantIn } from "../../support/stage.ts";

/** What the ledger owes beside what a chain holds, at the same block: payouts and deposits that only one of the two knows are no alarm. */

const TREASURY: Treasury = {
  ...{ mode: "live", chainId: chainOfMode("live", 8453)!, token: `0x${"ab".repeat(20)}`, asset: "USDC" },
  limits: { payoutMax: 0n, dayMax: 0n },
  address: `0x${"cd".repeat(20)}`,
};
/** The time between blocks, and how many there must be. */
const BLOCK_MS = 2_000;
const CONFIRMATIONS = 12;

let ctx: TestContext;
let stage: Stage;
/** What the token has moved to the treasury, and from there, by the time of the block. */
let moves: { readonly at: number; readonly amount: bigint }[];
/** How much the node is behind. */
let behindMs: number;
let away: boolean;

async function holdingOf(): Promise<Holding | { away: "timeout" }> {
  if (away) return { away: "timeout" };
  const newestTime = ctx.clock.now - behindMs;
  const blockTime = newestTime - (CONFIRMATIONS - 1) * BLOCK_MS;
  const balance = moves.filter(({ at }) => at <= blockTime).reduce((sum, { amount }) => sum + amount, 0n);
  return { balance, block: Math.floor(blockTime / BLOCK_MS), blockHash: "0x1", blockTime, newestTime };
}

beforeEach(async () => {
  [moves, behindMs, away] = [[], 0, false];
  ctx = createTestContext({ treasuries: [TREASURY], holdingOf });
  stage = await createStage(ctx, { funds: "0" });
});
afterEach(() => ctx.close());

const scope = () => ({ organisation_id: stage.organisationId, mode: "live" }) as const;
const look = async () => must(await showSolvency(ctx, MACHINE)).data[0]!;
const chain = (amount: bigint): void => void moves.push({ at: ctx.clock.now, amount });
const credit = async (amount: string) => must(await fundBalance(ctx, MACHINE, { ...scope(), amount }));
const pass = (ms: number): void => {
  ctx.clock.now += ms;
};
const confirm = (): void => pass(CONFIRMATIONS * BLOCK_MS);

/** Money that came in, was confirmed, credited, and is long there. */
async function funded(amount: bigint): Promise<void> {
  chain(amount);
  confirm();
  await credit(amount.toString());
  pass(600_000);
}

async function owed(amount: string): Promise<void> {
  const { id } = warrantIn(await open(stage, stage.operator, { payee: "acme", amount }));
  must(await settle(stage, stage.operator, id, "release"));
}

test("what is owed and held is shown to the unit, with the block", async () => {
  await funded(1_000n);
  await owed("300");
  must(await submitPayouts(ctx, MACHINE, { ...scope(), payee: "acme" }));
  chain(5n);
  confirm();
  expect(await look()).toMatchObject({
    ...{
      mode: "live",
      asset: "USDC",
      owes: "1000",
      available: "700",
      held: "0",
      payable: "0",
      submitted: "300",
    },
    ...{ holds: "1005", difference: "5", judgement: "enough", chain: "eip155:8453", away: null },
    ...{ token: TREASURY.token, address: TREASURY.address, block: expect.any(Number), block_hash: "0x1" },
  });
});

describe("no alarm", () => {
  test("of a payout that a confirmed block has, and the ledger has not marked yet", async () => {
    await funded(1_000n);
    await owed("300");
    const [payout] = must(await submitPayouts(ctx, MACHINE, { ...scope(), payee: "acme" })).data;
    for (let step = 0; step < 60; step++) {
      if (step === 2) chain(-300n);
      pass(BLOCK_MS);
      expect((await look()).judgement).toBe("enough");
    }
    expect(await look()).toMatchObject({ holds: "700", owes: "1000", difference: "-300" });
    must(await markPaid(ctx, MACHINE, { payout_id: payout?.id ?? "", reference: "eip155:8453:0x1" }));
    for (let step = 0; step < 60; step++) {
      pass(BLOCK_MS);
      expect((await look()).judgement).toBe("enough");
    }
    expect(await look()).toMatchObject({ holds: "700", owes: "700" });
  });

  test("of a payout in a block whose time is before the payout's by the clock here", async () => {
    await funded(1_000n);
    await owed("1000");
    pass(600_000);
    must(await submitPayouts(ctx, MACHINE, { ...scope(), payee: "acme" }));
    moves.push({ at: ctx.clock.now - 5_000, amount: -1_000n });
    for (let step = 0; step < 60; step++) {
      pass(BLOCK_MS);
      expect((await look()).judgement).toBe("enough");
    }
  });

  test("of a deposit that is credited while the node, or another one behind it, is far behind", async () => {
    chain(1_000n);
    confirm();
    await credit("1000");
    for (const ms of [0, 10_000, 60_000, 300_000]) {
      behindMs = ms;
      expect((await look()).judgement).toBe("enough");
    }
  });

  test("of a deposit that is not credited yet", async () => {
    chain(1_000n);
    confirm();
    expect(await look()).toMatchObject({ owes: "0", holds: "1000", judgement: "enough" });
  });
});

describe("an alarm", () => {
  test("where money left the treasury that the ledger still owes", async () => {
    await funded(1_000n);
    chain(-1n);
    expect((await look()).judgement).toBe("enough");
    confirm();
    expect(await look()).toMatchObject({ holds: "999", difference: "-1", judgement: "short" });
  });

  test("where it left beside a payout that is under way", async () => {
    await funded(1_000n);
    await owed("300");
    must(await submitPayouts(ctx, MACHINE, { ...scope(), payee: "acme" }));
    chain(-301n);
    pass(300_000);
    expect(await look()).toMatchObject({ holds: "699", judgement: "short" });
  });

  test("where a deposit was recorded that never came", async () => {
    await credit("1000");
    pass(300_000);
    expect(await look()).toMatchObject({ holds: "0", judgement: "short" });
  });
});

test("a chain that does not answer is unknown, and an asset that no treasury holds has no judgement", async () => {
  await funded(1_000n);
  must(await fundBalance(ctx, MACHINE, { ...scope(), amount: "7", asset: "EUR" }));
  away = true;
  expect(must(await showSolvency(ctx, MACHINE)).data).toMatchObject([
    { asset: "EUR", owes: "7", holds: null, difference: null, judgement: null, chain: null, away: null },
    { asset: "USDC", owes: "1000", holds: null, judgement: "unknown", chain: "eip155:8453", away: "timeout" },
  ]);
});

describe("the watch", () => {
  const told: boolean[] = [];
  const watch = () => {
    told.length = 0;
    return solvencyWatch(ctx, {
      monotonicNow: () => ctx.clock.now,
      onShort: (_, isShort) => void told.push(isShort),
    });
  };

  test("shows what it saw last, and how old that is, while a chain hangs", async () => {
    const answers = Promise.withResolvers<never>();
    await funded(1_000n);
    const watching = watch();
    expect(watching.seen()).toMatchObject([{ judgement: "unknown", seen: null }]);
    await watching.run();
    expect(watching.seen()).toMatchObject([{ judgement: "enough", seen: { balance: 1_000n, ageMs: 0 } }]);
    const hanging = solvencyWatch(
      { ...ctx, holdingOf: () => answers.promise },
      { monotonicNow: () => ctx.clock.now, onShort: () => {} },
    );
    void hanging.run();
    expect(hanging.seen()).toMatchObject([{ judgement: "unknown", seen: null }]);
    away = true;
    pass(60_000);
    await watching.run();
    expect(watching.seen()).toMatchObject([{ judgement: "enough", seen: { ageMs: 60_000 } }]);
    pass(15 * 60_000);
    expect(watching.seen()).toMatchObject([{ judgement: "unknown", seen: { balance: 1_000n } }]);
  });

  test("does not take an old block of a node that stands still for enough", async () => {
    await funded(1_000n);
    pass(3_600_000);
    const watching = watch();
    behindMs = 14 * 60_000;
    await watching.run();
    expect(watching.seen()).toMatchObject([{ judgement: "enough", seen: { ageMs: behindMs } }]);
    // It answers, always with the same block, though the money has left meanwhile.
    chain(-1_000n);
    pass(120_000);
    behindMs += 120_000;
    await watching.run();
    expect(watching.seen()).toMatchObject([
      { judgement: "unknown", seen: { balance: 1_000n, ageMs: behindMs } },
    ]);
    expect(await look()).toMatchObject({ judgement: "unknown", holds: "1000" });
  });

  test("tells once that a treasury is short, and once that it is not any more", async () => {
    await funded(1_000n);
    const watching = watch();
    await watching.run();
    chain(-10n);
    confirm();
    await watching.run();
    await watching.run();
    away = true;
    pass(3_600_000);
    await watching.run();
    expect(watching.seen()).toMatchObject([{ judgement: "short" }]);
    expect(told).toEqual([true]);
    away = false;
    chain(10n);
    confirm();
    await watching.run();
    expect(told).toEqual([true, false]);
  });
});
