/**
 * Payouts on a real chain, whatever the token, the node, the fees and the blocks do meanwhile: nobody is paid twice, nobody is
 * forgotten, and whoever waits is told why.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Hex, keccak256 } from "viem";
import { chainWithBlocksByHand } from "../blocks-by-hand.ts";
import type { Chain } from "../chain.ts";
import { BAD_REACTIONS, type Node, type NodeCall, type Reaction, startNode } from "../node.ts";
import { forkHere } from "../reorganisation.ts";
import { type Behaviour, deployFaultyToken, type FaultyToken } from "./faulty-token.ts";
import { CONFIRMATIONS, openTreasuryStage, TREASURY, type TreasuryStage } from "./treasury-stage.ts";

const FUNDS = "1000000";
const ETHER = 10n ** 18n;
const GWEI = 10n ** 9n;
const TEST_MS = 60_000;
const [ALICE, BOB, CAROL] = ["a1", "b0", "ca"].map((byte) => `0x${byte.repeat(20)}`) as [
  string,
  string,
  string,
];

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
  treasury = await openTreasuryStage(chain, token, node, FUNDS);
});
afterEach(async () => {
  await treasury.close();
  await node.close();
});

const gas = (wei: bigint) => chain.ask("hardhat_setBalance", [TREASURY, `0x${wei.toString(16)}`]);
/** A block whose base fee is this. */
const mineAt = async (baseFee: bigint): Promise<void> => {
  await chain.ask("hardhat_setNextBlockBaseFeePerGas", [`0x${baseFee.toString(16)}`]);
  await chain.mine(1);
};
/** Waits as long as a fault lasts, and sees that those who are not paid are told why. */
async function waitsBecause(...why: RegExp[]): Promise<void> {
  for (let round = 0; round < 3; round++) await treasury.pay();
  const reasons = await treasury.reasons();
  for (const reason of reasons) expect(reason).toMatch(new RegExp(why.map(({ source }) => source).join("|")));
  expect(reasons).not.toEqual([]);
  await treasury.expectNothingTwice();
}
const paysAll = async (): Promise<void> => {
  await treasury.payUntil();
  await treasury.expectAllPaid();
};

test("everybody gets what is owed, once, and what is released later too", async () => {
  await treasury.owe(ALICE, 100n);
  await treasury.owe(BOB, 23n);
  await treasury.owe(ALICE, 7n);
  await paysAll();
  await treasury.owe(ALICE, 5n);
  await paysAll();
  expect((await token.sentBy(TREASURY)).map(({ value }) => value)).toEqual([107n, 23n, 5n]);
});

describe("a token", () => {
  beforeEach(async () => {
    await treasury.owe(ALICE, 100n);
    await treasury.owe(BOB, 200n);
  });

  test("that returns nothing pays", async () => {
    await token.behave("returns nothing");
    await paysAll();
  });

  test.each<[Behaviour, RegExp]>([
    ["returns false", /refuses/],
    ["paused", /paused/],
    ["burns gas", /refuses/],
  ])("that says beforehand that it will not pay is not asked to: %s", async (behaviour, why) => {
    await token.behave(behaviour);
    await waitsBecause(why);
    expect(node.sent).toEqual([]);
    await token.behave("plain");
    await paysAll();
  });

  test("that refuses one payee pays the others", async () => {
    await token.refuse(ALICE, true);
    await treasury.payUntil(async () => (await treasury.payouts("paid")).length === 1);
    expect(await token.balanceOf(BOB)).toBe(200n);
    await waitsBecause(/blacklisted/);
    await token.refuse(ALICE, false);
    await paysAll();
  });

  test.each<[Behaviour, RegExp]>([
    ["moves nothing", /moved nothing/],
    ["paused", /reverted/],
    ["returns false", /moved nothing/],
  ])(
    "that does not pay once it is in a block is not asked again before a person says so: %s",
    async (behaviour, why) => {
      if (behaviour === "moves nothing") await token.behave(behaviour);
      await treasury.pay();
      if (behaviour !== "moves nothing") await token.behave(behaviour, "inNextBlock");
      await treasury.payUntil(async () => (await treasury.payouts("failed")).length === 2);
      await token.behave("plain");
      const sent = node.sent.length;
      await waitsBecause(why);
      expect(node.sent.length).toBe(sent);
      expect([await token.balanceOf(ALICE), await token.balanceOf(BOB)]).toEqual([0n, 0n]);
      await treasury.submit();
      await paysAll();
    },
  );

  test.each<Behaviour>(["takes a fee", "hides a fee", "moves twice"])(
    "that moves another amount stops, until a person has decided: %s",
    async (behaviour) => {
      await token.mint(TREASURY, 1_000n);
      await treasury.pay();
      await token.behave(behaviour, "inNextBlock");
      const isStopped = async () => (await treasury.reasons()).some((reason) => /arrived/.test(reason));
      await treasury.payUntil(isStopped);
      await token.behave("plain");
      await treasury.owe(CAROL, 300n);
      for (let round = 0; round < 3; round++) await treasury.pay();
      const reasons = await treasury.reasons();
      expect(reasons.filter((reason) => /a person has to look/.test(reason))).toHaveLength(2);
      expect(reasons.filter((reason) => /have stopped/.test(reason))).toHaveLength(1);
      expect([await token.balanceOf(CAROL), new Set(node.sent).size]).toEqual([0n, 2]);
      // A person sees what arrived, marks it, and lets the others be paid.
      for (const { id, transaction } of await treasury.payouts("submitted"))
        await treasury.commands.json("payouts", "mark-paid", id, "--reference", transaction);
      await treasury.resume();
      await treasury.payUntil();
      expect(await token.balanceOf(CAROL)).toBe(300n);
    },
  );
});

