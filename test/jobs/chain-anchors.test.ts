import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { sha256Bytes } from "../../src/core/canonical.ts";
import { anchorAddressOf, anchorDataOf } from "../../src/core/chain-anchor.ts";
import { logNameOf } from "../../src/core/log.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/core/time.ts";
import { type ChainAnchorsJob, chainAnchorsJob } from "../../src/jobs/chain-anchors.ts";
import { decodeTransaction } from "../../src/platform/evm-wallet.ts";
import { auditTransactions } from "../../src/services/chain/audit.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { readReceipt, readTrace } from "../../src/services/warrants/read.ts";
import { keepCosignature } from "../../src/services/witness/offer.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { createModelChain, MODEL_CHAIN_ID, type ModelChain } from "../support/model-chain.ts";
import { createCaller, createStage, must, open, type Stage, settle, warrantIn } from "../support/stage.ts";

/** Anchors of the log on a chain in memory (docs/witnesses, "Anchors on a chain"); test/x402/anchors.test.ts has a real one. */

const CONFIRMATIONS = 3;
const STEP_MS = 10 * SECOND_MS;

let ctx: TestContext;
let stage: Stage;
let chain: ModelChain;
let job: ChainAnchorsJob;
let time: number;
let reported: string[];
let feeMax: bigint;
beforeEach(async () => {
  ctx = createTestContext({ chain: { anchors: true, decode: decodeTransaction } });
  stage = await createStage(ctx);
  chain = createModelChain(CONFIRMATIONS);
  [time, reported, feeMax] = [1_000_000, [], 1_000n];
  job = newJob();
});
afterEach(async () => {
  expect(await auditTransactions(ctx)).toEqual([]);
  await ctx.close();
});

/** As after a restart: it knows nothing but the ledger. */
const newJob = (everyMs = HOUR_MS, random = 0): ChainAnchorsJob =>
  chainAnchorsJob(ctx, {
    sending: () => ({
      wallet: chain.wallet,
      rules: { confirmations: CONFIRMATIONS, feeMax },
      onTakenOut: ({ nonce }) => reported.push(`${nonce} was taken out`),
    }),
    everyMs,
    monotonicNow: () => time,
    random: () => random,
    onTrouble: (trouble) => reported.push(trouble?.outcome ?? "goes on"),
    onGivenUp: () => reported.push("given up"),
  });

/** Waits until the next step is due, and runs it. */
async function step(waitMs = STEP_MS): Promise<void> {
  time += waitMs;
  await job.run();
}

async function settled(): Promise<string> {
  const { id } = warrantIn(await open(stage, await createCaller(stage)));
  must(await settle(stage, stage.operator, id, "refund"));
  await anchor(ctx);
  return id;
}

/** A warrant whose entries the chain has confirmed. */
async function anchored(waitMs = STEP_MS): Promise<string> {
  const id = await settled();
  await step(waitMs);
  chain.mine(CONFIRMATIONS);
  await step();
  return id;
}

const chainRefs = async (id: string): Promise<(string | null)[]> =>
  must(await readTrace(ctx, stage.operator, id)).data.map(({ chain_ref }) => chain_ref);
const receiptAnchor = async (id: string) => must(await readReceipt(ctx, id)).anchor;
const newest = () => ctx.reader.log.newestCheckpoint()!;
const ref = (block: number): string => `eip155:${MODEL_CHAIN_ID}#${block}`;

