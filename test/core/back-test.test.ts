import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  backTest,
  type DecidedCheck,
  decideByDraft,
  type ReleasedMore,
  withFlip,
} from "../../src/core/back-test.ts";
import type { ReasonCode } from "../../src/core/clauses/reason-codes.ts";
import { AMOUNT_MAX, shareOf } from "../../src/core/money.ts";
import { isAboveThreshold } from "../../src/core/passkey.ts";
import { type Band, decideOutcome, OUTCOMES, type PolicyRules, scoreInBps } from "../../src/core/policy.ts";
import { decideSettlement } from "../../src/core/x402/purchase.ts";

/** What a draft would have made of checks that were decided already. */

const RELEASE_ALL: PolicyRules = { bands: [{ minScore: 0, outcome: "release" }] };
const REFUND_ALL: PolicyRules = { bands: [{ minScore: 0, outcome: "refund" }] };
const HALVES: PolicyRules = {
  bands: [
    { minScore: 1, outcome: "release" },
    { minScore: 0.5, outcome: "partial_release", releasedBps: 5_000 },
    { minScore: 0, outcome: "refund" },
  ],
};

const CHECK: DecidedCheck = {
  checkId: "chk",
  warrantId: "wrt",
  payee: "acme",
  amount: 100n,
  asset: "USDC",
  state: "escalated",
  releasedBps: null,
  score: 5_000,
  clauses: 2,
  reasonCodes: ["value_mismatch"],
  outcome: "escalate",
  evaluatedAt: 0,
  isExactPayment: false,
};
const RELEASED = { state: "released", releasedBps: 10_000, outcome: "release" } as const;

describe("backTest", () => {
  const CASES: readonly (readonly [
    says: string,
    rules: PolicyRules,
    check: Partial<DecidedCheck>,
    threshold: bigint | null,
    after: readonly [outcome: string, paid: bigint] | null,
  ])[] = [
    ["releases what was escalated", RELEASE_ALL, {}, null, ["release", 100n]],
    ["releases a part", HALVES, {}, null, ["partial_release", 50n]],
    ["refunds what was released", REFUND_ALL, RELEASED, null, ["refund", 0n]],
    ["decides what was decided so", RELEASE_ALL, RELEASED, null, null],
    [
      "sees another share as a flip",
      HALVES,
      { outcome: "partial_release", state: "partially_released", releasedBps: 2_500 },
      null,
      ["partial_release", 50n],
    ],
    [
      "escalates a share of nothing",
      HALVES,
      { amount: 1n, outcome: "refund", state: "refunded" },
      null,
      ["escalate", 0n],
    ],
    ["leaves to a person what is above today's threshold", RELEASE_ALL, {}, 99n, null],
    [
      "asks no threshold of what was paid then",
      HALVES,
      { ...RELEASED, score: 5_000 },
      99n,
      ["partial_release", 50n],
    ],
    [
      "leaves to a person what was above the threshold then",
      RELEASE_ALL,
      { reasonCodes: ["passkey_required"] },
      null,
      null,
    ],
    [
      "leaves to a person what an agent was killed over",
      RELEASE_ALL,
      { reasonCodes: ["agent_killed"] },
      null,
      null,
    ],
    ["refunds it all the same", REFUND_ALL, { reasonCodes: ["agent_killed"] }, null, ["refund", 0n]],
    [
      "looks the reason codes up",
      { ...RELEASE_ALL, alwaysRefund: ["value_mismatch"] },
      {},
      null,
      ["refund", 0n],
    ],
    [
      "asks no list for what was decided besides",
      { ...RELEASE_ALL, alwaysRefund: ["share_too_small"] },
      { reasonCodes: ["share_too_small"] },
      null,
      ["release", 100n],
    ],
    [
      "opens nothing above its maximum",
      { ...RELEASE_ALL, maxAmount: "99" },
      RELEASED,
      null,
      ["not_opened", 0n],
    ],
    [
      "opens nothing of another asset under a maximum",
      { ...RELEASE_ALL, maxAmount: "999" },
      { asset: "EURC" },
      null,
      ["not_opened", 0n],
    ],
    [
      "cannot take back what was paid on a chain",
      REFUND_ALL,
      { ...RELEASED, isExactPayment: true },
      null,
      ["escalate", 0n],
    ],
    [
      "cannot pay a part of it",
      HALVES,
      { ...RELEASED, score: 5_000, isExactPayment: true },
      null,
      ["escalate", 0n],
    ],
    [
      "releases what was irrevocable",
      RELEASE_ALL,
      { isExactPayment: true, reasonCodes: ["payment_irrevocable"] },
      null,
      ["release", 100n],
    ],
    [
      "decides nothing of an unknown payment",
      RELEASE_ALL,
      { isExactPayment: true, reasonCodes: ["payment_unknown"] },
      null,
      null,
    ],
    [
      "decides nothing of a payment that was never taken",
      RELEASE_ALL,
      { isExactPayment: true, outcome: "refund", state: "refunded", reasonCodes: ["payment_unused"] },
      null,
      null,
    ],
    [
      "decides nothing of a payment whose answer never came",
      RELEASE_ALL,
      { isExactPayment: true, reasonCodes: ["source_timeout", "payment_irrevocable"] },
      null,
      null,
    ],
  ];
  test.each(CASES)("%s", (_, rules, changed, threshold, after) => {
    const flip = backTest(rules, { ...CHECK, ...changed }, threshold);
    expect(flip && [flip.after.outcome, flip.after.paid]).toEqual(after as never);
  });

  test("the score is the exact share of clauses, not the rounded one", () => {
    const thirds: PolicyRules = {
      bands: [
        { minScore: 1 / 3, outcome: "release" },
        { minScore: 0, outcome: "refund" },
      ],
    };
    for (let clauses = 1; clauses <= 64; clauses++) {
      for (let passed = 0; passed <= clauses; passed++) {
        const check = { ...CHECK, clauses, score: scoreInBps(passed / clauses) };
        const decided = decideByDraft(thirds, check, null).outcome;
        expect([passed, clauses, decided]).toEqual([
          passed,
          clauses,
          passed / clauses >= 1 / 3 ? "release" : "refund",
        ]);
      }
    }
  });
});

