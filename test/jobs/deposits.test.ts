import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Mode } from "../../src/core/roles.ts";
import { MINUTE_MS } from "../../src/core/time.ts";
import type { Treasury } from "../../src/core/treasury.ts";
import { chainOfMode } from "../../src/core/x402/chains.ts";
import { type DepositsJob, depositsJob } from "../../src/jobs/deposits.ts";
import { createChainAsker } from "../../src/platform/ask-chain.ts";
import { createTreasuryChain } from "../../src/platform/treasury-chain.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance, listDeposits } from "../../src/services/admin/balances.ts";
import { assignTransfer, listUnassigned } from "../../src/services/admin/chain-deposits.ts";
import {
  addDepositSender,
  listDepositSenders,
  removeDepositSender,
} from "../../src/services/admin/deposit-senders.ts";
import { SPAN_FIRST, type Watching } from "../../src/services/chain/watch.ts";
import { ledgerFile } from "../../src/store/sqlite/ledger-file.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import {
  DECIMALS,
  type ModelToken,
  NodeError,
  startModelToken,
  TOKEN,
  type Transfer,
} from "../support/model-token.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { createStage, must, type Stage } from "../support/stage.ts";

/** Deposits of a treasury, on a chain in memory whose node answers over HTTP (docs/money, "Deposits on a chain"). */

type Logs = readonly { readonly topics: readonly string[] }[];

const CONFIRMATIONS = 3;
const TREASURY = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045";
const ACME = `0x${"ac".repeat(20)}`;
const STRANGER = `0x${"55".repeat(20)}`;
const CHAIN_ID = 84_532;

let ctx: TestContext;
let stage: Stage;
let chain: ModelToken;
let job: DepositsJob;
let time: number;
let reported: string[];
beforeEach(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx, { funds: "0" });
  chain = startModelToken(CHAIN_ID, {
    [ACME]: 1_000_000n,
    [STRANGER]: 1_000_000n,
    [TREASURY.toLowerCase()]: 500n,
  });
  [time, reported] = [1_000_000, []];
  job = newJob();
});
afterEach(async () => {
  await chain.stop();
  await ctx.close();
});

const treasuryIn = (mode: Mode = "sandbox", chainId = CHAIN_ID): Treasury =>
  ({
    ...{ mode, chainId: chainOfMode(mode, chainId)!, token: TOKEN, asset: "USDC", address: TREASURY },
    limits: { payoutMax: 0n, dayMax: 0n },
  }) as Treasury;

const watchingOf = (treasury = treasuryIn(), at = chain, timeoutMs = 5_000): Watching => ({
  treasury,
  chain: createTreasuryChain(
    createChainAsker(new Map([[treasury.chainId, at.url]]), { retries: 0, timeoutMs }),
    treasury,
    CONFIRMATIONS,
  ),
  span: SPAN_FIRST,
  onJudged: (_, judged) =>
    reported.push(judged.outcome === "unassigned" ? `unassigned: ${judged.why}` : judged.outcome),
});

/** As after a restart: it knows nothing but the ledger. */
function newJob(watching = watchingOf()): DepositsJob {
  return depositsJob(ctx, {
    watching: () => watching,
    monotonicNow: () => time,
    random: () => 0,
    onTrouble: (trouble) =>
      reported.push(
        trouble === null ? "goes on" : `${trouble.outcome}${"why" in trouble ? ` ${trouble.why}` : ""}`,
      ),
    onGone: ({ count, amount }) => reported.push(`${count} gone, ${amount}`),
  });
}

async function step(waitMs = 10 * MINUTE_MS): Promise<void> {
  time += waitMs;
  await job.run();
}

const scope = () => ({ organisation_id: stage.organisationId, mode: "sandbox" }) as const;
const registered = () => addDepositSender(ctx, { ...scope(), address: ACME }).then(must);
const pays = (amount: bigint, from = ACME): Omit<Transfer, "hash"> => ({ from, to: TREASURY, amount });
const deposits = async () =>
  must(await listDeposits(ctx, MACHINE, scope()))
    .data.map(({ amount }) => Number(amount))
    .reverse();
const unassigned = async () => must(await listUnassigned(ctx, { mode: "sandbox" })).data;
const watch = () => ctx.reader.treasuryWatches.list()[0]!;

