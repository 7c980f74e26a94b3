/** POST /v1/x402/pay against the official middleware of both versions, the official facilitator and a chain. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Address, Hex } from "viem";
import { type Buyer, FUNDS, startBuyer } from "./buyer.ts";
import { type Chain, startChain } from "./chain.ts";
import { type Facilitator, startFacilitator } from "./facilitator.ts";
import { listen } from "./listener.ts";
import { GOODS, PRICE, startOfficialSeller } from "./official-seller.ts";

const COST = BigInt(PRICE);
const ALL_AT_ONCE_MS = 60_000;

let chain: Chain;
let facilitator: Facilitator;
let buyer: Buyer;
let payees = 0;
beforeAll(async () => {
  chain = await startChain();
  facilitator = await startFacilitator(chain);
  buyer = await startBuyer(chain);
});
afterAll(async () => {
  await buyer?.close();
  await facilitator?.close();
  await chain?.close();
});

/** An address that nobody was paid at yet. */
const newPayee = (): Address => `0x${(++payees).toString(16).padStart(40, "b")}`;

/** The wallet has spent what the ledger says is paid, and nothing is held. */
async function expectAgreement(): Promise<void> {
  const { available, held, paid } = buyer.balance();
  expect([FUNDS - (await chain.balanceOf(buyer.wallet.address)), held]).toEqual([paid, 0n]);
  expect(available).toBe(FUNDS - paid);
}

for (const version of [1, 2] as const) {
  describe(`a seller with the official middleware of version ${version}`, () => {
    test("is paid once, to the unit, however often the caller asks", async () => {
      const payTo = newPayee();
      const seller = await startOfficialSeller({ version, chain, facilitator, payTo });
      const transfers = await chain.transfers();
      const key = `once-${version}`;
      const bought = await buyer.pay(seller.url, {}, { key });
      expect([bought.status, bought.body]).toEqual([
        200,
        {
          warrant_id: expect.stringMatching(/^wrt_/),
          state: "released",
          quoted: { amount: PRICE, asset: "USDC", payee: expect.stringMatching(new RegExp(payTo, "i")) },
          paid: true,
          released_bps: 10_000,
          passed: true,
          reason_codes: [],
          status: 200,
          body: JSON.stringify(GOODS),
        },
      ]);
      const again = await Promise.all([1, 2, 3].map(() => buyer.pay(seller.url, {}, { key })));
      expect(again.map(({ text }) => text)).toEqual(Array(3).fill(bought.text));

      const purchase = buyer.purchaseOf(bought.body.warrant_id);
      expect(purchase).toMatchObject({
        phase: "ended",
        attempt: "receipted",
        known: "paid",
        knownBy: "chain",
        payer: buyer.wallet.address,
        nextCheckAt: null,
      });
      expect(seller.payments).toEqual([purchase.header?.value ?? ""]);
      expect(await chain.isUsed(buyer.wallet.address, purchase.nonce as Hex)).toBe(true);
      expect([await chain.balanceOf(payTo), (await chain.transfers()) - transfers]).toEqual([COST, 1]);
      await expectAgreement();
      await seller.close();
    });

    test("is not asked to deliver where the price is above the ceiling", async () => {
      const seller = await startOfficialSeller({ version, chain, facilitator, payTo: newPayee() });
      const refused = await buyer.pay(seller.url, { max_amount: `${COST - 1n}` });
      expect([refused.status, refused.code]).toEqual([403, "x402_quote_above_max"]);
      expect(seller.payments).toEqual([]);
      await expectAgreement();
      await seller.close();
    });

    test(
      "is paid fifty times by fifty purchases at once: the chain and the ledger agree to the unit",
      async () => {
        const payTo = newPayee();
        const seller = await startOfficialSeller({ version, chain, facilitator, payTo, price: "7" });
        const [transfers, paid] = [await chain.transfers(), buyer.balance().paid];
        const bought = await Promise.all([...Array(50)].map(() => buyer.pay(seller.url)));
        expect(bought.map(({ status, body }) => [status, body.state])).toEqual(
          Array(50).fill([200, "released"]),
        );
        expect([
          await chain.balanceOf(payTo),
          (await chain.transfers()) - transfers,
          buyer.balance().paid - paid,
        ]).toEqual([350n, 50, 350n]);
        expect(new Set(seller.payments).size).toBe(50);
        await expectAgreement();
        await seller.close();
      },
      ALL_AT_ONCE_MS,
    );
  });
}

test(
  "fifty at once from a wallet with room for ten: no more than that are paid, and of the others nothing is held",
  async () => {
    const payTo = newPayee();
    const poor = await startBuyer(chain, 70n);
    const seller = await startOfficialSeller({ version: 2, chain, facilitator, payTo, price: "7" });
    const answers = await Promise.all([...Array(50)].map(() => poor.pay(seller.url)));
    const outcomes = answers.map(({ body, code }) => code ?? body.state);
    const released = outcomes.filter((outcome) => outcome === "released").length;
    expect(new Set(outcomes)).toEqual(new Set(["released", "insufficient_funds"]));
    expect(released).toBeLessThanOrEqual(10);
    // A payment that settles while another one is checked counts twice for a moment. At the end nothing of it is left.
    for (let count = released; count < 10; count++)
      expect((await poor.pay(seller.url)).body.state).toBe("released");
    expect((await poor.pay(seller.url)).code).toBe("insufficient_funds");
    expect([await chain.balanceOf(payTo), await chain.balanceOf(poor.wallet.address)]).toEqual([70n, 0n]);
    expect(poor.balance()).toEqual({ available: FUNDS - 70n, held: 0n, paid: 70n });
    expect([poor.purchases().length, seller.payments.length]).toEqual([10, 10]);
    await seller.close();
    await poor.close();
  },
  ALL_AT_ONCE_MS,
);

describe("a wallet's mode", () => {
  const MAIN_USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
  const extra = { name: "USD Coin", version: "2" };
  const terms = { scheme: "exact", maxTimeoutSeconds: 60, payTo: newPayee(), asset: MAIN_USDC, extra };
  const challenges = [
    { x402Version: 1, accepts: [{ ...terms, network: "base", maxAmountRequired: "1" }] },
    { x402Version: 2, accepts: [{ ...terms, network: "eip155:8453", amount: "1" }] },
  ];
  for (const challenge of challenges) {
    const { x402Version } = challenge;
    test(`a sandbox key with a wallet signs nothing for a main network, version ${x402Version}`, async () => {
      let asked = 0;
      const seller = await listen(() => {
        asked++;
        const text = JSON.stringify(challenge);
        return x402Version === 1
          ? new Response(text, { status: 402 })
          : new Response(null, { status: 402, headers: { "payment-required": btoa(text) } });
      });
      const [balance, count] = [buyer.balance(), buyer.purchases().length];
      const refused = await buyer.pay(seller.url, {}, { as: buyer.home.sandbox.as });
      expect([refused.status, refused.code, asked]).toEqual([400, "x402_scheme_unsupported", 1]);
      expect([buyer.balance(), buyer.purchases().length]).toEqual([balance, count]);
      await seller.close();
    });
  }

  test("a live key signs nothing for a test network", async () => {
    const seller = await startOfficialSeller({ version: 2, chain, facilitator, payTo: newPayee() });
    const refused = await buyer.pay(seller.url, {}, { as: buyer.home.live.as });
    expect([refused.status, refused.code, seller.payments]).toEqual([400, "x402_scheme_unsupported", []]);
    await expectAgreement();
    await seller.close();
  });
});
