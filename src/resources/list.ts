import type { TProperties, TSchema } from "@sinclair/typebox";
import { arrayOf, is, object } from "../core/form.ts";

/** The list envelope (docs/idempotency, "Lists"). `more` are fields besides its data. */

export const listForm = <Item extends TSchema, More extends TProperties>(item: Item, more: More) =>
  object({ object: is("list"), data: arrayOf(item), ...more });

/** A list without further fields. */
export const listResource = <Item>(data: readonly Item[]) => ({ object: "list" as const, data });
