import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import fc from "fast-check";
import type { ReasonCode } from "../../src/core/clauses/reason-codes.ts";
import { type ErrorCode, isRefusal } from "../../src/core/errors.ts";
import {
  type Band,
  BUILT_IN_RULES,
  BUILT_IN_RULES_HASH,
  decideOutcome,
  OUTCOMES,
  type Outcome,
  type PolicyRules,
  parsePolicyRules,
  refuseAboveMaximum,
  scoreInBps,
} from "../../src/core/policy.ts";

const FLOOR = { minScore: 0, outcome: "escalate" } as const;
const HALF = { minScore: 0.5, outcome: "partial_release", releasedBps: 5_000 } as const;
const FULL = { minScore: 1, outcome: "release" } as const;
/** Rules whose bands the types would forbid. */
const bands = (...given: readonly unknown[]) => ({ bands: given });

describe("parsePolicyRules", () => {
  const GOOD: readonly unknown[] = [
    bands(FLOOR),
    bands(FULL, HALF, FLOOR),
    bands(FLOOR, HALF, FULL),
    bands(FLOOR, { ...FLOOR, outcome: "refund" }),
    bands({ ...FLOOR, label: "" }),
    bands({ ...FLOOR, label: "x".repeat(200) }),
    bands({ ...HALF, releasedBps: 1 }, FLOOR),
    bands({ ...HALF, releasedBps: 9_999 }, FLOOR),
    bands({ ...HALF, minScore: 0 }),
    bands(...Array.from({ length: 64 }, () => FLOOR)),
    { ...bands(FLOOR), maxAmount: "0" },
    { ...bands(FLOOR), maxAmount: "9223372036854775807" },
    { ...bands(FLOOR), alwaysEscalate: [], alwaysRefund: [] },
    { ...bands(FLOOR), alwaysEscalate: ["data_stale"], alwaysRefund: ["source_not_found", "data_stale"] },
    BUILT_IN_RULES,
  ];
  for (const rules of GOOD) {
    test(`takes ${JSON.stringify(rules).slice(0, 90)}`, () =>
      expect(parsePolicyRules(rules)).toEqual(rules as PolicyRules));
  }

  const BAD: readonly (readonly [rules: unknown, code: ErrorCode, path: string])[] = [
    [null, "validation_failed", "rules"],
    ["{}", "validation_failed", "rules"],
    [[FLOOR], "validation_failed", "rules"],
    [{ ...bands(FLOOR), maxamount: "1" }, "validation_failed", "rules.maxamount"],

    [{}, "policy_no_bands", "rules.bands"],
    [bands(), "policy_no_bands", "rules.bands"],
    [{ bands: null }, "policy_no_bands", "rules.bands"],
    [{ bands: { 0: FLOOR, length: 1 } }, "policy_no_bands", "rules.bands"],
    [bands(...Array.from({ length: 65 }, () => FLOOR)), "validation_failed", "rules.bands"],

    [bands(FULL), "policy_no_floor_band", "rules.bands"],
    [bands(FULL, HALF), "policy_no_floor_band", "rules.bands"],
    [bands({ ...FLOOR, minScore: Number.MIN_VALUE }), "policy_no_floor_band", "rules.bands"],

    [bands(FLOOR, { ...FULL, minScore: 1.0000001 }), "policy_band_out_of_range", "rules.bands.1.minScore"],
    [bands({ ...FLOOR, minScore: -0.1 }, FLOOR), "policy_band_out_of_range", "rules.bands.0.minScore"],
    [bands({ ...FLOOR, minScore: 8_000 }, FLOOR), "policy_band_out_of_range", "rules.bands.0.minScore"],
    [bands({ ...FLOOR, minScore: "0" }, FLOOR), "policy_band_out_of_range", "rules.bands.0.minScore"],
    [bands({ ...FLOOR, minScore: null }, FLOOR), "policy_band_out_of_range", "rules.bands.0.minScore"],
    [bands({ ...FLOOR, minScore: Number.NaN }, FLOOR), "policy_band_out_of_range", "rules.bands.0.minScore"],
    [bands({ outcome: "release" }, FLOOR), "policy_band_out_of_range", "rules.bands.0.minScore"],

    ...[undefined, null, 0, 10_000, -1, 10_001, 5_000.5, "5000", true, Number.NaN].map(
      (releasedBps) =>
        [
          bands(FLOOR, { ...HALF, releasedBps }),
          "policy_band_bps_required",
          "rules.bands.1.releasedBps",
        ] as const,
    ),
    ...(["release", "refund", "escalate"] as const).map(
      (outcome) =>
        [bands({ ...HALF, outcome }, FLOOR), "validation_failed", "rules.bands.0.releasedBps"] as const,
    ),
    ...["pay", "Release", "", null, undefined, 1].map(
      (outcome) =>
        [bands({ ...FULL, outcome }, FLOOR), "validation_failed", "rules.bands.0.outcome"] as const,
    ),
    [bands(FLOOR, null), "validation_failed", "rules.bands.1"],
    [bands(FLOOR, [FLOOR]), "validation_failed", "rules.bands.1"],
    [bands({ ...FLOOR, minscore: 0 }), "validation_failed", "rules.bands.0.minscore"],
    [bands({ ...FLOOR, label: 1 }), "validation_failed", "rules.bands.0.label"],
    [bands({ ...FLOOR, label: "x".repeat(201) }), "validation_failed", "rules.bands.0.label"],

    ...[1, "", "1.5", "-1", "9223372036854775808", null].map(
      (maxAmount) => [{ ...bands(FLOOR), maxAmount }, "validation_failed", "rules.maxAmount"] as const,
    ),
    ...(["alwaysEscalate", "alwaysRefund"] as const).flatMap(
      (list) =>
        [
          [{ ...bands(FLOOR), [list]: "data_stale" }, "validation_failed", `rules.${list}`],
          [{ ...bands(FLOOR), [list]: null }, "validation_failed", `rules.${list}`],
          [{ ...bands(FLOOR), [list]: ["data_stale", "made_up"] }, "validation_failed", `rules.${list}.1`],
          [{ ...bands(FLOOR), [list]: [7] }, "validation_failed", `rules.${list}.0`],
        ] as const,
    ),
  ];
  for (const [rules, code, path] of BAD) {
    test(`refuses ${JSON.stringify(rules).slice(0, 90)} with ${code} at ${path}`, () => {
      const refusal = parsePolicyRules(rules);
      expect(isRefusal(refusal) && [refusal.refused, refusal.message.split(": ")[0]]).toEqual([code, path]);
    });
  }

  test("names the outermost problem first", () => {
    let rules: Record<string, unknown> = {
      unknown: 1,
      bands: [],
      maxAmount: 1,
      alwaysEscalate: ["made_up"],
      alwaysRefund: ["made_up"],
    };
    const wrongBand = { unknown: 1, minScore: 2, outcome: "pay", releasedBps: 0, label: 1 };
    const corrections: readonly (readonly [start: string, corrected: Record<string, unknown>])[] = [
      ["rules.unknown", { unknown: undefined }],
      ["rules.bands:", bands(wrongBand)],
      ["rules.bands.0.unknown", bands({ ...wrongBand, unknown: undefined })],
      ["rules.bands.0.minScore", bands({ ...wrongBand, unknown: undefined, minScore: 1 })],
      ["rules.bands.0.outcome", bands({ minScore: 1, outcome: "partial_release", releasedBps: 0, label: 1 })],
      ["rules.bands.0.releasedBps", bands({ ...HALF, label: 1 })],
      ["rules.bands.0.label", bands(HALF)],
      ["rules.bands:", bands(HALF, FLOOR)],
      ["rules.maxAmount", { maxAmount: "1" }],
      ["rules.alwaysEscalate.0", { alwaysEscalate: [] }],
      ["rules.alwaysRefund.0", { alwaysRefund: [] }],
    ];
    for (const [start, corrected] of corrections) {
      const refusal = parsePolicyRules(rules);
      expect(isRefusal(refusal) && refusal.message.slice(0, start.length)).toBe(start);
      // JSON has no undefined, so such fields are removed.
      rules = Object.fromEntries(
        Object.entries({ ...rules, ...corrected }).filter(([, value]) => value !== undefined),
      );
      if (Array.isArray(rules.bands)) rules.bands = JSON.parse(JSON.stringify(rules.bands));
    }
    expect(isRefusal(parsePolicyRules(rules))).toBeFalse();
  });
});

