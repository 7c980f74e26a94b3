import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { addresseeIn, amountIn, payeeAddress, transferData } from "../../src/core/evm-address.ts";
import { givenUpVerdict, outcomeOf, type TokenTransfer, verdictOf } from "../../src/core/payout-outcome.ts";
import { isTooDear, nextNonce, planPayout } from "../../src/core/rail.ts";

const [TOKEN, WALLET, PAYEE, OTHER] = ["aa", "bb", "cc", "dd"].map((byte) => `0x${byte.repeat(20)}`) as [
  string,
  string,
  string,
  string,
];

describe("an address", () => {
  test("of a payee has a checksum of ERC-55, or none", () => {
    const of = { chainId: 8_453, token: TOKEN, wallet: WALLET };
    for (const address of [
      "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
      "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
      "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
      "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    ]) {
      expect(payeeAddress(address, of)).toEqual({ address: address.toLowerCase() });
      const at = [...address].findIndex((digit, index) => index > 1 && /[a-f]/.test(digit));
      const wrong = address.slice(0, at) + address[at]!.toUpperCase() + address.slice(at + 1);
      expect(payeeAddress(wrong, of)).toEqual({ code: "wrong_checksum" });
    }
  });

  test("and an amount are read back from the data of their transfer", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 1n, max: 2n ** 63n }),
        fc.bigInt({ min: 1n, max: 2n ** 160n - 1n }),
        (amount, number) => {
          const address = `0x${number.toString(16).padStart(40, "0")}`;
          const data = transferData(address, amount);
          expect([data.length, addresseeIn(data), amountIn(data)]).toEqual([2 + 8 + 128, address, amount]);
        },
      ),
    );
  });
});

describe("a payout", () => {
  test("never goes above what is owed, what was released, or the limits", () => {
    const amounts = fc.bigInt({ min: 0n, max: 200n });
    fc.assert(
      fc.property(
        amounts,
        fc.option(fc.bigInt({ min: 1n, max: 200n })),
        amounts,
        amounts,
        amounts,
        fc.boolean(),
        (owed, released, payoutMax, dayMax, sent, failed) => {
          const last = failed ? ({ status: "failed", reason: "x" } as const) : null;
          const plan = planPayout(
            owed,
            released === null ? null : { code: "released", detail: null, released },
            last,
            { asset: "USDC", limits: { payoutMax, dayMax } },
            sent,
          );
          if (plan.do === "nothing") return owed === 0n;
          if (plan.do === "wait") return released === null;
          if (plan.byPerson) return released !== null && plan.amount <= released && plan.amount <= owed;
          return !failed && plan.amount === owed && owed <= payoutMax && sent + owed <= dayMax;
        },
      ),
    );
  });

  test("is not begun after one that failed while another was under way, until a person has released it", () => {
    const limits = { asset: "USDC", limits: { payoutMax: 100n, dayMax: 100n } };
    const last = { status: "paid", reason: null } as const;
    const wait = { code: "failed", detail: "x", released: null } as const;
    expect(planPayout(10n, wait, last, limits, 0n)).toEqual({ do: "wait", code: "failed", detail: "x" });
    expect(planPayout(10n, { ...wait, code: "released", released: 7n }, last, limits, 0n)).toMatchObject({
      amount: 7n,
    });
  });
});

describe("the next nonce", () => {
  const known = { newest: null, accepted: null, wasRestored: false };
  test.each([
    ["a wallet that nothing is known of", known, 7, null, { nonce: 7 }],
    ["the same, after a restore", { ...known, wasRestored: true }, 7, null, { stop: { from: 0, until: 7 } }],
    ["the same, with a new wallet", { ...known, wasRestored: true }, 0, null, { nonce: 0 }],
    ["all is known", { ...known, newest: 4 }, 5, null, { nonce: 5 }],
    ["some are under way", { ...known, newest: 4 }, 3, 3, { nonce: 5 }],
    ["more are on the chain", { ...known, newest: 4 }, 6, null, { stop: { from: 5, until: 6 } }],
    ["more were accepted", { ...known, newest: 4, accepted: 6 }, 6, null, { nonce: 6 }],
    ["fewer are on the chain", { ...known, newest: 4 }, 4, null, { stop: "behind" }],
    ["fewer than those before what is under way", { ...known, newest: 4 }, 2, 3, { stop: "behind" }],
  ] as const)("where %s", (_, of, next, firstOpen, found) => {
    expect<unknown>(nextNonce(of, next, firstOpen)).toEqual(found);
  });
});

