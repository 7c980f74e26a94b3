/**
 * Deposits on a real chain, whatever the token, the node and the blocks do meanwhile: each is credited once, to whoever registered
 * its sender, and nothing is credited that the treasury does not have.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Json } from "../../support/client.ts";
import { chainWithBlocksByHand } from "../blocks-by-hand.ts";
import { type Chain, NETWORK_V2 } from "../chain.ts";
import { BAD_REACTIONS, type Node, type NodeCall, type Reaction, startNode } from "../node.ts";
import { type Fork, forkHere } from "../reorganisation.ts";
import { type Behaviour, deployFaultyToken, type FaultyToken } from "./faulty-token.ts";
import { CONFIRMATIONS, openTreasuryStage, TREASURY, type TreasuryStage } from "./treasury-stage.ts";

const TEST_MS = 60_000;

let chain: Chain;
let token: FaultyToken;
let node: Node;
let treasury: TreasuryStage;
chainWithBlocksByHand(async (started) => {
  chain = started;
  token = await deployFaultyToken(chain);
});
beforeEach(async () => {
  node = await startNode(chain);
  treasury = await openTreasuryStage(chain, token, node);
  const { organisationId } = treasury.stage;
  const line = ["--organisation", organisationId, "--mode", "sandbox", "--address", token.customer];
  await treasury.commands.json("deposits", "senders", "add", ...line);
  await chain.mine(CONFIRMATIONS);
  await treasury.watch();
});
afterEach(async () => {
  await treasury.close();
  await node.close();
});

const available = async (): Promise<bigint> => {
  const account = ["--organisation", treasury.stage.organisationId, "--mode", "sandbox"];
  const { balances } = await treasury.commands.json("balances", "show", ...account);
  const found = (balances as Json[]).find(({ asset }) => asset === "USDC");
  return BigInt(found?.available ?? 0);
};
const confirm = async (): Promise<void> => {
  await chain.mine(CONFIRMATIONS);
  await treasury.watch();
};
/** Newest first, by their references. */
const credited = async () =>
  (await treasury.deposits()).map(({ reference, amount }) => [reference, BigInt(amount)] as const);
const referenceOf = (hash: string, ordinal = 0) => `${NETWORK_V2}:${hash}/${ordinal}`;

/** Expects that these transfers are all deposits, and that the ledger has as much as the treasury. */
async function expectCredited(...transfers: (readonly [hash: string, amount: bigint])[]): Promise<void> {
  const wanted = transfers.map(([hash, amount]) => [referenceOf(hash), amount] as const);
  expect((await credited()).sort()).toEqual(wanted.sort());
  const sum = transfers.reduce((all, [, amount]) => all + amount, 0n);
  expect([await available(), await token.balanceOf(TREASURY)]).toEqual([sum, sum]);
}

describe("a transfer to the treasury", () => {
  test("is credited once, when enough blocks have confirmed it", async () => {
    const hash = await token.pay(TREASURY, 100n);
    await chain.mine(CONFIRMATIONS - 2);
    await treasury.watch();
    expect(await credited()).toEqual([]);
    await chain.mine(1);
    for (let times = 0; times < 2; times++) {
      await treasury.watch();
      await expectCredited([hash, 100n]);
      treasury.restart();
      await confirm();
    }
  });

  test("is one of several in its transaction", async () => {
    await token.behave("moves twice");
    const hash = await token.pay(TREASURY, 100n);
    await confirm();
    expect(await credited()).toEqual([
      [referenceOf(hash, 1), 100n],
      [referenceOf(hash, 0), 100n],
    ]);
    expect([await available(), await token.balanceOf(TREASURY)]).toEqual([200n, 200n]);
  });

  test("of nothing is none", async () => {
    await token.pay(TREASURY, 0n);
    await confirm();
    expect(await credited()).toEqual([]);
  });

  test("of an unknown sender waits until the operator says whose it is", async () => {
    await token.mint(TREASURY, 77n);
    await confirm();
    expect(await credited()).toEqual([]);
    const list = ["deposits", "list", "--unassigned", "--mode", "sandbox"];
    const { data } = (await treasury.commands.json(...list)) as Json;
    expect(data).toMatchObject([{ amount: "77" }]);
    const assign = ["deposits", "assign", data[0].id, "--organisation", treasury.stage.organisationId];
    await treasury.commands.json(...assign);
    expect(await available()).toBe(77n);
    await treasury.commands.run(...assign);
    await confirm();
    expect([await available(), (await credited()).length]).toEqual([77n, 1]);
  });
});

describe("a token", () => {
  test.each<[Behaviour, bigint]>([
    ["returns nothing", 100n],
    ["takes a fee", 90n],
    ["returns false", 0n],
    ["moves nothing", 0n],
  ])("that the ledger can follow: %s", async (behaviour, arrived) => {
    await token.behave(behaviour);
    const hash = await token.pay(TREASURY, 100n);
    await confirm();
    await (arrived > 0n ? expectCredited([hash, arrived]) : expectCredited());
  });

  test("that says more than what arrived credits nothing, and says why", async () => {
    const before = await token.pay(TREASURY, 100n);
    await confirm();
    await token.behave("hides a fee");
    const hash = await token.pay(TREASURY, 100n);
    await confirm();
    await confirm();
    expect(await credited()).toEqual([[referenceOf(before), 100n]]);
    expect(treasury.reported).toEqual(["stopped"]);
    // It goes on where somebody makes up for it.
    await token.behave("plain");
    await token.setBalance(TREASURY, 200n);
    await confirm();
    await expectCredited([before, 100n], [hash, 100n]);
    expect(treasury.reported).toEqual(["stopped", "goes on"]);
  });
});

