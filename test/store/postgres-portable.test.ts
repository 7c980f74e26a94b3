/** What the engine on PostgreSQL does without, since servers lack it (docs/postgresql, "Other servers that speak its protocol"). */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { Glob } from "bun";

const SOURCES = ["src/store/{sql,postgres}/**/*.ts", "migrations/postgres/*.sql"].flatMap((pattern) => [
  ...new Glob(pattern).scanSync("."),
]);

test.each([
  ["advisory locks", /pg_(?:try_)?advisory/i],
  ["LISTEN and NOTIFY", /\b(?:UN)?LISTEN "|\bNOTIFY \w|pg_notify/i],
  ["temporary tables", /\bTEMP(?:ORARY)? TABLE/i],
  ["exported snapshots", /pg_export_snapshot|SET TRANSACTION SNAPSHOT/i],
  ["transaction ids", /\bx(?:min|max|id8?)\b|txid_|pg_current_xact|pg_xact/],
  ["places of rows", /\bctid\b/i],
  ["deferred constraints", /\bDEFERR(?:ED|ABLE)\b/i],
  ["stored procedures", /\bPROCEDURE\b/i],
  ["transition tables", /\bREFERENCING\b/i],
])("there are no %s", (_, words) => {
  expect(SOURCES.length).toBeGreaterThan(60);
  expect(SOURCES.filter((path) => words.test(readFileSync(path, "utf8")))).toEqual([]);
});
