import { expect } from "bun:test";
import { digestOfValues } from "../../src/store/sql/row-digest.ts";
import { importedTables } from "../../src/store/sql/tables/ledger.ts";
import { auditLedger } from "../../src/store/sqlite/audit.ts";
import { createTestContext } from "../support/context.ts";
import { withCopy } from "../support/corrupted.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { createCaller, createStage } from "../support/stage.ts";

const { test } = onlyEmbedded(import.meta.path);

// Four agents, of which the third is gone.
test.each([
  ["a ledger that was always in a file", null, true],
  ["one that came from PostgreSQL before the gap", 2n, true],
  ["one that came from there after it", 4n, false],
] as const)("a gap in positions says that a row is gone: %s", async (_, last, isFound) => {
  const ctx = createTestContext();
  const stage = await createStage(ctx, { funds: "0" });
  for (let agents = 0; agents < 4; agents++) await createCaller(stage);
  const found = withCopy(ctx.folder, ({ writer, readers }) => {
    writer.raw.run("DELETE FROM agents WHERE position = 3");
    const digest = digestOfValues(importedTables)({ name: "agents", last: Number(last) });
    if (last !== null)
      writer.raw.query("INSERT INTO imported_tables VALUES (?, ?, ?)").run("agents", last, digest);
    return auditLedger(readers);
  });
  await ctx.close();
  expect(found.some((message) => message.includes("the one before it at 2; none is ever deleted"))).toBe(
    isFound,
  );
  expect(found.filter((message) => message.includes("PostgreSQL"))).toEqual([]);
});

test("how far a table came is not changed unseen", async () => {
  const ctx = createTestContext();
  const found = withCopy(ctx.folder, ({ writer, readers }) => {
    writer.raw.query("INSERT INTO imported_tables VALUES ('agents', 7, 1)").run();
    return auditLedger(readers);
  });
  await ctx.close();
  expect(found).toContainEqual(expect.stringContaining("how far agents came from PostgreSQL"));
});
