/** What the tests of treasuries stand on: a token, a node and a chain that do the wrong that they are told to, and nothing else. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Hex } from "viem";
import type { Away } from "../../../src/platform/ask-chain.ts";
import { createEvmWallet } from "../../../src/platform/evm-wallet.ts";
import { chainWithBlocksByHand } from "../blocks-by-hand.ts";
import { CHAIN_ID, type Chain, facilitatorWallet } from "../chain.ts";
import { type Node, type Reaction, startNode } from "../node.ts";
import { forkHere } from "../reorganisation.ts";
import { type Behaviour, deployFaultyToken, type FaultyToken } from "./faulty-token.ts";

const PAYEE = `0x${"ab".repeat(20)}` as const;
const KEY = `0x${"11".repeat(32)}` as const;

let chain: Chain;
let token: FaultyToken;
chainWithBlocksByHand(async (started) => {
  chain = started;
  token = await deployFaultyToken(chain);
});

const blockNumber = async (): Promise<number> => Number(await chain.ask("eth_blockNumber", []));
const hashOf = async (block: number): Promise<string> => {
  const found = (await chain.ask("eth_getBlockByNumber", [`0x${block.toString(16)}`, false])) as {
    hash: string;
  };
  return found.hash;
};

describe("a token", () => {
  const transfer = (value: bigint): Hex =>
    `0xa9059cbb${PAYEE.slice(2).padStart(64, "0")}${value.toString(16).padStart(64, "0")}`;
  const says = () =>
    chain.ask("eth_call", [{ from: token.customer, to: token.address, data: transfer(100n) }, "latest"]);
  const yes = `0x${"1".padStart(64, "0")}`;

  test.each<[Behaviour, unknown, bigint, readonly bigint[]]>([
    ["plain", yes, 100n, [100n]],
    ["returns false", `0x${"0".repeat(64)}`, 0n, []],
    ["returns nothing", "0x", 100n, [100n]],
    ["takes a fee", yes, 90n, [90n]],
    ["hides a fee", yes, 90n, [100n]],
    ["moves nothing", yes, 0n, []],
    ["moves twice", yes, 200n, [100n, 100n]],
    ["charges more", yes, 100n, [100n]],
  ])("that is told so: %s", async (behaviour, said, arrived, events) => {
    await token.behave(behaviour);
    expect(await says()).toBe(said);
    await token.pay(PAYEE, 100n);
    expect(await token.balanceOf(PAYEE)).toBe(arrived);
    expect((await token.sentBy(token.customer)).map(({ value }) => value)).toEqual([...events]);
  });

  test("reverts where it is paused, refuses the payee, or burns the gas; in the next block too", async () => {
    await token.behave("paused");
    expect(says()).rejects.toThrow("Pausable: paused");
    await token.behave("burns gas");
    expect(says()).rejects.toThrow();
    await token.behave("plain");
    await token.refuse(PAYEE, true);
    expect(says()).rejects.toThrow("blacklisted");
    await token.refuse(PAYEE, false);
    const holder = facilitatorWallet(chain);
    await token.mint(holder.account.address, 100n);
    const hash = await holder.sendTransaction({ to: token.address, data: transfer(100n), gas: 99_999n });
    await token.behave("paused", "inNextBlock");
    await chain.mine(1);
    const receipt = await holder.getTransactionReceipt({ hash });
    expect([receipt.status, await token.balanceOf(PAYEE)]).toEqual(["reverted", 0n]);
  });
});

describe("a node", () => {
  let node: Node;
  beforeEach(async () => {
    node = await startNode(chain);
  });
  afterEach(() => node.close());

  const look = (chainId = CHAIN_ID) =>
    createEvmWallet({ chainId, url: node.url, key: KEY }, 1, {
      ...{ timeoutMs: 200, retries: 0 },
    }).look([]);
  const whileAsked =
    (about: string, reaction: Reaction) =>
    ({ method }: { readonly method: string }): Reaction =>
      method === about ? reaction : "forward";

  test("that is good answers as the chain does", async () => {
    const newestBlock = await blockNumber();
    expect(await look()).toMatchObject({ newestBlock, nonce: 0 });
    expect(node.calls.map(({ method, count }) => [method, count])).toContainEqual(["eth_chainId", 1]);
  });

  test.each<[Reaction, Away["away"]]>([
    ["never", "timeout"],
    ["forward, never", "timeout"],
    ["dropped", "unreachable"],
    ["forward, dropped", "unreachable"],
    [{ result: "0x1" }, "wrong_chain"],
    [{ error: { code: -32_000, message: "busy" } }, "no_answer"],
    [{ status: 200, body: "garbage" }, "unreachable"],
    [{ status: 503, body: "" }, "unreachable"],
  ])("may react so: %j", async (reaction, away) => {
    node.react(whileAsked("eth_chainId", reaction));
    expect(await look()).toEqual({ away });
    node.recover();
    expect(await look()).toMatchObject({ nonce: 0 });
  });

  test("may answer what it answered before, and pass on twice what it was sent once", async () => {
    const method = "eth_blockNumber";
    const ask = async () => {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 7, method, params: [] });
      return (await (await fetch(node.url, { method: "POST", body })).json()) as object;
    };
    const before = await ask();
    await chain.mine(1);
    node.react(() => "stale");
    expect(await ask()).toEqual(before);
    node.react(() => "forward twice");
    expect(await ask()).not.toEqual(before);
    expect(node.calls.filter((call) => call.method === method).map(({ count }) => count)).toEqual([1, 2, 3]);
  });
});

test("a reorganisation puts other blocks in the place of the last ones, with or without what they had", async () => {
  const wallet = createEvmWallet({ chainId: CHAIN_ID, url: chain.url, key: KEY }, 1);
  await chain.ask("hardhat_setBalance", [wallet.address, "0xde0b6b3a7640000"]);
  const view = await wallet.look([]);
  if ("away" in view) throw new Error(view.away);
  const call = { to: PAYEE, data: "0x", nonce: 0, gas: 30_000n, fees: view.fees, newestBlock: 0 };
  const { raw, hash } = await wallet.sign(call);
  const blockOf = async () => {
    const receipt = (await chain.ask("eth_getTransactionReceipt", [hash])) as { blockNumber: string } | null;
    return receipt && Number(receipt.blockNumber);
  };
  for (const [again, found] of [
    [[], null],
    [[raw], 3],
  ] as const) {
    const fork = await forkHere(chain);
    const before = await blockNumber();
    expect(await wallet.send(raw)).toBeNull();
    await chain.mine(3);
    expect(await blockOf()).toBe(before + 1);
    const old = await hashOf(before + 1);
    await fork.reorganise(3, again);
    expect(await blockNumber()).toBe(before + 3);
    expect(await hashOf(before + 1)).not.toBe(old);
    expect(await blockOf()).toBe(found && before + found);
  }
});
