import { Database } from "bun:sqlite";
import { join } from "node:path";

/** How many rows every table of a ledger has. A refusal must not change it. */
export function rowCounts(dataFolder: string): Readonly<Record<string, number>> {
  const database = new Database(join(dataFolder, "holdfast.db"), { readonly: true });
  try {
    const tables = database
      .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
      .all();
    return Object.fromEntries(
      tables.map(({ name }) => [
        name,
        database.query<{ n: number }, []>(`SELECT count(*) AS n FROM "${name}"`).get()?.n ?? 0,
      ]),
    );
  } finally {
    database.close();
  }
}
