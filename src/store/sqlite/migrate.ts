import type { Database } from "bun:sqlite";
import type { MigrationMeta } from "drizzle-orm/migrator";
import type { MigrationWatch } from "../sql/migration-watch.ts";
import { digestedTables, fillDigests, hasRows } from "./fill-digests.ts";
import { raiseOldestWriter } from "./ledger-version.ts";
import { embeddedMigrations } from "./migrations.macro.ts" with { type: "macro" };

/** A change of the tables, as drizzle-kit wrote it: its statements, their hash and when it was made. */
export type Migration = Pick<MigrationMeta, "sql" | "hash" | "folderMillis">;

/** Every change of the tables that this version knows, in order. */
export const migrations = (): readonly Migration[] => embeddedMigrations() as MigrationMeta[];

/** What drizzle's own migrator keeps, so that its tools can read it. */
export const APPLIED = "__drizzle_migrations";
export const MAKE_APPLIED = `CREATE TABLE IF NOT EXISTS ${APPLIED} (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)`;

/**
 * Brings the tables up to date, all changes in one transaction; of a new database, makes them. drizzle's own migrator cannot
 * rebuild a table: that drops it, which SQLite refuses while other rows refer to it, and drops its triggers with it.
 *
 * @throws where a row would refer to nothing afterwards, or a trigger would be lost; nothing is changed then
 */
export function migrate(
  raw: Database,
  known: readonly Migration[] = migrations(),
  watch: Partial<MigrationWatch> = {},
): void {
  const pending = pendingOf(raw, known);
  if (pending.length === 0) return;
  // A new ledger is not brought up to date.
  const { onPending = () => {}, onProgress = () => {} } = pending.length < known.length ? watch : {};
  onPending(pending.length);
  // It cannot be changed in a transaction. What it would have refused is looked for at the end.
  raw.run("PRAGMA foreign_keys = OFF");
  // What an older version let in and a new rule forbids is kept where its table is made anew. The audit names it.
  raw.run("PRAGMA ignore_check_constraints = ON");
  try {
    raw
      .transaction(() => {
        raw.run(MAKE_APPLIED);
        // Another process may have made some of them meanwhile.
        const digested = new Set(digestedTables(raw));
        const changes = pendingOf(raw, known);
        for (const [index, migration] of changes.entries()) {
          apply(raw, migration);
          onProgress({ of: "changes", done: index + 1, total: changes.length });
        }
        fillNewDigests(raw, digested, onProgress);
        checkReferences(raw);
        raiseOldestWriter(raw);
      })
      .immediate();
  } finally {
    raw.run("PRAGMA ignore_check_constraints = OFF");
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

/** Rows that were there before their table had digests get theirs now, once. Later, a row without one is a disagreement. */
function fillNewDigests(
  raw: Database,
  before: ReadonlySet<string>,
  onProgress: MigrationWatch["onProgress"],
): void {
  const tables = digestedTables(raw).filter((table) => !before.has(table) && hasRows(raw, table));
  if (tables.length === 0) return;
  withoutTriggers(raw, () => {
    for (const rowsOf of tables)
      fillDigests(raw, rowsOf, (done, total) => onProgress({ of: { rowsOf }, done, total }));
  });
}

type Trigger = { readonly name: string; readonly table: string; readonly sql: string };

/**
 * Makes one change. A table that is made anew is dropped with its triggers, and only the schema says for sure which those are:
 * each that is gone is made again, unless the change drops it by name.
 */
function apply(raw: Database, { sql: statements, hash, folderMillis }: Migration): void {
  const before = triggersOf(raw);
  const tables = [...tablesOf(raw)];
  let isWhole = true;
  for (const statement of statements) {
    if (isWhole || DROPS_A_TRIGGER.test(statement)) raw.run(statement);
    else withoutTriggers(raw, () => raw.run(statement));
    if (!MAY_TAKE_A_TABLE.test(statement)) continue;
    const present = tablesOf(raw);
    isWhole = tables.every((table) => present.has(table));
  }
  raw.query(`INSERT INTO ${APPLIED} (hash, created_at) VALUES (?, ?)`).run(hash, folderMillis);
  const there = new Set(triggersOf(raw).map(({ name }) => name));
  for (const trigger of before) {
    const { name, table } = trigger;
    if (there.has(name) || statements.some((statement) => dropsTrigger(statement, name))) continue;
    if (!remake(raw, trigger))
      throw new Error(
        `the trigger ${name} would be gone with its table ${table}; a change that means it drops it by name`,
      );
  }
}

/** Nothing else takes a table away. Which one it takes, and when it is back, the schema says. */
const MAY_TAKE_A_TABLE = /\b(DROP|ALTER)\b/i;
const DROPS_A_TRIGGER = /\bDROP\s+TRIGGER\b/i;
const dropsTrigger = (statement: string, name: string): boolean =>
  new RegExp(`\\bDROP\\s+TRIGGER\\s+(IF\\s+EXISTS\\s+)?(main\\.)?[\`"[]?${name}\\b`, "i").test(statement);

/**
 * Runs something without the triggers. While a table is missing that triggers may name, SQLite would refuse to rename any other to
 * take its place; and they refuse to change what was recorded.
 */
function withoutTriggers(raw: Database, run: () => void): void {
  const triggers = triggersOf(raw);
  for (const { name } of triggers) raw.run(`DROP TRIGGER "${name}"`);
  run();
  for (const trigger of triggers) remake(raw, trigger);
}

/** False where its table is not there. */
function remake(raw: Database, { table, sql }: Trigger): boolean {
  const isThere = tablesOf(raw).has(table);
  if (isThere) raw.run(sql);
  return isThere;
}

/** @throws where a row refers to one that is not there */
function checkReferences(raw: Database): void {
  const stray = raw
    .query<{ table: string; parent: string }, []>(
      `SELECT "table", parent FROM pragma_foreign_key_check LIMIT 1`,
    )
    .get();
  if (stray) throw new Error(`a row of ${stray.table} would refer to a row of ${stray.parent} that is gone`);
}

const triggersOf = (raw: Database): readonly Trigger[] =>
  raw
    .query<Trigger, []>(`SELECT name, tbl_name AS "table", sql FROM sqlite_schema WHERE type = 'trigger'`)
    .all();

const tablesOf = (raw: Database): ReadonlySet<string> =>
  new Set(
    raw
      .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table'")
      .all()
      .map(({ name }) => name),
  );
