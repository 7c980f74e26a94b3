import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  BLOCKS_UNTIL_REPLACED,
  type ChainTransaction,
  type ChainView,
  type Fees,
  firstFees,
  nextStep,
  type Signing,
  standsInBlock,
} from "../../src/core/chain-transaction.ts";

const fees = (max: bigint, priority = 1n): Fees => ({ max, priority });
const signing = (rest: Partial<Signing> = {}): Signing => ({
  hash: "0x1",
  raw: "0xsigned",
  fees: fees(100n, 10n),
  signedAtBlock: 50,
  ...rest,
});
const transaction = (...signings: readonly Signing[]): ChainTransaction => ({ nonce: 7, signings });
const view = (rest: Partial<ChainView> = {}): ChainView => ({
  newestBlock: 50,
  nonce: 7,
  confirmedNonce: 7,
  mined: null,
  fees: fees(100n, 10n),
  ...rest,
});
const RULES = { confirmations: 3, feeMax: 1_000n };
const LATE = 50 + BLOCKS_UNTIL_REPLACED;
const DEAR = fees(300n, 30n);

describe("a transaction that was signed", () => {
  const CASES: readonly (readonly [name: string, view: ChainView, step: object])[] = [
    ["is sent, as often as it is in no block", view(), { do: "send", raw: "0xsigned", isCapped: false }],
    [
      "is sent again for some blocks, though it has become dearer",
      view({ newestBlock: LATE - 1, fees: DEAR }),
      { do: "send", raw: "0xsigned", isCapped: false },
    ],
    [
      "pays more when it is late and has become dearer",
      view({ newestBlock: LATE, fees: DEAR }),
      { do: "replace", fees: DEAR },
    ],
    [
      "pays an eighth more at least, since nodes take no less in its place",
      view({ newestBlock: LATE, fees: fees(101n, 10n) }),
      { do: "replace", fees: fees(113n, 12n) },
    ],
    [
      "is late and pays enough: it is sent again, and pays no more",
      view({ newestBlock: LATE + 500 }),
      { do: "send", raw: "0xsigned", isCapped: false },
    ],
    [
      "pays the most that may be paid where more is wanted",
      view({ newestBlock: LATE, fees: fees(5_000n, 2_000n) }),
      { do: "replace", fees: fees(1_000n, 1_000n) },
    ],
    [
      "waits in its block for the blocks after it",
      view({ newestBlock: 53, mined: { hash: "0x1", block: 52 } }),
      { do: "wait" },
    ],
    [
      "ends with the block that makes its own confirmed",
      view({ newestBlock: 54, nonce: 8, confirmedNonce: 8, mined: { hash: "0x1", block: 52 } }),
      { do: "end", block: 52, hash: "0x1" },
    ],
    [
      "is sent again after a reorganisation took its block",
      view({ newestBlock: 53, nonce: 7 }),
      { do: "send", raw: "0xsigned", isCapped: false },
    ],
    [
      "waits where another transaction has its nonce in a block that may go again",
      view({ nonce: 8 }),
      { do: "wait" },
    ],
    [
      "is given up once another transaction has its nonce for good",
      view({ newestBlock: 60, nonce: 8, confirmedNonce: 8 }),
      { do: "give_up" },
    ],
  ];
  for (const [name, seen, step] of CASES)
    test(name, () => expect<object>(nextStep(transaction(signing()), seen, RULES)).toEqual(step));

  test("is not signed again where an eighth more would be above the most that may be paid", () => {
    for (const high of [fees(900n, 10n), fees(950n, 900n)])
      expect(
        nextStep(
          transaction(signing({ fees: high })),
          view({ newestBlock: LATE, fees: fees(5_000n) }),
          RULES,
        ),
      ).toEqual({ do: "send", raw: "0xsigned", isCapped: true });
  });

  test("counts the wait of its newest signing, and sends that one", () => {
    const newest = signing({ hash: "0x2", raw: "0xagain", fees: fees(113n, 12n), signedAtBlock: LATE });
    const seen = view({ newestBlock: LATE + 1, fees: DEAR });
    expect(nextStep(transaction(signing(), newest), seen, RULES)).toEqual({
      do: "send",
      raw: "0xagain",
      isCapped: false,
    });
  });

  test("whatever the fees: a replacement pays a tenth more of both, and never more than may be paid", () => {
    const fee = fc.bigInt({ min: 0n, max: 10n ** 14n });
    fc.assert(
      fc.property(fee, fee, fee, fee, fee, (max, priority, wantedMax, wantedPriority, feeMax) => {
        // Nodes take no transaction whose priority fee is above the most that it pays.
        const last = fees(max + priority, priority);
        const step = nextStep(
          transaction(signing({ fees: last })),
          view({ newestBlock: LATE, fees: fees(wantedMax + wantedPriority, wantedPriority) }),
          { confirmations: 1, feeMax },
        );
        if (step.do !== "replace") return;
        expect(step.fees.max * 10n).toBeGreaterThanOrEqual(last.max * 11n);
        expect(step.fees.priority * 10n).toBeGreaterThanOrEqual(priority * 11n);
        expect(step.fees.max).toBeLessThanOrEqual(feeMax);
        expect(step.fees.priority).toBeLessThanOrEqual(step.fees.max);
      }),
    );
  });
});

test("a confirmed transaction stands while its block has it, and for good once so many blocks follow", () => {
  const stands = (block: number | null, newestBlock: number) =>
    standsInBlock(
      { block: 50 },
      view({ newestBlock, mined: block === null ? null : { hash: "0x1", block } }),
    );
  expect([stands(50, 60), stands(51, 60), stands(null, 60)]).toEqual([true, false, false]);
  expect([stands(null, 10_049), stands(null, 10_050)]).toEqual([false, true]);
});

test("the first signing never pays more than may be paid", () => {
  expect(firstFees(fees(2_000n, 1_500n), 1_000n)).toEqual(fees(1_000n, 1_000n));
  expect(firstFees(fees(20n, 15n), 1_000n)).toEqual(fees(20n, 15n));
});
