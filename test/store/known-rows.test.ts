/** What commands know from earlier transactions is never stale. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Organisation } from "../../src/core/organisation.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";
import type { Row } from "../../src/store/store.ts";
import { createTestContext, type TestContext } from "../support/context.ts";

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
  createdAt: 0,
});

const write = (row: Organisation, store = ctx.store, more: readonly Row[] = []) =>
  store.execute({
    scope: { organisationId: row.id, mode: "live" },
    needs: {},
    decide: () => ({ answer: true, change: { rows: [{ kind: "organisation", row }, ...more] } }),
  });

/** What a command sees of it. */
const seen = ({ id }: Organisation) =>
  ctx.store.execute<Organisation | null>({
    scope: { organisationId: id, mode: "live" },
    needs: { organisation: true },
    decide: (snapshot) => ({ answer: snapshot.organisation }),
  });

test("what this process wrote is seen by the next command, in the same batch too", async () => {
  const before = organisation("before");
  const after = { ...before, killSwitch: true };
  expect(await seen(before)).toBeNull();
  await write(before);
  expect(await seen(before)).toEqual(before);
  const [, inTheBatch] = await Promise.all([write(after), seen(before)]);
  expect(inTheBatch).toEqual(after);
});

test("what another process wrote is seen", async () => {
  const before = organisation("before");
  await write(before);
  expect(await seen(before)).toEqual(before);
  const other = openSqliteStore(ctx.folder);
  await write({ ...before, killSwitch: true }, other);
  await other.close();
  expect(await seen(before)).toEqual({ ...before, killSwitch: true });
});

test("what was undone was never known", async () => {
  const before = organisation("before");
  await write(before);
  const broken = { kind: "policy", row: { id: before.id } } as unknown as Row;
  const [undone, between, next] = await Promise.allSettled([
    write({ ...before, killSwitch: true }, ctx.store, [broken]),
    seen(before),
    write(organisation("another")),
  ]);
  expect([undone.status, next.status]).toEqual(["rejected", "fulfilled"]);
  expect(between).toEqual({ status: "fulfilled", value: before });
  expect(await seen(before)).toEqual(before);
});
