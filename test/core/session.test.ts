import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type ErrorCode, isRefusal } from "../../src/core/errors.ts";
import { AMOUNT_MAX, shareOf } from "../../src/core/money.ts";
import { chargeSession, giveBack, type SpendSession } from "../../src/core/session.ts";
import type { Charge, WindowUses } from "../../src/core/session-limits.ts";
import { UNLIMITED } from "../support/unlimited.ts";

const NOW = Date.UTC(2030, 0, 15, 12);

const session = (rest: Partial<SpendSession> = {}): SpendSession => ({
  ...UNLIMITED,
  id: "ses_1",
  agentId: "agt_1",
  amountCeiling: 1_000n,
  amountSpent: 400n,
  amountHeld: 900n,
  heldAt: NOW - 1_000,
  warrantLimit: 5,
  warrantCount: 4,
  failureBudget: 3,
  failureCount: 2,
  expiresAt: NOW + 1,
  revokedAt: null,
  createdAt: NOW - 1_000,
  ...rest,
});
const USES: WindowUses = { at: NOW, hourly: null, daily: null };
const chargeOf = (amount: bigint, asset = "USDC"): Charge => ({
  amount,
  asset,
  payee: "acme",
  sourceUrl: null,
});
const refusalOf = (given: Partial<SpendSession>, amount = 100n, asset = "USDC") => {
  const charged = chargeSession(session(given), chargeOf(amount, asset), USES, NOW);
  return isRefusal(charged) ? charged : null;
};

describe("a charge", () => {
  test("adds to what is spent and to the count, and changes nothing else", () => {
    const before = Object.freeze(session());
    expect(chargeSession(before, chargeOf(600n), USES, NOW)).toEqual(
      session({ amountSpent: 1_000n, amountHeld: 1_500n, heldAt: NOW, warrantCount: 5 }),
    );
    expect(before).toEqual(session());
  });

  test("is refused in a fixed order, one limit after the other", () => {
    let broken: Partial<SpendSession> = {
      revokedAt: NOW - 10,
      expiresAt: NOW - 5,
      failureCount: 3,
      warrantCount: 5,
      amountSpent: 1_000n,
    };
    const corrections: readonly (readonly [ErrorCode, Partial<SpendSession>])[] = [
      ["session_revoked", { revokedAt: null }],
      ["session_expired", { expiresAt: NOW + 1 }],
      ["session_failure_budget_spent", { failureCount: 2 }],
      ["session_warrant_limit_reached", { warrantCount: 4 }],
      ["session_ceiling_exceeded", { amountSpent: 0n }],
    ];
    for (const [code, corrected] of corrections) {
      expect(refusalOf(broken)?.refused).toBe(code);
      broken = { ...broken, ...corrected };
    }
    expect(refusalOf(broken)).toBeNull();
  });

  const EDGES: readonly (readonly [given: Partial<SpendSession>, amount: bigint, code: ErrorCode | null])[] =
    [
      [{}, 600n, null],
      [{}, 601n, "session_ceiling_exceeded"],
      [{ amountSpent: 0n }, 1_001n, "session_ceiling_exceeded"],
      [{ amountSpent: 1_000n }, 1n, "session_ceiling_exceeded"],
      [{ amountCeiling: 10n, amountSpent: 0n }, 9n, null],
      [{ amountCeiling: 9n, amountSpent: 0n }, 10n, "session_ceiling_exceeded"],
      [{ amountCeiling: AMOUNT_MAX, amountSpent: AMOUNT_MAX - 1n }, 1n, null],
      [{ amountCeiling: AMOUNT_MAX, amountSpent: AMOUNT_MAX - 1n }, 2n, "session_ceiling_exceeded"],
      [{ amountCeiling: AMOUNT_MAX, amountSpent: AMOUNT_MAX }, AMOUNT_MAX, "session_ceiling_exceeded"],
      [{ warrantLimit: null, warrantCount: 1_000_000 }, 1n, null],
      [{ warrantLimit: 5, warrantCount: 4 }, 1n, null],
      [{ warrantLimit: 5, warrantCount: 5 }, 1n, "session_warrant_limit_reached"],
      [{ warrantLimit: 0, warrantCount: 0 }, 1n, "session_warrant_limit_reached"],
      [{ failureBudget: 3, failureCount: 2 }, 1n, null],
      [{ failureBudget: 3, failureCount: 3 }, 1n, "session_failure_budget_spent"],
      [{ failureBudget: 3, failureCount: 4 }, 1n, "session_failure_budget_spent"],
      [{ expiresAt: NOW + 1 }, 1n, null],
      [{ expiresAt: NOW }, 1n, "session_expired"],
      [{ revokedAt: NOW }, 1n, "session_revoked"],
      [{ revokedAt: 0 }, 1n, "session_revoked"],
    ];
  for (const [given, amount, code] of EDGES) {
    const named = Object.entries(given).map(([field, value]) => `${field} ${value}`);
    test(`of ${amount} with ${named.join(", ") || "600 left"}: ${code ?? "taken"}`, () => {
      expect(refusalOf(given, amount)?.refused ?? null).toBe(code);
    });
  }

  test("above the ceiling: the message says the ceiling, what is spent and what was requested", () => {
    expect(refusalOf({ amountCeiling: 1_003n, amountSpent: 402n }, 701n)?.message).toMatch(
      /\b1003\b.*\b402\b.*\b701\b/,
    );
  });

  test("in another asset than USDC is refused by the ceiling, however small it is", () => {
    for (const asset of ["EURX", "usdc", "USDC "]) {
      const refusal = refusalOf({ amountCeiling: 1_003n, amountSpent: 402n }, 1n, asset);
      expect(refusal?.refused).toBe("session_ceiling_exceeded");
      expect(refusal?.message).toMatch(new RegExp(`\\b1003\\b.*\\b402\\b.*\\b1 ${asset}`));
    }
  });
});

