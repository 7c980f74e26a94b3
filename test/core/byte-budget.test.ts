import { describe, expect, test } from "bun:test";
import { ByteBudget, type ByteBudgetLimits, type Claim, grantedWithin } from "../../src/core/byte-budget.ts";

const LIMITS: ByteBudgetLimits = {
  bytesMax: 100,
  liveBytes: 25,
  partyBytesMax: 50,
  waitingMax: 6,
  partyWaitingMax: 4,
  waitingBytesMax: 1_000,
};

function open(limits: Partial<ByteBudgetLimits> = {}) {
  const budget = new ByteBudget({ ...LIMITS, ...limits });
  const ask = (bytes: number, party: string, live = false): Claim => {
    const claim = budget.claim({ bytes, party, live });
    if (!claim) throw new Error("too many wait");
    return claim;
  };
  return { budget, ask };
}

describe("a budget of bytes", () => {
  test("gives what is free at once, and counts what is held", () => {
    const { budget, ask } = open();
    const claim = ask(40, "a");
    expect([claim.isGranted, budget.heldBytes]).toEqual([true, 40]);
    claim.end();
    claim.end();
    expect([claim.isGranted, budget.heldBytes]).toEqual([false, 0]);
  });

  test("never gives more than it has, to live parties neither", () => {
    const { budget, ask } = open();
    const asked = ["a", "b", "c", "d"].map((party) => ask(30, party, true));
    expect(asked.map(({ isGranted }) => isGranted)).toEqual([true, true, true, false]);
    expect(budget.heldBytes).toBe(90);
  });

  test("keeps a part for live parties, whatever the others hold", () => {
    const { ask } = open();
    const others = [ask(50, "a"), ask(25, "b"), ask(1, "c")];
    expect(others.map(({ isGranted }) => isGranted)).toEqual([true, true, false]);
    expect(ask(25, "d", true).isGranted).toBe(true);
  });

  test("gives one party its share only, but for a single claim", () => {
    const { ask } = open();
    const first = ask(30, "a");
    const second = ask(30, "a");
    expect([first.isGranted, second.isGranted]).toEqual([true, false]);
    // Others do not wait for somebody's own share.
    expect(ask(30, "b").isGranted).toBe(true);
    first.end();
    expect(second.isGranted).toBe(true);
    expect(open().ask(75, "a").isGranted).toBe(true);
  });

  test("serves live parties first", () => {
    const { ask } = open({ liveBytes: 0, partyBytesMax: 100 });
    const all = ask(100, "a");
    const sandbox = ask(60, "b");
    const live = ask(60, "c", true);
    all.end();
    expect([sandbox.isGranted, live.isGranted]).toEqual([false, true]);
    live.end();
    expect(sandbox.isGranted).toBe(true);
  });

  test("serves parties in turn, not one that asked ten times before another", () => {
    const { ask } = open({ liveBytes: 0, partyBytesMax: 100 });
    const first = ask(100, "greedy");
    const next = ask(100, "greedy");
    const other = ask(100, "modest");
    first.end();
    expect([next.isGranted, other.isGranted]).toEqual([false, true]);
    other.end();
    expect(next.isGranted).toBe(true);
  });

  test("does not let small claims pass a large one for ever", () => {
    const { ask } = open({ liveBytes: 0, partyBytesMax: 100 });
    const half = ask(50, "a");
    const large = ask(100, "b");
    const small = ask(10, "c");
    expect([large.isGranted, small.isGranted]).toEqual([false, false]);
    half.end();
    expect([large.isGranted, small.isGranted]).toEqual([true, false]);
  });

  test("refuses at once where too many wait, in all or of one party", () => {
    const { budget, ask } = open({ liveBytes: 0, partyBytesMax: 100, waitingMax: 3, partyWaitingMax: 2 });
    ask(100, "a");
    const waiting = ask(1, "b");
    ask(1, "b");
    expect(budget.claim({ bytes: 1, party: "b", live: true })).toBeNull();
    ask(1, "c");
    expect(budget.claim({ bytes: 1, party: "d", live: true })).toBeNull();
    // Who gives up makes room for another.
    waiting.end();
    expect(budget.claim({ bytes: 1, party: "d", live: true })).not.toBeNull();
  });

  test("refuses at once where too many bytes are waited for, of which one party may have half", () => {
    const { budget, ask } = open({ liveBytes: 0, partyBytesMax: 100, waitingBytesMax: 100 });
    ask(100, "a");
    const waiting = ask(50, "b");
    expect(budget.claim({ bytes: 1, party: "b", live: true })).toBeNull();
    ask(50, "c");
    expect(budget.claim({ bytes: 1, party: "d", live: true })).toBeNull();
    waiting.end();
    expect(budget.claim({ bytes: 50, party: "d", live: true })).not.toBeNull();
  });

  test("lets go of a claim that has waited for too long", async () => {
    const { budget, ask } = open({ liveBytes: 0, partyBytesMax: 100 });
    const all = ask(100, "a");
    const late = ask(10, "b");
    expect(await grantedWithin(late, 1)).toBe(false);
    all.end();
    expect([late.isGranted, budget.heldBytes]).toEqual([false, 0]);
    const holder = ask(100, "a");
    const waiting = grantedWithin(ask(10, "b"), 10_000);
    holder.end();
    expect(await waiting).toBe(true);
  });
});