describe("the chain", () => {
  beforeEach(async () => {
    await treasury.owe(ALICE, 100n);
    await treasury.owe(BOB, 200n);
  });

  test.each([
    ["has them again", true],
    ["has forgotten them", false],
  ])("reorganises three blocks before they are confirmed, and %s", async (_, isThere) => {
    const fork = await forkHere(chain);
    await treasury.pay();
    await chain.mine(CONFIRMATIONS - 1);
    await treasury.pay();
    const sent = [...new Set(node.sent)];
    await fork.reorganise(3, isThere ? sent : []);
    await waitsBecause(/confirmations/);
    await paysAll();
  });

  test.each([
    ["has them again", true],
    ["has forgotten them", false],
  ])("reorganises more blocks than the confirmations, and %s", async (_, isThere) => {
    const fork = await forkHere(chain);
    await treasury.payUntil();
    const sent = [...new Set(node.sent)];
    await fork.reorganise(CONFIRMATIONS + 3, isThere ? sent : []);
    await treasury.expectNothingTwice();
    for (let round = 0; round < CONFIRMATIONS + 2; round++) {
      await treasury.pay();
      await chain.mine(1);
    }
    expect(treasury.reported).toContain("taken out");
    await paysAll();
  });

  test("asks for higher fees, which are paid up to the most that the operator allows", async () => {
    await treasury.pay();
    for (let block = 0; block < 7; block++) await mineAt(50n * GWEI);
    await treasury.pay();
    await paysAll();
  });

  test("asks for more than the operator allows, for a while", async () => {
    await mineAt(5_000n * GWEI);
    await waitsBecause(/HOLDFAST_TREASURY_FEE_MAX/);
    expect(await token.sentBy(TREASURY)).toEqual([]);
    await mineAt(GWEI);
    await paysAll();
  });

  test("takes no transaction of a treasury without gas", async () => {
    await gas(0n);
    await waitsBecause(/gas/);
    await gas(ETHER);
    await paysAll();
  });

  test("takes the gas away while they are under way", async () => {
    await treasury.pay();
    for (const raw of new Set(node.sent)) await chain.ask("hardhat_dropTransaction", [keccak256(raw as Hex)]);
    await gas(0n);
    await waitsBecause(/gas/);
    await gas(ETHER);
    await paysAll();
  });
});

describe("a node", () => {
  /** A call of each of these methods is part of a payout. */
  const methodsOfPayout = (): string[] => [...new Set(node.calls.map(({ method }) => method))];
  let sequence = 0;
  const anybody = (): string => `0xc${(++sequence).toString(16).padStart(39, "0")}`;

  /** Pays somebody, while the node reacts so to each call of one method; then somebody else, with the next method. */
  async function expectOutlives(reaction: (call: NodeCall) => Reaction | Promise<Reaction>): Promise<void> {
    await treasury.owe(anybody(), 1n);
    await paysAll();
    for (const method of methodsOfPayout()) {
      for (const amount of [100n, 200n]) await treasury.owe(anybody(), amount);
      node.react((call) => (call.method === method ? reaction(call) : "forward"));
      for (let round = 0; round < CONFIRMATIONS + 1; round++) {
        await treasury.pay();
        expect(await treasury.reasons()).not.toContain("no reason is shown");
        await chain.mine(1);
      }
      await treasury.expectNothingTwice();
      node.recover();
      await treasury.decide();
      await paysAll();
    }
  }

  test.each(BAD_REACTIONS)(
    "may react so to any kind of call: %j",
    async (reaction) => {
      await expectOutlives(() => reaction);
    },
    TEST_MS,
  );

  test(
    "may lose every second answer, and may answer long after nobody waits",
    async () => {
      await expectOutlives(({ count }) => (count % 2 === 0 ? "forward, never" : "forward"));
      const late = Promise.withResolvers<void>();
      await expectOutlives(async (): Promise<Reaction> => {
        await late.promise;
        return "forward";
      });
      late.resolve();
      await paysAll();
    },
    TEST_MS,
  );

  test.each([
    ["that it was reverted", { status: "0x0", logs: [] }],
    ["that it moved nothing", { logs: [] }],
    ["nothing of how it ended", { status: null }],
    ["no block", { blockNumber: null }],
  ])("may say of what was paid %s: it does not fail, so that it is not paid again", async (_, wrong) => {
    await treasury.owe(ALICE, 100n);
    node.react(async ({ method, params: [hash] }) => {
      if (method !== "eth_getTransactionReceipt") return "forward";
      const receipt = await chain.ask(method, [hash]);
      return { result: receipt && { ...(receipt as object), ...wrong } };
    });
    for (let round = 0; round < CONFIRMATIONS + 2; round++) {
      await treasury.pay();
      await chain.mine(1);
    }
    expect(await token.balanceOf(ALICE)).toBe(100n);
    expect([await treasury.payouts("failed"), await treasury.payouts("paid")]).toEqual([[], []]);
    expect(await treasury.reasons()).not.toContain("no reason is shown");
    node.recover();
    await paysAll();
  });

  test("may give the receipt of another transaction", async () => {
    const hash = await token.pay(CAROL, 1n);
    const result = await chain.ask("eth_getTransactionReceipt", [hash]);
    await treasury.owe(ALICE, 100n);
    node.react(({ method }) => (method === "eth_getTransactionReceipt" ? { result } : "forward"));
    for (let round = 0; round < CONFIRMATIONS + 2; round++) {
      await treasury.pay();
      await chain.mine(1);
    }
    expect(await treasury.payouts("paid")).toEqual([]);
    expect(await treasury.reasons()).not.toContain("no reason is shown");
    node.recover();
    await paysAll();
  });
});
