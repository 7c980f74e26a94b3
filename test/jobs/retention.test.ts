import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { sha256 } from "../../src/core/canonical.ts";
import { UNSEEN_ANSWER } from "../../src/core/capsule.ts";
import { reachedEvidence } from "../../src/core/clauses/evidence.ts";
import { countRunningTime, forgetOld, retentionJob } from "../../src/jobs/retention.ts";
import { createTestContext, newCapsules } from "../support/context.ts";
import { asksExact, delivers, type Market, openMarket, SELLER_URL } from "../support/market.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** Keys are remembered for 30 days, and one in flight is never deleted (docs/operating, "Retention"; docs/idempotency, "Idempotency"). */

const DAY_MS = 86_400_000;

let service: ShellService;
let home: TestOrganisation;
beforeEach(async () => {
  service = startTestShell();
  home = await service.organisation();
});
afterEach(() => service.close());

const body = () => service.body({ deadline: new Date(Date.UTC(2031, 0)).toISOString() });
const keys = () => rowsOf("idempotency_keys");
const openAs = (key: string, sent: object) => service.post("/v1/warrants", sent, { as: home.live.as, key });

/** A server runs for so long; then it forgets. Answers how many rows it deleted. */
async function runFor(ms: number, { days = 30, on = service } = {}): Promise<number> {
  on.clock.now += ms;
  await countRunningTime(on.ctx, ms, days);
  return forgetOld(on.ctx);
}

const rowsOf = (table: string): number => service.ctx.ledger.allRows(table).length;

test("a key is replayed for 30 days, and is free after that", async () => {
  const sent = body();
  const first = await openAs("the key", sent);
  await runFor(1);
  await runFor(30 * DAY_MS - 1);
  const replay = await openAs("the key", sent);
  expect([replay.body.id, replay.headers.get("idempotent-replayed")]).toEqual([first.body.id, "true"]);
  expect(service.balance(home).held).toBe(100n);

  await runFor(1);
  const anew = await openAs("the key", sent);
  expect([anew.status, anew.headers.get("idempotent-replayed")]).toEqual([201, null]);
  expect(anew.body.id).not.toBe(first.body.id);
  expect(service.balance(home).held).toBe(200n);
});

describe("ages are counted by the time that passed while a server ran", () => {
  const HOUR_MS = 3_600_000;

  test("a clock that is a month ahead for one run makes no key free; the same request holds once", async () => {
    const sent = body();
    const first = await openAs("the key", sent);
    // By the clock it is 40 days from this run to the next one.
    await runFor(1);
    service.clock.now += 40 * DAY_MS;
    await runFor(HOUR_MS);
    service.clock.now -= 40 * DAY_MS;
    await runFor(HOUR_MS);
    const again = await openAs("the key", sent);
    expect([again.body.id, again.headers.get("idempotent-replayed")]).toEqual([first.body.id, "true"]);
    expect(service.balance(home).held).toBe(100n);
  });

  test("time in which no server ran does not count, and what was counted is kept", async () => {
    await openAs("the key", body());
    await runFor(1);
    for (let day = 1; day < 30; day++) {
      service.clock.now += 100 * DAY_MS;
      await runFor(DAY_MS);
    }
    expect([await runFor(DAY_MS - 1), keys(), await runFor(1), keys()]).toEqual([0, 1, 1, 0]);
  });

  test("however long a server stood still before, a key is not kept for longer than its days", async () => {
    await runFor(HOUR_MS);
    service.clock.now += 3_650 * DAY_MS;
    await openAs("the key", service.body({ deadline: service.timeIn(DAY_MS) }));
    await runFor(HOUR_MS);
    for (let day = 1; day < 30; day++) await runFor(DAY_MS);
    expect([keys(), await runFor(DAY_MS), keys()]).toEqual([1, 1, 0]);
  });

  test("by hand nothing is counted, and the last server's days hold", async () => {
    await openAs("the key", body());
    service.clock.now += 100 * DAY_MS;
    // Before the first server it is not known for how long keys are kept.
    expect([await forgetOld(service.ctx), keys()]).toEqual([0, 1]);
    await runFor(1);
    await runFor(10 * DAY_MS);
    expect([await forgetOld(service.ctx), keys()]).toEqual([0, 1]);
    await countRunningTime(service.ctx, 0, 10);
    expect([await forgetOld(service.ctx), keys()]).toEqual([1, 0]);
  });

  test("a key that was made while the clock was behind is as old as the records before it", async () => {
    await openAs("first", body());
    await runFor(1);
    service.clock.now -= 40 * DAY_MS;
    await openAs("second", service.body({ deadline: service.timeIn(HOUR_MS) }));
    await runFor(30 * DAY_MS);
    expect(keys()).toBe(1);
  });

  test("neither the time of the count itself is counted, nor any time twice after a fault", async () => {
    let monotonicMs = 5;
    let isBroken = false;
    const { store } = service.ctx;
    const execute = async (command: never) => {
      const answer = await store.execute(command);
      monotonicMs += 1_000;
      if (isBroken) throw new Error("the answer was lost");
      return answer;
    };
    const ctx = { ...service.ctx, store: { ...store, execute: execute as typeof store.execute } };
    const run = retentionJob(ctx, 30, () => monotonicMs);
    const ranMs = () => service.ctx.reader.instance.get().retentionMarks.at(-1)?.ranMs;
    monotonicMs += 60.7;
    await run();
    expect(ranMs()).toBe(60);
    isBroken = true;
    monotonicMs += 500;
    await expect(run()).rejects.toThrow("the answer was lost");
    isBroken = false;
    monotonicMs += 7;
    await run();
    expect(ranMs()).toBe(60 + 500 + 7);
  });

  test("a mark is a record: nothing that is recorded later is before it, in another process either", async () => {
    service.clock.now += 40 * DAY_MS;
    const markedAt = service.clock.now;
    await countRunningTime(service.ctx, HOUR_MS, 30);
    const other = createTestContext({}, service.folder);
    await other.store.read(() => {}); // On PostgreSQL it opens with the first use.
    expect([other.now() < markedAt, other.store.lastRecordedAt()]).toEqual([true, markedAt]);
    await other.store.close();
  });
});