const CODES = ["value_mismatch", "data_stale", "status_mismatch"] as const satisfies readonly ReasonCode[];
const codeList = fc.subarray([...CODES]);
const band: fc.Arbitrary<Band> = fc
  .record({
    minScore: fc.constantFrom(0, 0.25, 1 / 3, 0.5, 2 / 3, 1),
    outcome: fc.constantFrom(...OUTCOMES),
    share: fc.integer({ min: 1, max: 9_999 }),
  })
  .map(({ share, ...rest }) => ({
    ...rest,
    ...(rest.outcome === "partial_release" && { releasedBps: share }),
  }));
const rulesOf: fc.Arbitrary<PolicyRules> = fc
  .record({
    bands: fc.array(band, { maxLength: 4 }),
    floor: band,
    alwaysRefund: codeList,
    alwaysEscalate: codeList,
  })
  .map(({ bands, floor, ...lists }) => ({ bands: [...bands, { ...floor, minScore: 0 }], ...lists }));

/** What was checked, before any policy. */
const seen = fc.record({
  amount: fc.bigInt({ min: 1n, max: AMOUNT_MAX }),
  clauses: fc.integer({ min: 1, max: 64 }),
  part: fc.double({ min: 0, max: 1, noNaN: true }),
  reasonCodes: codeList,
  threshold: fc.option(fc.bigInt({ min: 0n, max: AMOUNT_MAX })),
  isKilled: fc.boolean(),
  isExactPayment: fc.boolean(),
  known: fc.constantFrom("paid" as const, "unknown" as const, "unpaid" as const),
});

/** The record of a check that these rules decided, as verifying and buying make it. */
function decidedBy(
  rules: PolicyRules,
  given: typeof seen extends fc.Arbitrary<infer Seen> ? Seen : never,
): DecidedCheck {
  const { amount, clauses, part, threshold, isKilled, isExactPayment, known } = given;
  const passed = Math.floor(part * clauses);
  const decision = decideOutcome(rules, passed / clauses, given.reasonCodes);
  const guard: ReasonCode | null =
    decision.releasedBps === 0
      ? null
      : isKilled
        ? "agent_killed"
        : shareOf(amount, decision.releasedBps) === 0n
          ? "share_too_small"
          : isAboveThreshold(threshold, { amount, asset: "USDC" })
            ? "passkey_required"
            : null;
  const guarded = guard === null ? decision : ({ ...decision, outcome: "escalate", releasedBps: 0 } as const);
  const settled = isExactPayment
    ? decideSettlement("exact", known, guarded, passed === clauses)
    : { decision: guarded, reasonCode: null };
  const { outcome, releasedBps } = settled.decision;
  const pays = outcome === "release" || outcome === "partial_release";
  return {
    ...CHECK,
    ...{ amount, clauses, isExactPayment, outcome },
    score: scoreInBps(passed / clauses),
    reasonCodes: [
      ...given.reasonCodes,
      ...[guard, settled.reasonCode].filter((code) => code !== null),
    ] as ReasonCode[],
    state: outcome === "release" ? "released" : pays ? "partially_released" : "escalated",
    releasedBps: pays ? releasedBps : null,
  };
}

test("the rules that decided a check flip nothing of it", () => {
  fc.assert(
    fc.property(rulesOf, seen, (rules, given) => {
      expect(backTest(rules, decidedBy(rules, given), given.threshold)).toBeNull();
    }),
    { numRuns: 2_000 },
  );
});

test("the sums of an asset are exact, and what one draft releases another takes back", () => {
  fc.assert(
    fc.property(rulesOf, rulesOf, fc.array(seen, { maxLength: 20 }), (before, after, all) => {
      const checks = all.map((given, at) => ({
        ...decidedBy(before, { ...given, isExactPayment: false, isKilled: false, threshold: null }),
        asset: at % 2 ? "USDC" : "EURC",
      }));
      const flips = checks.flatMap((check) => backTest(after, check, null) ?? []);
      const sums = flips.reduce<ReleasedMore>(withFlip, new Map());
      for (const asset of ["USDC", "EURC"]) {
        const of = checks.filter((check) => check.asset === asset);
        const paid = (rules: PolicyRules) =>
          of.reduce((sum, check) => sum + decideByDraft(rules, check, null).paid, 0n);
        expect(sums.get(asset) ?? 0n).toBe(paid(after) - paid(before));
      }
    }),
  );
});
