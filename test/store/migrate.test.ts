import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { MigrationStep } from "../../src/store/sql/migration-watch.ts";
import { auditFolder } from "../../src/store/sqlite/audit.ts";
import { ledgerFile } from "../../src/store/sqlite/ledger-file.ts";
import { type Migration, migrate, migrations } from "../../src/store/sqlite/migrate.ts";
import { connect } from "../../src/store/sqlite/open.ts";
import { newLedgerFolder } from "../support/new-ledger.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";

const { afterEach, beforeEach, describe, test } = onlyEmbedded(import.meta.path);

/** Changes of the tables of a ledger that is in use: the one that 0.1.0 wrote. */

let folder: string;
let raw: Database;
beforeEach(() => {
  ({ raw } = connect(oldLedger(), { readonly: false }));
  migrate(raw);
});
afterEach(() => raw.close());

/** The file of a ledger as 0.1.0 left it, in a folder of its own. */
function oldLedger(): string {
  folder = newLedgerFolder();
  const old = readFileSync(join(import.meta.dir, "ledgers/0.1.0.db.gz"));
  writeFileSync(ledgerFile(folder), Bun.gunzipSync(old));
  return ledgerFile(folder);
}

type Part = { readonly type: string; readonly name: string; readonly tbl_name: string; readonly sql: string };
const schema = (): readonly Part[] =>
  raw
    .query<Part, []>(
      "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name",
    )
    .all()
    .map((part) => ({ ...part, sql: part.sql.replace(/^CREATE TABLE "(\w+)"/, "CREATE TABLE `$1`") }));
const rowsOf = (table: string) => raw.query(`SELECT * FROM ${table}`).values();
const pragma = (name: string) => raw.query(`PRAGMA ${name}`).values().flat().map(Number);

/** What drizzle-kit writes where a CHECK changes: the table is made anew, filled, and takes the place of the old one. */
function rebuild(table: string, edit: (sql: string) => string): readonly string[] {
  const parts = schema().filter(({ tbl_name }) => tbl_name === table);
  const made = parts.find(({ type }) => type === "table")?.sql ?? "";
  return [
    "PRAGMA foreign_keys=OFF;",
    edit(made)
      .replace(`CREATE TABLE \`${table}\``, `CREATE TABLE \`__new_${table}\``)
      .replaceAll(`"${table}".`, `"__new_${table}".`),
    `INSERT INTO \`__new_${table}\` SELECT * FROM \`${table}\`;`,
    `DROP TABLE \`${table}\`;`,
    `ALTER TABLE \`__new_${table}\` RENAME TO \`${table}\`;`,
    "PRAGMA foreign_keys=ON;",
    ...parts.filter(({ type }) => type === "index").map(({ sql }) => sql),
  ];
}

const next = (...statements: readonly string[]): readonly Migration[] => [
  ...migrations(),
  { sql: [...statements], hash: "next", folderMillis: (migrations().at(-1)?.folderMillis ?? 0) + 1 },
];
/** A fourth status, a tenth state. */
const withFourth = (sql: string) => sql.replace(/ = 'killed'/, `$& OR "agents"."status" = 'retired'`);
const withTenth = (sql: string) =>
  sql.replace(/("warrants"\."state" = 'disputed')\)\)/, `$1 OR "warrants"."state" = 'lost'))`);

test("nothing is done where every change was made", () => {
  const before = schema();
  const failing = () => {
    throw new Error("nothing is pending");
  };
  migrate(raw, migrations(), { onPending: failing, onProgress: failing });
  expect(schema()).toEqual(before);
});

test("each change is reported, and how many rows of which table have their digests", () => {
  const { raw: older } = connect(oldLedger(), { readonly: false });
  const steps: MigrationStep[] = [];
  const pending: number[] = [];
  migrate(older, migrations(), {
    onPending: (n) => void pending.push(n),
    onProgress: (step) => void steps.push(step),
  });
  const [changes = 0] = pending;
  expect(changes).toBeGreaterThan(1);
  const made = steps.filter(({ of }) => of === "changes");
  expect(made.map(({ done, total }) => [done, total])).toEqual(
    Array.from({ length: changes }, (_, index) => [index + 1, changes]),
  );
  const digested = steps.flatMap(({ of, done, total }) =>
    of === "changes" ? [] : [{ table: of.rowsOf, done, total }],
  );
  const count = (table: string) => Number(older.query(`SELECT count(*) FROM ${table}`).values()[0]?.[0]);
  expect(digested.length).toBeGreaterThan(5);
  expect(digested).toEqual(digested.map(({ table }) => ({ table, done: count(table), total: count(table) })));
  older.close();
});