test("the operator may set a longer or shorter time", async () => {
  await openAs("the key", body());
  await runFor(1);
  await runFor(DAY_MS, { days: 2 });
  expect(keys()).toBe(1);
  await runFor(1, { days: 1 });
  expect(keys()).toBe(0);
});

test("a key in flight is never deleted", async () => {
  const gate = Promise.withResolvers<void>();
  const slow = startTestShell({
    fetchEvidence: async () => {
      await gate.promise;
      const evidence = reachedEvidence({ status: 200, body: Buffer.from("{}") });
      return { evidence, status: 200, bytes: 2, durationMs: 1, answer: UNSEEN_ANSWER };
    },
  });
  const organisation = await slow.organisation();
  const { id } = await slow.opened(organisation);
  const send = () =>
    slow.post(
      `/v1/warrants/${id}/verify`,
      { source_url: "https://s.example/" },
      { as: organisation.live.as, key: "v" },
    );
  const running = send();
  while (slow.ctx.reader.warrants.find(id)?.state !== "verifying") await new Promise(setImmediate);
  await runFor(1, { on: slow });
  await runFor(400 * DAY_MS, { on: slow });
  expect((await send()).code).toBe("idempotency_in_flight");
  gate.resolve();
  await running;
  await slow.close();
});

test("a backlog of several steps is forgotten in one run", async () => {
  const row = `INSERT INTO idempotency_keys (position, scope, key, fingerprint, status, body, created_at)
    SELECT ?5, position, ?2, ?4, 201, '{}', ?3 FROM scopes WHERE organisation_id = ?1 AND mode = 'live'`;
  const { change } = service.ctx.ledger;
  for (let count = 0; count < 350; count++) {
    const createdAt = count < 340 ? 1 : service.ctx.now() + 1;
    change(row, home.id, `old-${count}`, createdAt, Uint8Array.of(0), 1_000_000 + count);
  }
  await runFor(1);
  expect([await runFor(30 * DAY_MS), keys()]).toEqual([340, 10]);
  expect(await forgetOld(service.ctx)).toBe(0);
  // They have no digests, so the audit would name them.
  change("DELETE FROM idempotency_keys WHERE key LIKE 'old-%'");
});

