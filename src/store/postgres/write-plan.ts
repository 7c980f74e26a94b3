import { COLUMNS, placeOf } from "./columns.ts";
import type { ColumnType } from "./values.ts";

/** Where a value of a row comes from: the values that the statement was given, or the position that the engine gives. */
type Source = number | "place";

/**
 * A statement that writes one row, as drizzle writes it, turned into one that writes many: `?` becomes a column of a list
 * (`unnest`).
 */
export type WritePlan = {
  readonly kind: "insert" | "update" | "delete";
  readonly table: string;
  readonly text: string;
  /** The parameters: a list of values each. */
  readonly lists: readonly { readonly type: ColumnType; readonly source: Source }[];
  /** The columns that it gives or asks a value for, and which. */
  readonly given: ReadonlyMap<string, Source>;
  /** The columns by which it finds the row that it changes; null where it changes none. */
  readonly key: readonly string[] | null;
  /** Whether it leaves a row as it is that is there already. */
  readonly keeps: boolean;
};

const INSERT = /^insert (?:or rollback )?into "(\w+)" \((.*?)\) values \((.*?)\)(?: (on conflict.*))?$/s;
const UPDATE = /^update "(\w+)" set (.*) where (.*)$/s;
const DELETE = /^delete from "(\w+)" where (.*)$/s;
const CONFLICT = /^on conflict \((.*?)\) do update/;
/** A value of a column: where a statement compares, sets or adds to it. */
const VALUE = /"(\w+)"([^"?]*)\?/g;

/** The plan of a statement; null where it is written by hand, and is sent as it is. */
export function writePlanOf(text: string): WritePlan | null {
  const [, into, columns = "", values = "", conflict = ""] = INSERT.exec(text) ?? [];
  if (into !== undefined) return insertPlan(into, namesIn(columns), values.split(", "), conflict);
  const [, updated, set = "", found = ""] = UPDATE.exec(text) ?? [];
  if (updated !== undefined) return changePlan("update", updated, set, found);
  const [, deleted, where = ""] = DELETE.exec(text) ?? [];
  return deleted === undefined ? null : changePlan("delete", deleted, "", where);
}

const namesIn = (list: string): readonly string[] =>
  [...list.matchAll(/"(\w+)"/g)].map(([, name = ""]) => name);

const typeOf = (table: string, column: string): ColumnType => {
  const type = column === "rowid" ? "int8" : COLUMNS.get(table)?.get(column);
  if (type === undefined) throw new Error(`there is no column ${column} of ${table}`);
  return type;
};

function insertPlan(
  table: string,
  names: readonly string[],
  values: readonly string[],
  conflict: string,
): WritePlan {
  const place = placeOf(table);
  let asked = 0;
  const given = new Map<string, Source>();
  for (const [at, name] of names.entries()) {
    if (values[at] === "?") given.set(name, asked++);
    else if (name !== place) throw new Error(`${name} of ${table} gets ${values[at]}, which is no parameter`);
  }
  // PostgreSQL wants the columns of a conflict by their names alone.
  const handled = conflict.replace(CONFLICT, (part) => part.replaceAll(`"${table}".`, ""));
  if (conflict.includes("?")) throw new Error(`what ${table} gets in a conflict is a parameter`);
  given.set(place, "place");
  const lists = [...given].map(([name, source]) => ({ type: typeOf(table, name), source }));
  const columns = [...given.keys()].map((name) => `"${name}"`).join(", ");
  const key = CONFLICT.exec(handled)?.[1];
  return {
    ...{ kind: "insert", table, lists, given },
    text: `INSERT INTO "${table}" (${columns}) SELECT * FROM ${unnest(lists)} ${handled}`,
    key: key === undefined ? null : namesIn(key),
    keeps: conflict.endsWith("do nothing"),
  };
}

function changePlan(kind: "update" | "delete", table: string, set: string, where: string): WritePlan {
  const lists: { type: ColumnType; source: Source }[] = [];
  const given = new Map<string, Source>();
  const key: string[] = [];
  const listed = (part: string, isKey: boolean) =>
    part.replace(VALUE, (_, column: string, between: string) => {
      lists.push({ type: typeOf(table, column), source: lists.length });
      if (isKey) {
        key.push(column);
        given.set(column, lists.length - 1);
      }
      return `"${column}"${between}u.p${lists.length}`;
    });
  const [setting, found] = [listed(set, false), listed(where, true)];
  const text =
    kind === "update"
      ? `UPDATE "${table}" SET ${setting} FROM ${unnest(lists)} WHERE ${found}`
      : `DELETE FROM "${table}" USING ${unnest(lists)} WHERE ${found}`;
  if (text.includes("?")) throw new Error(`a parameter of ${kind} ${table} belongs to no column`);
  return { kind, table, text, lists, given, key, keeps: false };
}

const unnest = (lists: WritePlan["lists"]): string =>
  `unnest(${lists.map(({ type }, at) => `$${at + 1}::${type}[]`).join(", ")}) AS u(${lists.map((_, at) => `p${at + 1}`).join(", ")})`;
