import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isRefusal } from "../../src/core/errors.ts";
import { AMOUNT_MAX } from "../../src/core/money.ts";
import {
  decide,
  EVENT_TYPES,
  type EventType,
  eventOf,
  isLegalMove,
  isOverdue,
  isSettled,
  type Move,
  type Mover,
  openingOf,
  STATES,
  type State,
  type Transition,
  type Warrant,
} from "../../src/core/warrant.ts";

const MOVERS: readonly Mover[] = ["caller", "operator", "second", "system"];
const NOW = Date.UTC(2030, 0, 15, 12);
/** The clock is a second behind the newest record. */
const AT = { now: NOW, recordedAt: NOW + 1_000 };

/** Every legal move, written out again (docs/concepts, "The legal moves"). The open is openingOf. */
const LEGAL: readonly (readonly [from: readonly State[], to: readonly State[], by: Mover])[] = [
  [["held"], ["verifying"], "caller"],
  [["held"], ["expired"], "system"],
  [["held"], ["frozen"], "system"],
  [["held"], ["refunded"], "system"],
  [["verifying"], ["released", "partially_released", "escalated", "refunded"], "system"],
  [["verifying"], ["held", "frozen"], "system"],
  [["frozen"], ["held"], "system"],
  [["held", "frozen", "escalated"], ["released", "partially_released", "refunded"], "operator"],
  [["escalated"], ["disputed"], "operator"],
  [["escalated"], ["refunded"], "system"],
  [["disputed"], ["released", "partially_released", "refunded"], "second"],
];
const isLegal = (from: State, to: State, by: Mover): boolean =>
  LEGAL.some(([froms, tos, mover]) => froms.includes(from) && tos.includes(to) && mover === by);

const EVERY_MOVE = STATES.flatMap((from) =>
  STATES.flatMap((to) => MOVERS.map((by) => ({ from, to, by }) as const)),
);
const LEGAL_MOVES = EVERY_MOVE.filter(({ from, to, by }) => isLegal(from, to, by));
const ILLEGAL_MOVES = EVERY_MOVE.filter(({ from, to, by }) => !isLegal(from, to, by));

const warrantIn = (state: State, rest: Partial<Warrant> = {}): Warrant => ({
  id: "wrt_01ARZ3NDEKTSV4RRFFQ69G5FAV",
  organisationId: "org_1",
  mode: "sandbox",
  state,
  version: 3,
  amount: 8_400_000n,
  asset: "USDC",
  releasedBps: null,
  payee: "seller",
  spec: { clauses: [{ kind: "http.status", equals: 200 }] },
  specHash: "a".repeat(64),
  agentId: null,
  openedBy: null,
  sessionId: null,
  verifierId: null,
  policyId: null,
  policyVersion: null,
  rulesHash: "b".repeat(64),
  traceHead: "c".repeat(64),
  deadline: NOW + 1_000,
  openedAt: NOW - 5_000,
  verifyingSince: null,
  graceUntil: null,
  settledAt: null,
  ...rest,
});
const moveTo = (to: State, by: Mover, releasedBps = 5_000): Move =>
  to === "partially_released" ? { to, by, releasedBps } : { to, by };
const moved = (warrant: Warrant, move: Move): Transition => {
  const transition = decide(warrant, move, AT);
  if (isRefusal(transition)) throw new Error(transition.message);
  return transition;
};

describe("the states", () => {
  test("are nine, of which four are settled", () => {
    expect([...STATES].toSorted()).toEqual([
      ...(["disputed", "escalated", "expired", "frozen", "held"] as const),
      ...(["partially_released", "refunded", "released", "verifying"] as const),
    ]);
    expect(STATES.filter(isSettled).toSorted()).toEqual([
      ...(["expired", "partially_released", "refunded", "released"] as const),
    ]);
  });
});