describe("the decimals of the token", () => {
  const saying = (said: unknown) => {
    chain.intercept = ({ method, params, answer }) =>
      method === "eth_call" && (params[0] as { readonly data: string }).data === DECIMALS ? said : answer();
  };

  test.each([
    ["others than the asset has", `0x${"12".padStart(64, "0")}`],
    ["none", "0x"],
  ])("%s: nothing is credited, until the right token is named", async (_, said) => {
    await registered();
    saying(said);
    chain.mine([chain.transaction(pays(100n))], CONFIRMATIONS);
    await step();
    await step();
    expect([reported, ctx.reader.treasuryWatches.list()]).toEqual([["unit_differs"], []]);
    chain.intercept = ({ answer }) => answer();
    await step();
    chain.mine([chain.transaction(pays(7n))], CONFIRMATIONS);
    await step();
    expect([reported, await deposits()]).toEqual([["unit_differs", "goes on", "credited"], [7]]);
  });

  test("a node that does not say them is asked again, and those of other assets are not asked", async () => {
    chain.intercept = ({ method, answer }) => {
      if (method === "eth_call") throw new NodeError(-32_005, "too many requests");
      return answer();
    };
    chain.mine([], CONFIRMATIONS);
    await step();
    expect([reported, ctx.reader.treasuryWatches.list()]).toEqual([["away no_answer"], []]);
    saying(`0x${"12".padStart(64, "0")}`);
    job = newJob(watchingOf({ ...treasuryIn(), asset: "DAI" }));
    await step();
    expect(watch().asset).toBe("DAI");
  });
});

describe("a deposit", () => {
  test("is credited once it is confirmed, once, with its reference", async () => {
    await registered();
    chain.mine([], CONFIRMATIONS);
    await step();
    const paid = chain.transaction(pays(100n));
    chain.mine([paid], CONFIRMATIONS - 2);
    await step();
    expect(await deposits()).toEqual([]);
    chain.mine();
    await step();
    await step();
    expect(await deposits()).toEqual([100]);
    const [deposit] = must(await listDeposits(ctx, MACHINE, scope())).data;
    expect(deposit).toMatchObject({
      reference: `eip155:${CHAIN_ID}:${paid[0]!.hash}/0`,
      transfer: { block: 5 },
    });
    expect(watch()).toMatchObject({ opening: 500n, received: 100n, sent: 0n, balance: 600n, stopped: null });
    expect(reported).toEqual(["credited"]);
  });

  test("begins at the block of the first start: what was there before is none, nor is nothing, nor a transfer to itself", async () => {
    await registered();
    chain.mine([chain.transaction(pays(7n))], CONFIRMATIONS);
    await step();
    chain.mine([chain.transaction(pays(0n), pays(5n, TREASURY), pays(20n), pays(30n))], CONFIRMATIONS);
    await step();
    expect(await deposits()).toEqual([20, 30]);
    expect(watch()).toMatchObject({ opening: 507n, received: 50n, balance: 557n });
    const references = must(await listDeposits(ctx, MACHINE, scope())).data.map(({ reference }) => reference);
    expect(references.map((reference) => reference?.at(-1))).toEqual(["1", "0"]);
  });

  test("of an unknown sender waits for a person, who assigns it once; a sender of another organisation keeps theirs", async () => {
    const other = await createStage(ctx, { funds: "0" });
    await addDepositSender(ctx, { ...scope(), organisation_id: other.organisationId, address: ACME });
    chain.mine([], CONFIRMATIONS);
    await step();
    chain.mine([chain.transaction(pays(10n, STRANGER)), chain.transaction(pays(20n))], CONFIRMATIONS);
    await step();
    expect(reported).toEqual(["unassigned: nobody has registered its sender", "credited"]);
    expect(await deposits()).toEqual([]);
    const [waiting] = await unassigned();
    expect(waiting).toMatchObject({ amount: "10", counterparty: STRANGER, status: "unassigned" });
    // Whoever registers the sender now gets what comes from now on.
    must(await addDepositSender(ctx, { ...scope(), address: STRANGER }));
    await step();
    expect(await deposits()).toEqual([]);
    const named = { transfer_id: waiting!.id, organisation_id: stage.organisationId };
    const atOnce = await Promise.all([assignTransfer(ctx, named), assignTransfer(ctx, named)]);
    const [assigned, same] = atOnce.map(must);
    expect(same).toEqual(assigned!);
    expect(must(await assignTransfer(ctx, named)).id).toBe(assigned!.id);
    expect(await assignTransfer(ctx, { ...named, organisation_id: other.organisationId })).toMatchObject({
      refused: "illegal_transition",
    });
    expect(await deposits()).toEqual([10]);
    expect(await unassigned()).toEqual([]);
  });

  test("of a sender that was removed waits for a person", async () => {
    await registered();
    chain.mine([], CONFIRMATIONS);
    await step();
    must(await removeDepositSender(ctx, { ...scope(), address: ACME.toUpperCase().replace("0X", "0x") }));
    chain.mine([chain.transaction(pays(10n))], CONFIRMATIONS);
    await step();
    expect([await deposits(), (await unassigned()).length]).toEqual([[], 1]);
  });
});

