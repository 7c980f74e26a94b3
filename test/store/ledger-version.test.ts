import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NewerLedger, OLDEST_WRITER } from "../../src/store/sqlite/ledger-version.ts";
import { openLedger } from "../../src/store/sqlite/open.ts";

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
  expect(opened("2.2.0", versions)).toEqual(["2.2.0", OLDEST_WRITER]);
});