describe("the built-in default", () => {
  test("pays for a clean pass only", () => {
    expect(BUILT_IN_RULES).toEqual({ bands: [FULL, FLOOR] });
    expect(decideOutcome(BUILT_IN_RULES, 1, []).outcome).toBe("release");
    expect(decideOutcome(BUILT_IN_RULES, 63 / 64, ["data_stale"]).outcome).toBe("escalate");
    expect(decideOutcome(BUILT_IN_RULES, 0, ["data_stale"]).outcome).toBe("escalate");
  });

  test("has the hash of its canonical JSON", () => {
    const text = '{"bands":[{"minScore":1,"outcome":"release"},{"minScore":0,"outcome":"escalate"}]}';
    expect(BUILT_IN_RULES_HASH).toBe(createHash("sha256").update(text).digest("hex"));
  });
});

describe("decideOutcome", () => {
  const LADDER: PolicyRules = {
    bands: [
      { minScore: 1, outcome: "release", label: "clean" },
      { minScore: 0.8, outcome: "partial_release", releasedBps: 7_000, label: "most" },
      { minScore: 0, outcome: "refund" },
    ],
  };
  const SCORES: readonly (readonly [score: number, outcome: Outcome, bps: number, label: string | null])[] = [
    [1, "release", 10_000, "clean"],
    [0.9, "partial_release", 7_000, "most"],
    [0.8, "partial_release", 7_000, "most"],
    [4 / 5, "partial_release", 7_000, "most"],
    [0.799_999, "refund", 0, null],
    [0, "refund", 0, null],
  ];
  for (const [score, outcome, releasedBps, bandLabel] of SCORES) {
    test(`a score of ${score} with bands at 1, 0.8 and 0: ${outcome}`, () => {
      const expected = { outcome, releasedBps, bandLabel };
      expect(decideOutcome(LADDER, score, [])).toEqual(expected);
      const shuffled = { bands: [LADDER.bands[2]!, LADDER.bands[0]!, LADDER.bands[1]!] };
      expect(decideOutcome(shuffled, score, [])).toEqual(expected);
    });
  }

  test("of bands with equal minScore takes the earlier", () => {
    const tied = (first: Outcome, second: Outcome): PolicyRules => ({
      bands: [
        { minScore: 0, outcome: first },
        { minScore: 0, outcome: second },
      ],
    });
    expect(decideOutcome(tied("escalate", "refund"), 0.5, []).outcome).toBe("escalate");
    expect(decideOutcome(tied("refund", "escalate"), 0.5, []).outcome).toBe("refund");
  });

  const ALWAYS: readonly (readonly [name: string, codes: readonly ReasonCode[], outcome: Outcome])[] = [
    ["no code", [], "release"],
    ["a code that is in neither list", ["no_timestamp"], "release"],
    ["a code that always escalates", ["data_stale"], "escalate"],
    ["a code that always refunds", ["source_not_found"], "refund"],
    ["both, in either order", ["data_stale", "source_not_found"], "refund"],
    ["both, in the other order", ["source_not_found", "data_stale"], "refund"],
    ["a code that is in both lists", ["status_mismatch"], "refund"],
    ["one among others", ["no_timestamp", "digest_mismatch", "data_stale"], "escalate"],
  ];
  for (const [name, codes, outcome] of ALWAYS) {
    test(`with ${name}: ${outcome}, whatever the score`, () => {
      const rules: PolicyRules = {
        bands: [{ minScore: 0, outcome: "release", label: "any" }],
        alwaysEscalate: ["data_stale", "status_mismatch"],
        alwaysRefund: ["source_not_found", "status_mismatch"],
      };
      for (const score of [0, 0.5, 1]) {
        const paid = outcome === "release" ? 10_000 : 0;
        expect(decideOutcome(rules, score, codes)).toEqual({
          outcome,
          releasedBps: paid,
          bandLabel: paid ? "any" : null,
        });
      }
    });
  }

  const scores = fc.oneof(
    fc.constantFrom(0, 0.5, 0.8, 1),
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc
      .tuple(fc.integer({ min: 0, max: 64 }), fc.integer({ min: 1, max: 64 }))
      .map(([a, b]) => Math.min(1, a / b)),
  );
  const anyBand: fc.Arbitrary<Band> = fc
    .tuple(scores, fc.constantFrom(...OUTCOMES), fc.integer({ min: 1, max: 9_999 }))
    .map(([minScore, outcome, releasedBps]) =>
      outcome === "partial_release" ? { minScore, outcome, releasedBps } : { minScore, outcome },
    );

  test("is the outcome of the highest band that the score reaches", () => {
    fc.assert(
      fc.property(fc.array(anyBand, { maxLength: 8 }), fc.nat(8), scores, (some, place, score) => {
        const all = some.toSpliced(place, 0, { minScore: 0, outcome: "escalate" });
        expect(isRefusal(parsePolicyRules({ bands: all }))).toBeFalse();
        const decided = decideOutcome({ bands: all }, score, []);

        let highest: Band | null = null;
        for (const band of all) {
          if (band.minScore <= score && (highest === null || band.minScore > highest.minScore))
            highest = band;
        }
        expect(decided.outcome).toBe(highest!.outcome);
        expect(decided.releasedBps).toBe(
          { release: 10_000, partial_release: highest!.releasedBps!, escalate: 0, refund: 0 }[
            decided.outcome
          ],
        );
      }),
      { numRuns: 500 },
    );
  });

  test("leaves the rules as they were", () => {
    const rules = Object.freeze({ bands: Object.freeze([FLOOR, FULL]) });
    decideOutcome(rules, 1, []);
    expect(rules.bands).toEqual([FLOOR, FULL]);
  });
});

