import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { transferData } from "../../src/core/evm-address.ts";
import { createEvmTreasury } from "../../src/platform/evm-treasury.ts";

/** What a treasury reads in a node's answers; test/x402 has a real node. */

const TOKEN = `0x${"ab".repeat(20)}` as const;
const PAYEE = `0x${"a1".repeat(20)}`;
const HASH = `0x${"77".repeat(32)}`;
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const word = (hex: string): string => `0x${hex.padStart(64, "0")}`;

let answers: Record<string, unknown>;
const node = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const { id, method, params } = (await request.json()) as {
      id: number;
      method: string;
      params: unknown[];
    };
    const given = method === "eth_chainId" ? "0x14a34" : answers[method];
    const answer = typeof given === "function" ? given(params) : given;
    return Response.json(
      answer !== null && typeof answer === "object" && "code" in answer
        ? { jsonrpc: "2.0", id, error: answer }
        : { jsonrpc: "2.0", id, result: answer ?? null },
    );
  },
});
afterAll(() => node.stop(true));
beforeEach(() => {
  answers = {};
});

const treasury = createEvmTreasury(
  { chainId: 84_532, url: `http://127.0.0.1:${node.port}`, key: `0x${"1f".repeat(32)}` },
  3,
  { retries: 0, timeoutMs: 2_000 },
);
const call = { to: TOKEN, data: transferData(PAYEE, 5n) };

describe("a call that is played", () => {
  test.each([
    ["answers true", word("1"), null],
    ["answers nothing, as USDT does", "0x", null],
    ["answers false", word("0"), { why: "it answers false" }],
    ["answers something else", word("2"), { why: "it answers false" }],
    [
      "is reverted",
      { code: 3, message: "execution reverted: Pausable: paused", data: "0x" },
      { why: "execution reverted: Pausable: paused" },
    ],
    [
      "is reverted with a U+0000, which PostgreSQL cannot keep",
      { code: 3, message: "execution reverted: a\0b", data: "0x" },
      { why: "execution reverted: a\ufffdb" },
    ],
    [
      "is reverted in another node's words",
      { code: -32_000, message: "VM Exception while processing" },
      { why: expect.stringContaining("VM Exception") },
    ],
    [
      "gets no answer, since too many were asked",
      { code: -32_005, message: "too many requests" },
      { away: "no_answer" },
    ],
  ])("%s", async (_, answer, found) => {
    answers.eth_call = answer;
    expect<unknown>(await treasury.refusalOf(call)).toEqual(found);
  });
});

test("balances are of the token, or of the chain's coin; a token that is no contract is no answer", async () => {
  answers = { eth_call: word("ff"), eth_getBalance: "0x10" };
  expect([await treasury.balanceOf(TOKEN), await treasury.balanceOf("coin")]).toEqual([
    { balance: 255n },
    { balance: 16n },
  ]);
  answers.eth_call = "0x";
  expect(await treasury.balanceOf(TOKEN)).toEqual({ away: "no_answer" });
});

describe("what a payee has got in a block is compared with the token's events", () => {
  const moved = (from: string, to: string, amount: string, index: string) => ({
    ...{ address: TOKEN, data: word(amount), blockNumber: "0x9", blockHash: HASH, logIndex: index },
    ...{ topics: [TRANSFER, word(from.slice(2)), word(to.slice(2))], transactionHash: HASH },
  });
  const before = word("64");

  test.each([
    ["all of it", [moved(TOKEN, PAYEE, "5", "0x0")], "69", { missing: 0n }],
    ["less", [moved(TOKEN, PAYEE, "5", "0x0")], "68", { missing: 1n }],
    ["more", [moved(TOKEN, PAYEE, "5", "0x0")], "6a", { missing: -1n }],
    [
      "all, and gave some on",
      [moved(TOKEN, PAYEE, "5", "0x0"), moved(PAYEE, TOKEN, "2", "0x1")],
      "67",
      { missing: 0n },
    ],
    ["nothing", [], "64", { missing: 0n }],
  ])("%s", async (_, logs, after, found) => {
    answers.eth_getLogs = logs;
    answers.eth_call = (params: readonly unknown[]) => (params[1] === "0x9" ? word(after) : before);
    expect(await treasury.missingIn(9, TOKEN, PAYEE)).toEqual(found);
  });

  test("unless the node does not say", async () => {
    answers.eth_getLogs = [];
    answers.eth_call = {
      code: -32_000,
      message: "missing trie node 0a1b (path ) state 0x1 is not available",
    };
    expect(await treasury.missingIn(9, TOKEN, PAYEE)).toBeNull();
    answers = { eth_call: before, eth_getLogs: { code: -32_005, message: "too many requests" } };
    expect(await treasury.missingIn(9, TOKEN, PAYEE)).toBeNull();
    // That is not what was asked.
    answers = { eth_call: "0x", eth_getLogs: [] };
    expect(await treasury.missingIn(9, TOKEN, PAYEE)).toEqual({ away: "no_answer" });
    answers = { eth_call: before, eth_getLogs: [moved(TOKEN, TOKEN, "1", "0x0")] };
    expect(await treasury.missingIn(9, TOKEN, PAYEE)).toEqual({ away: "no_answer" });
  });
});

