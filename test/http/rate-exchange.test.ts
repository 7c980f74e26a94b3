import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type CallerCount, type ExchangeCounts, WINDOW_MS } from "../../src/core/rate.ts";
import type { Counted } from "../../src/http/limits.ts";
import { createSharedRateCounters } from "../../src/http/rate-exchange.ts";

/** What instances that share a ledger tell one another of their callers (docs/idempotency, "Limits"). */

const LIMITS = { read: 80, write: 160, bench: 8 };
const ADA: Counted = { kind: "account", id: "key_ada", live: true };
const BOB: Counted = { kind: "account", id: "key_bob", live: false };
const SOMEWHERE: Counted = { kind: "address", id: "192.0.2.1" };

/** The rows that instances share. */
function createRows() {
  const rows = new Map<string, { window: number; instance: number; caller: string; used: number }>();
  const told: CallerCount[][] = [];
  let isDown = false;
  return {
    told,
    down: (down: boolean) => {
      isDown = down;
    },
    as:
      (instance: number): ExchangeCounts =>
      async (window, own) => {
        if (isDown) throw new Error("the database does not answer");
        if (own.length > 0) told.push([...own]);
        for (const { caller, used } of [{ caller: "", used: 0 }, ...own])
          rows.set(`${window} ${instance} ${caller}`, { window, instance, caller, used });
        const ofWindow = [...rows.values()].filter((row) => row.window === window);
        const used = new Map<string, number>();
        for (const row of ofWindow.filter((row) => row.instance !== instance && row.caller !== ""))
          used.set(row.caller, (used.get(row.caller) ?? 0) + row.used);
        return { used, instances: new Set(ofWindow.map((row) => row.instance)).size };
      },
  };
}

function startInstances(count: number, ...options: [Parameters<typeof createSharedRateCounters>[1]] | []) {
  const rows = createRows();
  const instances = Array.from({ length: count }, () => createSharedRateCounters(LIMITS, ...options));
  const exchange = async (now = 0) => {
    for (const [index, instance] of instances.entries()) await instance.exchange(rows.as(index), now);
  };
  const send = (index: number, times: number, caller = ADA, now = 0): number => {
    let admitted = 0;
    for (let time = 0; time < times; time++)
      if (!instances[index]!.take("read", caller, now).exceeded) admitted += 1;
    return admitted;
  };
  return { rows, instances, exchange, send };
}