describe("a sender", () => {
  test("belongs to one organisation of a mode, and is registered once", async () => {
    const other = await createStage(ctx, { funds: "0" });
    const first = await addDepositSender(ctx, { ...scope(), address: ACME, note: "first" }).then(must);
    expect(await addDepositSender(ctx, { ...scope(), address: ACME, note: "again" })).toEqual(first);
    const elsewhere = { ...scope(), organisation_id: other.organisationId, address: ACME };
    expect(await addDepositSender(ctx, elsewhere)).toMatchObject({
      refused: "validation_failed",
      message: expect.stringContaining(`address: belongs to ${stage.organisationId} already`),
    });
    expect(await removeDepositSender(ctx, elsewhere)).toMatchObject({ refused: "deposit_sender_not_found" });
    must(await addDepositSender(ctx, { ...elsewhere, mode: "live" }));
    expect(must(await listDepositSenders(ctx, scope())).data).toEqual([first]);
    must(await removeDepositSender(ctx, { ...scope(), address: ACME }));
    expect(await removeDepositSender(ctx, { ...scope(), address: ACME })).toMatchObject({
      refused: "deposit_sender_not_found",
    });
    must(await addDepositSender(ctx, elsewhere));
  });

  test.each([
    ["nobody's", `0x${"0".repeat(40)}`, "nobody has the zero address"],
    ["the treasury's own", TREASURY, "this one is the treasury's own"],
    ["mistyped", TREASURY.replace("A6", "a6"), "with its checksum or in one case"],
    ["no address", "acme.eth", "must be 0x and 40 hex digits"],
  ])("that is %s is refused", async (_, address, why) => {
    const withTreasury = { ...ctx, treasuries: [treasuryIn()] };
    expect(await addDepositSender(withTreasury, { ...scope(), address })).toMatchObject({
      refused: "validation_failed",
      message: expect.stringContaining(why),
    });
  });

  test("is listed page by page", async () => {
    const addresses = ["1", "2", "3"].map((digit) => `0x${digit.repeat(40)}`);
    for (const address of addresses.toReversed()) must(await addDepositSender(ctx, { ...scope(), address }));
    const first = must(await listDepositSenders(ctx, { ...scope(), limit: 2 }));
    const rest = must(await listDepositSenders(ctx, { ...scope(), starting_after: first.next_cursor! }));
    expect([...first.data, ...rest.data].map(({ address }) => address)).toEqual(addresses);
    expect([first.has_more, rest.has_more]).toEqual([true, false]);
  });
});

