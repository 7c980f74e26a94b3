import { describe, expect, test } from "bun:test";
import type { ReasonCode } from "../../../src/core/clauses/reason-codes.ts";
import { isRefusal } from "../../../src/core/errors.ts";
import { OUTCOMES, type Outcome, type PolicyDecision } from "../../../src/core/policy.ts";
import {
  ATTEMPTS,
  type Attempt,
  decideAttestation,
  decideSettlement,
  FINDINGS,
  type Finding,
  type Known,
  knownOf,
  PHASES,
  type Phase,
  RECOVERY,
  type Recovery,
  refuseMove,
  saidOf,
} from "../../../src/core/x402/purchase.ts";

const KNOWN: readonly Known[] = ["paid", "unpaid", "unknown"];

describe("the phases", () => {
  const TABLE: readonly (readonly [phase: Phase, voucher: Recovery, exact: Recovery])[] = [
    ["quoting", "forget", "forget"],
    ["held", "refund", "refund"],
    ["signed", "refund", "escalate"],
    ["answered", "settle", "settle"],
    ["ended", "nothing", "nothing"],
  ];
  for (const [phase, voucher, exact] of TABLE) {
    test(`a crash while ${phase}: a voucher's recovery is ${voucher}, that of exact ${exact}`, () =>
      expect(RECOVERY[phase]).toEqual({ voucher, exact }));
  }
  test("are all in the table", () => expect(TABLE.map(([phase]) => phase)).toEqual([...PHASES]));
});

describe("what is known of the money", () => {
  const TABLE: Readonly<Record<Attempt, Readonly<Record<Finding, Known>>>> = {
    never_connected: { used: "paid", open: "unpaid", expired: "unpaid", away: "unpaid", none: "unpaid" },
    no_answer: { used: "paid", open: "unknown", expired: "unpaid", away: "unknown", none: "unknown" },
    answered: { used: "paid", open: "unknown", expired: "unpaid", away: "unknown", none: "unknown" },
    receipted: { used: "paid", open: "unknown", expired: "unpaid", away: "unknown", none: "paid" },
  };
  for (const attempt of ATTEMPTS) {
    for (const finding of FINDINGS) {
      const known = TABLE[attempt][finding];
      test(`exact, ${attempt}, and the chain says ${finding}: ${known}`, () =>
        expect(knownOf("exact", attempt, finding)).toBe(known));
      test(`a voucher, ${attempt}, moves no money, whatever a chain says (${finding})`, () =>
        expect(knownOf("voucher", attempt, finding)).toBe("unpaid"));
    }
  }
});

describe("the settlement", () => {
  const decided: Readonly<Record<Outcome, PolicyDecision>> = {
    release: { outcome: "release", releasedBps: 10_000, bandLabel: "all" },
    partial_release: { outcome: "partial_release", releasedBps: 5_000, bandLabel: "half" },
    escalate: { outcome: "escalate", releasedBps: 0, bandLabel: "doubt" },
    refund: { outcome: "refund", releasedBps: 0, bandLabel: "none" },
  };

  for (const known of KNOWN) {
    for (const outcome of OUTCOMES) {
      test(`of a voucher is the policy's: ${outcome}`, () =>
        expect(decideSettlement("voucher", known, decided[outcome], true)).toEqual({
          decision: decided[outcome],
          reasonCode: null,
        }));
    }
    test("of a voucher that had no answer is a refund", () =>
      expect(decideSettlement("voucher", known, null, false)).toEqual({
        decision: { outcome: "refund", releasedBps: 0, bandLabel: null },
        reasonCode: "source_unreachable",
      }));
  }

  type Row = readonly [policy: Outcome | "none", outcome: Outcome, reasonCode: ReasonCode | null];
  const EXACT: Readonly<Record<Known, readonly Row[]>> = {
    paid: [
      ["release", "release", null],
      ["partial_release", "escalate", "payment_irrevocable"],
      ["escalate", "escalate", "payment_irrevocable"],
      ["refund", "escalate", "payment_irrevocable"],
      ["none", "escalate", "payment_irrevocable"],
    ],
    unpaid: [
      ["release", "refund", null],
      ["partial_release", "refund", null],
      ["escalate", "refund", null],
      ["refund", "refund", null],
      ["none", "refund", "source_unreachable"],
    ],
    unknown: [
      ["release", "escalate", "payment_unknown"],
      ["partial_release", "escalate", "payment_unknown"],
      ["escalate", "escalate", "payment_unknown"],
      ["refund", "escalate", "payment_unknown"],
      ["none", "escalate", "payment_unknown"],
    ],
  };
  for (const known of KNOWN) {
    for (const [policy, outcome, reasonCode] of EXACT[known]) {
      test(`of exact, ${known}, where the policy says ${policy}: ${outcome} ${reasonCode ?? ""}`, () => {
        const settlement = decideSettlement(
          "exact",
          known,
          policy === "none" ? null : decided[policy],
          false,
        );
        expect(settlement).toEqual({
          decision: outcome === "release" ? decided.release : { outcome, releasedBps: 0, bandLabel: null },
          reasonCode,
        });
      });
    }
    test(`of exact, ${known}, where the answer passed every clause`, () => {
      const code = { paid: null, unpaid: "payment_unused", unknown: "payment_unknown" } as const;
      expect(decideSettlement("exact", known, decided.release, true).reasonCode).toBe(code[known]);
    });
    test(`of exact, ${known}, is decided for every policy`, () =>
      expect(EXACT[known].map(([policy]) => policy)).toEqual([...OUTCOMES, "none"]));
  }
});