describe("the transition table", () => {
  for (const from of STATES) {
    for (const to of STATES) {
      const movers = MOVERS.filter((by) => isLegal(from, to, by));
      test(`${from} → ${to}: ${movers.join(", ") || "nobody"}`, () => {
        expect(MOVERS.filter((by) => isLegalMove(from, to, by))).toEqual(movers);
      });
    }
  }

  test("is final once settled", () => {
    const out = EVERY_MOVE.filter(({ from, to, by }) => isSettled(from) && isLegalMove(from, to, by));
    expect(out).toEqual([]);
  });

  test("leads from every state that is not settled to one that is", () => {
    const reached = new Set<State>(STATES.filter(isSettled));
    for (let round = 0; round < STATES.length; round++) {
      for (const { from, to, by } of EVERY_MOVE) {
        if (reached.has(to) && isLegalMove(from, to, by)) reached.add(from);
      }
    }
    expect(reached.size).toBe(STATES.length);
  });
});

describe("decide", () => {
  test("refuses every illegal move, naming both states", () => {
    expect(ILLEGAL_MOVES.length + LEGAL_MOVES.length).toBe(9 * 9 * 4);
    for (const { from, to, by } of ILLEGAL_MOVES) {
      const refusal = decide(warrantIn(from), moveTo(to, by), AT);
      expect(refusal).toEqual({
        refused: "illegal_transition",
        message: `A warrant that is ${from} cannot become ${to} by this request.`,
      });
    }
  });

  const legalMoves = fc.constantFrom(...LEGAL_MOVES);
  const amounts = fc.oneof(
    fc.bigInt({ min: 1n, max: 20_000n }),
    fc.bigInt({ min: 1n, max: AMOUNT_MAX }),
    fc.constant(AMOUNT_MAX),
  );
  const bps = fc.integer({ min: 1, max: 9_999 });

  test("of any legal move: version, times, legs and the released share", () => {
    fc.assert(
      fc.property(legalMoves, amounts, bps, fc.nat(), ({ from, to, by }, amount, share, version) => {
        const warrant = warrantIn(from, { amount, version });
        const transition = decide(warrant, moveTo(to, by, share), AT);
        const paid =
          to === "released" ? amount : to === "partially_released" ? (amount * BigInt(share)) / 10_000n : 0n;
        if (to === "partially_released" && paid === 0n) {
          expect(transition).toMatchObject({ refused: "validation_failed" });
          return;
        }
        const settled = ["released", "partially_released", "refunded", "expired"].includes(to);
        expect(transition).toEqual({
          from,
          warrant: {
            ...warrant,
            state: to,
            version: version + 1,
            verifyingSince: to === "verifying" ? NOW : null,
            releasedBps: to === "released" ? 10_000 : to === "partially_released" ? share : null,
            settledAt: settled ? AT.recordedAt : null,
          },
          legs: settled
            ? { available: amount - paid, held: -amount, paid, funding: 0n, payable: paid, submitted: 0n }
            : null,
        });
      }),
      { numRuns: 1_000 },
    );
  });

  test("of any legal move: legs that sum to zero, and a hold that is not paid twice", () => {
    fc.assert(
      fc.property(legalMoves, amounts, bps, ({ from, to, by }, amount, share) => {
        const transition = decide(warrantIn(from, { amount }), moveTo(to, by, share), AT);
        if (isRefusal(transition) || transition.legs === null) return;
        const { available, held, paid, funding } = transition.legs;
        expect(available + held + paid + funding).toBe(0n);
        expect(held).toBe(-amount);
        expect(available >= 0n && paid >= 0n).toBeTrue();
        expect(available + paid).toBe(amount);
      }),
      { numRuns: 500 },
    );
  });

  test("along any walk: versions without a gap, and a settlement only at its end", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 12 }), (choices) => {
        let { warrant } = openingOf(warrantIn("held", { version: 1 }));
        for (const [index, choice] of choices.entries()) {
          const open = LEGAL_MOVES.filter(({ from }) => from === warrant.state);
          expect(open.length === 0).toBe(warrant.settledAt !== null);
          const next = open[choice % open.length];
          if (!next) return;
          warrant = moved(warrant, moveTo(next.to, next.by)).warrant;
          expect(warrant.version).toBe(index + 2);
        }
      }),
    );
  });

  test("leaves the warrant that it was given as it was", () => {
    for (const { from, to, by } of LEGAL_MOVES) {
      const warrant = Object.freeze(warrantIn(from));
      moved(warrant, moveTo(to, by));
      expect(warrant).toEqual(warrantIn(from));
    }
  });

  const SHARES: readonly (readonly [amount: bigint, bps: number, paid: bigint | null])[] = [
    [1n, 9_999, null],
    [1n, 1, null],
    [9_999n, 1, null],
    [10_000n, 1, 1n],
    [2n, 4_999, null],
    [2n, 5_000, 1n],
    [AMOUNT_MAX, 1, 922_337_203_685_477n],
  ];
  for (const [amount, share, paid] of SHARES) {
    test(`${share} basis points of ${amount} ${paid === null ? "are refused" : `pay ${paid}`}`, () => {
      for (const { from, by } of LEGAL_MOVES.filter(({ to }) => to === "partially_released")) {
        const answer = decide(
          warrantIn(from, { amount }),
          { to: "partially_released", by, releasedBps: share },
          AT,
        );
        if (paid === null) {
          expect(answer).toMatchObject({
            refused: "validation_failed",
            message: expect.stringMatching(/^released_bps: /),
          });
        } else {
          expect(answer).toMatchObject({ legs: { paid } });
        }
      }
    });
  }

  test("releases and refunds the smallest amount", () => {
    const one = warrantIn("held", { amount: 1n });
    expect(moved(one, { to: "released", by: "operator" }).legs).toMatchObject({ paid: 1n, available: 0n });
    expect(moved(one, { to: "refunded", by: "operator" }).legs).toMatchObject({ paid: 0n, available: 1n });
  });

  for (const releasedBps of [undefined, 0, 10_000, -1, 10_001, Number.NaN, 0.5, 5_000.5]) {
    test(`never pays a share of ${releasedBps}: a fault, not a refusal`, () => {
      const move = { to: "partially_released", by: "operator", releasedBps } as Move;
      expect(() => decide(warrantIn("held"), move, AT)).toThrow();
    });
  }

  test("takes no share from a move that is not a partial release", () => {
    const release = decide(warrantIn("held"), { to: "released", by: "operator", releasedBps: 1 }, AT);
    expect(release).toMatchObject({ warrant: { releasedBps: 10_000 }, legs: { paid: 8_400_000n } });
    const refund = decide(warrantIn("held"), { to: "refunded", by: "operator", releasedBps: 1 }, AT);
    expect(refund).toMatchObject({ warrant: { releasedBps: null }, legs: { paid: 0n } });
  });
});

