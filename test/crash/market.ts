import { toFunctionSelector } from "viem";
import type { Mode } from "../../src/core/roles.ts";
import { type Answer, listen } from "../x402/listener.ts";
import type { Json } from "./program.ts";
import type { Random } from "./random.ts";

/** What is outside of Holdfast when it buys: a seller that asks for payment, and a made-up chain, on which it may settle one. */

/** How a seller is paid: by Holdfast's voucher, or on the chain in either version of the protocol. */
const PAID_BY = ["voucher", "exact1", "exact2"] as const;
/**
 * What it does with a payment. `slow`: it answers late. `cheats`: it settles, and hangs up. `late`: it hangs up, and settles a
 * little later. `drops`: it hangs up, and settles nothing. `refuses`: it settles nothing, and asks again.
 */
const DOES = ["sells", "sells", "slow", "slow", "slow", "cheats", "late", "drops", "refuses"] as const;

const CHAIN_ID = 84_532;
const TOKEN = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
/** Whom the wallet pays. */
export const PAY_TO = "0x00000000000000000000000000000000000000A1";
const PRICE = "1000";
/** How long an authorization may be settled: short, so that unknown payments become known while a ledger lasts. */
const TIMEOUT_SECONDS = 3;
const SLOW_MS = 800;
const LATE_MS = 700;
/** More than all purchases of a run cost. */
const FUNDS = 10n ** 15n;

export type Market = {
  /** Settings of a server that buys here. */
  readonly settings: Readonly<Record<string, string>>;
  /** A URL that sells to one purchase only; in live for a voucher, since nothing pays there with test money. */
  randomUrl(mode: Mode): string;
  readonly price: string;
  /** Whether the authorization of this nonce was settled. */
  isSettled(nonce: string): boolean;
  /** Payments that must not come: a second one to one URL, whether it is the same or another. */
  readonly wrong: readonly string[];
  readonly count: () => { readonly payments: number; readonly settled: number };
  stop(): Promise<void>;
};

/** @param now the time by which the chain makes its blocks, epoch milliseconds */
export async function startMarket(random: Random, now: () => number): Promise<Market> {
  const payments = new Map<string, string>();
  const settled = new Set<string>();
  const wrong: string[] = [];
  const seconds = () => Math.floor(now() / 1_000);
  let orders = 0;

  /** As the token's contract does it: within its time, and once. */
  function settle({ nonce, validAfter, validBefore }: Json): boolean {
    const isValid = Number(validAfter) < seconds() && seconds() < Number(validBefore);
    if (!isValid || settled.has(nonce)) return false;
    settled.add(nonce);
    return true;
  }

  async function take(path: string, header: string): Promise<Answer> {
    const [, paidBy = "", does = "", clauses = ""] = path.slice(1).split("/");
    if (payments.has(path)) wrong.push(`${path} was paid twice`);
    payments.set(path, header);
    const { payload } = JSON.parse(Buffer.from(header, "base64").toString());
    const pays = (): boolean => paidBy === "voucher" || settle(payload.authorization);
    if (does === "drops") return "dropped";
    if (does === "late") {
      setTimeout(pays, LATE_MS);
      return "dropped";
    }
    if (does === "refuses" || !pays()) return asks(paidBy);
    if (does === "cheats") return "dropped";
    if (does === "slow") await Bun.sleep(random.below(SLOW_MS));
    const goods = Object.fromEntries(
      Array.from({ length: Number(clauses) }, (_, index) => [`c${index}`, index]),
    );
    return Response.json(goods, { headers: paidBy === "voucher" ? {} : receipt() });
  }

  const seller = await listen(({ url, headers }) => {
    const path = new URL(url).pathname;
    const header = headers.get("payment-signature") ?? headers.get("x-payment");
    return header === null ? asks(path.split("/")[2] ?? "") : take(path, header);
  });
  const chain = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { id, method, params }: Json = await request.json();
      return Response.json({ jsonrpc: "2.0", id, result: answerOf(method, params, seconds(), settled) });
    },
  });
  return {
    price: PRICE,
    settings: {
      HOLDFAST_X402_ALLOW_NETWORKS: "127.0.0.0/8",
      HOLDFAST_X402_SANDBOX_KEY: `0x${"11".repeat(32)}`,
      HOLDFAST_EVM_RPC: `eip155:${CHAIN_ID}=http://127.0.0.1:${chain.port}`,
    },
    randomUrl(mode) {
      const paidBy = mode === "live" ? "voucher" : random.pick(PAID_BY);
      return `${seller.url}/order-${++orders}/${paidBy}/${random.pick(DOES)}/${random.pick([4, 4, 4, 3, 2, 0])}`;
    },
    isSettled: (nonce) => settled.has(nonce),
    wrong,
    count: () => ({ payments: payments.size, settled: settled.size }),
    async stop() {
      await Promise.all([seller.close(), chain.stop(true)]);
    },
  };
}

/** The 402 of a seller that is paid in this way. */
function asks(paidBy: string): Response {
  if (paidBy === "voucher")
    return Response.json({ amount: PRICE, asset: "USDC", payee: "shop" }, { status: 402 });
  const terms = { scheme: "exact", asset: TOKEN, payTo: PAY_TO, maxTimeoutSeconds: TIMEOUT_SECONDS };
  const entry =
    paidBy === "exact1"
      ? { ...terms, network: "base-sepolia", maxAmountRequired: PRICE }
      : { ...terms, network: `eip155:${CHAIN_ID}`, amount: PRICE };
  const extra = { name: "USDC", version: "2" };
  return Response.json(
    { x402Version: paidBy === "exact1" ? 1 : 2, accepts: [{ ...entry, extra }] },
    { status: 402 },
  );
}

const receipt = () => ({
  "payment-response": Buffer.from(
    JSON.stringify({ success: true, transaction: `0x${"ab".repeat(32)}`, network: `eip155:${CHAIN_ID}` }),
  ).toString("base64"),
});

const IS_USED = toFunctionSelector("authorizationState(address,bytes32)");
const BALANCE = toFunctionSelector("balanceOf(address)");

const hex = (value: number | bigint): string => `0x${value.toString(16)}`;
const word = (value: bigint): string => `0x${value.toString(16).padStart(64, "0")}`;

/** The chain's JSON-RPC. It makes a block each second. */
function answerOf(method: string, params: Json, seconds: number, settled: ReadonlySet<string>): unknown {
  if (method === "eth_chainId") return hex(CHAIN_ID);
  if (method === "eth_getBlockByNumber") {
    const number = params[0].startsWith("0x") ? BigInt(params[0]) : BigInt(seconds);
    return { number: hex(number), timestamp: hex(number), transactions: [] };
  }
  const { data } = params[0];
  if (method !== "eth_call") throw new Error(`the chain does not know ${method}`);
  if (data.startsWith(BALANCE)) return word(FUNDS - BigInt(settled.size) * BigInt(PRICE));
  if (!data.startsWith(IS_USED)) throw new Error(`the token does not know ${data}`);
  return word(settled.has(`0x${data.slice(-64)}`) ? 1n : 0n);
}
