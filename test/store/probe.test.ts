import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { openAllRows } from "../support/all-rows.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { createStage } from "../support/stage.ts";

const { afterEach, beforeEach, test } = onlyEmbedded(import.meta.path);

let ctx: TestContext;
beforeEach(async () => {
  ctx = createTestContext();
  await createStage(ctx);
});
afterEach(() => ctx.close());

const logBytes = () => statSync(join(ctx.folder, "holdfast.db-wal")).size;

test("a probe is on disk each time, and changes no row", async () => {
  const allRows = openAllRows(ctx.folder);
  const before = allRows.all();
  for (let count = 0; count < 3; count++) {
    const bytes = logBytes();
    await ctx.store.probe();
    expect(logBytes()).toBeGreaterThan(bytes);
  }
  expect(allRows.all()).toEqual(before);
  allRows.close();
});

test("a probe waits for its turn, as a command does", async () => {
  const other = new Database(join(ctx.folder, "holdfast.db"));
  other.run("BEGIN IMMEDIATE");
  let ended = false;
  const probe = ctx.store.probe().finally(() => {
    ended = true;
  });
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
  expect(ended).toBeFalse();
  other.run("ROLLBACK");
  other.close();
  await probe;
});
