import { describe, expect, test } from "bun:test";
import {
  type Judgement,
  judge,
  judgeSeen,
  type OwedThen,
  SEEN_MS_MAX,
} from "../../../src/core/solvency/judgement.ts";
import { NOTHING_OWED, type Owed } from "../../../src/core/solvency/owed.ts";

const holding = (balance: bigint) => ({ balance, block: 7, blockHash: "0x7", blockTime: 0, newestTime: 0 });
const then = (owed: Partial<Owed>, submittedSince = 0n): OwedThen => ({
  owed: { ...NOTHING_OWED, ...owed },
  submittedSince,
});

describe("what a treasury holds is judged by what was then owed for certain:", () => {
  const CASES: readonly (readonly [what: string, balance: bigint | null, OwedThen, Judgement])[] = [
    ["nothing is owed", 0n, then({}), "enough"],
    ["exactly what is owed", 60n, then({ available: 10n, held: 20n, payable: 30n }), "enough"],
    ["one less than is available", 9n, then({ available: 10n }), "short"],
    ["one less than is held", 19n, then({ held: 20n }), "short"],
    ["one less than is owed to payees", 29n, then({ payable: 30n }), "short"],
    ["one less in all", 59n, then({ available: 10n, held: 20n, payable: 30n }), "short"],
    ["a deposit in a block that is not credited yet", 100n, then({ available: 10n }), "enough"],
    [
      "a payout that the block has, submitted before it",
      60n,
      then({ available: 60n, submitted: 40n }),
      "enough",
    ],
    [
      "a payout that the block has not, submitted before it",
      100n,
      then({ available: 60n, submitted: 40n }),
      "enough",
    ],
    [
      "a payout that the block has, submitted since by the clock here",
      60n,
      then({ available: 60n, payable: 40n }, 40n),
      "enough",
    ],
    [
      "less than is left after what was submitted since",
      59n,
      then({ available: 60n, payable: 40n }, 40n),
      "short",
    ],
    ["more submitted since than was owed then", 0n, then({ payable: 10n }, 40n), "enough"],
    ["a chain that does not answer", null, then({ available: 10n }), "unknown"],
  ];
  for (const [what, balance, owed, expected] of CASES)
    test(`${what}: ${expected}`, () => {
      expect(judge(balance === null ? null : holding(balance), owed)).toBe(expected);
    });
});

test("what was enough is unknown after a time, and what was short stays so", () => {
  expect(judgeSeen("enough", SEEN_MS_MAX)).toBe("enough");
  expect(judgeSeen("enough", SEEN_MS_MAX + 1)).toBe("unknown");
  expect(judgeSeen("short", 100 * SEEN_MS_MAX)).toBe("short");
});
