import { type AnyColumn, asc, desc, gt, lt, type SQL, type SQLWrapper } from "drizzle-orm";
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