describe("a reorganisation", () => {
  test.each([1, 3])(
    "of %d blocks changes nothing, since it is not confirmed, or brings it into another block",
    async (blocks) => {
      await registered();
      chain.mine([], CONFIRMATIONS);
      await step();
      chain.mine([chain.transaction(pays(10n)), chain.transaction(pays(20n))], CONFIRMATIONS - 1);
      await step();
      const taken = chain.takeOut(blocks);
      chain.mine([], 1);
      chain.mine(taken.toReversed(), CONFIRMATIONS + 1);
      await step();
      await step();
      expect((await deposits()).toSorted()).toEqual([10, 20]);
      expect(watch()).toMatchObject({ received: 30n, balance: 530n });
      expect(reported.filter((line) => line !== "credited")).toEqual([]);
    },
  );

  test("of more blocks than the confirmations is an alarm where a deposit is gone, and none where it comes back", async () => {
    await registered();
    chain.mine([], CONFIRMATIONS);
    await step();
    chain.mine([chain.transaction(pays(10n))]);
    chain.mine([chain.transaction(pays(20n))], CONFIRMATIONS);
    await step();
    expect(await deposits()).toEqual([10, 20]);
    const [, second] = chain.takeOut(CONFIRMATIONS + 2);
    chain.mine([], CONFIRMATIONS + 3);
    await step();
    expect(reported).toEqual(["credited", "credited", "2 gone, 30"]);
    expect(watch()).toMatchObject({ received: 0n, balance: 500n, stopped: null });
    chain.mine([second!], CONFIRMATIONS);
    await step();
    await step();
    expect(await deposits()).toEqual([10, 20]);
    expect(watch()).toMatchObject({ received: 20n, balance: 520n });
    const states = must(await listDeposits(ctx, MACHINE, scope())).data.map(
      ({ transfer }) => transfer?.block,
    );
    expect(states).toEqual([12, null]);
    expect(reported).toHaveLength(3);
  });

  test("is looked at from the newest transfer on that is still there", async () => {
    await registered();
    chain.mine([], CONFIRMATIONS);
    await step();
    for (const amount of [1n, 2n, 3n, 4n]) chain.mine([chain.transaction(pays(amount))]);
    chain.mine([], CONFIRMATIONS);
    await step();
    const from: number[] = [];
    chain.intercept = ({ method, params, answer }) => {
      if (method === "eth_getLogs") from.push(Number((params[0] as { fromBlock: string }).fromBlock));
      return answer();
    };
    // Blocks 5 to 8 have the transfers; the last one and those after it are taken out.
    chain.takeOut(CONFIRMATIONS + 2);
    chain.mine([], CONFIRMATIONS + 3);
    await step();
    expect(from).toEqual([8, 8]);
    expect(watch()).toMatchObject({ received: 6n, balance: 506n });
  });

  test("while the balance is asked for is no disagreement", async () => {
    await registered();
    chain.mine([], CONFIRMATIONS);
    await step();
    chain.mine([chain.transaction(pays(10n))], CONFIRMATIONS);
    chain.intercept = ({ method, answer }) => {
      if (method !== "eth_call") return answer();
      chain.intercept = (asked) => asked.answer();
      chain.takeOut(CONFIRMATIONS + 1);
      chain.mine([chain.transaction(pays(11n))], CONFIRMATIONS);
      return answer();
    };
    await step();
    await step();
    expect(reported).toEqual(["away no_answer", "credited", "goes on"]);
    expect(await deposits()).toEqual([11]);
  });

  test("takes what was not credited out of what waits", async () => {
    chain.mine([], CONFIRMATIONS);
    await step();
    chain.mine([chain.transaction(pays(10n))], CONFIRMATIONS);
    await step();
    const id = (await unassigned())[0]!.id;
    chain.takeOut(CONFIRMATIONS + 1);
    chain.mine([], CONFIRMATIONS + 1);
    await step();
    expect(await unassigned()).toEqual([]);
    expect(
      await assignTransfer(ctx, { transfer_id: id, organisation_id: stage.organisationId }),
    ).toMatchObject({
      refused: "illegal_transition",
    });
  });

  test("of the first block of the watch begins it again there", async () => {
    await registered();
    chain.mine([], CONFIRMATIONS);
    chain.mine([chain.transaction(pays(5n))], CONFIRMATIONS - 1);
    await step();
    expect(watch()).toMatchObject({ opening: 505n, first: { number: 5 } });
    chain.takeOut(4);
    chain.mine([chain.transaction(pays(8n))], 1);
    chain.mine([chain.transaction(pays(9n))], CONFIRMATIONS);
    await step();
    expect(watch()).toMatchObject({ opening: 508n, first: { number: 5 }, received: 9n, balance: 517n });
    expect(await deposits()).toEqual([9]);
  });
});

