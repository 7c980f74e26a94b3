import { type Refusal, refuseField } from "../core/errors.ts";
import type { Wire } from "../core/form.ts";
import type { pageQuery } from "../resources/list.ts";
import type { Part, Scope } from "../store/scope.ts";

/** Which part of a list is asked for (documentation, "Lists"). Without a limit it is the whole list. */
export type PageOfList = Wire<typeof pageQuery>;

/** What a page says besides its data. */
export type More = { readonly has_more: boolean; readonly next_cursor: string | null };

type Listed<Row> = { readonly rows: readonly Row[]; readonly more: More | Record<string, never> };

/**
 * The part of a list that is asked for. Its rows are in an order that stays.
 *
 * @param list reads the list, or a part of it
 * @param find the row of a cursor; null where the list never had it
 */
export async function pageOfList<Row extends { readonly id: string }>(
  { limit, starting_after: after }: PageOfList,
  list: (part?: Part) => Promise<readonly Row[]>,
  find: (id: string) => Promise<Row | null>,
): Promise<Listed<Row> | Refusal> {
  if (limit === undefined)
    return after === undefined ? { rows: await list(), more: {} } : refuseWithoutLimit();
  if (after !== undefined && (await find(after)) === null) return refuseCursor();
  // One more than asked for says whether more follows.
  return firstOf(await list({ after: after ?? null, limit: limit + 1 }), limit, ({ id }) => id);
}

/** A row, where it is of this organisation and mode. */
export const ofScope = <Row extends Scope>({ organisationId, mode }: Scope, row: Row | null): Row | null =>
  row?.organisationId === organisationId && row.mode === mode ? row : null;

/** The first rows, and whether more follow. */
export function firstOf<Row>(
  rows: readonly Row[],
  limit: number,
  cursorOf: (row: Row) => string,
): { readonly rows: readonly Row[]; readonly more: More } {
  const [page, hasMore] = [rows.slice(0, limit), rows.length > limit];
  const last = page.at(-1);
  return { rows: page, more: { has_more: hasMore, next_cursor: hasMore && last ? cursorOf(last) : null } };
}

export const refuseWithoutLimit = (): Refusal =>
  refuseField("starting_after", "goes together with limit; without it the list is whole");

export const refuseCursor = (): Refusal =>
  refuseField("starting_after", "must be the next_cursor of an earlier page");
