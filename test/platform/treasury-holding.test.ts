import { afterEach, expect, test } from "bun:test";
import { chainOfMode } from "../../src/core/x402/chains.ts";
import { createHoldingReader } from "../../src/platform/treasury-holding.ts";

/** What a wallet holds at the newest confirmed block, through nodes that answer wrongly, late or of a block that is gone. */

const TREASURY = {
  chainId: chainOfMode("sandbox", 84_532)!,
  token: `0x${"ab".repeat(20)}`,
  address: `0x${"cd".repeat(20)}`,
};
const CONFIRMATIONS = 12;

const servers: { stop(force: boolean): unknown }[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.stop(true);
});

const word = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`;
type Asked = { readonly id: number; readonly method: string; readonly params: readonly unknown[] };

/** A chain of blocks two seconds apart, whose wallet has as much as the block's number. `forkedAfter`: how many answers it gives first. */
function holdingAt({
  newest = 100,
  chainId = TREASURY.chainId as number,
  forkedAfter = Number.POSITIVE_INFINITY,
  balance = (block: number): unknown => ({ result: word(block) }),
} = {}) {
  let answers = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { id, method, params } = (await request.json()) as Asked;
      answers += 1;
      const blockOf = (tag: unknown) => (tag === "latest" ? newest : Number(tag));
      const block = (number: number) => ({
        number: `0x${number.toString(16)}`,
        hash: word(number + (answers > forkedAfter ? 1_000 : 0)),
        timestamp: `0x${(1_800_000_000 + 2 * number).toString(16)}`,
        transactions: [],
      });
      const body =
        method === "eth_call"
          ? (balance(blockOf(params[1])) as object)
          : { result: method === "eth_chainId" ? `0x${chainId.toString(16)}` : block(blockOf(params[0])) };
      return Response.json({ jsonrpc: "2.0", id, ...body });
    },
  });
  servers.push(server);
  const endpoints = new Map([[TREASURY.chainId as number, server.url.href]]);
  return createHoldingReader(endpoints, CONFIRMATIONS, { retries: 0, timeoutMs: 2_000 })(TREASURY);
}

test("the balance is read at the newest block that has so many confirmations, with its hash and time", async () => {
  expect(await holdingAt()).toEqual({
    ...{ balance: 89n, block: 89, blockHash: word(89), blockTime: (1_800_000_000 + 178) * 1_000 },
    newestTime: (1_800_000_000 + 200) * 1_000,
  });
  expect(await holdingAt({ newest: 5 })).toMatchObject({ balance: 0n, block: 0 });
});

test("a block that is replaced meanwhile gives no balance", async () => {
  // The chain, its newest block, the confirmed one and the balance are asked first.
  expect(await holdingAt({ forkedAfter: 4 })).toEqual({ away: "no_answer" });
});

test("a node of another chain, or without the token, gives no balance", async () => {
  expect(await holdingAt({ chainId: 1 })).toEqual({ away: "wrong_chain" });
  expect(await holdingAt({ balance: () => ({ result: "0x" }) })).toEqual({ away: "no_answer" });
  expect(await holdingAt({ balance: () => ({ error: { code: -32_000, message: "no" } }) })).toEqual({
    away: "no_answer",
  });
  expect(await createHoldingReader(new Map(), CONFIRMATIONS)(TREASURY)).toEqual({ away: "none" });
});
