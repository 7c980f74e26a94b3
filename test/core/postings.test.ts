import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AMOUNT_MAX } from "../../src/core/money.ts";
import {
  type Balance,
  correct,
  deposit,
  endPayout,
  failPayout,
  hold,
  type Legs,
  NO_BALANCE,
  settle,
  submitPayout,
} from "../../src/core/postings.ts";

const legs = (
  ...[available, held, paid, funding, payable = 0n, submitted = 0n]: readonly [
    ...[bigint, bigint, bigint, bigint],
    bigint?,
    bigint?,
  ]
): Legs => ({ available, held, paid, funding, payable, submitted });

const TABLE: readonly (readonly [name: string, made: Legs, expected: Legs])[] = [
  ["a deposit of 5", deposit(5n), legs(5n, 0n, 0n, -5n)],
  ["a hold of 5", hold(5n), legs(-5n, 5n, 0n, 0n)],
  ["a release of 5", settle(5n, 10_000), legs(0n, -5n, 5n, 0n, 5n)],
  ["a release of 5 that a wallet has paid", settle(5n, 10_000, "wallet"), legs(0n, -5n, 5n, 0n)],
  ["a refund of 5", settle(5n, 0), legs(5n, -5n, 0n, 0n)],
  ["half of 5, rounded down", settle(5n, 5_000), legs(3n, -5n, 2n, 0n, 2n)],
  ["9999 basis points of 1", settle(1n, 9_999), legs(1n, -1n, 0n, 0n)],
  [
    "a third of the largest amount",
    settle(AMOUNT_MAX, 3_333),
    legs(6_149_222_136_971_079_031n, -AMOUNT_MAX, 3_074_149_899_883_696_776n, 0n, 3_074_149_899_883_696_776n),
  ],
  ["a deposit that brought 2 less", correct(-2n), legs(-2n, 0n, 0n, 2n)],
  ["a payout of 5", submitPayout(5n), legs(0n, 0n, 0n, 0n, -5n, 5n)],
  ["a payout of 5 that was paid", endPayout(5n), legs(0n, 0n, 0n, 0n, 0n, -5n)],
  ["a payout of 5 that failed", failPayout(5n, false), legs(0n, 0n, 0n, 0n, 5n, -5n)],
  ["a payout of 5 that came back", failPayout(5n, true), legs(0n, 0n, 0n, 0n, 5n)],
];
for (const [name, made, expected] of TABLE) {
  test(`the legs of ${name}`, () => expect(made).toEqual(expected));
}

const amounts = fc.bigInt({ min: 0n, max: AMOUNT_MAX });
const shares = fc.integer({ min: 0, max: 10_000 });

test("the legs of every posting sum to zero", () => {
  fc.assert(
    fc.property(amounts, shares, (amount, bps) => {
      for (const { available, held, paid, funding } of [deposit(amount), hold(amount), settle(amount, bps)]) {
        expect(available + held + paid + funding).toBe(0n);
      }
    }),
  );
});

test("a settlement distributes exactly the held amount", () => {
  fc.assert(
    fc.property(amounts, shares, (amount, bps) => {
      const { available, held, paid, funding } = settle(amount, bps);
      expect(held).toBe(-amount);
      expect(available >= 0n && paid >= 0n).toBeTrue();
      expect(funding).toBe(0n);
    }),
  );
});

describe("balances", () => {
  test("start empty", () => {
    expect(NO_BALANCE).toEqual({ available: 0n, held: 0n, paid: 0n });
  });

  const applyLegs = (balance: Balance, posting: Legs): Balance => ({
    available: balance.available + posting.available,
    held: balance.held + posting.held,
    paid: balance.paid + posting.paid,
  });

  type Step = { readonly kind: "deposit" | "hold" | "settle"; readonly amount: bigint; readonly bps: number };
  const steps = fc.array(
    fc.record<Step>({
      kind: fc.constantFrom("deposit", "hold", "settle"),
      amount: fc.bigInt({ min: 1n, max: 1_000_000n }),
      bps: shares,
    }),
    { maxLength: 40 },
  );

  test("are never negative, and add up to the deposits, in whatever order money moves", () => {
    fc.assert(
      fc.property(steps, (sequence) => {
        let balance: Balance = NO_BALANCE;
        let funding = 0n;
        const holds: bigint[] = [];
        const post = (posting: Legs) => {
          balance = applyLegs(balance, posting);
          funding += posting.funding;
        };
        for (const { kind, amount, bps } of sequence) {
          if (kind === "deposit") post(deposit(amount));
          if (kind === "hold" && balance.available >= amount) {
            post(hold(amount));
            holds.push(amount);
          }
          if (kind === "settle" && holds.length > 0) post(settle(holds.shift()!, bps));
          expect(Object.values(balance).every((part) => part >= 0n)).toBeTrue();
          expect(balance.held).toBe(holds.reduce((sum, held) => sum + held, 0n));
          expect(balance.available + balance.held + balance.paid).toBe(-funding);
        }
      }),
    );
  });
});