describe("a node", () => {
  const begin = async (): Promise<void> => {
    await registered();
    chain.mine([], CONFIRMATIONS);
    await step();
  };

  test("that refuses many blocks is asked for fewer, down to one", async () => {
    await begin();
    for (let made = 0; made < 40; made++) chain.mine([chain.transaction(pays(1n))]);
    chain.mine([], CONFIRMATIONS);
    const ranges: number[] = [];
    chain.intercept = ({ method, params, answer }) => {
      if (method !== "eth_getLogs") return answer();
      const [{ fromBlock, toBlock }] = params as [{ fromBlock: string; toBlock: string }];
      const blocks = Number(toBlock) - Number(fromBlock) + 1;
      ranges.push(blocks);
      if (blocks > 5) throw new Error("query returned more than 10000 results");
      return answer();
    };
    for (let run = 0; run < 6; run++) await step();
    expect((await deposits()).length).toBe(25);
    expect(watch()).toMatchObject({ received: 40n, balance: 540n });
    expect(Math.max(...ranges.slice(-4))).toBeLessThanOrEqual(10);
  });

  test("that refuses even one block is told of, and what it has said is kept", async () => {
    await begin();
    chain.mine([chain.transaction(pays(1n))], CONFIRMATIONS);
    chain.intercept = ({ method, answer }) => {
      if (method === "eth_getLogs") throw new Error("too many");
      return answer();
    };
    await step();
    await step();
    expect(reported).toEqual(["refused too many"]);
    chain.intercept = ({ answer }) => answer();
    await step();
    expect(reported).toEqual(["refused too many", "credited", "goes on"]);
  });

  test("that hides logs credits nothing, and all of it once it shows them", async () => {
    await begin();
    chain.mine([chain.transaction(pays(10n)), chain.transaction(pays(20n))], CONFIRMATIONS);
    chain.intercept = ({ method, answer }) =>
      method === "eth_getLogs" ? (answer() as unknown[]).slice(1) : answer();
    await step();
    await step();
    expect(reported).toEqual(["stopped balance_differs"]);
    expect(watch()).toMatchObject({ stopped: "balance_differs", received: 0n, balance: 500n });
    chain.intercept = ({ answer }) => answer();
    job = newJob();
    await step();
    expect((await deposits()).toSorted()).toEqual([10, 20]);
    expect(watch()).toMatchObject({ stopped: null, balance: 530n });
  });

  test.each([
    ["doubles its logs", (logs: Logs) => [...logs, ...logs], [10]],
    ["answers nothing", () => null, []],
    ["answers logs of another token", (logs: Logs) => logs.map((log) => ({ ...log, address: ACME })), []],
    ["answers logs of other blocks", (logs: Logs) => logs.map((log) => ({ ...log, blockNumber: "0x1" })), []],
    [
      "answers another event",
      (logs: Logs) =>
        logs.map((log) => ({ ...log, topics: [`0x${"0".repeat(64)}`, ...log.topics.slice(1)] })),
      [],
    ],
    [
      "answers transfers of others",
      (logs: Logs) => logs.map((log) => ({ ...log, topics: [log.topics[0], log.topics[1], log.topics[1]] })),
      [],
    ],
    ["answers a removed log", (logs: Logs) => logs.map((log) => ({ ...log, removed: true })), []],
    [
      "answers two logs of one place",
      (logs: Logs) => [...logs, ...logs.map((log) => ({ ...log, data: `0x${"1".padStart(64, "0")}` }))],
      [],
    ],
    [
      "answers a block of another chain",
      (logs: Logs) => logs.map((log) => ({ ...log, blockHash: `0x${"1".repeat(64)}` })),
      [],
    ],
  ])("that %s", async (_, wrong, credited) => {
    await begin();
    chain.mine([], 1);
    chain.mine([chain.transaction(pays(10n))], CONFIRMATIONS - 1);
    chain.intercept = ({ method, answer }) =>
      method === "eth_getLogs" ? wrong(answer() as never) : answer();
    await step();
    expect(await deposits()).toEqual(credited);
    chain.intercept = ({ answer }) => answer();
    await step();
    await step();
    expect(await deposits()).toEqual([10]);
  });

  test("that is late, of another chain, behind or away credits nothing, and is asked again", async () => {
    await begin();
    chain.mine([chain.transaction(pays(10n))], CONFIRMATIONS);
    const patient = job;
    job = newJob(watchingOf(treasuryIn(), chain, 100));
    chain.intercept = () => new Promise(() => {});
    await step();
    job = patient;
    chain.intercept = ({ method, answer }) => (method === "eth_chainId" ? "0x1" : answer());
    await step();
    chain.intercept = ({ method, params, answer }) =>
      method === "eth_getBlockByNumber" && params[0] === "latest"
        ? { ...(answer() as object), number: "0x2" }
        : answer();
    await step();
    chain.intercept = () => new Response("", { status: 502 });
    await step();
    expect(await deposits()).toEqual([]);
    chain.intercept = ({ answer }) => answer();
    await step();
    expect(await deposits()).toEqual([10]);
    expect(reported).toEqual([
      ...["away timeout", "away no_answer", "behind", "away unreachable", "credited", "goes on"],
    ]);
  });
});

