import { beforeEach, expect, spyOn, test } from "bun:test";
import { createFaultLog, logError, logWarning } from "../../src/platform/log.ts";

let now: number;
let logged: unknown[];
let logFault: ReturnType<typeof createFaultLog>;
beforeEach(() => {
  now = 0;
  logged = [];
  logFault = createFaultLog(
    (message, error, fields = {}) => logged.push([message, error, fields]),
    () => now,
  );
});
const lines = () => logged.splice(0);

test("the first fault is logged at once, then one a minute, with the count of those that were left out", () => {
  for (; now < 180_000; now += 100) logFault("job failed", "full", { job: "webhooks" });
  expect(lines()).toEqual([
    ["job failed", "full", { job: "webhooks" }],
    ["job failed", "full", { job: "webhooks", unlogged: 599 }],
    ["job failed", "full", { job: "webhooks", unlogged: 599 }],
  ]);
  now += 3_600_000;
  logFault("job failed", "full", { job: "webhooks" });
  logFault("job failed", "full", { job: "webhooks" });
  expect(lines()).toEqual([["job failed", "full", { job: "webhooks", unlogged: 599 }]]);
});

test("a fault that has not repeated is logged without a count; other fields make it another fault", () => {
  logFault("job failed", "a", { job: "webhooks" });
  logFault("job failed", "b", { job: "deadlines" });
  logFault("a check could not be undone", "c", { warrant_id: "wrt_1" });
  now += 60_000;
  logFault("job failed", "d", { job: "webhooks" });
  expect(lines()).toEqual([
    ["job failed", "a", { job: "webhooks" }],
    ["job failed", "b", { job: "deadlines" }],
    ["a check could not be undone", "c", { warrant_id: "wrt_1" }],
    ["job failed", "d", { job: "webhooks" }],
  ]);
});

test("of very many different fields a hundred are kept apart; the others count as one, until a minute later", () => {
  const all = (from: number) => {
    for (let item = from; item < from + 5_000; item++) logFault("broken", "why", { item });
  };
  all(0);
  expect(lines()).toHaveLength(101);
  now += 60_000;
  all(5_000);
  const again = lines();
  // The count of the others comes first; the hundred were logged already.
  expect(again[0]).toEqual(["broken", "why", { item: 4_999, unlogged: 4_898 }]);
  expect(again.slice(1, 3)).toEqual([
    ["broken", "why", { item: 5_000 }],
    ["broken", "why", { item: 5_001 }],
  ]);
});

test("another cause is logged at once; new causes have a limit, and hide no other job", () => {
  logFault("job failed", new Error("disk full"), { job: "ledger" });
  logFault("job failed", new TypeError("disk full"), { job: "ledger" });
  logFault("job failed", new Error("corrupt"), { job: "ledger" });
  expect(lines()).toHaveLength(3);
  for (let count = 0; count < 5_000; count++)
    logFault("job failed", new Error(`file ${count}`), { job: "ledger" });
  expect(lines()).toHaveLength(8);
  logFault("job failed", new Error("disk full"), { job: "deadlines" });
  expect(lines()).toHaveLength(1);
});

test("a fault that was left out is logged before it is forgotten", () => {
  for (let count = 0; count < 5; count++) logFault("job failed", "a", { job: "webhooks" });
  now += 60_000;
  lines();
  logFault("job failed", "b", { job: "deadlines" });
  expect(lines()).toEqual([
    ["job failed", "a", { job: "webhooks", unlogged: 3 }],
    ["job failed", "b", { job: "deadlines" }],
  ]);
});

test("a flood of one message hides no other: each is logged about once a minute, and nothing is left uncounted", () => {
  const given = new Map<string, number>();
  const fail = (message: string, fields: Readonly<Record<string, string>>) => {
    const name = fields.job ?? message;
    given.set(name, (given.get(name) ?? 0) + 1);
    logFault(message, new Error("disk I/O error"), fields);
  };
  for (; now < 540_000; now += 100) {
    if (now % 200 === 0) fail("a webhook could not be delivered", { delivery_id: `whd_${now}` });
    if (now % 500 === 0) fail("job failed", { job: "deadlines" });
    if (now % 15_000 === 0) fail("job failed", { job: "ledger" });
  }
  const allLines = lines() as [string, unknown, { job?: string; unlogged?: number }][];
  const of = (name: string) => allLines.filter(([message, , { job }]) => (job ?? message) === name);
  for (const job of ["deadlines", "ledger"]) expect(of(job)).toHaveLength(9);
  const deliveries = of("a webhook could not be delivered");
  // A hundred of 300 are kept apart in each minute.
  expect(deliveries.length).toBeGreaterThan(9);
  expect(deliveries.length).toBeLessThanOrEqual(9 * 101);
  now += 60_000;
  fail("a webhook could not be delivered", { delivery_id: "whd_last" });
  fail("job failed", { job: "last" });
  allLines.push(...(lines() as typeof allLines));
  for (const [name, count] of given)
    expect(of(name).reduce((sum, [, , { unlogged = 0 }]) => sum + 1 + unlogged, 0)).toBe(count);
});

test("what strangers wrote is escaped in a line, and has the same value for who parses it", () => {
  const said = "no\u001b[2J\u009b31m \u202e\u200b\ufeff\n";
  const written: string[] = [];
  const write = spyOn(process.stderr, "write").mockImplementation((text) => written.push(String(text)) > 0);
  try {
    logError("request failed", new Error(said), { agent: said });
    logWarning("a source answered", { message: said });
  } finally {
    write.mockRestore();
  }
  for (const line of written) expect(line).toMatch(/^[\x20-\x7e]+\n$/);
  const [error, warning] = written.map((line) => JSON.parse(line));
  expect([error.agent, warning.message]).toEqual([said, said]);
  expect(error.error).toContain(said);
});
