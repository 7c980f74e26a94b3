import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isRefusal } from "../../src/core/errors.ts";
import { lockForServer } from "../../src/store/sqlite/server-lock.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { must } from "../support/organisations.ts";

const { afterEach, beforeEach, test } = onlyEmbedded(import.meta.path);

/** Processes beside each other in one data folder. */

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-beside-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const ANOTHER = "HOLDFAST_DATA: another server runs on";

/** Takes the folder's lock and releases it; or answers the message of the refusal. */
function take(): string | null {
  const lock = lockForServer(folder);
  if (isRefusal(lock)) return lock.message;
  lock.release();
  return null;
}

test("one server has the folder; another one can start when it has ended", () => {
  const lock = must(lockForServer(folder));
  expect(take()).toStartWith(ANOTHER);
  lock.release();
  expect(take()).toBeNull();
  expect(readdirSync(folder)).toEqual(["server.lock"]);
});

test("a lock file that is not a database is not reported as another server", () => {
  writeFileSync(join(folder, "server.lock"), "neither empty nor a database");
  const problem = take();
  expect(problem).toStartWith(`HOLDFAST_DATA: ${folder}/server.lock cannot be locked`);
  expect(problem).toContain("file is not a database");
});

test.skipIf(process.getuid?.() !== 0)(
  "a read-only lock file is refused: its transaction would lock out nobody",
  async () => {
    const lock = must(lockForServer(folder));
    lock.release();
    chmodSync(folder, 0o755);
    chmodSync(join(folder, "server.lock"), 0o444);
    const script = `
      const { lockForServer } = await import(${JSON.stringify(join(import.meta.dir, "../../src/store/sqlite/server-lock.ts"))});
      process.setuid(65534);
      console.log(lockForServer(${JSON.stringify(folder)}).message);`;
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
    expect(await new Response(child.stdout).text()).toContain(
      "cannot be locked, and without that a second server",
    );
  },
);

test("a command waits for another process's transaction without holding up the event loop", async () => {
  const store = openSqliteStore(folder, {
    freeBytes: () => null,
    version: "0.1.0",
    now: Date.now,
    steadyNow: () => performance.now(),
    newInstanceId: () => "ins_beside",
  });
  const other = new Database(join(folder, "holdfast.db"));
  other.run("BEGIN IMMEDIATE");
  let answered = false;
  const row = {
    id: "org_1",
    name: "One",
    killSwitch: false,
    passkeyThreshold: null,
    hidesSpecs: false,
    secondFactor: false,
    messagingDecisions: false,
    createdAt: 1,
  };
  const command = store
    .execute({
      scope: null,
      needs: {},
      decide: () => ({ answer: row.id, change: { put: [{ kind: "organisation", before: null, row }] } }),
    })
    .finally(() => {
      answered = true;
    });
  // The loop turns while the command waits: so many turns would take minutes if each waited for the lock.
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(answered).toBeFalse();
  other.run("ROLLBACK");
  expect(await command).toBe(row.id);
  expect(await store.read((reader) => reader.organisations.get(row.id))).toEqual(row);
  other.close();
  await store.close();
});
