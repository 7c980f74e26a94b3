import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AMOUNT_MAX, BPS_WHOLE, displayAmount, parseAmount, shareOf } from "../../src/core/money.ts";
import { fastestMs } from "../support/fastest.ts";

const amounts = fc.bigInt({ min: 0n, max: AMOUNT_MAX });
const shares = fc.integer({ min: 0, max: 10_000 });

test("the largest amount is 2^63 - 1, and a whole is 10000 basis points", () => {
  expect(AMOUNT_MAX).toBe(2n ** 63n - 1n);
  expect(BPS_WHOLE).toBe(10_000);
});

describe("parseAmount", () => {
  const GOOD: readonly (readonly [text: string, amount: bigint])[] = [
    ["0", 0n],
    ["1", 1n],
    ["8400000", 8_400_000n],
    ["007", 7n],
    ["000", 0n],
    ["9007199254740993", 9_007_199_254_740_993n],
    ["9223372036854775806", 9_223_372_036_854_775_806n],
    ["9223372036854775807", 9_223_372_036_854_775_807n],
    [`${"0".repeat(40)}9223372036854775807`, 9_223_372_036_854_775_807n],
  ];
  for (const [text, amount] of GOOD) {
    test(`takes ${text}`, () => expect(parseAmount(text)).toBe(amount));
  }

  const BAD: readonly unknown[] = [
    ...[1, 0, 8.4, Number.NaN, 1n, null, undefined, true, ["1"], { toString: () => "1" }],
    ...["", " ", " 1", "1 ", "1\n", "\n1", "1\u00a0", "1\u0000", "\ufeff1"],
    ...["1.0", "1.", ".5", "8.40", "1,000", "1_000", "1 000"],
    ...["-1", "+1", "-0", "1e3", "1E3", "0x10", "0b1", "10n", "Infinity", "NaN", "½"],
    // Arabic-Indic, Devanagari, full-width, superscript and mathematical digits.
    ...["١٢", "१", "１２３", "²", "𝟏"],
    ...["9223372036854775808", "9223372036854775817", "18446744073709551616", "10000000000000000000"],
  ];
  for (const value of BAD) {
    const shown = typeof value === "string" ? JSON.stringify(value) : String(value);
    test(`refuses ${typeof value} ${shown}`, () => expect(parseAmount(value)).toBeNull());
  }

  test("reads 256 kB of digits at once", () => {
    const long = 256 * 1024;
    const read = (): void => {
      expect(parseAmount("9".repeat(long))).toBeNull();
      expect(parseAmount("0".repeat(long))).toBe(0n);
      expect(parseAmount(`${"0".repeat(long - 1)}5`)).toBe(5n);
      expect(parseAmount(`${"0".repeat(long - 1)}x`)).toBeNull();
    };
    expect(fastestMs(read)).toBeLessThan(100);
  });

  test("reads back every amount, with leading zeros or without", () => {
    fc.assert(
      fc.property(amounts, fc.nat(30), (amount, zeros) => {
        expect(parseAmount("0".repeat(zeros) + amount)).toBe(amount);
      }),
    );
  });

  test("refuses every amount above the largest", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: AMOUNT_MAX + 1n, max: 10n ** 40n }), (amount) => {
        expect(parseAmount(amount.toString())).toBeNull();
      }),
    );
  });

  test("takes only texts of ASCII digits", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 12 }), (text) => {
        fc.pre(![...text].every((character) => "0123456789".includes(character)) || text === "");
        expect(parseAmount(text)).toBeNull();
      }),
    );
  });
});

describe("shareOf", () => {
  const TABLE: readonly (readonly [amount: bigint, bps: number, paid: bigint])[] = [
    [8_400_000n, 5_000, 4_200_000n],
    [1n, 10_000, 1n],
    [1n, 9_999, 0n],
    [1n, 1, 0n],
    [9_999n, 1, 0n],
    [10_000n, 1, 1n],
    [19_999n, 1, 1n],
    [3n, 5_000, 1n],
    [3n, 6_667, 2n],
    [0n, 10_000, 0n],
    [AMOUNT_MAX, 0, 0n],
    [AMOUNT_MAX, 1, 922_337_203_685_477n],
    [AMOUNT_MAX, 3_333, 3_074_149_899_883_696_776n],
    [AMOUNT_MAX, 5_000, 4_611_686_018_427_387_903n],
    [AMOUNT_MAX, 9_999, 9_222_449_699_651_090_329n],
    [AMOUNT_MAX, 10_000, AMOUNT_MAX],
  ];
  for (const [amount, bps, paid] of TABLE) {
    test(`${bps} basis points of ${amount} are ${paid}`, () => expect(shareOf(amount, bps)).toBe(paid));
  }

  test("is the largest whole number that is no more than the exact share", () => {
    fc.assert(
      fc.property(amounts, shares, (amount, bps) => {
        const paid = shareOf(amount, bps);
        const exactTimesWhole = amount * BigInt(bps);
        expect(paid * 10_000n <= exactTimesWhole).toBeTrue();
        expect((paid + 1n) * 10_000n > exactTimesWhole).toBeTrue();
      }),
      { numRuns: 500 },
    );
  });

  test("never pays a unit more when the parts are paid separately", () => {
    fc.assert(
      fc.property(amounts, shares, (amount, bps) => {
        const lost = amount - shareOf(amount, bps) - shareOf(amount, 10_000 - bps);
        expect(lost === 0n || lost === 1n).toBeTrue();
      }),
    );
  });
});

describe("displayAmount", () => {
  const TABLE: readonly (readonly [amount: bigint, asset: string, shown: string])[] = [
    [8_400_000n, "USDC", "8.40 USDC"],
    [0n, "USDC", "0.00 USDC"],
    [1n, "USDC", "0.000001 USDC"],
    [1_000_000n, "USDC", "1.00 USDC"],
    [1_234_500n, "USDC", "1.2345 USDC"],
    [999_999_990_000n, "USDC", "999 999.99 USDC"],
    [1_000_000_000_000n, "USDC", "1 000 000.00 USDC"],
    [AMOUNT_MAX, "USDC", "9 223 372 036 854.775807 USDC"],
    [8_400_000n, "EURX", "8400000 EURX"],
    [5n, "toString", "5 toString"],
  ];
  for (const [amount, asset, shown] of TABLE) {
    test(`${amount} of ${asset} reads ${shown}`, () => {
      expect(displayAmount(amount, asset)).toBe(shown);
    });
  }
});
