import type { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ledgerTools } from "../../src/app/ledger.ts";
import { isRefusal } from "../../src/core/errors.ts";
import { NewerLedger, OLDEST_WRITER } from "../../src/store/sql/ledger-version.ts";
import { ledgerFile } from "../../src/store/sqlite/ledger-file.ts";
import { migrate, migrations } from "../../src/store/sqlite/migrate.ts";
import { connect, openLedger } from "../../src/store/sqlite/open.ts";
import { lockForServer } from "../../src/store/sqlite/server-lock.ts";
import { createTestContext } from "../support/context.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";

const { afterEach, beforeEach, test } = onlyEmbedded(import.meta.path);

/** Which version has opened a ledger, and which may. */

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-version-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function opened<Answer>(version: string, use: (raw: Database) => Answer): Answer {
  const { raw } = openLedger(folder, version, () => ({ id: "ins_1", createdAt: 0 }));
  try {
    return use(raw);
  } finally {
    raw.close();
  }
}
const versions = (raw: Database) => raw.query("SELECT version, oldest_writer FROM instances").values()[0];

test("a ledger keeps the newest version that opened it, and the oldest that may", () => {
  expect(opened("0.1.0", versions)).toEqual(["0.1.0", OLDEST_WRITER]);
  expect(opened("0.10.0", versions)).toEqual(["0.10.0", OLDEST_WRITER]);
  // It may still write: nothing that it would get wrong has come since.
  expect(opened("0.9.0", versions)).toEqual(["0.10.0", OLDEST_WRITER]);
});

test("an executable below the oldest that may is refused, by name and version, and changes nothing", () => {
  opened("0.1.0", (raw) => raw.run("UPDATE instances SET version = '2.1.0', oldest_writer = '2.0.0'"));
  for (const version of ["0.1.0", "1.99.0", "2.0.0-rc.1"])
    expect(() => opened(version, versions)).toThrow(
      `the ledger in it was written by Holdfast 2.1.0, and may be opened by 2.0.0 or newer; this is ${version}`,
    );
  expect(() => opened("1.0.0", versions)).toThrow(NewerLedger);
  expect(opened("2.0.0", versions)).toEqual(["2.1.0", "2.0.0"]);
  expect(opened("2.2.0", versions)).toEqual(["2.2.0", "2.0.0"]);
});

test("an executable that has the ledger open writes no more once a newer one has changed it", async () => {
  const ctx = createTestContext({}, folder);
  const name = (text: string) =>
    ctx.store.execute({
      scope: null,
      needs: {},
      decide: ({ instance: before }) => ({
        answer: text,
        change: { put: [{ kind: "instance", before, row: { ...before, baseUrl: text } }] },
      }),
    });
  expect(await name("http://first.example")).toBe("http://first.example");
  const newer = connect(ledgerFile(folder), { readonly: false }).raw;
  newer.run("UPDATE instances SET version = '2.1.0', oldest_writer = '2.0.0'");
  for (const text of ["http://second.example", "http://third.example"])
    expect(name(text)).rejects.toThrow("may be opened by 2.0.0 or newer; this is 0.1.0");
  await Promise.allSettled([name("http://fourth.example")]);
  expect(newer.query("SELECT base_url FROM instances").values()).toEqual([["http://first.example"]]);
  newer.close();
  await ctx.store.close();
});

test("the change of the tables says in its own transaction who may write", () => {
  opened("0.1.0", (raw) => {
    raw.run("UPDATE instances SET oldest_writer = '0.0.1'");
    const pending = { sql: ["CREATE TABLE later (id TEXT)"], hash: "later", folderMillis: Date.now() };
    migrate(raw, [...migrations(), pending]);
    expect(versions(raw)).toEqual(["0.1.0", OLDEST_WRITER]);
  });
});

test("a command changes no tables while a server runs, and says what to do", async () => {
  opened("0.1.0", (raw) => {
    raw.run(
      "DELETE FROM __drizzle_migrations WHERE created_at = (SELECT max(created_at) FROM __drizzle_migrations)",
    );
  });
  const lock = lockForServer(folder);
  if (isRefusal(lock)) throw new Error(lock.message);
  const ledger = await ledgerTools.open({ data: folder, create: false });
  expect(isRefusal(ledger) && ledger.message).toStartWith(
    "HOLDFAST_DATA: a server of an older version runs on it",
  );
  lock.release();
});
