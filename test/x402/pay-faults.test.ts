/**
 * POST /v1/x402/pay from official sellers whose facilitator fails, or that fail themselves: no second payment, nothing called
 * refunded that the chain says was paid, nothing held that no job or person can end, and the state says what is known.
 */
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import type { Address, Hex } from "viem";
import { createEvmChains, findingOf } from "../../src/platform/evm-chain.ts";
import type { Chains } from "../../src/services/context.ts";
import type { Reply } from "../support/client.ts";
import { type Buyer, FUNDS, startBuyer } from "./buyer.ts";
import { CHAIN_ID, type Chain, startChain } from "./chain.ts";
import { FACILITATOR_FAULTS, type Facilitator, startFacilitator } from "./facilitator.ts";
import { type Fault, type FaultySeller, SELLER_FAULTS, startFaultySeller } from "./faulty-seller.ts";
import { PRICE } from "./official-seller.ts";

const COST = BigInt(PRICE);
const FAULTS: readonly Fault[] = [...FACILITATOR_FAULTS, ...SELLER_FAULTS];
/** Sellers that hang take as long as the service waits. */
const TABLE_MS = 60_000;
/** Longer than any authorization stays valid. */
const PAST_EXPIRY_SECONDS = 90;
/** Longer than the time until the chain is asked again, and shorter than the authorization is valid. */
const SOON_SECONDS = 20;
/** These must be settled before the seller gives up on its facilitator, so they do not run at the same time as the others. */
const ALONE: Fault = "settled-then-hangs";
const IMPATIENT = { timeoutMs: 200, retries: 0 };

/** Faults before which the seller, or its facilitator, has settled. */
const isSettled = (fault: Fault): boolean => fault.endsWith("-after") || fault.startsWith("settled-then");
/** Faults with which the goods are delivered all the same. */
const isDelivered = (fault: Fault): boolean => fault === "no-receipt-after" || fault === "denies-after";
const isSilent = (fault: Fault): boolean => /^(drops|hangs)-/.test(fault);

// The middleware of version 1 prints there what its facilitator did; the faults make it print a lot.
const printError = console.error;
const printed = spyOn(console, "error");
beforeAll(() => {
  printed.mockImplementation((...words) => {
    if (words[0] !== "Payment verification failed:") printError(...words);
  });
});
afterAll(() => printed.mockRestore());

