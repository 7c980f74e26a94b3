import type { TProperties, TSchema } from "@sinclair/typebox";
import { arrayOf, is, object } from "../core/form.ts";

/** The list envelope (README, "Lists"). `more` is what a list has besides its data. */

export const listForm = <Item extends TSchema, More extends TProperties>(item: Item, more: More) =>
  object({ object: is("list"), data: arrayOf(item), ...more });

/** A list that has nothing more. */
export const listResource = <Item>(data: readonly Item[]) => ({ object: "list" as const, data });
