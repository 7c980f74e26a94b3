import type { Database } from "bun:sqlite";
import type { Scope } from "../../src/store/scope.ts";
import type { SqlReader } from "../../src/store/sql/readers/sql-reader.ts";

type Read = (...asked: never[]) => unknown;
/** What is asked of every read. Who adds a read says what. */
export type Asked = {
  readonly [Noun in keyof SqlReader]: {
    readonly [Name in keyof SqlReader[Noun]]: SqlReader[Noun][Name] extends Read
      ? readonly Parameters<SqlReader[Noun][Name]>[]
      : never;
  };
};

export const NEVER = Number.MAX_SAFE_INTEGER;
export const NONE = "none";
/** After every id. */
export const LAST = "~";
export const FEW = 2;
export const ALL = 1_000;
export const limits: readonly [number][] = [[FEW], [ALL]];

type Tuple = readonly unknown[];
export const alone = <One>(ones: readonly One[]): [One][] => ones.map((one) => [one]);
/** Every one of these before every one of those. */
export const each = <One, Others extends Tuple>(ones: readonly One[], others: readonly Others[]) =>
  ones.flatMap((one) => others.map((other): [One, ...Others] => [one, ...other]));

/** What a ledger has to ask about. */
export function samplesIn(database: Database, reader: SqlReader) {
  const rows = <Row extends unknown[]>(sql: string): Row[] =>
    database
      .query(sql)
      .values()
      .map((row) => row.map((value) => (typeof value === "bigint" ? Number(value) : value)) as Row);
  const column = <Value = string>(sql: string) => rows<[Value]>(sql).map(([value]) => value);
  const ids = (table: string) => [...column(`SELECT id FROM ${table}`), NONE];
  const scopes = rows<[string, Scope["mode"]]>("SELECT organisation_id, mode FROM scopes");
  const inParts = (table: string) => [
    ...[undefined, { after: null, limit: FEW }, { after: "", limit: FEW }],
    ...column(`SELECT id FROM ${table} LIMIT 1`).map((after) => ({ after, limit: FEW })),
  ];
  /** Ids of a table: the first, one from the middle, the last, and one that is not there. */
  const some = (table: string) => {
    const all = ids(table);
    return [...new Set([all[0], all[Math.floor(all.length / 2)], all.at(-2), NONE])] as string[];
  };
  const cursors = (table: string) => [
    {},
    ...some(table).flatMap((id) => [{ olderThan: id }, { newerThan: id }]),
  ];
  return {
    ...{ reader, rows, column, ids, some, inParts, cursors },
    scopes: scopes.map(([organisationId, mode]): Scope => ({ organisationId, mode })),
    organisations: ids("organisations"),
    users: ids("users"),
    agents: ids("agents"),
    warrants: ids("warrants"),
    times: [0, ...column<number>("SELECT DISTINCT recorded_at FROM trace LIMIT 3 OFFSET 9"), NEVER],
    assets: column("SELECT DISTINCT asset FROM accounts"),
    wallets: rows<[number, string]>("SELECT DISTINCT chain_id, wallet FROM chain_transactions").map(
      ([chainId, wallet]) => ({ chainId, wallet }),
    ),
  };
}
export type Samples = ReturnType<typeof samplesIn>;