describe("an interrupted check", () => {
  const MINUTE = 60_000;
  /** Minutes from the deadline; negative before it. */
  const at = (minutes: number) => NOW + minutes * MINUTE;
  const verifying = (began: number, grace: number | null = null): Warrant =>
    warrantIn("verifying", {
      deadline: NOW,
      verifyingSince: at(began),
      graceUntil: grace === null ? null : at(grace),
    });
  const after = (warrant: Warrant, move: Move, now: number): Warrant => {
    const transition = decide(warrant, move, { now, recordedAt: now });
    if (isRefusal(transition)) throw new Error(transition.message);
    return transition.warrant;
  };
  const interrupted = (warrant: Warrant, now: number, to: "held" | "frozen" = "held"): Warrant =>
    after(warrant, { to, by: "system" }, now);
  const AN_MS = 1 / MINUTE;

  /** When the check began, the grace that there was, when it was interrupted, and the grace after it. */
  const GRACES: readonly (readonly [string, number, number | null, number, number | null])[] = [
    ["long before the deadline gives none: the deadline is later", -60, null, -30, null],
    ["whose ten minutes would end at the deadline gives none", -60, null, -10, null],
    ["ten minutes less a millisecond before the deadline", -60, null, -10 + AN_MS, AN_MS],
    ["just before the deadline", -1, null, -AN_MS, 10 - AN_MS],
    ["at the deadline", -1, null, 0, 10],
    ["after the deadline", -AN_MS, null, 5, 15],
    ["that began at the deadline gives none: it was too late", 0, null, 5, null],
    ["that began after the deadline gives none", 1, null, 5, null],
    ["that began within the grace gives it anew", 14, 15, 16, 26],
    ["that began at the end of the grace gives no more", 15, 15, 16, 15],
    ["40 minutes later has ten more", -1, null, 40, 50],
    ["50 minutes later has the last ten", -1, null, 50, 60],
    ["55 minutes later has five: never more than an hour past the deadline", -1, null, 55, 60],
    ["two hours later has none that is left", -1, null, 120, 60],
    ["again and again, has an hour in all", 58, 60, 59, 60],
    ["while the clock was set back takes no grace away", 5, 15, -60, 15],
  ];
  for (const [what, began, before, now, until] of GRACES) {
    test(what, () => {
      const expected = until === null ? null : at(until);
      for (const to of ["held", "frozen"] as const) {
        expect(interrupted(verifying(began, before), at(now), to).graceUntil).toBe(expected);
      }
    });
  }

  test("a warrant is overdue from its deadline on, or from the end of its grace on", () => {
    const held = warrantIn("held", { deadline: NOW });
    expect([NOW - 1, NOW, NOW + 1].map((now) => isOverdue(held, now))).toEqual([false, true, true]);
    const graced = { ...held, graceUntil: at(10) };
    expect([NOW, at(10) - 1, at(10)].map((now) => isOverdue(graced, now))).toEqual([false, false, true]);
  });

  test("a grace stays while a check may come, and ends with every other state", () => {
    for (const { from, to, by } of LEGAL_MOVES) {
      const { warrant } = moved(warrantIn(from, { graceUntil: at(10) }), moveTo(to, by));
      expect([from, to, warrant.graceUntil]).toEqual([
        from,
        to,
        ["held", "verifying", "frozen"].includes(to) ? at(10) : null,
      ]);
    }
  });

  test("however often and whenever it is interrupted, a grace is never shorter, and ends within the hour", () => {
    const steps = fc.array(fc.record({ begins: fc.nat(20), takes: fc.nat(20) }), { maxLength: 20 });
    fc.assert(
      fc.property(fc.integer({ min: -30, max: 0 }), steps, (start, all) => {
        let now = at(start);
        let held = warrantIn("held", { deadline: NOW });
        for (const { begins, takes } of all) {
          now += begins * MINUTE;
          const inTime = !isOverdue(held, now);
          const begun = after(held, { to: "verifying", by: "caller" }, now);
          now += takes * MINUTE;
          const back = interrupted(begun, now);
          expect(back.graceUntil ?? NOW).toBeGreaterThanOrEqual(held.graceUntil ?? NOW);
          expect(back.graceUntil ?? NOW).toBeLessThanOrEqual(at(60));
          if (!inTime) expect(back.graceUntil).toBe(held.graceUntil);
          else if (now < at(60)) expect(isOverdue(back, now)).toBeFalse();
          held = back;
        }
      }),
    );
  });
});