describe("a reorganisation", () => {
  let fork: Fork;
  beforeEach(async () => {
    fork = await forkHere(chain);
  });

  test("of three blocks, before a deposit is confirmed, forgets it", async () => {
    await token.pay(TREASURY, 100n);
    await chain.mine(1);
    await treasury.watch();
    await fork.reorganise(3);
    await confirm();
    await expectCredited();
    expect(treasury.reported).toEqual([]);
  });

  test("of more blocks than the confirmations takes out what is credited: it is said, and credited once where it comes back", async () => {
    const raw = await token.signPayment(TREASURY, 100n);
    const hash = await token.send(raw);
    await confirm();
    await expectCredited([hash, 100n]);
    await fork.reorganise(9);
    await confirm();
    expect(treasury.reported).toEqual(["1 gone: 100"]);
    expect([await available(), await token.balanceOf(TREASURY)]).toEqual([100n, 0n]);
    expect(await token.send(raw)).toBe(hash);
    await confirm();
    await expectCredited([hash, 100n]);
  });

  test("of more blocks than the confirmations may bring the same in other blocks", async () => {
    const raw = await token.signPayment(TREASURY, 100n);
    const hash = await token.send(raw);
    await chain.mine(4);
    await treasury.watch();
    await fork.reorganise(9, [raw]);
    await confirm();
    await expectCredited([hash, 100n]);
    expect(treasury.reported).toEqual([]);
  });
});

describe("a node", () => {
  async function expectOutlives(reaction: (call: NodeCall) => Reaction | Promise<Reaction>): Promise<void> {
    const paid: [string, bigint][] = [[await token.pay(TREASURY, 1n), 1n]];
    await confirm();
    const methods = new Set(node.calls.map(({ method }) => method));
    expect(methods).toContain("eth_getLogs");
    for (const method of methods) {
      node.react((call) => (call.method === method ? reaction(call) : "forward"));
      for (const amount of [100n, 200n]) {
        paid.push([await token.pay(TREASURY, amount), amount]);
        await confirm();
        expect(await available()).toBeLessThanOrEqual(await token.balanceOf(TREASURY));
      }
      node.recover();
      for (let round = 0; round < 3; round++) await confirm();
      await expectCredited(...paid);
    }
  }

  test.each(BAD_REACTIONS)(
    "may react so to any kind of call: %j",
    async (reaction) => {
      await expectOutlives(() => reaction);
    },
    TEST_MS,
  );

  test("may refuse more than a few blocks at once, and more than a few logs", async () => {
    const paid: [string, bigint][] = [];
    for (let amount = 1n; amount < 9n; amount++) paid.push([await token.pay(TREASURY, amount), amount]);
    await chain.mine(5_000);
    // Hardhat has no state of the blocks that it mines at once.
    for (let block = 0; block < CONFIRMATIONS; block++) await chain.mine(1);
    node.react(({ method, params: [asked] }) => {
      if (method !== "eth_getLogs") return "forward";
      const { fromBlock, toBlock } = asked as { fromBlock: string; toBlock: string };
      return Number(toBlock) - Number(fromBlock) > 800 || Number(toBlock) - Number(fromBlock) < 0
        ? { error: { code: -32_602, message: "block range is too wide" } }
        : "forward";
    });
    for (let round = 0; round < 5; round++) await treasury.watch();
    await expectCredited(...paid);
  });

  test("may leave out logs, or give them twice", async () => {
    const paid: [string, bigint][] = [];
    for (const amount of [100n, 200n]) paid.push([await token.pay(TREASURY, amount), amount]);
    await chain.mine(CONFIRMATIONS);
    const { address } = token;
    const [, ...logs] = (await chain.ask("eth_getLogs", [{ address, fromBlock: "0x0" }])) as Json[];
    const received = logs.filter(({ topics }) => topics[2].endsWith(TREASURY.slice(2).toLowerCase()));
    const give = (result: Json[]) =>
      node.react(({ method }) => (method === "eth_getLogs" ? { result } : "forward"));
    give(received.slice(1));
    await treasury.watch();
    expect(await credited()).toEqual([]);
    expect(treasury.reported).toEqual(["stopped"]);
    give([...received, ...received]);
    await treasury.watch();
    await expectCredited(...paid);
    node.recover();
    await confirm();
    await expectCredited(...paid);
  });

  test("may give the logs of another token, or of another address", async () => {
    const hash = await token.pay(TREASURY, 100n);
    const other = await deployFaultyToken(chain);
    await other.pay(TREASURY, 1_000n);
    await chain.mine(CONFIRMATIONS);
    const latest = { fromBlock: "0x0", toBlock: "latest" };
    for (const address of [other.address, token.address]) {
      const logs = await chain.ask("eth_getLogs", [{ address, ...latest }]);
      node.react(({ method }) => (method === "eth_getLogs" ? { result: logs } : "forward"));
      await treasury.watch();
      expect(await credited()).toEqual([]);
    }
    node.recover();
    await treasury.watch();
    await expectCredited([hash, 100n]);
  });
});
