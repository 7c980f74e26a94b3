import type { TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import type { Refusal } from "../core/errors.ts";
import { validationRefusal } from "./errors.ts";

/** The forms that a route asks for. */
export type Models = { readonly query?: TSchema | undefined; readonly body?: TSchema | undefined };

/**
 * The first thing that is wrong with a query, then with a body; null where nothing is. Elysia would check the same models
 * after this, but its error prints the whole body and lists what is wrong with it, which a hostile one makes long.
 */
export function refuseInput(models: Models, query: Record<string, unknown>, body: unknown): Refusal | null {
  if (models.query) readIntegers(models.query, query);
  return refuseValue(models.query, query) ?? refuseValue(models.body, body);
}

const checks = new WeakMap<TSchema, TypeCheck<TSchema>>();

function refuseValue(model: TSchema | undefined, value: unknown): Refusal | null {
  if (!model) return null;
  const check = checks.get(model) ?? TypeCompiler.Compile(model);
  checks.set(model, check);
  return check.Check(value) ? null : validationRefusal(check.Errors(value).First());
}

/** Parameters arrive as text; digits become the integers that the model asks for. */
function readIntegers({ properties }: TSchema, query: Record<string, unknown>): void {
  for (const [name, text] of Object.entries(query)) {
    const isInteger = Object.hasOwn(properties, name) && properties[name].type === "integer";
    if (isInteger && typeof text === "string" && /^[0-9]{1,9}$/.test(text)) query[name] = Number(text);
  }
}