test("a node that stands still is late by the age of its newest block, though all is found up to it", async () => {
  chain.mine([], CONFIRMATIONS);
  chain.intercept = ({ method, params, answer }) =>
    method === "eth_getBlockByNumber" && params[0] === "latest"
      ? { ...(answer() as object), timestamp: `0x${Math.floor(standingSince / 1_000).toString(16)}` }
      : answer();
  const standingSince = ctx.now();
  ctx.clock.now += 5_000;
  await step();
  expect([job.blocksBehind(), job.lateMs()]).toEqual([0, 5_000]);
  ctx.clock.now += 3_600_000;
  await step();
  expect([job.blocksBehind(), job.lateMs()]).toEqual([0, 3_605_000]);
});

test("a token that takes a fee credits nothing", async () => {
  await registered();
  chain.arrives = (amount) => amount - 1n;
  chain.mine([], CONFIRMATIONS);
  await step();
  chain.mine([chain.transaction(pays(10n))], CONFIRMATIONS);
  for (let run = 0; run < 3; run++) await step();
  expect(reported).toEqual(["stopped balance_differs"]);
  expect([await deposits(), await unassigned()]).toEqual([[], []]);
});

test("what leaves the treasury is counted, and is no deposit", async () => {
  await registered();
  chain.mine([], CONFIRMATIONS);
  await step();
  const leaves = { from: TREASURY, to: ACME, amount: 40n };
  chain.mine([chain.transaction(pays(10n), leaves)], CONFIRMATIONS);
  await step();
  expect(await deposits()).toEqual([10]);
  expect(watch()).toMatchObject({ received: 10n, sent: 40n, balance: 470n });
});

test("a token that stood for another asset credits nothing until it does again", async () => {
  await registered();
  chain.mine([], CONFIRMATIONS);
  await step();
  chain.mine([chain.transaction(pays(10n))], CONFIRMATIONS);
  job = newJob(watchingOf({ ...treasuryIn(), asset: "EURC" }));
  await step();
  expect([reported, watch().stopped]).toEqual([["stopped asset_changed"], "asset_changed"]);
  job = newJob();
  await step();
  expect([await deposits(), watch().stopped]).toEqual([[10], null]);
  // It goes on though there is no new block.
  job = newJob(watchingOf({ ...treasuryIn(), asset: "EURC" }));
  await step();
  job = newJob();
  await step();
  expect(watch().stopped).toBeNull();
});

describe("a transfer that cannot be credited waits for a person", () => {
  const begin = async (): Promise<void> => {
    await registered();
    chain.mine([], CONFIRMATIONS);
    await step();
  };

  test("where its reference is another deposit's; with its amount, that deposit is it", async () => {
    await begin();
    const [same, other] = [chain.transaction(pays(10n)), chain.transaction(pays(20n))];
    for (const [{ hash }, amount] of [
      [same[0]!, "10"],
      [other[0]!, "21"],
    ] as const)
      must(
        await fundBalance(ctx, MACHINE, { ...scope(), amount, reference: `eip155:${CHAIN_ID}:${hash}/0` }),
      );
    chain.mine([same, other], CONFIRMATIONS);
    await step();
    expect(await deposits()).toEqual([10, 21]);
    expect(reported).toEqual([
      "credited",
      expect.stringContaining("unassigned: reference: the deposit dep_"),
    ]);
    const id = (await unassigned())[0]!.id;
    const named = { transfer_id: id, organisation_id: stage.organisationId };
    expect(await assignTransfer(ctx, named)).toMatchObject({ refused: "deposit_reference_used" });
    // Another organisation has no deposit of that name.
    const stranger = await createStage(ctx, { funds: "0" });
    must(await assignTransfer(ctx, { ...named, organisation_id: stranger.organisationId }));
  });

  test("where the balance is full", async () => {
    await begin();
    must(await fundBalance(ctx, MACHINE, { ...scope(), amount: "9223372036854775800", reference: "full" }));
    chain.mine([chain.transaction(pays(10n))], CONFIRMATIONS);
    await step();
    const id = (await unassigned())[0]!.id;
    expect(
      await assignTransfer(ctx, { transfer_id: id, organisation_id: stage.organisationId }),
    ).toMatchObject({
      refused: "validation_failed",
      message: expect.stringContaining("7 more fits"),
    });
  });

  test("and what is there no more, left the treasury or is not confirmed cannot be assigned", async () => {
    await begin();
    const leaves = { from: TREASURY, to: ACME, amount: 4n };
    chain.mine([chain.transaction(leaves)], CONFIRMATIONS);
    await step();
    const [sent] = ctx.reader.chainTransfers.inBlocks(watch().id, 0, 99, 9);
    const to = { organisation_id: stage.organisationId };
    expect(await assignTransfer(ctx, { ...to, transfer_id: sent!.id })).toMatchObject({
      refused: "illegal_transition",
    });
    expect(await assignTransfer(ctx, { ...to, transfer_id: "trf_none" })).toMatchObject({
      refused: "transfer_not_found",
    });
    chain.arrives = (amount) => amount - 1n;
    chain.mine([chain.transaction(pays(10n, STRANGER))], CONFIRMATIONS);
    await step();
    const [early] = ctx.reader.chainTransfers.inBlocks(watch().id, watch().last.number, 99, 9);
    expect(early).toMatchObject({ status: "found", amount: 10n });
    expect(await assignTransfer(ctx, { ...to, transfer_id: early!.id })).toMatchObject({
      refused: "illegal_transition",
    });
    expect(await deposits()).toEqual([]);
  });
});