describe("an anchor", () => {
  test("brings the checkpoint's note to the log's address; `chain_ref` is null until it is confirmed", async () => {
    const id = await settled();
    await step();
    const [raw] = chain.sent;
    const { to, data, nonce } = (await decodeTransaction(raw!))!;
    const address = anchorAddressOf(logNameOf(ctx.reader.instance.get().id), sha256Bytes);
    expect([to.toLowerCase(), data, nonce]).toEqual([address, anchorDataOf(newest().note), 0]);
    chain.mine(CONFIRMATIONS - 1);
    await step();
    expect(await chainRefs(id)).toEqual([null, null]);
    expect(await receiptAnchor(id)).toMatchObject({ tree_size: 2, chain_ref: null });
    chain.mine(1);
    await step();
    expect(await chainRefs(id)).toEqual([ref(1), ref(1)]);
    expect(await receiptAnchor(id)).toMatchObject({
      tree_size: 2,
      checkpoint: newest().note,
      chain_ref: ref(1),
    });
    expect(job.lateMs()).toBe(0);
  });

  test("covers every entry before it, and a receipt shows the checkpoint that the chain has", async () => {
    const first = await settled();
    // A witness signed a smaller checkpoint that covers the first, which the chain does not have.
    await keepCosignature(ctx, "witness.example", 2, {
      ...{ name: "witness.example", id: "00000000", signature: new Uint8Array(72) },
    });
    expect(await receiptAnchor(first)).toMatchObject({ tree_size: 2, chain_ref: null });
    const second = await settled();
    await step();
    chain.mine(CONFIRMATIONS);
    await step();
    expect([await chainRefs(first), await chainRefs(second)]).toEqual([
      [ref(1), ref(1)],
      [ref(1), ref(1)],
    ]);
    expect(await receiptAnchor(first)).toMatchObject({ tree_size: 4, leaf_index: 1 });
    expect(newest().size).toBe(4);
    const third = await settled();
    // Switched off, what a chain has confirmed keeps its name.
    const off = { ...ctx, chain: { ...ctx.chain, anchors: false } };
    const [kept, local] = [await readReceipt(off, first), await readReceipt(off, third)].map(must);
    expect(kept!.anchor).toMatchObject({ tree_size: 4, chain_ref: ref(1) });
    expect(local!.anchor).toMatchObject({
      tree_size: 6,
      chain_ref: `local:${ctx.reader.instance.get().id}#3`,
    });
  });

  test("is made no sooner than the interval, where the log has grown, and by one process after another", async () => {
    await anchored();
    await step(HOUR_MS);
    expect(chain.sent).toHaveLength(1);
    await settled();
    job = newJob();
    // The interval is counted from the last anchor, by the ledger's times where the process is new.
    ctx.clock.now += HOUR_MS - MINUTE_MS;
    await step();
    expect(chain.sent).toHaveLength(1);
    await step(MINUTE_MS);
    expect(chain.sent).toHaveLength(2);
    chain.mine(CONFIRMATIONS);
    await step();
    await settled();
    await step(HOUR_MS - 2 * MINUTE_MS);
    expect(chain.sent).toHaveLength(2);
    await step(2 * MINUTE_MS);
    expect(chain.sent).toHaveLength(3);
  });

  test("on another machine's clock, which is behind, waits for an interval at most", async () => {
    await anchored();
    await settled();
    ctx.clock.aheadMs = -10 * HOUR_MS;
    job = newJob();
    await step();
    expect(chain.sent).toHaveLength(1);
    await step(HOUR_MS);
    expect(chain.sent).toHaveLength(2);
  });
});

describe("a restart", () => {
  test("between signing and sending sends what was signed, and signs nothing else", async () => {
    await settled();
    const { send } = chain.wallet;
    const dead = { ...chain, wallet: { ...chain.wallet, send: () => Promise.reject(new Error("killed")) } };
    const live = chain;
    chain = dead;
    await expect(step()).rejects.toThrow("killed");
    chain = live;
    expect(chain.wallet.send).toBe(send);
    const kept = ctx.reader.chainTransactions.after(null, 10);
    job = newJob();
    await step();
    expect(chain.sent).toEqual([kept[0]!.signings[0]!.raw]);
    chain.mine(CONFIRMATIONS);
    await step();
    expect(await chain.taken()).toEqual([kept[0]!.data]);
  });

  test("between sending and recording finds it in its block, and sends nothing more", async () => {
    const id = await settled();
    await step();
    chain.mine(CONFIRMATIONS);
    job = newJob();
    await step();
    expect(chain.sent).toHaveLength(1);
    expect(await chainRefs(id)).toEqual([ref(1), ref(1)]);
  });

  test("while it waits for higher fees goes on with the same nonce", async () => {
    await settled();
    await step();
    chain.drop();
    chain.mine(5);
    chain.fees = { max: 300n, priority: 30n };
    await step();
    job = newJob();
    await step();
    const [transaction, ...others] = ctx.reader.chainTransactions.after(null, 10);
    expect(others).toEqual([]);
    expect(transaction!.signings.map(({ fees }) => fees.max)).toEqual([100n, 300n]);
    chain.mine(CONFIRMATIONS);
    await step();
    expect(await chain.taken()).toEqual([transaction!.data]);
    expect(ctx.reader.chainTransactions.after(null, 1)[0]).toMatchObject({
      state: "confirmed",
      minedHash: transaction!.signings[1]!.hash,
    });
  });
});