test("what is given back lowers what is spent; the count of warrants never falls", () => {
  expect(giveBack(session(), 150n)).toEqual(session({ amountSpent: 250n }));
  expect(giveBack(session(), 0n)).toEqual(session());
});

test("no sequence of charges and settlements spends more than the ceiling, or less than nothing", () => {
  const steps = fc.array(
    fc.oneof(
      fc.record({ charge: fc.bigInt({ min: 1n, max: 500n }) }),
      fc.record({ settle: fc.nat(20), bps: fc.integer({ min: 0, max: 10_000 }) }),
    ),
    { maxLength: 60 },
  );
  fc.assert(
    fc.property(steps, fc.bigInt({ min: 0n, max: 2_000n }), (sequence, ceiling) => {
      let current = session({ amountCeiling: ceiling, amountSpent: 0n, warrantCount: 0, warrantLimit: null });
      const holds: bigint[] = [];
      let paid = 0n;
      let opened = 0;
      for (const step of sequence) {
        if ("charge" in step) {
          const charged = chargeSession(current, chargeOf(step.charge), USES, NOW);
          const committed = paid + holds.reduce((sum, held) => sum + held, 0n);
          expect(isRefusal(charged)).toBe(committed + step.charge > ceiling);
          if (isRefusal(charged)) continue;
          current = charged;
          holds.push(step.charge);
          opened += 1;
        } else if (holds.length > 0) {
          const [amount] = holds.splice(step.settle % holds.length, 1);
          const share = shareOf(amount!, step.bps);
          current = giveBack(current, amount! - share);
          paid += share;
        }
        expect(current.amountSpent).toBe(paid + holds.reduce((sum, held) => sum + held, 0n));
        expect(current.amountSpent >= 0n && current.amountSpent <= ceiling).toBeTrue();
        expect(current.warrantCount).toBe(opened);
      }
    }),
    { numRuns: 300 },
  );
});