test("a sender that is removed, or a transfer that is assigned, while it is credited is looked at again", async () => {
  const { execute } = ctx.store;
  const other = await createStage(ctx, { funds: "0" });
  let meanwhile: (() => Promise<unknown>) | null = null;
  const racing: TestContext = {
    ...ctx,
    store: {
      ...ctx.store,
      execute: (async (command: { scope: unknown }) => {
        if (command.scope !== null && meanwhile) await meanwhile();
        return execute(command as never);
      }) as never,
    },
  };
  const watching = watchingOf();
  job = depositsJob(racing, {
    ...{ watching: () => watching, monotonicNow: () => time, random: () => 0 },
    ...{ onTrouble: () => {}, onGone: () => {} },
  });
  await registered();
  chain.mine([], CONFIRMATIONS);
  await step();
  meanwhile = () => removeDepositSender(ctx, { ...scope(), address: ACME });
  chain.mine([chain.transaction(pays(10n))], CONFIRMATIONS);
  await step();
  meanwhile = null;
  await step();
  expect([await deposits(), (await unassigned()).map(({ amount }) => amount)]).toEqual([[], ["10"]]);
  await registered();
  meanwhile = async () => {
    meanwhile = null;
    const [found] = ctx.reader.chainTransfers.found(watch().id, watch().last.number, 9);
    must(await assignTransfer(ctx, { transfer_id: found!.id, organisation_id: other.organisationId }));
  };
  chain.mine([chain.transaction(pays(20n))], CONFIRMATIONS);
  await step();
  await step();
  expect(await deposits()).toEqual([]);
  expect((await unassigned()).length).toBe(1);
});

describe("a restart", () => {
  /** Ends the server after so many commits, and starts another one; answers whether it came so far. */
  async function endsAfter(commits: number): Promise<boolean> {
    let left = commits;
    const { execute } = ctx.store;
    const ending: TestContext = {
      ...ctx,
      store: {
        ...ctx.store,
        execute: (async (command: never) => {
          const answer = await execute(command);
          left -= 1;
          if (left === 0) throw new Error("the server ends");
          return answer;
        }) as never,
      },
    };
    const watching = watchingOf();
    const ended = await depositsJob(ending, {
      ...{ watching: () => watching, monotonicNow: () => time, random: () => 0 },
      ...{ onTrouble: () => {}, onGone: () => {} },
    })
      .run()
      .then(
        () => false,
        () => true,
      );
    job = newJob();
    await step();
    return ended;
  }

  test("after any commit credits each deposit once", async () => {
    await registered();
    let [commits, total, ended] = [0, 0n, false];
    let last: readonly Transfer[][] = [];
    chain.mine([], CONFIRMATIONS);
    expect(await endsAfter(1)).toBe(true);
    do {
      commits += 1;
      ended = false;
      // From the first run on; and then of new blocks, of a deep reorganisation, and of one that brings something back.
      for (const round of ["new", "gone", "back"]) {
        if (round === "new") {
          last = [[...chain.transaction(pays(1n), pays(2n))], [...chain.transaction(pays(4n, STRANGER))]];
          chain.mine(last, CONFIRMATIONS);
        } else if (round === "gone") {
          chain.takeOut(CONFIRMATIONS + 1);
          chain.mine([], CONFIRMATIONS + 1);
        } else chain.mine(last, CONFIRMATIONS);
        if (await endsAfter(commits)) ended = true;
      }
      const credited = ctx.reader.deposits.list(
        { organisationId: stage.organisationId, mode: "sandbox" },
        null,
        1_000,
      );
      const references = credited.map(({ reference }) => reference);
      expect(new Set(references).size).toBe(references.length);
      total = credited.reduce((sum, { amount }) => sum + amount, 0n);
      expect(watch().balance).toBe(chain.balanceOf(TREASURY));
    } while (ended && commits < 40);
    expect(commits).toBeGreaterThan(3);
    expect(total).toBe(3n * BigInt(commits));
    expect((await unassigned()).length).toBe(commits);
  });
});

