/** Holdfast's wallet and its reader of chains, against the official sellers, facilitator and a chain. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { decodePaymentSignatureHeader } from "@x402/core/http";
import type { PaymentRequirements } from "@x402/core/types";
import { readConfig } from "../../src/config.ts";
import { isRefusal } from "../../src/core/errors.ts";
import { parseChallenge } from "../../src/core/x402/challenge.ts";
import { chooseEntry, type ExactPayment, type Quote } from "../../src/core/x402/quote.ts";
import { type AuthorizationState, createEvmChains, findingOf } from "../../src/platform/evm-chain.ts";
import { createEvmPayer, type PaymentHeader } from "../../src/platform/evm-payer.ts";
import { CHAIN_ID, type Chain, settingsOf, startChain, type Wallet } from "./chain.ts";
import { type Facilitator, officialFacilitator, startFacilitator } from "./facilitator.ts";
import { PRICE, type Protocol, startOfficialSeller } from "./official-seller.ts";

const FUNDS = 1_000_000n;
const COST = BigInt(PRICE);
const PAYEE = "0x00000000000000000000000000000000000000a1";

let chain: Chain;
let facilitator: Facilitator;
let wallet: Wallet;
let nonces = 0;

beforeAll(async () => {
  chain = await startChain();
  facilitator = await startFacilitator(chain);
  wallet = await chain.wallet(FUNDS);
});
afterAll(async () => {
  await facilitator?.close();
  await chain?.close();
});

const newNonce = (): `0x${string}` => `0x${(++nonces).toString(16).padStart(64, "0")}`;

function configOf(settings: Readonly<Record<string, string>>) {
  const config = readConfig(settings, {});
  if (isRefusal(config)) throw new Error(config.message);
  return config;
}

/** The quote that the service makes of a seller's 402. */
async function quoteOf(url: string): Promise<Quote & { readonly pays: ExactPayment }> {
  const asked = await fetch(url);
  const challenge = parseChallenge({ headers: Object.fromEntries(asked.headers), body: await asked.text() });
  if (isRefusal(challenge)) throw new Error(challenge.message);
  const { x402Assets } = configOf(settingsOf(chain));
  const quote = chooseEntry(challenge, {
    mode: "sandbox",
    maxAmount: COST,
    asset: "USDC",
    payable: { hasWallet: true, assets: x402Assets },
  });
  if (isRefusal(quote)) throw new Error(quote.message);
  if (quote.pays.kind !== "exact") throw new Error("not to be paid on a chain");
  return { ...quote, pays: quote.pays };
}

/** An authorization of the price, which is valid for so long from now. */
async function signed(
  { pays, amount }: Quote & { readonly pays: ExactPayment },
  nonce: string,
  forMs = 60_000,
) {
  const now = Date.now();
  const order = { pays, amount, validAfter: now - 600_000, validBefore: now + forMs, nonce };
  return createEvmPayer("sandbox", wallet.key).sign(order, now);
}

const send = (url: string, { name, value }: PaymentHeader) => fetch(url, { headers: { [name]: value } });
const sellerOf = (version: Protocol) => startOfficialSeller({ version, chain, facilitator, payTo: PAYEE });

for (const version of [1, 2] as const) {
  describe(`an authorization in the form of version ${version}`, () => {
    test("is valid to the official facilitator, and carries the nonce that it was given", async () => {
      const seller = await sellerOf(version);
      const quote = await quoteOf(seller.url);
      const nonce = newNonce();
      const header = await signed(quote, nonce);
      const payload = decodePaymentSignatureHeader(header.value);
      expect(payload).toMatchObject({ x402Version: version, payload: { authorization: { nonce } } });
      const requirements = quote.pays.entry as unknown as PaymentRequirements;
      expect(await officialFacilitator(chain).verify(payload, requirements)).toMatchObject({ isValid: true });
      await seller.close();
    });

    test("buys at the official middleware, once, and the chain says so", async () => {
      const seller = await sellerOf(version);
      const quote = await quoteOf(seller.url);
      const nonce = newNonce();
      const header = await signed(quote, nonce);
      const before = await chain.balanceOf(wallet.address);
      const question = { chainId: CHAIN_ID, contract: chain.token, authorizer: wallet.address, nonce };
      const chains = createEvmChains(configOf(settingsOf(chain)).evmRpc);
      expect(await chains.authorizationState(question)).toMatchObject({ isUsed: false });
      expect((await send(seller.url, header)).status).toBe(200);
      expect((await send(seller.url, header)).status).toBe(402);
      expect(await chains.authorizationState(question)).toMatchObject({ isUsed: true });
      expect(await chains.balanceOf(CHAIN_ID, chain.token, wallet.address)).toMatchObject({
        balance: before - COST,
      });
      await seller.close();
    });
  });
}

