import { type AnyColumn, asc, desc, gt, lt, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { Cursor } from "../../reader.ts";
import type { Part } from "../../scope.ts";

/** How a page is read: newest first, except that the next newer rows are found oldest first. */
type Reading = { readonly bounds: SQL | undefined; readonly order: SQL; readonly isBackwards: boolean };

/** @param keyOf what a cursor's row is compared by; by default its id */
export function readingOf(
  column: AnyColumn,
  { olderThan, newerThan }: Cursor,
  keyOf: (id: string) => string | SQLWrapper = (id) => id,
): Reading {
  if (newerThan !== undefined)
    return { bounds: gt(column, keyOf(newerThan)), order: asc(column), isBackwards: true };
  const bounds = olderThan === undefined ? undefined : lt(column, keyOf(olderThan));
  return { bounds, order: desc(column), isBackwards: false };
}

export const newestFirst = <Row>({ isBackwards }: Reading, rows: readonly Row[]): readonly Row[] =>
  isBackwards ? rows.toReversed() : rows;

/** No limit: the rows are all read. */
const ALL = -1;

/** What keeps a list in the order of a column to the part that is asked for. */
export const partOf = (column: AnyColumn, part: Part | undefined) => ({
  bounds: part === undefined || part.after === null ? undefined : gt(column, part.after),
  limit: part?.limit ?? ALL,
});

/** What follows a table's name to read the first rows whose time is before or after one. Rows of one time are in the order of commits. */
export const timedSql = (time: string, comparison: "<" | "<=" | ">"): string =>
  `${time} IS NOT NULL AND ${time} ${comparison} ? ORDER BY ${time}, rowid LIMIT ?`;

/** Whether a column has one of these texts. They are one value, so that the statement is the same for any number of them. */
export const inTexts = (column: AnyColumn, texts: readonly string[]): SQL =>
  sql`${column} IN (SELECT value FROM json_each(${JSON.stringify([...new Set(texts)])}))`;

/** The same of whole numbers. */
export const inNumbers = (column: AnyColumn, numbers: readonly number[]): SQL =>
  sql`${column} IN (SELECT CAST(value AS BIGINT) FROM json_each(${JSON.stringify([...new Set(numbers)])}))`;