test("two treasuries, and the same address in both modes, are watched apart; one that hangs holds up no other", async () => {
  const real = startModelToken(8_453, { [ACME]: 100n });
  const live = newJob(watchingOf(treasuryIn("live", 8_453), real, 1_000));
  await registered();
  must(await addDepositSender(ctx, { ...scope(), mode: "live", address: ACME }));
  for (const one of [chain, real]) one.mine([], CONFIRMATIONS);
  await Promise.all([step(), live.run()]);
  chain.mine([chain.transaction(pays(10n))], CONFIRMATIONS);
  real.mine([real.transaction(pays(7n))], CONFIRMATIONS);
  real.intercept = () => new Promise(() => {});
  time += MINUTE_MS;
  const hanging = live.run();
  await step(0);
  expect(await deposits()).toEqual([10]);
  await hanging;
  real.intercept = ({ answer }) => answer();
  time += MINUTE_MS;
  await live.run();
  const paid = must(await listDeposits(ctx, MACHINE, { ...scope(), mode: "live" })).data;
  expect(paid.map(({ amount, mode }) => [amount, mode])).toEqual([["7", "live"]]);
  expect(
    ctx.reader.treasuryWatches
      .list()
      .map(({ mode, balance }) => [mode, balance])
      .toSorted(),
  ).toEqual([
    ["live", 7n],
    ["sandbox", 510n],
  ]);
  await real.stop();
});

onlyEmbedded(import.meta.path).test(
  "a restored ledger finds what was credited since its backup, and credits it once",
  async () => {
    await registered();
    chain.mine([], CONFIRMATIONS);
    await step();
    chain.mine([chain.transaction(pays(10n))], CONFIRMATIONS);
    await step();
    const folder = mkdtempSync(join(tmpdir(), "holdfast-restored-"));
    new Database(ledgerFile(ctx.folder)).run("VACUUM INTO ?", [ledgerFile(folder)]);
    chain.mine([chain.transaction(pays(20n))], CONFIRMATIONS);
    await step();
    const references = must(await listDeposits(ctx, MACHINE, scope())).data.map(({ reference }) => reference);
    await ctx.close();
    ctx = createTestContext({}, folder);
    expect(await deposits()).toEqual([10]);
    job = newJob();
    await step();
    await step();
    expect(await deposits()).toEqual([10, 20]);
    expect(must(await listDeposits(ctx, MACHINE, scope())).data.map(({ reference }) => reference)).toEqual(
      references,
    );
  },
);

test("a token of more than the ledger can hold is not watched, or stops", async () => {
  const rich = startModelToken(CHAIN_ID, { [TREASURY.toLowerCase()]: 2n ** 63n });
  rich.mine([], CONFIRMATIONS);
  job = newJob(watchingOf(treasuryIn(), rich));
  await step();
  expect([reported, ctx.reader.treasuryWatches.list()]).toEqual([["stopped too_large"], []]);
  await rich.stop();
  await registered();
  chain.mine([], CONFIRMATIONS);
  job = newJob();
  await step();
  chain.mine([chain.transaction(pays(2n ** 200n))], CONFIRMATIONS);
  await step();
  await step();
  expect(reported).toEqual(["stopped too_large", "stopped too_large"]);
  expect(watch()).toMatchObject({ stopped: "too_large", received: 0n, balance: 500n });
});

test("a chain of which no known block is left credits nothing, and says so", async () => {
  await registered();
  chain.mine([], CONFIRMATIONS);
  await step();
  chain.mine([chain.transaction(pays(10n))], 12_000);
  for (let run = 0; run < 3; run++) await step();
  expect(await deposits()).toEqual([10]);
  chain.takeOut(12_003);
  chain.mine([], 12_100);
  await step();
  await step();
  expect(reported).toEqual(["credited", "stopped chain_replaced"]);
  expect(watch()).toMatchObject({ stopped: "chain_replaced", balance: 510n });
});