describe("the body of a purchase", () => {
  let market: Market;
  let shop: ShellService;
  let buyer: TestOrganisation;
  beforeEach(async () => {
    market = openMarket();
    // The capsules of the checks share these bodies, and here go with them.
    shop = startTestShell({ x402: market.x402, capsules: newCapsules({ days: 30 }) });
    buyer = await shop.organisation();
  });
  afterEach(() => shop.close());

  const spec = { clauses: [{ kind: "json.jsonpath", path: "$.ok" }] };
  const buy = (key: string) =>
    shop.post("/v1/x402/pay", { url: SELLER_URL, max_amount: "100", spec }, { as: buyer.sandbox.as, key });
  const kept = (body: unknown) => shop.ctx.reader.contents.get(sha256(Buffer.from(JSON.stringify(body))));
  const shopRunsFor = (ms: number) => runFor(ms, { on: shop });

  test("is replayed for 30 days, and then deleted; the purchase stays", async () => {
    market.paid = () => delivers({ ok: 1 });
    const first = await buy("one");
    await shopRunsFor(1);
    await shopRunsFor(30 * DAY_MS - 1);
    expect([(await buy("one")).text, first.body.body]).toEqual([first.text, '{"ok":1}']);
    expect(kept({ ok: 1 })).not.toBeNull();
    await shopRunsFor(1);
    expect(kept({ ok: 1 })).toBeNull();
    const scope = { organisationId: buyer.id, mode: "sandbox" } as const;
    const [purchase] = shop.ctx.reader.purchases.list(scope, null, 10);
    expect(purchase).toMatchObject({ responseHash: sha256(Buffer.from('{"ok":1}')), phase: "ended" });
  });

  test("is replayed as long as its key, though the clock was behind when it was bought", async () => {
    await shopRunsFor(1);
    await shopRunsFor(30 * DAY_MS);
    shop.clock.now -= 40 * DAY_MS;
    market.paid = () => delivers({ ok: 1 });
    await buy("one");
    shop.clock.now += 40 * DAY_MS;
    await forgetOld(shop.ctx);
    expect((await buy("one")).body.body).toBe('{"ok":1}');
  });

  test("that two purchases share stays while one of them is replayed", async () => {
    market.paid = () => delivers({ ok: 1 });
    await buy("one");
    await shopRunsFor(DAY_MS);
    await buy("two");
    await shopRunsFor(1);
    await shopRunsFor(30 * DAY_MS - 1);
    expect((await buy("two")).body.body).toBe('{"ok":1}');
    await shopRunsFor(1);
    expect(kept({ ok: 1 })).toBeNull();
  });

  test("that a purchase under way shares stays, though the key of another one is deleted", async () => {
    market.paid = () => delivers({ ok: 1 });
    await buy("one");
    await shopRunsFor(1);
    const asked = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    market.first = asksExact("100");
    const { chains } = market.x402;
    const find = spyOn(chains, "find").mockImplementation(async () => {
      asked.resolve();
      await gate.promise;
      return "used";
    });
    const running = buy("two");
    await asked.promise;
    expect(await shopRunsFor(30 * DAY_MS)).toBeGreaterThan(0);
    expect(kept({ ok: 1 })).not.toBeNull();
    gate.resolve();
    expect((await running).body.body).toBe('{"ok":1}');
    find.mockRestore();
  });

  test("is deleted in one run, also for more purchases than a step takes", async () => {
    for (let count = 0; count < 10; count++) {
      market.paid = () => delivers({ ok: count });
      await buy(`key ${count}`);
    }
    await shopRunsFor(1);
    await shopRunsFor(30 * DAY_MS);
    expect(Array.from({ length: 10 }, (_, count) => kept({ ok: count }))).toEqual(Array(10).fill(null));
  });
});

test("a sign-in stays for a day after its end, and one that goes on stays", async () => {
  const before = rowsOf("auth_sessions");
  const sessionHours = 12;
  service.clock.now += sessionHours * 3_600_000;
  await home.signIn(home.people.operator);
  await runFor(1);
  expect([await runFor(DAY_MS - 1), rowsOf("auth_sessions")]).toEqual([0, before + 1]);
  expect([await runFor(1), rowsOf("auth_sessions")]).toEqual([before, 1]);
});

test("webhook deliveries that have ended are deleted after 30 days", async () => {
  const { change, rows } = service.ctx.ledger;
  change(
    "INSERT INTO webhooks (rowid, id, organisation_id, mode, url, events, encrypted_secret, disabled, created_at) VALUES (1, 'whk_1', ?, 'live', 'https://h.example', '[]', 's', 0, 1)",
    home.id,
  );
  let rowid = 0;
  const insert = (...values: (string | number | null)[]) =>
    change(
      "INSERT INTO webhook_deliveries (rowid, id, webhook_id, organisation_id, mode, event, event_id, status, attempts, response_code, next_attempt_at, created_at) VALUES (?, ?, 'whk_1', ?, 'live', 'warrant.opened', ?, ?, 4, ?, ?, ?)",
      ...[++rowid, ...values],
    );
  const times = [service.ctx.now() - 1, service.ctx.now()];
  for (const [age, at] of times.entries()) {
    insert(`delivered-${age}`, home.id, `1-${age}`, "delivered", 200, null, at);
    insert(`exhausted-${age}`, home.id, `2-${age}`, "exhausted", null, null, at);
    insert(`failed-${age}`, home.id, `3-${age}`, "failed", 500, at, at);
  }
  await runFor(0);
  await runFor(30 * DAY_MS);
  expect(rows("SELECT id FROM webhook_deliveries ORDER BY id").map(({ id }) => id as string)).toEqual([
    "delivered-1",
    "exhausted-1",
    "failed-0",
    "failed-1",
  ]);
});