describe("a receipt", () => {
  const log = (of: Record<string, unknown>) => ({
    ...{
      address: TOKEN.toUpperCase().replace("0X", "0x"),
      data: word("5"),
      blockNumber: "0x9",
      logIndex: "0x0",
    },
    ...{ topics: [TRANSFER, word(treasury.address.slice(2)), word(PAYEE.slice(2))] },
    ...{ transactionHash: HASH, transactionIndex: "0x0", blockHash: HASH, removed: false, ...of },
  });
  const receipt = (of: Record<string, unknown> = {}) => ({
    ...{ transactionHash: HASH, blockNumber: "0x9", status: "0x1", logs: [log({})], blockHash: HASH },
    ...{
      transactionIndex: "0x0",
      gasUsed: "0x1",
      cumulativeGasUsed: "0x1",
      effectiveGasPrice: "0x1",
      type: "0x2",
    },
    ...{ from: treasury.address, to: TOKEN, contractAddress: null, logsBloom: "0x", ...of },
  });

  test("has the token's transfers, in lower case, and no other events", async () => {
    const noise = [
      log({ topics: [HASH] }),
      log({ topics: [TRANSFER, HASH, HASH, HASH] }),
      log({ data: "0x" }),
    ];
    answers.eth_getTransactionReceipt = receipt({ logs: [...noise, log({})] });
    expect(await treasury.receipt(HASH)).toEqual({
      ...{ hash: HASH, block: 9, succeeded: true },
      transfers: [{ token: TOKEN, from: treasury.address.toLowerCase(), to: PAYEE, amount: 5n }],
    });
    answers.eth_getTransactionReceipt = receipt({ status: "0x0", logs: [] });
    answers.eth_getLogs = [log({ transactionHash: word("1") }), log({ topics: [HASH] })];
    expect(await treasury.receipt(HASH)).toMatchObject({ succeeded: false, transfers: [] });
  });

  test.each([
    ["no status", { status: null }],
    ["a status that nobody knows", { status: "0x2" }],
    ["no block", { blockNumber: null }],
    ["no logs", { logs: null }],
  ])("with %s is no answer: what it leaves out did not fail", async (_, half) => {
    answers.eth_getTransactionReceipt = receipt(half);
    answers.eth_getLogs = [];
    expect(await treasury.receipt(HASH)).toEqual({ away: "no_answer" });
  });

  test.each([
    ["was reverted", { status: "0x0", logs: [] }],
    ["moved nothing", { logs: [] }],
  ])("that %s is no answer where the logs of its block say that it paid", async (_, wrong) => {
    answers.eth_getTransactionReceipt = receipt(wrong);
    answers.eth_getLogs = [log({})];
    expect(await treasury.receipt(HASH)).toEqual({ away: "no_answer" });
    answers.eth_getLogs = { code: -32_005, message: "too many requests" };
    expect(await treasury.receipt(HASH)).toEqual({ away: "no_answer" });
  });

  test("of another transaction is no answer, and none is none", async () => {
    answers.eth_getTransactionReceipt = receipt({ transactionHash: word("1") });
    expect(await treasury.receipt(HASH)).toEqual({ away: "no_answer" });
    answers.eth_getTransactionReceipt = null;
    expect(await treasury.receipt(HASH)).toBeNull();
  });
});