test("the opening has no earlier state, and holds the amount", () => {
  const warrant = warrantIn("held", { version: 1, amount: 7n });
  expect(openingOf(warrant)).toEqual({
    from: null,
    warrant,
    legs: { available: -7n, held: 7n, paid: 0n, funding: 0n, payable: 0n, submitted: 0n },
  });
});

describe("the event", () => {
  /** docs/events, "Events". An expiry fires `warrant.refunded`; a warrant that is held again fires nothing. */
  const EVENTS: Readonly<Record<State, EventType | null>> = {
    held: null,
    verifying: "warrant.verifying",
    released: "warrant.released",
    partially_released: "warrant.partially_released",
    refunded: "warrant.refunded",
    expired: "warrant.refunded",
    escalated: null,
    frozen: null,
    disputed: null,
  };

  test("of the opening is warrant.opened", () => expect(eventOf(null, "held")).toBe("warrant.opened"));

  for (const { from, to } of LEGAL_MOVES) {
    test(`of ${from} → ${to} is ${EVENTS[to] ?? "none"}`, () => expect(eventOf(from, to)).toBe(EVENTS[to]));
  }

  test("is one of five, and warrant.escalated is not among them", () => {
    expect([...EVENT_TYPES]).toEqual([
      "warrant.opened",
      "warrant.verifying",
      "warrant.released",
      "warrant.partially_released",
      "warrant.refunded",
    ]);
  });
});
