import type { ReservedSQL } from "bun";
import { NoAnswer } from "./client.ts";
import { type CopiedRow, type RowSource, type RowTarget, rowsQuery, sizeQuery } from "./copy-rows.ts";
import { inTime, LATE } from "./in-time.ts";
import type { LedgerTable } from "./ledger-tables.ts";
import { arrayOf, listOf } from "./values.ts";

/** Runs a statement with its parameters, and answers its rows as lists of values. */
export type Ask = (text: string, params?: readonly unknown[]) => Promise<readonly (readonly unknown[])[]>;

/** After this long without an answer the server counts as lost. No statement of a copy or an audit takes nearly as long. */
const ANSWER_MS_MAX = 30 * 60_000;

/**
 * Asks on one connection. Bun's client waits for an answer without end, where packets are lost without a word. So a connection that
 * does not answer is closed, and the statement fails.
 *
 * @throws NoAnswer where it was closed so
 */
export const askOn =
  (connection: ReservedSQL, answerMsMax = ANSWER_MS_MAX): Ask =>
  async (text, params = []) => {
    const rows = await inTime(connection.unsafe(text, params as unknown[]).values(), answerMsMax);
    if (rows !== LATE) return (rows as unknown as unknown[][]).map(listOf);
    void connection.close({ timeout: 0 }).catch(() => {});
    throw new NoAnswer("PostgreSQL did not answer in time");
  };

/** The rows of a ledger in PostgreSQL. What is read is of one moment where the connection is in a transaction that sees a snapshot. */
export function rowsOfPostgres(ask: Ask): RowSource {
  return {
    async sizeOf(table) {
      const [[rows, longest] = []] = await ask(sizeQuery(table));
      return { rows: Number(rows), longest: Number(longest) };
    },
    rowsAfter: async (table, after, rowsMax) =>
      (await ask(rowsQuery(table), [after, rowsMax])) as readonly CopiedRow[],
  };
}

/** Writes rows into PostgreSQL, one statement for all that it gets. */
export const intoPostgres = (ask: Ask): RowTarget => ({
  async write(table, rows) {
    const lists = table.columns.map(({ type }, at) =>
      arrayOf(
        type,
        rows.map((row) => row[at]),
      ),
    );
    await ask(insertInto(table), lists);
  },
});

/** A row whose number is its primary key in SQLite has it in PostgreSQL's own column too. */
function insertInto({ name, columns, key, numbersApart }: LedgerTable): string {
  const names = columns.map((column) => `"${column.name}"`).join(", ");
  const lists = columns.map(({ type }, at) => `$${at + 1}::${type}[]`).join(", ");
  return numbersApart
    ? `INSERT INTO "${name}" (${names}, rowid) SELECT ${names}, "${key}" FROM unnest(${lists}) AS new (${names})`
    : `INSERT INTO "${name}" (${names}) SELECT ${names} FROM unnest(${lists}) AS new (${names})`;
}