describe("scoreInBps", () => {
  const TABLE: readonly (readonly [score: number, bps: number])[] = [
    [0, 0],
    [1, 10_000],
    [0.5, 5_000],
    [1 / 3, 3_333],
    [2 / 3, 6_667],
    [1 / 32, 313],
    [3 / 32, 938],
    [1 / 64, 156],
    [63 / 64, 9_844],
    [0.000_05, 1],
    [0.000_049, 0],
  ];
  for (const [score, bps] of TABLE) {
    test(`${score} is ${bps}`, () => expect(scoreInBps(score)).toBe(bps));
  }

  test("rounds every share of up to 65 clauses half up", () => {
    for (let all = 1; all <= 65; all++) {
      for (let passed = 0; passed <= all; passed++) {
        // floor(x + 1/2) in whole numbers.
        const exact = Number((BigInt(passed) * 20_000n + BigInt(all)) / (2n * BigInt(all)));
        expect([passed, all, scoreInBps(passed / all)]).toEqual([passed, all, exact]);
      }
    }
  });
});

describe("refuseAboveMaximum", () => {
  const rules = (maxAmount?: string): PolicyRules => ({
    bands: [FLOOR],
    ...(maxAmount === undefined ? {} : { maxAmount }),
  });
  const TABLE: readonly (readonly [
    maximum: string | undefined,
    amount: bigint,
    asset: string,
    refused: boolean,
  ])[] = [
    [undefined, 10n ** 18n, "USDC", false],
    [undefined, 10n ** 18n, "EURX", false],
    ["100", 99n, "USDC", false],
    ["100", 100n, "USDC", false],
    ["100", 101n, "USDC", true],
    ["0100", 100n, "USDC", false],
    ["0", 1n, "USDC", true],
    // As text, 9 would come after 10.
    ["9", 10n, "USDC", true],
    ["10", 9n, "USDC", false],
    ["9223372036854775806", 9_223_372_036_854_775_807n, "USDC", true],
    // The maximum is in units of USDC: under a maximum any other asset is refused.
    ["100", 1n, "EURX", true],
    ["100", 1n, "usdc", true],
  ];
  for (const [maximum, amount, asset, refused] of TABLE) {
    test(`${amount} ${asset} under a maximum of ${maximum}: ${refused ? "refused" : "taken"}`, () => {
      const refusal = refuseAboveMaximum(rules(maximum), amount, asset);
      expect(refusal?.refused ?? null).toBe(refused ? "policy_max_amount_exceeded" : null);
    });
  }

  test("names the amount and the maximum", () => {
    expect(refuseAboveMaximum(rules("100"), 101n, "USDC")!.message).toMatch(/\b101\b.*\b100\b/);
  });
});
