import type { SqlDatabase, SqlValue } from "./database.ts";

/** How many rows of one kind are remembered at most. */
const REMEMBERED_MAX = 10_000;

/**
 * Rows that never change. Each is found by the statement of its kind, and remembered until a transaction is
 * undone, which may have made it.
 */
export type RememberedRows<Kind extends string, Key> = {
  /** Null where there is no such row. That is not remembered, since the row may come later. */
  find(kind: Kind, key: Key, ...bindings: SqlValue[]): unknown;
  remember(kind: Kind, key: Key, row: unknown): void;
  /** From now on notes what is remembered, apart from what is found. The answer forgets that. */
  draft(): () => void;
  forget(): void;
};

export function createRememberedRows<Kind extends string, Key>(
  database: SqlDatabase,
  lookUps: Readonly<Record<Kind, string>>,
): RememberedRows<Kind, Key> {
  const known = new Map<Kind, Map<Key, unknown>>();
  const statements = new Map<Kind, ReturnType<typeof prepare>>();
  let drafted: (readonly [Kind, Key])[] = [];
  const prepare = (kind: Kind) => database.prepare<unknown, SqlValue[]>(lookUps[kind]);

  function remember(kind: Kind, key: Key, row: unknown): void {
    let rows = known.get(kind);
    if (rows === undefined) {
      rows = new Map();
      known.set(kind, rows);
    }
    if (rows.size >= REMEMBERED_MAX) rows.clear();
    rows.set(key, row);
  }

  return {
    find(kind, key, ...bindings) {
      const remembered = known.get(kind)?.get(key);
      if (remembered !== undefined) return remembered;
      let statement = statements.get(kind);
      if (statement === undefined) {
        statement = prepare(kind);
        statements.set(kind, statement);
      }
      const row = statement.get(...bindings);
      if (row !== null) remember(kind, key, row);
      return row;
    },
    remember(kind, key, row) {
      remember(kind, key, row);
      drafted.push([kind, key]);
    },
    draft() {
      const noted: typeof drafted = [];
      drafted = noted;
      return () => {
        for (const [kind, key] of noted.splice(0)) known.get(kind)?.delete(key);
      };
    },
    forget: () => known.clear(),
  };
}
