import { Database } from "bun:sqlite";
import { APPLIED, MAKE_APPLIED, migrate, migrations } from "./migrate.ts";

/** A table, index, view or trigger, as the schema of a database has it. */
type SchemaObject = {
  readonly type: string;
  readonly name: string;
  readonly tbl_name: string;
  readonly sql: string | null;
};

/** Tables that others make in every ledger that they work on: SQLite's statistics, and Litestream's own two. */
const OF_OTHERS: ReadonlySet<string> = new Set(
  [
    ["sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"],
    ["sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"],
    ["_litestream_seq", "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)"],
    ["_litestream_lock", "CREATE TABLE _litestream_lock (id INTEGER)"],
  ].map(([name = "", sql = ""]) => textOf({ type: "table", name, tbl_name: name, sql })),
);

/** A ledger has nothing else. To read a view or a virtual table may run anything, and SQLite goes by this text, not by the type. */
const PLAIN = /^CREATE (?:TABLE|INDEX|UNIQUE INDEX|TRIGGER) /;

/** The list of changes. */
const LIST = textOf({
  ...{ type: "table", name: APPLIED, tbl_name: APPLIED },
  sql: MAKE_APPLIED.replace("IF NOT EXISTS ", ""),
});

/**
 * How the schema of a database differs from that of a ledger: each object that is missing, too many, or made with another text,
 * whatever its name. The changes of the tables that it says it had are made in an empty database, and both are compared. It only
 * reads, and no table but the list of changes, once no view is there: nothing that somebody planted runs.
 *
 * @param besides the statements that make what this file has besides a ledger
 * @returns `newer` where it has had a change that this version does not know; else the differences
 */
export function schemaDifferences(raw: Database, besides: readonly string[]): "newer" | readonly string[] {
  const found = objectsOf(raw);
  const strange = found.filter(({ sql }) => sql !== null && !PLAIN.test(sql));
  if (strange.length > 0) return strange.map(difference);
  if (!found.some((object) => textOf(object) === LIST)) return [difference({ type: "table", name: APPLIED })];
  const applied = raw
    .query<{ hash: unknown; at: unknown }, []>(`SELECT hash, created_at AS at FROM ${APPLIED} ORDER BY rowid`)
    .all();
  const known = migrations();
  if (applied.some(({ hash }) => known.every((each) => each.hash !== hash))) return "newer";
  const isBeginning = applied.every(
    ({ hash, at }, index) => hash === known[index]?.hash && String(at) === String(known[index]?.folderMillis),
  );
  if (!isBeginning) return [`the rows of ${APPLIED} are not as Holdfast writes them`];
  return differencesOf(found, expectedObjects(applied.length, besides));
}

/** The differences as messages of an audit. Of changes that only a newer version knows nothing can be said. */
export function schemaDisagreements(raw: Database, besides: readonly string[] = []): readonly string[] {
  const differences = schemaDifferences(raw, besides);
  return differences === "newer" ? [] : differences;
}

/** What was made before, by its number of changes and the statements besides: to make it takes tens of milliseconds. */
const made = new Map<string, readonly SchemaObject[]>();

function expectedObjects(changes: number, besides: readonly string[]): readonly SchemaObject[] {
  const key = JSON.stringify([changes, besides]);
  const known = made.get(key);
  if (known) return known;
  const raw = new Database(":memory:", { safeIntegers: true });
  try {
    migrate(raw, migrations().slice(0, changes));
    for (const statement of besides) raw.run(statement);
    const objects = objectsOf(raw);
    made.set(key, objects);
    return objects;
  } finally {
    raw.close();
  }
}

function differencesOf(found: readonly SchemaObject[], expected: readonly SchemaObject[]): readonly string[] {
  const [there, wanted] = [found, expected].map((objects) => new Set(objects.map(textOf)));
  const differing = [
    ...found.filter((object) => !wanted?.has(textOf(object)) && !OF_OTHERS.has(textOf(object))),
    ...expected.filter((object) => !there?.has(textOf(object))),
  ];
  return [...new Set(differing.map(difference))];
}

const difference = ({ type, name }: Pick<SchemaObject, "type" | "name">): string =>
  `${type} ${name} is not as Holdfast makes it`;

function textOf({ type, name, tbl_name, sql }: SchemaObject): string {
  return JSON.stringify([type, name, tbl_name, sql]);
}

const objectsOf = (raw: Database): readonly SchemaObject[] =>
  raw.query<SchemaObject, []>("SELECT type, name, tbl_name, sql FROM sqlite_schema").all();
