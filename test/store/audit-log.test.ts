import type { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anchor } from "../../src/services/log/anchor.ts";
import { auditLedger } from "../../src/store/sqlite/audit.ts";
import { createTestContext } from "../support/context.ts";
import { type Corruption, expectFound, withCopy } from "../support/corrupted.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { createCaller, createStage, open } from "../support/stage.ts";

const { afterAll, beforeAll, describe, test } = onlyEmbedded(import.meta.path);

/** What the audit finds in the log's tables. Each corruption works on a copy of a ledger with three checkpoints and a full tile. */

const SIZES = [3, 258, 300];
/** Entries after the last checkpoint: some that the log has, and some that it does not have yet. */
const UNSIGNED = 5;

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-audit-log-"));
  const ctx = createTestContext();
  const stage = await createStage(ctx);
  const caller = await createCaller(stage);
  let entries = 0;
  const grow = async (to: number): Promise<void> => {
    await Promise.all(Array.from({ length: to - entries }, () => open(stage, caller)));
    entries = to;
  };
  for (const size of SIZES) {
    await grow(size);
    await anchor(ctx);
  }
  await grow(300 + UNSIGNED);
  await ctx.store.extendLog(2);
  await ctx.store.close();
  cpSync(ctx.folder, folder, { recursive: true });
  rmSync(ctx.folder, { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a log whose last entries are not signed yet has nothing to report", () => {
  withCopy(folder, ({ readers }) => {
    const { raw } = readers;
    expect(raw.query("SELECT size FROM log_checkpoints ORDER BY number").values().flat().map(Number)).toEqual(
      SIZES,
    );
    expect(auditLedger(readers)).toEqual([]);
  });
});

const flip = (table: string, column: string, where: string) => (raw: Database) => {
  const bytes = raw.query(`SELECT ${column} FROM ${table} WHERE ${where}`).values()[0]?.[0] as Uint8Array;
  const changed = new Uint8Array(bytes);
  changed[0] = (changed[0] ?? 0) ^ 1;
  raw.query(`UPDATE ${table} SET ${column} = ? WHERE ${where}`).run(changed);
};

const CORRUPTIONS: readonly Corruption[] = [
  [
    "an entry without the leaf that it had",
    "UPDATE trace SET leaf_index = NULL WHERE leaf_index = 100",
    /^the log: no entry is leaf 100$/,
  ],
  [
    "the last entry without the leaf that it had",
    "UPDATE trace SET leaf_index = NULL WHERE leaf_index = 301",
    /^the log: the hashes in tile 1 of level 0 is 46, not 45$/,
  ],
  [
    "two entries that changed their leaves",
    (raw) => {
      raw.run("UPDATE trace SET leaf_index = 9999 WHERE leaf_index = 280");
      raw.run("UPDATE trace SET leaf_index = 280 WHERE leaf_index = 281");
      raw.run("UPDATE trace SET leaf_index = 281 WHERE leaf_index = 9999");
    },
    /^the log: tile 1 of level 0 is not that of its entries$/,
  ],
  [
    "an entry hash that was changed",
    flip("trace", "entry_hash", "leaf_index = 5"),
    /^the log: tile 0 of level 0 is not that of its entries$/,
  ],
  [
    "a hash in a full tile",
    flip("log_tiles", "hashes", "level = 0 AND tile = 0"),
    /^the log: tile 0 of level 0 is not that of its entries$/,
  ],
  [
    "a hash in a tile that grows",
    flip("log_tiles", "hashes", "level = 0 AND tile = 1"),
    /^the log: tile 1 of level 0 is not that of its entries$/,
  ],
  [
    "a hash of a higher level",
    flip("log_tiles", "hashes", "level = 1"),
    /^the log: tile 0 of level 1 is not that of its entries$/,
  ],
  [
    "a tile at another level",
    "UPDATE log_tiles SET level = 3 WHERE level = 1",
    /tile 0 of level 3 is 1, not 0$/,
  ],
  [
    "a tile at another place",
    "UPDATE log_tiles SET tile = 7 WHERE tile = 1",
    /tile 7 of level 0 is 46, not 0$/,
  ],
  [
    "a tile that is gone",
    "DELETE FROM log_tiles WHERE level = 1",
    /tile 0 of level 1 is not that of its entries$/,
  ],
  [
    "a tile that nothing is in the log for",
    "INSERT INTO log_tiles VALUES (2, 0, zeroblob(32))",
    /tile 0 of level 2 is 1, not 0$/,
  ],
  [
    "a root",
    flip("log_checkpoints", "root", "number = 2"),
    /^checkpoint 2: its root is "\w{64}", not "\w{64}"$/,
  ],
  ["a size", "UPDATE log_checkpoints SET size = 250 WHERE number = 2", /^checkpoint 2: its root is /],
  [
    "a size that the log does not have",
    "UPDATE log_checkpoints SET size = 400 WHERE number = 3",
    /^checkpoint 3: is of 400 entries, and the log has 302$/,
  ],
  [
    "a size below the one before",
    "UPDATE log_checkpoints SET size = 2 WHERE number = 2",
    /^checkpoint 2: does not follow the one before it$/,
  ],
  [
    "a checkpoint of nothing",
    "UPDATE log_checkpoints SET size = 0 WHERE number = 1",
    /^checkpoint 1: (?:its root is |does not follow|its note)/,
  ],
  [
    "a number",
    "UPDATE log_checkpoints SET number = 7 WHERE number = 3",
    /^checkpoint 7: does not follow the one before it$/,
  ],
  [
    "a first number",
    "UPDATE log_checkpoints SET number = 0 WHERE number = 1",
    /^checkpoint 0: does not follow the one before it$/,
  ],
  [
    "a checkpoint that is gone",
    "DELETE FROM log_checkpoints WHERE number = 2",
    /^checkpoint 3: does not follow the one before it$/,
  ],
  [
    "the note of another log",
    "UPDATE log_checkpoints SET note = replace(note, 'holdfast/', 'other/') WHERE number = 1",
    /^checkpoint 1: its note is not of its size and root$/,
  ],
  [
    "the note of another checkpoint",
    "UPDATE log_checkpoints SET note = (SELECT note FROM log_checkpoints WHERE number = 1) WHERE number = 2",
    /^checkpoint 2: its note is not of its size and root$/,
  ],
];

describe("the audit finds", () => {
  for (const corruption of CORRUPTIONS) test(corruption[0], () => expectFound(folder, corruption));
});
