import type { Database } from "bun:sqlite";

/** Something in the tables that refuses a wrong row: a CHECK, a unique index or a trigger. */
export type TableGuard = {
  readonly name: string;
  /** Whether this message of SQLite is this guard's refusal. Two triggers may say the same. */
  refusedWith(message: string): boolean;
  /** Takes it out of the tables; null where SQLite cannot do without it, as of a primary key. */
  readonly remove: ((raw: Database) => void) | null;
};

/** A statement, and what refuses it. On PostgreSQL another guard may be first; null where there is nothing to refuse, as a fraction. */
export type Wrong = readonly [
  name: string,
  sql: () => string,
  problem: RegExp,
  postgres?: RegExp | null | undefined,
];

/** What a trigger refuses already, and the tables still refuse without that trigger. */
export type Behind = readonly [
  name: string,
  trigger: string,
  sql: () => string,
  problem: RegExp,
  postgres?: RegExp | null | undefined,
];

/** Every guard of a database's own tables. A trigger that refuses nothing is none. */
export function tableGuards(raw: Database): readonly TableGuard[] {
  const entries = raw
    .query<{ type: string; name: string; sql: string | null }, []>(
      "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE '\\_\\_%' ESCAPE '\\' ORDER BY name",
    )
    .all();
  const of = (type: string) => entries.filter((entry) => entry.type === type);
  return [
    ...of("table").flatMap(({ name, sql }) => [...checksOf(name, sql ?? ""), ...uniqueOf(raw, name)]),
    ...of("trigger").flatMap(({ name, sql }) => triggerOf(name, sql ?? "")),
  ];
}

const checksOf = (table: string, sql: string): readonly TableGuard[] =>
  [...sql.matchAll(/CONSTRAINT "(\w+)" CHECK\(/g)].map(([start, name = ""]) => ({
    name,
    refusedWith: (message) => message === `CHECK constraint failed: ${name}`,
    remove(database) {
      database.run("PRAGMA writable_schema = ON");
      database
        .query("UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE type = 'table' AND name = ?")
        .run(start, `${start}1 OR `, table);
      database.run("PRAGMA writable_schema = RESET");
    },
  }));

const uniqueOf = (raw: Database, table: string): readonly TableGuard[] =>
  raw
    .query<{ name: string; origin: string }, [string]>(
      'SELECT name, origin FROM pragma_index_list(?) WHERE "unique" = 1',
    )
    .all(table)
    .map(({ name, origin }) => {
      const columns = raw
        .query<{ name: string }, [string]>("SELECT name FROM pragma_index_info(?)")
        .all(name)
        .map((column) => `${table}.${column.name}`);
      return {
        name: origin === "pk" ? `the primary key of ${table}` : name,
        refusedWith: (message) => message === `UNIQUE constraint failed: ${columns.join(", ")}`,
        remove: origin === "pk" ? null : (database) => void database.run(`DROP INDEX "${name}"`),
      };
    });

function triggerOf(name: string, sql: string): readonly TableGuard[] {
  const messages = new Set(
    [...sql.matchAll(/RAISE\((?:ABORT|ROLLBACK), '((?:[^']|'')*)'\)/g)].map(([, text = ""]) =>
      text.replaceAll("''", "'"),
    ),
  );
  if (messages.size === 0) return [];
  return [
    {
      name,
      refusedWith: (message) => messages.has(message),
      remove: (database) => void database.run(`DROP TRIGGER "${name}"`),
    },
  ];
}