describe("a reorganisation", () => {
  test("before the confirmation: it gets into another block", async () => {
    const id = await settled();
    await step();
    chain.mine(2);
    chain.takeOut(2);
    await step();
    chain.mine(1);
    chain.mine(CONFIRMATIONS);
    await step();
    expect(await chainRefs(id)).toEqual([ref(1), ref(1)]);
    expect(await chain.taken()).toHaveLength(1);
  });

  test("after the confirmation: `chain_ref` is null again, then names the block that has it now", async () => {
    const id = await anchored();
    expect(await chainRefs(id)).toEqual([ref(1), ref(1)]);
    chain.takeOut(CONFIRMATIONS);
    await step(10 * MINUTE_MS);
    expect(reported).toEqual(["0 was taken out"]);
    expect(await chainRefs(id)).toEqual([null, null]);
    chain.drop();
    chain.mine(2);
    await step();
    chain.mine(CONFIRMATIONS);
    await step();
    expect(await chainRefs(id)).toEqual([ref(3), ref(3)]);
    expect(new Set(chain.sent).size).toBe(1);
  });

  test("that takes out several is found by the newest, and all get in again in their order", async () => {
    const ids = [await anchored(), await anchored(HOUR_MS)];
    chain.takeOut(2 * CONFIRMATIONS);
    chain.drop();
    await step(10 * MINUTE_MS);
    expect(reported).toEqual(["1 was taken out", "0 was taken out"]);
    for (let round = 0; round < 2; round++) {
      chain.mine(CONFIRMATIONS);
      await step();
      await step();
    }
    chain.mine(CONFIRMATIONS);
    await step();
    expect(await chain.taken()).toHaveLength(2);
    for (const id of ids) expect(await chainRefs(id)).not.toContain(null);
  });
});

test("a reorganisation that moves several to another block is found, and both are named anew", async () => {
  const ids = [await anchored(), await anchored(HOUR_MS)];
  // The recheck is due with the next step; both are in a block again before it.
  await step(10 * MINUTE_MS - 2 * STEP_MS);
  chain.takeOut(2 * CONFIRMATIONS);
  chain.mine(CONFIRMATIONS, 1);
  await step(2 * STEP_MS);
  await step();
  expect(reported).toEqual(["1 was taken out", "0 was taken out"]);
  for (const id of ids) expect(await chainRefs(id)).toEqual([ref(2), ref(2)]);
});

test("a reorganisation that takes out the one before is found while the next is under way", async () => {
  const first = await anchored();
  await settled();
  // The next recheck is ten minutes off, and an interval is shorter here.
  job = newJob(MINUTE_MS);
  await step();
  ctx.clock.now += MINUTE_MS;
  await step(MINUTE_MS);
  chain.takeOut(CONFIRMATIONS);
  chain.drop();
  await step();
  expect(reported).toEqual(["0 was taken out"]);
  expect(await chainRefs(first)).toEqual([null, null]);
});

test("two processes that raise the fees at once keep one signing after the other, and send what is kept", async () => {
  await settled();
  await step();
  chain.drop();
  chain.mine(5);
  chain.fees = { max: 300n, priority: 30n };
  const other = newJob();
  const model = chain;
  const { sign } = chain.wallet;
  let isFirst = true;
  const signing: ModelChain["wallet"]["sign"] = async (order) => {
    if (isFirst) {
      isFirst = false;
      model.fees = { max: 400n, priority: 40n };
      await other.run();
    }
    return sign(order);
  };
  chain = { ...chain, wallet: { ...chain.wallet, sign: signing } };
  job = newJob();
  await step();
  const { signings } = ctx.reader.chainTransactions.after(null, 1)[0]!;
  expect(signings).toHaveLength(2);
  expect(new Set(chain.sent)).toEqual(new Set(signings.map(({ raw }) => raw)));
});

