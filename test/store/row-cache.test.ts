/** What commands know from earlier transactions is never stale. */
import { expect } from "bun:test";
import { isRefusal } from "../../src/core/errors.ts";
import type { Organisation } from "../../src/core/organisation.ts";
import { hold, type Legs, settle, submitPayout } from "../../src/core/postings.ts";
import type { Put } from "../../src/store/change.ts";
import { createRowCache, type Missing } from "../../src/store/row-cache.ts";
import { payeeRowKey } from "../../src/store/rows.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";
import type { IndexName, LoadedKind } from "../../src/store/view.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";

const { afterAll, beforeAll, test } = onlyEmbedded(import.meta.path);

let ctx: TestContext;
beforeAll(() => {
  ctx = createTestContext();
});
afterAll(() => ctx.close());

const organisation = (name: string): Organisation => ({
  id: ctx.newId("organisation"),
  name,
  killSwitch: false,
  passkeyThreshold: null,
  hidesSpecs: false,
  secondFactor: false,
  messagingDecisions: false,
  createdAt: 0,
});

const write = (row: Organisation, store = ctx.store, more: readonly Put[] = []) =>
  store.execute({
    scope: null,
    needs: {},
    decide: () => ({ answer: true, change: { put: [{ kind: "organisation", before: null, row }, ...more] } }),
  });

const change = (row: Organisation, store = ctx.store, more: readonly Put[] = []) =>
  store.execute({
    scope: { organisationId: row.id, mode: "live" },
    needs: {},
    decide: ({ organisation: before }) => ({
      answer: true,
      change: { put: [{ kind: "organisation", before, row }, ...more] },
    }),
  });

/** What a command sees of it. */
async function seen({ id }: Organisation): Promise<Organisation | null> {
  const found = await ctx.store.execute({
    scope: { organisationId: id, mode: "live" },
    needs: {},
    decide: ({ organisation }) => ({ answer: organisation }),
  });
  return isRefusal(found) ? null : found;
}

test("what this process wrote is seen by the next command, in the same batch too", async () => {
  const before = organisation("before");
  const after = { ...before, killSwitch: true };
  expect(await seen(before)).toBeNull();
  await write(before);
  expect(await seen(before)).toEqual(before);
  const [, inTheBatch] = await Promise.all([change(after), seen(before)]);
  expect(inTheBatch).toEqual(after);
});

test("what another process wrote is seen", async () => {
  const before = organisation("before");
  await write(before);
  expect(await seen(before)).toEqual(before);
  const other = openSqliteStore(ctx.folder, {
    freeBytes: () => null,
    version: "0.1.0",
    now: ctx.now,
    steadyNow: ctx.now,
    newInstanceId: () => "ins_none",
  });
  await change({ ...before, killSwitch: true }, other);
  await other.close();
  expect(await seen(before)).toEqual({ ...before, killSwitch: true });
});

test("a batch that was undone leaves nothing in the row cache", async () => {
  const before = organisation("before");
  await write(before);
  const broken = { kind: "policy", row: { id: before.id } } as unknown as Put;
  const [undone, between, next] = await Promise.allSettled([
    change({ ...before, killSwitch: true }, ctx.store, [broken]),
    seen(before),
    write(organisation("another")),
  ]);
  expect([undone.status, next.status]).toEqual(["rejected", "fulfilled"]);
  expect(between).toEqual({ status: "fulfilled", value: before });
  expect(await seen(before)).toEqual(before);
});

test("what the database would answer otherwise without a write is known until it is written", () => {
  const cache = createRowCache();
  const rowBehind = (kind: LoadedKind) =>
    cache.isBehind({ rows: new Map([[kind, new Set(["key"])]]), indexes: new Map() });
  const indexBehind = (name: IndexName) =>
    cache.isBehind({ rows: new Map(), indexes: new Map([[name, new Map([["key", ["key"]]])]]) });
  const seen = () => [
    rowBehind("balance"),
    rowBehind("traceStep"),
    indexBehind("keyHeldBy"),
    indexBehind("userByEmail"),
  ];
  const scope = { organisationId: "org", mode: "live" } as const;
  const legs = { available: -1n, held: 1n, paid: 0n, funding: 0n };
  const posting = { kind: "posting", row: { ...scope, asset: "USDC", legs, payee: null } } as unknown as Put;
  cache.loadRow("balance", "org live USDC", { available: 1n, held: 0n, paid: 0n });
  cache.put(posting);
  expect(seen()).toEqual([false, false, false, false]);
  cache.clear();
  cache.put(posting);
  expect(seen()).toEqual([true, false, false, false]);
  cache.put({ kind: "trace", row: {} } as Put);
  expect(seen()).toEqual([true, true, false, false]);
  cache.put({ kind: "idempotencyKey", before: null, row: { ...scope, key: "key" } } as Put);
  expect(seen()).toEqual([true, true, true, false]);
  cache.written();
  expect(seen()).toEqual([false, false, false, false]);
});

test("a payee's balance follows the postings of its batch; one that was not read is behind", () => {
  const cache = createRowCache();
  const key = payeeRowKey("org", "live", "USDC", "a b");
  const missing: Missing = { rows: new Map([["payeeBalance", new Set([key])]]), indexes: new Map() };
  const scope = { organisationId: "org", mode: "live" } as const;
  const posted = (legs: Legs, payee: string | null) =>
    cache.put({ kind: "posting", row: { ...scope, asset: "USDC", legs, payee } } as Put);
  cache.loadRow("payeeBalance", key, null);
  posted(settle(9n, 10_000), "a b");
  posted(settle(1n, 10_000, "wallet"), "a b");
  posted(submitPayout(4n), "a b");
  posted(settle(5n, 10_000), "a c");
  posted(hold(5n), null);
  expect(cache.row("payeeBalance", key)).toEqual({ payable: 5n, submitted: 4n, paidOut: 1n });
  cache.written();
  posted(hold(5n), null);
  expect(cache.isBehind(missing)).toBe(false);
  cache.clear();
  posted(settle(9n, 10_000), "a b");
  expect(cache.isBehind(missing)).toBe(true);
});
