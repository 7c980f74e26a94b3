/** The sellers themselves, tested with x402's own client: the other tests are only as good as these sellers. */
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { generateKeyPair, SignJWT } from "jose";
import type { Address } from "viem";
import { createTokens, newSigningKey } from "../../src/platform/tokens.ts";
import { type Chain, startChain } from "./chain.ts";
import { FACILITATOR_FAULTS, type Facilitator, startFacilitator } from "./facilitator.ts";
import { type Fault, type FaultySeller, SELLER_FAULTS, startFaultySeller } from "./faulty-seller.ts";
import { createOfficialBuyer, type OfficialBuyer } from "./official-buyer.ts";
import { GOODS, PRICE, type Protocol, startOfficialSeller } from "./official-seller.ts";
import { startSimpleSeller } from "./simple-seller.ts";

const FUNDS = 1_000_000n;
const COST = BigInt(PRICE);

let chain: Chain;
let facilitator: Facilitator;
let payees = 0;

// The middleware of version 1 prints there what its facilitator did; the faults make it print a lot.
const printError = console.error;
const printed = spyOn(console, "error");
beforeAll(async () => {
  printed.mockImplementation((...words) => {
    if (words[0] !== "Payment verification failed:") printError(...words);
  });
  chain = await startChain();
  facilitator = await startFacilitator(chain);
});
afterAll(async () => {
  await facilitator?.close();
  await chain?.close();
  printed.mockRestore();
});

/** An address that nobody was paid at yet. */
const newPayee = (): Address => `0x${(++payees).toString(16).padStart(40, "a")}`;

for (const version of [1, 2] as const) {
  describe(`a seller with the official middleware of version ${version}`, () => {
    test("is paid once, to the unit, whatever comes again", async () => {
      const payTo = newPayee();
      const wallet = await chain.wallet(FUNDS);
      const seller = await startOfficialSeller({ version, chain, facilitator, payTo });
      const buyer = createOfficialBuyer(wallet);

      expect((await fetch(seller.url)).status).toBe(402);
      const headers = await buyer.sign(seller.url);
      const sold = await buyer.send(seller.url, headers);
      expect({ ...sold, body: JSON.parse(sold.body) }).toMatchObject({
        status: 200,
        body: GOODS,
        receipt: { success: true, payer: wallet.address },
      });
      expect((await buyer.send(seller.url, headers)).status).toBe(402);
      expect(await chain.balanceOf(payTo)).toBe(COST);
      expect(await chain.balanceOf(wallet.address)).toBe(FUNDS - COST);
      expect(seller.payments).toEqual([...Array(2)].map(() => Object.values(headers)[0] ?? ""));
      await seller.close();
    });

    test("is paid fifty times by fifty purchases at once", async () => {
      const payTo = newPayee();
      const seller = await startOfficialSeller({ version, chain, facilitator, payTo, price: "7" });
      const buyer = createOfficialBuyer(await chain.wallet(350n));
      const sold = await Promise.all([...Array(50)].map(() => buyer.buy(seller.url)));
      expect(sold.map(({ status }) => status)).toEqual(Array(50).fill(200));
      expect(await chain.balanceOf(payTo)).toBe(350n);
      await seller.close();
    });

    test("does not sell to a wallet without the money", async () => {
      const payTo = newPayee();
      const seller = await startOfficialSeller({ version, chain, facilitator, payTo });
      const buyer = createOfficialBuyer(await chain.wallet(COST - 1n));
      expect((await buyer.buy(seller.url)).status).toBe(402);
      expect(await chain.balanceOf(payTo)).toBe(0n);
      await seller.close();
    });
  });

  describe(`a seller of version ${version} with a fault`, () => {
    let seller: FaultySeller;
    let payTo: Address;
    let buyer: OfficialBuyer;
    beforeAll(async () => {
      payTo = newPayee();
      seller = await startFaultySeller({ version, chain, facilitator, payTo });
      buyer = createOfficialBuyer(await chain.wallet(FUNDS));
    });
    afterAll(() => seller?.close());

    /** Buys, and gives up once the seller or its facilitator leaves the payment without an answer. */
    async function buyFrom(fault: Fault): Promise<number | "no answer"> {
      const given = new AbortController();
      const left = Promise.race([seller.leavesOne(), leftByFacilitator(version)]);
      void left.then(() => given.abort());
      return buyer.buy(seller.urlOf(fault), given.signal).then(
        ({ status }) => status,
        () => "no answer" as const,
      );
    }

    test("sells without fault on the path that names none", async () => {
      expect((await buyer.buy(seller.urlOf())).status).toBe(200);
    });

    for (const fault of [...FACILITATOR_FAULTS, ...SELLER_FAULTS]) {
      const [status, isPaid] = OUTCOMES[fault];
      test(`${fault}: ${isPaid ? "paid" : "not paid"}`, async () => {
        const before = await chain.balanceOf(payTo);
        const wanted = typeof status === "object" ? status[version] : status;
        expect(await buyFrom(fault)).toBe(wanted);
        expect((await chain.balanceOf(payTo)) - before).toBe(isPaid ? COST : 0n);
      });
    }

    test("may settle later what it was given", async () => {
      const before = await chain.balanceOf(payTo);
      expect(await buyFrom("fails-before")).toBe(500);
      expect((await seller.settleLast()).status).toBe(200);
      expect((await chain.balanceOf(payTo)) - before).toBe(COST);
      expect((await seller.settleLast()).status).toBe(402);
    });

    test("may send a false receipt, which the chain shows to be false", async () => {
      const { receipt } = await buyer.buy(seller.urlOf("lies-before"));
      expect(receipt).toMatchObject({ success: true });
    });
  });
}

