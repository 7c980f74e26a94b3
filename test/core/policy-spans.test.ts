import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Band, decideOutcome, OUTCOMES, type PolicyRules } from "../../src/core/policy.ts";
import {
  changesBetween,
  hiddenBands,
  isUnchanged,
  type Stretch,
  spansOf,
} from "../../src/core/policy-spans.ts";

/** The bands of a policy as stretches of the line from 0 to 1, and what two versions do differently. */

/** Scores that bands of random rules share often. */
const scores = fc.constantFrom(0, 0.1, 0.25, 1 / 3, 0.5, 0.75, 0.9, 1);
const band: fc.Arbitrary<Band> = fc
  .record({
    minScore: scores,
    outcome: fc.constantFrom(...OUTCOMES),
    share: fc.integer({ min: 1, max: 9_999 }),
  })
  .map(({ share, ...rest }) => ({
    ...rest,
    ...(rest.outcome === "partial_release" && { releasedBps: share }),
  }));
const rules: fc.Arbitrary<PolicyRules> = fc
  .tuple(fc.array(band, { maxLength: 6 }), band)
  .map(([bands, floor]) => ({ bands: [...bands, { ...floor, minScore: 0 }] }));
const score = fc.oneof(scores, fc.double({ min: 0, max: 1, noNaN: true }));

const isIn = ({ from, to, isClosed }: Stretch, at: number): boolean =>
  from <= at && (isClosed ? at <= to : at < to);

const FLOOR = { minScore: 0, outcome: "refund" } as const;
const HALF = { minScore: 0.5, outcome: "partial_release", releasedBps: 4_000, label: "half" } as const;
const FULL = { minScore: 1, outcome: "release" } as const;

describe("spansOf", () => {
  test("each score is in one span, which says what the policy decides there", () => {
    fc.assert(
      fc.property(rules, score, (given, at) => {
        const spans = spansOf(given);
        const [inside, ...others] = spans.filter((span) => isIn(span, at));
        expect(others).toEqual([]);
        const { outcome, releasedBps } = decideOutcome(given, at, []);
        expect(inside?.band.outcome).toBe(outcome);
        expect(inside?.band.releasedBps ?? releasedBps).toBe(releasedBps);
      }),
    );
  });

  test("they are in order, from 0 to 1, without a gap", () => {
    fc.assert(
      fc.property(rules, (given) => {
        const spans = spansOf(given);
        expect(spans[0]?.from).toBe(0);
        expect(spans.at(-1)?.to).toBe(1);
        for (const [at, { to }] of spans.slice(0, -1).entries()) expect(to).toBe(spans[at + 1]!.from);
      }),
    );
  });

  test("of bands that begin at the same score the earlier decides, and the other is hidden", () => {
    const given = { bands: [FLOOR, { ...FLOOR, outcome: "release" }] } as const;
    expect(spansOf(given)).toEqual([{ from: 0, to: 1, isClosed: true, band: FLOOR }]);
    expect(hiddenBands(given)).toEqual([{ minScore: 0, outcome: "release" }]);
  });
});

describe("changesBetween", () => {
  test("a version beside itself, or with its bands in another order, changes nothing", () => {
    fc.assert(
      fc.property(rules, (given) => {
        expect(isUnchanged(changesBetween(given, given))).toBe(true);
      }),
    );
    const shuffled = changesBetween({ bands: [FULL, HALF, FLOOR] }, { bands: [FLOOR, FULL, HALF] });
    expect(isUnchanged(shuffled)).toBe(true);
  });

  test("the scores that it names are those that are decided differently", () => {
    fc.assert(
      fc.property(rules, rules, score, (before, after, at) => {
        const { spans } = changesBetween(before, after);
        const isNamed = spans.some((span) => isIn(span, at));
        const [one, other] = [decideOutcome(before, at, []), decideOutcome(after, at, [])];
        expect(isNamed).toBe(one.outcome !== other.outcome || one.releasedBps !== other.releasedBps);
      }),
    );
  });

  test("names stretches, labels, maxima and reason codes", () => {
    const before = { bands: [FULL, HALF, FLOOR], alwaysRefund: ["data_stale"] } as const;
    const after = {
      bands: [FULL, { ...HALF, label: "some" }, { minScore: 0.25, outcome: "escalate" }, FLOOR],
      alwaysEscalate: ["data_stale", "source_timeout"],
      maxAmount: "5",
    } as const;
    const { spans, maxAmount, codes } = changesBetween(before, after);
    expect(spans.map(({ from, to, after: { outcome } }) => [from, to, outcome])).toEqual([
      [0.25, 0.5, "escalate"],
      [0.5, 1, "partial_release"],
    ]);
    expect(maxAmount).toEqual({ before: null, after: "5" });
    expect(codes).toEqual([
      { code: "data_stale", before: "refund", after: "escalate" },
      { code: "source_timeout", before: null, after: "escalate" },
    ]);
  });

  test("neighbours that change alike are one stretch", () => {
    const before = { bands: [FLOOR] };
    const after = {
      bands: [
        { minScore: 0, outcome: "escalate" },
        { minScore: 1, outcome: "refund" },
      ],
    } as const;
    expect(changesBetween(before, after).spans).toEqual([
      { from: 0, to: 1, isClosed: false, before: FLOOR, after: { minScore: 0, outcome: "escalate" } },
    ]);
  });
});