describe("a caller of two instances", () => {
  test("has spent its limit at both, once each has told and heard", async () => {
    const { exchange, send, instances } = startInstances(2);
    expect([send(0, 50), send(1, 20)]).toEqual([50, 20]);
    await exchange();
    await exchange();
    expect(instances.map((instance) => instance.peek("read", ADA, 0).remaining)).toEqual([10, 10]);
    expect([send(0, 20), send(1, 0)]).toEqual([10, 0]);
    await exchange();
    expect(send(1, 5)).toBe(0);
    // Another bucket, another caller and the next window have theirs.
    expect(instances[1]!.take("write", ADA, 0).remaining).toBe(159);
    expect(send(1, 80, BOB)).toBe(80);
    expect(send(1, 90, ADA, WINDOW_MS)).toBe(80);
  });

  test("is known to an instance to which it comes for the first time", async () => {
    const { exchange, send, instances } = startInstances(2);
    send(0, 79);
    await exchange();
    expect(instances[1]!.peek("read", ADA, 0).remaining).toBe(1);
    expect(send(1, 3)).toBe(1);
  });

  test("is told of by whoever counted little of it, once another tells of it", async () => {
    const { exchange, send, instances } = startInstances(2);
    send(1, 4);
    send(0, 60);
    for (let time = 0; time < 3; time++) await exchange();
    expect(instances[0]!.peek("read", ADA, 0).remaining).toBe(16);
  });

  test("gets at most its limit, an eighth of it, and what it sends in a second through the others", async () => {
    const step = fc.record({ at: fc.integer({ min: 0, max: 2 }), times: fc.integer({ min: 0, max: 30 }) });
    const halfSeconds = fc.array(fc.array(step, { maxLength: 4 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(halfSeconds, fc.integer({ min: 2, max: 3 }), async (rounds, count) => {
        const { rows, instances, send } = startInstances(count);
        let admitted = 0;
        const sent: number[] = [];
        for (const round of rounds) {
          sent.push(0);
          for (const { at, times } of round) {
            const now = send(at % count, times);
            admitted += now;
            sent[sent.length - 1]! += now;
          }
          // All tell within the half second, in any order, and hear with it.
          for (const [index, instance] of instances.entries()) await instance.exchange(rows.as(index), 0);
        }
        const inSecond = sent.map((times, at) => times + (sent[at - 1] ?? 0));
        expect(admitted).toBeLessThanOrEqual(LIMITS.read * (1 + 1 / 8) + Math.max(0, ...inSecond));
        // And what is left says so everywhere in the end.
        if (admitted >= LIMITS.read * (1 + 1 / 8)) {
          for (const [index, instance] of instances.entries()) await instance.exchange(rows.as(index), 0);
          for (let index = 0; index < count; index++) expect(send(index, 1)).toBe(0);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("is counted by each alone while they cannot tell, and together again after that", async () => {
    const { rows, exchange, send } = startInstances(2);
    rows.down(true);
    expect([send(0, 90), send(1, 30)]).toEqual([80, 30]);
    await expect(exchange()).rejects.toThrow("does not answer");
    expect(send(1, 10)).toBe(10);
    rows.down(false);
    await exchange();
    expect(send(1, 1)).toBe(0);
  });
});

describe("what is told", () => {
  test("is nothing of callers with a small part, and nothing twice", async () => {
    const { rows, exchange, send } = startInstances(2);
    for (let caller = 0; caller < 1_000; caller++) send(0, 5, { kind: "address", id: `192.0.2.${caller}` });
    await exchange();
    expect(rows.told).toEqual([]);
    send(0, 6);
    await exchange();
    await exchange();
    expect(rows.told).toEqual([[{ caller: "read account key_ada", used: 6 }]]);
    // Beyond the limit there is nothing more to tell.
    send(0, 200);
    await exchange();
    send(0, 200);
    await exchange();
    expect(rows.told.slice(1)).toEqual([[{ caller: "read account key_ada", used: 81 }]]);
  });

  test("has a limit for strangers, one for the sandbox and one for live", async () => {
    const { rows, exchange, send } = startInstances(2, { live: 3, sandbox: 2, address: 1 });
    for (let caller = 0; caller < 5; caller++) {
      for (const kind of [SOMEWHERE, BOB, ADA]) send(0, 10, { ...kind, id: `${kind.id}-${caller}` });
    }
    await exchange();
    const callers = rows.told.flat().map(({ caller }) => caller.replace(/-\d$/, ""));
    expect(callers.toSorted()).toEqual([
      ...["read account key_ada", "read account key_ada", "read account key_ada"],
      ...["read account key_bob", "read account key_bob", "read address 192.0.2.1"],
    ]);
    // Those that are told of stay so.
    send(0, 1, { ...SOMEWHERE, id: `${SOMEWHERE.id}-0` });
    await exchange();
    expect(rows.told.at(-1)).toEqual([{ caller: "read address 192.0.2.1-0", used: 11 }]);
  });

  test("in a window is not heard in the next one", async () => {
    const { rows, instances, send } = startInstances(2);
    send(0, 80);
    await instances[0]!.exchange(rows.as(0), 0);
    const asked = Promise.withResolvers<void>();
    const slow = instances[1]!.exchange(async (...told) => {
      await asked.promise;
      return rows.as(1)(...told);
    }, 0);
    expect(send(1, 80, ADA, WINDOW_MS)).toBe(80);
    asked.resolve();
    await slow;
    expect(send(1, 1, ADA, WINDOW_MS)).toBe(0);
  });
});
