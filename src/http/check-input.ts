import type { TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import type { Refusal } from "../core/errors.ts";
import { validationRefusal } from "./errors.ts";

/** The forms that a route requires of its query and its body. */
export type Models = { readonly query?: TSchema; readonly body?: TSchema };

/**
 * The first error in the query, else the first in the body; null where both are right. Other errors are not looked for: a
 * hostile body can contain very many.
 */
export const refuseInput = (models: Models, query: unknown, body: unknown): Refusal | null =>
  refuseValue(models.query, query) ?? refuseValue(models.body, body);

const checks = new WeakMap<TSchema, TypeCheck<TSchema>>();

function refuseValue(model: TSchema | undefined, value: unknown): Refusal | null {
  if (!model) return null;
  let check = checks.get(model);
  if (!check) {
    check = TypeCompiler.Compile(model);
    checks.set(model, check);
  }
  return check.Check(value) ? null : validationRefusal(check.Errors(value).First());
}

const NO_PARAMETERS: Readonly<Record<string, unknown>> = {};

/**
 * The parameters in the text after a URL's `?`. Digits become a number where the model requires an integer. A name that is
 * sent twice becomes an array, which no model accepts.
 */
export function readQuery(text: string, model: TSchema | undefined): Readonly<Record<string, unknown>> {
  if (text === "") return NO_PARAMETERS;
  const query: Record<string, unknown> = Object.create(null);
  for (const [name, value] of new URLSearchParams(text)) {
    query[name] = name in query ? [query[name], value].flat() : readInteger(model?.properties?.[name], value);
  }
  return query;
}

const readInteger = (property: TSchema | undefined, value: string): string | number =>
  property?.type === "integer" && /^[0-9]{1,9}$/.test(value) ? Number(value) : value;
