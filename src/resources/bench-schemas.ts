import { hashJson } from "../core/canonical.ts";
import { clauseForm } from "../core/clauses/form.ts";
import type { JsonSchema, Schemas } from "../core/clauses/schema.ts";
import type { Form } from "../core/form.ts";
import { eventForm } from "./event.ts";
import { type DescribedSchema, jsonSchemaOf } from "./json-schema.ts";
import { receiptForm } from "./receipt.ts";

/** The built-in schemas that the bench knows (docs/clauses, "The bench"). Each is made when a clause first names it. */
export const benchSchemas: Schemas = madeOnDemand({
  object: () => ({ type: "object" }),
  array: () => ({ type: "array" }),
  non_empty_array: () => ({ type: "array", minItems: 1 }),
  "holdfast.receipt": () => plainSchemaOf(receiptForm),
  "holdfast.event": () => plainSchemaOf(eventForm),
});

/** The schema without TypeBox's symbols, since the evaluator's child process gets it as text. */
const plainSchemaOf = (form: Form): JsonSchema => JSON.parse(JSON.stringify(shortSchemaOf(form())));

/**
 * A clause is described only as an object: the schema of all kinds takes long to compile, and a clause of the
 * bench has little time.
 */
const shortSchemaOf = (schema: object): DescribedSchema =>
  schema === clauseForm() ? { type: "object" } : jsonSchemaOf(schema, shortSchemaOf);

function madeOnDemand(schemas: Readonly<Record<string, () => JsonSchema>>): Schemas {
  const made = {};
  for (const [name, make] of Object.entries(schemas)) {
    const get = () => {
      const schema = make();
      const value = { hash: hashJson(schema), schema };
      Object.defineProperty(made, name, { value, enumerable: true });
      return value;
    };
    Object.defineProperty(made, name, { get, enumerable: true, configurable: true });
  }
  return made;
}
