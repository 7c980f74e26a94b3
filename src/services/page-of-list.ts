import { type Refusal, refuseField } from "../core/errors.ts";
import type { Wire } from "../core/form.ts";
import type { pageQuery } from "../resources/list.ts";

/** Which part of a list is asked for (documentation, "Lists"). Without a limit it is the whole list. */
export type PageOfList = Wire<typeof pageQuery>;

/** What a page says besides its data. */
export type More = { readonly has_more: boolean; readonly next_cursor: string | null };

type Listed<Row> = { readonly rows: readonly Row[]; readonly more: More | Record<string, never> };

/** The part of a whole list that is asked for. Its rows are in an order that stays. */
export function pageOfList<Row extends { readonly id: string }>(
  whole: readonly Row[],
  { limit, starting_after: after }: PageOfList,
): Listed<Row> | Refusal {
  if (limit === undefined) return after === undefined ? { rows: whole, more: {} } : refuseWithoutLimit();
  const first = after === undefined ? 0 : whole.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && first === 0) return refuseCursor();
  return firstOf(whole.slice(first), limit, ({ id }) => id);
}

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
