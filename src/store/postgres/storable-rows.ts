import { isStorable, storableText } from "../../core/storable-text.ts";
import { DIGEST, digestedColumns, digestOfStored } from "../sql/row-digest.ts";
import type { CopiedRow, RowSource } from "./copy-rows.ts";
import type { LedgerTable } from "./ledger-tables.ts";

/**
 * The texts of strangers that are shown, and nothing else: the answers of webhooks and of those who carry notices, and the words of
 * chains' nodes. Nothing is decided by them, and nothing is signed or hashed with them but the row's own digest.
 */
const SHOWN_ALONE: Readonly<Record<string, readonly string[]>> = {
  notices: ["answer"],
  payout_waits: ["detail"],
  rail_states: ["detail"],
  webhook_deliveries: ["response_start"],
};

/** How many texts of a column had a U+0000. */
export type ReplacedTexts = { readonly table: string; readonly column: string; readonly texts: number };

/** A text that PostgreSQL cannot keep, and that must not be changed. */
export class UnstorableText extends Error {}

/**
 * The rows of a file as PostgreSQL can keep them. Older versions kept a U+0000 that a stranger sent. In the texts that are only
 * shown U+FFFD takes its place, as it does in all that is written since.
 *
 * @returns the rows, which throw `UnstorableText` at such a text that must stay as it is; and what was replaced so far
 */
export function storableRows(source: RowSource): {
  readonly source: RowSource;
  replaced(): readonly ReplacedTexts[];
} {
  const counts = new Map<string, ReplacedTexts>();
  function storable(table: LedgerTable, row: CopiedRow): CopiedRow {
    if (row.every((value) => typeof value !== "string" || isStorable(value))) return row;
    const values = Object.fromEntries(table.columns.map(({ name }, at) => [name, row[at] ?? null]));
    for (const { name: column } of table.columns) {
      const value = values[column];
      if (typeof value !== "string" || isStorable(value)) continue;
      if (!SHOWN_ALONE[table.name]?.includes(column))
        throw new UnstorableText(
          `${table.name}.${column} of the row ${values[table.key]} has a U+0000, which PostgreSQL cannot keep`,
        );
      values[column] = storableText(value);
      const known = counts.get(`${table.name}.${column}`);
      counts.set(`${table.name}.${column}`, { table: table.name, column, texts: (known?.texts ?? 0) + 1 });
    }
    if (DIGEST in values) {
      const names = Object.keys(values).filter((name) => name !== "rowid");
      const columns = digestedColumns(table.name, names);
      values[DIGEST] = digestOfStored(table.name, columns, values);
    }
    return table.columns.map(({ name }) => values[name] ?? null);
  }
  return {
    source: {
      sizeOf: source.sizeOf,
      rowsAfter: async (table, after, rowsMax) =>
        (await source.rowsAfter(table, after, rowsMax)).map((row) => storable(table, row)),
    },
    replaced: () => [...counts.values()],
  };
}