test("a new ledger is not brought up to date, so nothing is reported", () => {
  const made = new Database(":memory:");
  const reported: unknown[] = [];
  const report = (of: unknown) => void reported.push(of);
  migrate(made, migrations(), { onPending: report, onProgress: report });
  expect(reported).toEqual([]);
  made.close();
});

describe("a table to which others refer is made anew", () => {
  test.each([
    ["agents", withFourth],
    ["warrants", withTenth],
    ["verifiers", (sql: string) => sql],
    ["organisations", (sql: string) => sql],
  ])("%s: every row, index and trigger is there again", (table, edit) => {
    const before = { schema: schema(), rows: rowsOf(table) };
    expect(before.rows.length).toBeGreaterThan(0);
    const pending: number[] = [];
    migrate(raw, next(...rebuild(table, edit)), { onPending: (changes) => void pending.push(changes) });
    expect(pending).toEqual([1]);
    const edited = before.schema.map((part) =>
      part.type === "table" && part.name === table ? { ...part, sql: edit(part.sql) } : part,
    );
    expect(schema()).toEqual(edited);
    expect(rowsOf(table)).toEqual(before.rows);
    expect(auditFolder(folder)).toEqual([]);
    expect(pragma("foreign_keys")).toEqual([1]);
    expect(rowsOf("__drizzle_migrations").at(-1)?.[1]).toBe("next");
  });

  test("a row that a new rule forbids is kept as it is, and the audit names it by its table", () => {
    const before = rowsOf("agents");
    const rule = `CONSTRAINT "agents_long_names" CHECK(length("agents"."name") > 1000)`;
    const stricter = (sql: string) => sql.replace(/\)$/, `, ${rule})`);
    migrate(raw, next(...rebuild("agents", stricter)));
    expect(rowsOf("agents")).toEqual(before);
    expect(auditFolder(folder)).toEqual(before.map(() => "the file: CHECK constraint failed in agents"));
    // What is written from now on obeys it.
    const write = () => raw.run("UPDATE agents SET name = name || 'x'");
    expect(write).toThrow(/agents_long_names/);
    expect(pragma("ignore_check_constraints")).toEqual([0]);
  });

  test("a trigger that the change drops by name stays away", () => {
    const drop = "DROP TRIGGER `verifiers_are_not_deleted`";
    migrate(raw, next(drop, ...rebuild("verifiers", (sql) => sql)));
    const triggers = schema().filter(({ type, tbl_name }) => type === "trigger" && tbl_name === "verifiers");
    expect(triggers.map(({ name }) => name)).toEqual(["verifiers_are_not_changed"]);
  });

  test.each([
    ["only where it is there", "DROP TABLE IF EXISTS `warrants`;", ""],
    ["by its whole name", "DROP TABLE main.warrants;", ""],
    ["in brackets and with a comment", "/* away */ DROP TABLE [warrants]", "-- take its place\n"],
  ])("its triggers are there again, and it is dropped %s", (_, drop, comment) => {
    const before = schema();
    const statements = rebuild("warrants", (sql) => sql).map((statement) =>
      statement.startsWith("DROP TABLE") ? drop : statement.replace(/^ALTER TABLE/, `${comment}$&`),
    );
    migrate(raw, next(...statements));
    expect(schema()).toEqual(before);
    expect(auditFolder(folder)).toEqual([]);
  });

  test("a trigger that the change drops meanwhile stays away", () => {
    const statements = rebuild("verifiers", (sql) => sql).flatMap((statement) =>
      statement.startsWith("ALTER TABLE")
        ? ["DROP  TRIGGER IF EXISTS main.`policies_are_not_deleted`", statement]
        : [statement],
    );
    const names = () => schema().map(({ name }) => name);
    const left = names().filter((name) => name !== "policies_are_not_deleted");
    migrate(raw, next(...statements));
    expect(names()).toEqual(left);
  });

  test("a trigger that would be gone with its table changes nothing", () => {
    const before = schema();
    expect(() => migrate(raw, next("DROP TABLE `schemas`"))).toThrow(
      /^the trigger schemas_are_not_\w+ would be gone with its table schemas;/,
    );
    expect(schema()).toEqual(before);
  });

  test("what would leave a row without the one it refers to changes nothing", () => {
    const before = { schema: schema(), agents: rowsOf("agents") };
    const [off, made = "", , ...rest] = rebuild("agents", (sql) => sql);
    expect(() => migrate(raw, next(off ?? "", made, ...rest))).toThrow(
      /would refer to a row of agents that is gone/,
    );
    expect({ schema: schema(), agents: rowsOf("agents") }).toEqual(before);
    expect(pragma("foreign_keys")).toEqual([1]);
    expect(auditFolder(folder)).toEqual([]);
  });
});