describe("the chain's word", () => {
  const chainsAt = (confirmations = 1) =>
    createEvmChains(configOf(settingsOf(chain)).evmRpc, {
      confirmations: () => confirmations,
      timeoutMs: 200,
      retries: 1,
      retryDelayMs: 1,
    });
  const question = (nonce: string) => ({
    chainId: CHAIN_ID,
    contract: chain.token,
    authorizer: wallet.address,
    nonce,
  });

  test("counts at a confirmed block, not before", async () => {
    const seller = await sellerOf(2);
    const nonce = newNonce();
    expect((await send(seller.url, await signed(await quoteOf(seller.url), nonce))).status).toBe(200);
    const chains = chainsAt(3);
    const newest = (await chainsAt(1).authorizationState(question(nonce))) as AuthorizationState;
    expect(newest.isUsed).toBe(true);
    const confirmed = await chains.authorizationState(question(nonce));
    expect(confirmed).toMatchObject({ isUsed: false, blockNumber: newest.blockNumber - 2n });
    await chain.mine(2);
    expect(await chains.authorizationState(question(nonce))).toMatchObject({
      isUsed: true,
      blockNumber: newest.blockNumber,
    });
    await seller.close();
  });

  test("of an endpoint of another chain, or a contract that is not there, is not believed", async () => {
    const { url } = chain;
    const elsewhere = createEvmChains(new Map([[8_453, url]]));
    const nonce = newNonce();
    expect(await elsewhere.authorizationState({ ...question(nonce), chainId: 8_453 })).toEqual({
      away: "wrong_chain",
    });
    expect(await chainsAt().authorizationState({ ...question(nonce), contract: PAYEE })).toEqual({
      away: "no_answer",
    });
  });

  test("is missing while the chain hangs, and there again once it goes on", async () => {
    const chains = chainsAt();
    chain.hang();
    expect(await chains.authorizationState(question(newNonce()))).toEqual({ away: "timeout" });
    chain.goOn();
    expect(await chains.authorizationState(question(newNonce()))).toMatchObject({ isUsed: false });
  });

  // This test comes last, since it moves the chain's clock ahead of the real time. After that the chain
  // accepts nothing that is signed now.
  test("of an authorization that was never used is final once a block is later than its expiry", async () => {
    const seller = await sellerOf(1);
    const nonce = newNonce();
    const validBefore = Date.now() + 60_000;
    const header = await signed(await quoteOf(seller.url), nonce);
    const chains = chainsAt();
    expect(findingOf(await chains.authorizationState(question(nonce)), validBefore, Date.now())).toBe("open");
    await chain.mine(1, 90);
    expect(findingOf(await chains.authorizationState(question(nonce)), validBefore, Date.now())).toBe(
      "expired",
    );
    const before = await chain.balanceOf(wallet.address);
    expect((await send(seller.url, header)).status).toBe(402);
    expect(await chain.balanceOf(wallet.address)).toBe(before);
    expect(await chains.authorizationState(question(nonce))).toMatchObject({ isUsed: false });
    await seller.close();
  });
});

test("the official packages here have the versions that Holdfast is built with", async () => {
  const ours = await Bun.file(join(import.meta.dir, "../../package.json")).json();
  const theirs = await Bun.file(join(import.meta.dir, "package.json")).json();
  for (const name of ["@x402/core", "@x402/evm", "viem"]) {
    expect(theirs.dependencies[name]).toBe({ ...ours.devDependencies, ...ours.dependencies }[name]);
  }
});
