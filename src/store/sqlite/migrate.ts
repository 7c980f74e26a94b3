import type { Database } from "bun:sqlite";
import type { MigrationMeta } from "drizzle-orm/migrator";
import { raiseOldestWriter } from "./ledger-version.ts";
import { embeddedMigrations } from "./migrations.macro.ts" with { type: "macro" };

/** A change of the tables, as drizzle-kit wrote it: its statements, their hash and when it was made. */
export type Migration = Pick<MigrationMeta, "sql" | "hash" | "folderMillis">;

/** Every change of the tables that this version knows, in order. */
export const migrations = (): readonly Migration[] => embeddedMigrations() as MigrationMeta[];

/** What drizzle's own migrator keeps, so that its tools can read it. */
const APPLIED = "__drizzle_migrations";
const MAKE_APPLIED = `CREATE TABLE IF NOT EXISTS ${APPLIED} (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)`;

/**
 * Brings the tables up to date, all changes in one transaction; of a new database, makes them. drizzle's own migrator cannot
 * rebuild a table: that drops it, which SQLite refuses while other rows refer to it, and drops its triggers with it.
 *
 * @param onPending is called before the work on a ledger that is not new, with how many changes are to be made. A rebuild of a
 *   large table takes minutes
 * @throws where a row would refer to nothing afterwards; nothing is changed then
 */
export function migrate(
  raw: Database,
  known: readonly Migration[] = migrations(),
  onPending: (changes: number) => void = () => {},
): void {
  const pending = pendingOf(raw, known);
  if (pending.length === 0) return;
  // A new ledger is not brought up to date.
  if (pending.length < known.length) onPending(pending.length);
  // It cannot be changed in a transaction. What it would have refused is looked for at the end.
  raw.run("PRAGMA foreign_keys = OFF");
  try {
    raw
      .transaction(() => {
        raw.run(MAKE_APPLIED);
        // Another process may have made some of them meanwhile.
        for (const migration of pendingOf(raw, known)) apply(raw, migration);
        raiseOldestWriter(raw);
      })
      .immediate();
  } finally {
    raw.run("PRAGMA foreign_keys = ON");
  }
}

function pendingOf(raw: Database, known: readonly Migration[]): readonly Migration[] {
  const isThere = raw.query("SELECT 1 FROM sqlite_schema WHERE name = ?").get(APPLIED) !== null;
  if (!isThere) return known;
  const last = raw
    .query<{ at: bigint | number | null }, []>(`SELECT max(created_at) AS at FROM ${APPLIED}`)
    .get();
  return known.filter(({ folderMillis }) => last === null || folderMillis > Number(last.at ?? -1));
}

type Trigger = { readonly name: string; readonly table: string; readonly sql: string };

function apply(raw: Database, { sql: statements, hash, folderMillis }: Migration): void {
  const before = triggersOf(raw);
  for (const statement of statements) {
    if (RENAMES.test(statement)) withoutTriggers(raw, () => raw.run(statement));
    else raw.run(statement);
  }
  raw.query(`INSERT INTO ${APPLIED} (hash, created_at) VALUES (?, ?)`).run(hash, folderMillis);
  const text = statements.join("\n");
  const dropped = new Set([...text.matchAll(/DROP TABLE [`"]?(\w+)/gi)].map(([, table]) => table));
  if (dropped.size === 0) return;
  const there = new Set(triggersOf(raw).map(({ name }) => name));
  for (const { name, table, sql } of before) {
    const isMeant = new RegExp(`DROP TRIGGER (IF EXISTS )?[\`"]?${name}\\b`, "i").test(text);
    if (dropped.has(table) && !there.has(name) && !isMeant && hasTable(raw, table)) raw.run(sql);
  }
  const [stray] = raw
    .query<{ table: string; parent: string }, []>(`SELECT "table", parent FROM pragma_foreign_key_check`)
    .all();
  if (stray) throw new Error(`a row of ${stray.table} would refer to a row of ${stray.parent} that is gone`);
}

const triggersOf = (raw: Database): readonly Trigger[] =>
  raw
    .query<Trigger, []>(`SELECT name, tbl_name AS "table", sql FROM sqlite_schema WHERE type = 'trigger'`)
    .all();

const RENAMES = /^\s*ALTER TABLE .* RENAME TO /i;

/** SQLite renames no table while a trigger names one that is not there: that of the name that it is to get, which was dropped. */
function withoutTriggers(raw: Database, rename: () => void): void {
  const triggers = triggersOf(raw);
  for (const { name } of triggers) raw.run(`DROP TRIGGER "${name}"`);
  rename();
  for (const { sql } of triggers) raw.run(sql);
}

const hasTable = (raw: Database, table: string): boolean =>
  raw.query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(table) !== null;
