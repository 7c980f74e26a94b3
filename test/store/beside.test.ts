import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lockForServer } from "../../src/store/sqlite/server-lock.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";

/** Processes beside each other in one data folder. */

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-beside-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("one server has the folder; the next may when it is gone", () => {
  const lock = lockForServer(folder);
  expect(lock).not.toBeNull();
  expect(lockForServer(folder)).toBeNull();
  lock?.release();
  const next = lockForServer(folder);
  expect(next).not.toBeNull();
  next?.release();
});

test("a command waits for another process's transaction without holding up the event loop", async () => {
  const store = openSqliteStore(folder);
  const other = new Database(join(folder, "holdfast.db"));
  other.run("BEGIN IMMEDIATE");
  let answered = false;
  const row = { id: "org_1", name: "One", killSwitch: false, passkeyThreshold: null, createdAt: 1 };
  const command = store
    .execute({
      scope: { organisationId: row.id, mode: "live" },
      needs: {},
      decide: () => ({ answer: row.id, change: { rows: [{ kind: "organisation", row }] } }),
    })
    .finally(() => {
      answered = true;
    });
  // The loop turns while the command waits: so many turns would take minutes if each waited for the lock.
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(answered).toBeFalse();
  other.run("ROLLBACK");
  expect(await command).toBe(row.id);
  expect(store.reader.organisations.get(row.id)).toEqual(row);
  other.close();
  await store.close();
});