describe("what became of a transaction", () => {
  const payment = { chainId: 8_453, token: TOKEN, from: WALLET, to: PAYEE, amount: 100n };
  const moved = (of: Partial<TokenTransfer> = {}) => ({
    token: TOKEN,
    from: WALLET,
    to: PAYEE,
    amount: 100n,
    ...of,
  });
  const receipt = (transfers: readonly TokenTransfer[], succeeded = true) => ({
    hash: "0x1",
    block: 1,
    succeeded,
    transfers,
  });
  test.each([
    ["one transfer of exactly that", [moved()], "paid"],
    ["and another token's", [moved(), moved({ token: OTHER, amount: 7n })], "paid"],
    ["and somebody else's", [moved(), moved({ from: OTHER, to: OTHER })], "paid"],
    ["nothing", [], "failed"],
    ["nothing of this token", [moved({ token: OTHER })], "failed"],
    ["less", [moved({ amount: 99n })], "other"],
    ["a fee besides", [moved({ amount: 90n }), moved({ to: OTHER, amount: 10n })], "other"],
    ["twice", [moved(), moved()], "other"],
    ["somebody else got it", [moved({ to: OTHER })], "other"],
    ["the payee got it from somebody else", [moved({ from: OTHER })], "other"],
  ])("%s", (_, transfers, outcome) => {
    expect(outcomeOf(payment, receipt(transfers))).toMatchObject({ outcome });
    expect(outcomeOf(payment, receipt(transfers, false))).toMatchObject({ outcome: "failed" });
  });

  const payout = (status: "submitted" | "paid" | "failed") => ({
    ...{ id: "pay_1", status, reference: status === "paid" ? "eip155:8453:0x1" : null },
  });
  test.each([
    ["submitted", [moved()], { end: { status: "paid" }, problem: null, stops: null }],
    ["submitted", [], { end: { status: "failed", returned: false }, stops: null }],
    [
      "submitted",
      [moved({ amount: 1n })],
      { end: null, problem: expect.any(String), stops: { code: "other_amount" } },
    ],
    ["paid", [moved()], { end: null, problem: null, stops: null }],
    ["paid", [], { end: { status: "failed", returned: true }, stops: null }],
    [
      "failed",
      [moved()],
      { end: null, problem: expect.stringContaining("though"), stops: { code: "other_amount" } },
    ],
    ["failed", [], { end: null, problem: null, stops: null }],
  ] as const)("for a payout that is %s", (status, transfers, verdict) => {
    expect<unknown>(verdictOf(payout(status), outcomeOf(payment, receipt(transfers)))).toMatchObject(verdict);
  });

  test("that another took the nonce of, as the node says, waits for a person, whatever it was before", () => {
    const undecided = { end: null, problem: expect.any(String), stops: { code: "unknown_transactions" } };
    for (const status of ["submitted", "paid"] as const)
      expect(givenUpVerdict(payout(status), 3)).toMatchObject(undecided);
    expect(givenUpVerdict(payout("failed"), 3)).toMatchObject({ ...undecided, problem: null });
  });
});

test("fees are too high where the base fee and the priority are above the most together", () => {
  expect([
    isTooDear({ max: 210n, priority: 10n }, 110n),
    isTooDear({ max: 212n, priority: 10n }, 110n),
  ]).toEqual([false, true]);
});
