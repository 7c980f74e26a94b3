import type { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { auditLedger } from "../../src/store/sqlite/audit.ts";
import { type Connection, connect, openLedger } from "../../src/store/sqlite/open.ts";

/** Opens a copy of the ledger in a folder without its guards, as a bug or an attacker would. */
export function withCopy<T>(
  folder: string,
  work: (ledger: { readonly writer: Connection; readonly readers: Connection }, file: string) => T,
): T {
  const copy = mkdtempSync(join(tmpdir(), "holdfast-audit-"));
  const file = join(copy, "holdfast.db");
  cpSync(folder, copy, { recursive: true });
  const writer = openLedger(copy, "0.1.0", () => ({ id: "ins_none", createdAt: 0 }));
  const readers = connect(file, { readonly: true });
  const { raw } = writer;
  raw.run("PRAGMA synchronous = OFF");
  raw.run("PRAGMA foreign_keys = OFF");
  raw.run("PRAGMA ignore_check_constraints = ON");
  for (const { name } of raw
    .query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    .all()) {
    raw.run(`DROP TRIGGER ${name}`);
  }
  try {
    return work({ writer, readers }, file);
  } finally {
    readers.raw.close();
    raw.close();
    rmSync(copy, { recursive: true });
  }
}

/** A corruption, and the message of the audit that names it. */
export type Corruption = readonly [name: string, plant: string | ((raw: Database) => void), named: RegExp];

/** Corrupts a copy of the ledger, which must change something, and expects the audit to name it. */
export function expectFound(folder: string, [, plant, named]: Corruption): void {
  const messages = withCopy(folder, ({ writer, readers }) => {
    const before = writer.raw.query("SELECT total_changes() AS n").get();
    if (typeof plant === "string") writer.raw.run(plant);
    else plant(writer.raw);
    expect(writer.raw.query("SELECT total_changes() AS n").get()).not.toEqual(before);
    return auditLedger(readers);
  });
  expect(messages.join("\n")).toMatch(new RegExp(named.source, "m"));
}