describe("an unknown payment", () => {
  const TABLE: Readonly<Record<Finding, ReturnType<typeof saidOf>>> = {
    used: "paid",
    open: null,
    expired: "unpaid",
    away: null,
    none: null,
  };
  for (const finding of FINDINGS)
    test(`where the chain finds it ${finding}: ${TABLE[finding] ?? "ask again"}`, () =>
      expect(saidOf(finding)).toBe(TABLE[finding]));

  const EXPIRY = 60_000;
  const HOUR = 3_600_000;
  const DAY = 24 * HOUR;
  type Row = readonly [
    what: string,
    isAsked: boolean,
    silentSince: number | null,
    /** When the chain is asked next, counted from the tested time. */
    nextMs: number,
    from: number,
    /** Whether a person may attest one millisecond before that time, and at it. */
    open: readonly [boolean, boolean],
  ];
  const ROWS: readonly Row[] = [
    ["no chain is asked: an hour after the expiry", false, null, 1, EXPIRY + HOUR, [false, true]],
    ["a chain is silent for a day", true, EXPIRY + HOUR, 1, EXPIRY + HOUR + DAY, [false, true]],
    ["it was silent before the expiry: a day after that", true, EXPIRY - 1, 1, EXPIRY + DAY, [false, true]],
    ["it was not asked again: not", true, EXPIRY, 0, EXPIRY + DAY, [false, false]],
  ];
  test("a person does not attest where a chain was never asked, or answered last", () =>
    expect(
      decideAttestation({ validBefore: EXPIRY, chainSilentSince: null, nextCheckAt: 9 * DAY }, true, 8 * DAY),
    ).toEqual({ isOpen: false, from: 9 * DAY }));
  for (const [what, isAsked, chainSilentSince, nextMs, from, open] of ROWS)
    test(`a person attests where ${what}`, () => {
      const decided = [from - 1, from].map((now) =>
        decideAttestation({ validBefore: EXPIRY, chainSilentSince, nextCheckAt: now + nextMs }, isAsked, now),
      );
      expect(decided).toEqual(open.map((isOpen) => ({ isOpen, from })));
    });
});

describe("a move of a warrant that a purchase opened", () => {
  const TO = ["released", "partially_released", "refunded", "expired", "disputed"] as const;
  const LEGAL: Readonly<Record<Known, readonly string[]>> = {
    paid: ["released"],
    unpaid: ["refunded"],
    unknown: [],
  };
  for (const known of KNOWN) {
    for (const to of TO) {
      test(`to ${to} is ${LEGAL[known].includes(to) ? "legal" : "refused"} where exact is ${known}`, () => {
        const refused = refuseMove("exact", known, to);
        expect(isRefusal(refused) ? refused.refused : "legal").toBe(
          LEGAL[known].includes(to) ? "legal" : "illegal_transition",
        );
        expect(refuseMove("voucher", known, to)).toBeNull();
      });
    }
  }

  test("is legal to every state that a settlement can decide", () => {
    for (const known of KNOWN) {
      for (const outcome of [...OUTCOMES, null]) {
        const policy = outcome && { outcome, releasedBps: 1, bandLabel: null };
        const { decision } = decideSettlement("exact", known, policy, true);
        if (decision.outcome === "escalate") continue;
        expect(
          refuseMove("exact", known, decision.outcome === "release" ? "released" : "refunded"),
        ).toBeNull();
      }
    }
  });
});