/** Version 2's middleware gives up on its facilitator by itself. */
const leftByFacilitator = (version: Protocol): Promise<void> =>
  version === 1 ? facilitator.leavesOne() : new Promise(() => {});

type Status = number | "no answer";
/** What the buyer sees of each fault, in both versions or each, and whether the chain says that it has paid. */
const OUTCOMES: Record<Fault, readonly [Status | Readonly<Record<Protocol, Status>>, isPaid: boolean]> = {
  "verify-refuses": [402, false],
  "verify-500": [402, false],
  "verify-hangs": [{ 1: "no answer", 2: 502 }, false],
  "settle-refuses": [402, false],
  "settle-500": [402, false],
  "settle-hangs": [{ 1: "no answer", 2: 502 }, false],
  "settle-drops": [402, false],
  "settled-then-500": [402, true],
  "settled-then-hangs": [{ 1: "no answer", 2: 502 }, true],
  "settled-then-drops": [402, true],
  "fails-before": [500, false],
  "drops-before": ["no answer", false],
  "hangs-before": ["no answer", false],
  "asks-again-before": [402, false],
  "redirects-before": [307, false],
  "lies-before": [200, false],
  "fails-after": [500, true],
  "drops-after": ["no answer", true],
  "hangs-after": ["no answer", true],
  "asks-again-after": [402, true],
  "redirects-after": [307, true],
  "no-receipt-after": [200, true],
  "denies-after": [200, true],
};

describe("a seller for vouchers", () => {
  const HOLDFAST = "https://holdfast.example";
  const TYPE = "holdfast-voucher+jwt";
  const tokens = createTokens(newSigningKey());
  const keys = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => Response.json(tokens.jwks) });
  afterAll(() => keys.stop(true));
  const terms = { holdfast: HOLDFAST, jwksUrl: keys.url.href, mode: "sandbox" } as const;

  const claimsFor = (url: string) => ({
    ...{ iss: HOLDFAST, jti: "wrt_1", iat: NOW, exp: NOW + 600, mode: "sandbox", warrant: "wrt_1" },
    ...{ amount: "250000", asset: "USDC", payee: "acme", url, receipt: `${HOLDFAST}/t/wrt_1` },
  });
  const NOW = Math.floor(Date.now() / 1_000);
  const envelope = (voucher: string) => ({
    x402Version: 1,
    scheme: "warrant",
    network: "holdfast:ins_1",
    payload: { voucher },
  });
  const send = (url: string, payment: object) =>
    fetch(url, { headers: { "x-payment": btoa(JSON.stringify(payment)) } });

  test("asks, sells for a voucher that holds, and takes it once", async () => {
    const seller = await startSimpleSeller(terms);
    const asked = await fetch(seller.url);
    expect([asked.status, await asked.json()]).toEqual([
      402,
      { amount: "250000", asset: "USDC", payee: "acme" },
    ]);
    const payment = envelope(await tokens.sign(JSON.stringify(claimsFor(seller.url)), TYPE));
    expect((await send(seller.url, payment)).status).toBe(200);
    expect((await send(seller.url, payment)).status).toBe(402);
    expect(seller.vouchers).toEqual([claimsFor(seller.url)]);
    await seller.close();
  });

  test("asks under x402 where that is set", async () => {
    const seller = await startSimpleSeller({ ...terms, nested: true, amount: "1" });
    expect(await (await fetch(seller.url)).json()).toEqual({
      x402: { amount: "1", asset: "USDC", payee: "acme" },
    });
    await seller.close();
  });

  const WRONG: Readonly<Record<string, object>> = {
    "another mode": { mode: "live" },
    "less money": { amount: "249999" },
    "another asset": { asset: "EURC" },
    "another payee": { payee: "else" },
    "another thing": { url: "https://acme.example/other" },
    "another instance": { iss: "https://else.example" },
    "a voucher that is over": { exp: NOW - 60 },
    "no expiry": { exp: undefined },
  };
  for (const [what, claims] of Object.entries(WRONG)) {
    test(`does not sell for ${what}`, async () => {
      const seller = await startSimpleSeller(terms);
      const text = JSON.stringify({ ...claimsFor(seller.url), ...claims });
      expect((await send(seller.url, envelope(await tokens.sign(text, TYPE)))).status).toBe(402);
      await seller.close();
    });
  }

  test("does not sell for another's signature, another type or another envelope", async () => {
    const seller = await startSimpleSeller(terms);
    const claims = claimsFor(seller.url);
    const good = await tokens.sign(JSON.stringify(claims), TYPE);
    const { privateKey } = await generateKeyPair("EdDSA");
    const header = { alg: "EdDSA", kid: tokens.jwks.keys[0]?.kid ?? "", typ: TYPE };
    const forged = await new SignJWT(claims).setProtectedHeader(header).sign(privateKey);
    const payments = [
      envelope(forged),
      envelope(await tokens.sign(JSON.stringify(claims), "receipt+jwt")),
      { ...envelope(good), scheme: "exact" },
      { ...envelope(good), network: "base" },
    ];
    for (const payment of payments) expect((await send(seller.url, payment)).status).toBe(402);
    expect(seller.vouchers).toEqual([]);
    await seller.close();
  });

  test("has the same faults", async () => {
    const seller = await startFaultySeller(terms);
    const url = seller.urlOf("fails-after");
    const payment = envelope(await tokens.sign(JSON.stringify(claimsFor(url)), TYPE));
    expect((await fetch(url)).status).toBe(402);
    expect((await send(url, payment)).status).toBe(500);
    expect(seller.payments).toEqual([{ path: "/fails-after", header: btoa(JSON.stringify(payment)) }]);
    await seller.close();
  });
});
