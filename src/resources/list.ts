import { type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { arrayOf, boolean, is, object, orNull, text } from "../core/form.ts";
import { closed, id, pageLimit } from "./input.ts";

/** The list envelope (docs/idempotency, "Lists"). `more` are fields besides its data. */

export const listForm = <Item extends TSchema, More extends TProperties>(item: Item, more: More) =>
  object({ object: is("list"), data: arrayOf(item), ...more });

/** A list that is whole, or a page of it where that is asked for: then it says whether more follows, and after what. */
export const readBackForm = <Item extends TSchema, More extends TProperties>(item: Item, more: More) =>
  listForm(item, {
    ...more,
    has_more: Type.Optional(boolean),
    next_cursor: Type.Optional(orNull(text)),
  });

/** `starting_after` is the `next_cursor` of the page before. Which lists are whole without a limit, their services say. */
export const pageQuery = Type.Object({ limit: pageLimit, starting_after: Type.Optional(id) }, closed);

/** A list without further fields. */
export const listResource = <Item>(data: readonly Item[]) => ({ object: "list" as const, data });