for (const version of [1, 2] as const) {
  describe(`a seller of version ${version} with a fault`, () => {
    const payTo: Address = `0x${String(version).padStart(40, "c")}`;
    const replies = new Map<Fault, Reply>();
    let chain: Chain;
    let facilitator: Facilitator;
    let seller: FaultySeller;
    let buyer: Buyer;
    beforeAll(async () => {
      chain = await startChain();
      facilitator = await startFacilitator(chain);
      [seller, buyer] = await Promise.all([
        startFaultySeller({ version, chain, facilitator, payTo }),
        startBuyer(chain),
      ]);
      const others = FAULTS.filter((fault) => fault !== ALONE);
      await Promise.all(others.map(async (fault) => replies.set(fault, await buy(fault))));
      replies.set(ALONE, await buy(ALONE));
    }, TABLE_MS);
    afterAll(async () => {
      await buyer?.close();
      await seller?.close();
      await facilitator?.close();
      await chain?.close();
    });

    const buy = (fault: Fault) => buyer.pay(seller.urlOf(fault), {}, { key: fault });
    const warrantOf = (fault: Fault): string => replies.get(fault)?.body.warrant_id;
    const purchaseOf = (fault: Fault) => buyer.purchaseOf(warrantOf(fault));
    const isUsed = (fault: Fault) => chain.isUsed(buyer.wallet.address, purchaseOf(fault).nonce as Hex);
    const unsettled = FAULTS.filter((fault) => !isSettled(fault));
    const settled = FAULTS.filter(isSettled);
    const undelivered = settled.filter((fault) => !isDelivered(fault));

    /** The chain, the ledger and the purchases say the same of what was paid. */
    async function expectAgreement(paidFor: readonly Fault[]): Promise<void> {
      const spent = FUNDS - (await chain.balanceOf(buyer.wallet.address));
      expect([spent, await chain.balanceOf(payTo)]).toEqual(Array(2).fill(BigInt(paidFor.length) * COST));
      const known = FAULTS.filter((fault) => purchaseOf(fault).known === "paid");
      expect(known).toEqual([...paidFor]);
      const { available, held, paid } = buyer.balance();
      expect(available + held + paid).toBe(FUNDS);
    }

    for (const fault of FAULTS) {
      const state = isDelivered(fault) ? "released" : "escalated";
      const code = isSettled(fault) ? "payment_irrevocable" : "payment_unknown";
      test(`${fault}: ${state}${state === "escalated" ? `, ${code}` : ""}`, async () => {
        const reply = replies.get(fault);
        expect([reply?.status, reply?.body.state, reply?.body.paid]).toEqual([
          200,
          state,
          state === "released",
        ]);
        expect(reply?.body.reason_codes.at(-1)).toBe(state === "released" ? undefined : code);
        expect(buyer.openCodes(warrantOf(fault))).toEqual(reply?.body.reason_codes);
        if (isSilent(fault)) expect(reply?.body).toMatchObject({ status: 0, body: "" });
        expect(purchaseOf(fault)).toMatchObject(
          isSettled(fault)
            ? { phase: "ended", known: "paid", knownBy: "chain", nextCheckAt: null }
            : { phase: "ended", known: "unknown", knownBy: null, nextCheckAt: expect.any(Number) },
        );
        expect(await isUsed(fault)).toBe(isSettled(fault));

        // The payment is sent once, also where the caller asks again, and never to the target of a redirect.
        expect((await buy(fault)).text).toBe(reply?.text ?? "");
        expect(seller.payments.filter(({ path }) => path === `/${fault}`)).toEqual([
          { path: `/${fault}`, header: purchaseOf(fault).header?.value ?? "" },
        ]);
      });
    }

    test("nothing was paid anywhere else", async () => {
      expect(seller.payments).toHaveLength(FAULTS.length);
      expect(facilitator.settled).toBe(settled.length);
      await expectAgreement(settled);
    });

    test("nobody settles what is not known, and what was paid can only be released", async () => {
      for (const fault of unsettled)
        for (const how of ["release", "refund"] as const)
          expect((await buyer.settle(warrantOf(fault), how)).code).toBe("illegal_transition");
      for (const fault of undelivered)
        expect((await buyer.settle(warrantOf(fault), "refund")).code).toBe("illegal_transition");
    });

    test(
      "a chain that is away changes nothing",
      async () => {
        chain.hang();
        const { authorizationState } = createEvmChains(new Map([[CHAIN_ID, chain.url]]), IMPATIENT);
        const find: Chains["find"] = async (question) =>
          findingOf(await authorizationState(question), question.validBefore, Date.now());
        await buyer
          .findOut(SOON_SECONDS, { ids: [CHAIN_ID], find, balanceOf: async () => null })
          .finally(chain.goOn);
        for (const fault of unsettled) expect(buyer.openCodes(warrantOf(fault))).toContain("payment_unknown");
        await expectAgreement(settled);
      },
      TABLE_MS,
    );

    test("before the expiry the chain says that nothing is known; later, that a seller has settled after all", async () => {
      await buyer.findOut(SOON_SECONDS);
      for (const fault of unsettled) expect(purchaseOf(fault).known).toBe("unknown");
      const late = await buyer.pay(seller.urlOf("fails-before"));
      const id = late.body.warrant_id;
      expect(late.body).toMatchObject({ state: "escalated", status: 500 });
      expect(buyer.openCodes(id)).toContain("payment_unknown");
      expect((await seller.settleLast()).status).toBe(200);
      await buyer.findOut(SOON_SECONDS);
      expect([buyer.stateOf(id), buyer.purchaseOf(id).known]).toEqual(["escalated", "paid"]);
      expect(buyer.openCodes(id)).toContain("payment_irrevocable");
      expect((await buyer.settle(id, "refund")).code).toBe("illegal_transition");
      expect((await buyer.settle(id, "release")).body.state).toBe("released");
    });

    // This comes last, since it moves the chain's clock ahead of the real time.
    test("past the expiry everything is settled: unpaid returns by the job, paid is released by a person", async () => {
      await chain.mine(1, PAST_EXPIRY_SECONDS);
      await buyer.findOut(PAST_EXPIRY_SECONDS);
      for (const fault of unsettled) {
        expect([fault, buyer.stateOf(warrantOf(fault))]).toEqual([fault, "refunded"]);
        expect(purchaseOf(fault)).toMatchObject({ known: "unpaid", knownBy: "chain", nextCheckAt: null });
        expect(await isUsed(fault)).toBe(false);
      }
      for (const fault of undelivered)
        expect((await buyer.settle(warrantOf(fault), "release")).body.state).toBe("released");
      // Including the one that was settled late.
      const paid = BigInt(settled.length + 1) * COST;
      expect(buyer.balance()).toEqual({ available: FUNDS - paid, held: 0n, paid });
      expect(await chain.balanceOf(buyer.wallet.address)).toBe(FUNDS - paid);
      expect((await seller.settleLast()).status).toBe(402);
      expect(await chain.balanceOf(payTo)).toBe(paid);
      // Every key still has its first answer.
      for (const fault of FAULTS) expect((await buy(fault)).text).toBe(replies.get(fault)?.text ?? "");
    });
  });
}
