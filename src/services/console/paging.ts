import type { Cursor } from "../../store/reader.ts";

/** How many rows a page of a list has. */
export const PAGE_SIZE = 25;

/** Where a page begins, as its address says it: with those older than a row, or the next newer ones. */
export type PageAsked = { readonly olderThan: string | null; readonly newerThan: string | null };

export type RowsOfPage<Row> = {
  readonly rows: readonly Row[];
  readonly hasNewer: boolean;
  readonly hasOlder: boolean;
};

/**
 * A page of a list, newest first, and whether there are newer and older ones.
 *
 * @param read gives the rows at a cursor, newest first, `limit` at most
 */
export async function readPage<Row>(
  { olderThan, newerThan }: PageAsked,
  read: (cursor: Cursor, limit: number) => Promise<readonly Row[]>,
): Promise<RowsOfPage<Row>> {
  const cursor: Cursor = newerThan !== null ? { newerThan } : olderThan !== null ? { olderThan } : {};
  const found = await read(cursor, PAGE_SIZE + 1);
  const isMore = found.length > PAGE_SIZE;
  // The row beyond the page is the newest one on the way back, and the oldest one on the way on.
  return newerThan !== null
    ? { rows: isMore ? found.slice(1) : found, hasNewer: isMore, hasOlder: true }
    : { rows: found.slice(0, PAGE_SIZE), hasNewer: olderThan !== null, hasOlder: isMore };
}