test("the pause after a failure is between a half and the whole of what it grows to", async () => {
  chain.away = "unreachable";
  await settled();
  let asked = 0;
  const { look } = chain.wallet;
  const counted: ModelChain["wallet"]["look"] = (of) => {
    asked++;
    return look(of);
  };
  chain = { ...chain, wallet: { ...chain.wallet, look: counted } };
  for (const [random, pauseMs] of [
    [0, 2_499],
    [0.999, 4_997],
  ] as const) {
    job = newJob(HOUR_MS, random);
    asked = 0;
    await step();
    await step(pauseMs);
    expect([random, asked]).toEqual([random, 1]);
    await step(1);
    expect([random, asked]).toEqual([random, 2]);
  }
});

describe("what goes wrong", () => {
  test("a node that is away is asked again ever more seldom, and said once; nothing else waits", async () => {
    chain.away = "timeout";
    const id = await settled();
    let asked = 0;
    const { look } = chain.wallet;
    const counted: ModelChain["wallet"]["look"] = (of) => {
      asked++;
      return look(of);
    };
    chain = { ...chain, wallet: { ...chain.wallet, look: counted } };
    for (let second = 0; second < 600; second++) await step(SECOND_MS);
    // The pauses double, from 2.5 seconds at the least jitter, up to ten minutes.
    expect(asked).toBeLessThan(12);
    expect(reported).toEqual(["away"]);
    expect(job.lateMs()).toBeGreaterThan(500 * SECOND_MS);
    expect(await chainRefs(id)).toEqual([null, null]);
    expect(newest().size).toBe(2);
  });

  test("a wallet without money is said once, and its anchor is sent when it has some", async () => {
    await settled();
    const { send } = chain.wallet;
    let isPoor = true;
    const poor: ModelChain["wallet"]["send"] = async (raw) =>
      isPoor ? { refused: "no_funds", message: "insufficient funds for gas" } : send(raw);
    chain = { ...chain, wallet: { ...chain.wallet, send: poor } };
    await step();
    await step(MINUTE_MS);
    expect(reported).toEqual(["no_funds"]);
    isPoor = false;
    await step(MINUTE_MS);
    expect(reported).toEqual(["no_funds", "goes on"]);
    expect(ctx.reader.chainTransactions.after(null, 10)).toHaveLength(1);
  });

  test("fees above the most that may be paid: it waits, and is said once", async () => {
    await settled();
    feeMax = 110n;
    job = newJob();
    await step();
    chain.drop();
    chain.fees = { max: 5_000n, priority: 50n };
    chain.mine(5);
    await step();
    await step(MINUTE_MS);
    expect(reported).toEqual(["capped"]);
    const [transaction] = ctx.reader.chainTransactions.after(null, 10);
    expect(transaction!.signings.every(({ fees }) => fees.max <= feeMax)).toBe(true);
  });

  test("a nonce that another program took: the anchor is made anew with the next one", async () => {
    const id = await settled();
    await step();
    chain.drop();
    chain.useNonce();
    chain.mine(CONFIRMATIONS);
    await step();
    expect(reported).toEqual(["given up"]);
    await step();
    chain.mine(CONFIRMATIONS);
    await step();
    expect(await chain.taken()).toEqual([null, anchorDataOf(newest().note)]);
    expect(await chainRefs(id)).toEqual([ref(5), ref(5)]);
    expect(ctx.reader.chainTransactions.after(null, 10).map(({ state }) => state)).toEqual([
      "given_up",
      "confirmed",
    ]);
  });

  test("a node that is behind, and gives a nonce that was used, gets nothing signed", async () => {
    await anchored();
    await settled();
    const { look } = chain.wallet;
    const behind: ModelChain["wallet"]["look"] = async (of) => {
      const view = await look(of);
      return "away" in view || of.length > 0 ? view : { ...view, nonce: 0 };
    };
    chain = { ...chain, wallet: { ...chain.wallet, look: behind } };
    await step(HOUR_MS);
    expect(reported).toEqual(["away"]);
    expect(ctx.reader.chainTransactions.after(null, 10)).toHaveLength(1);
  });
});
