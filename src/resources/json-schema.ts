import { type Form, nameOf } from "../core/form.ts";

/** Forms as JSON Schema 2020-12, the dialect of OpenAPI 3.1 and of the bench. */

export type DescribedSchema = {
  readonly [keyword: string]: unknown;
  readonly properties?: Readonly<Record<string, DescribedSchema>>;
  readonly required?: readonly string[];
};

type Describe = (schema: object) => DescribedSchema;

/** The schemas of a document. Each form with a name stands once, in `named`; everything else refers to it. */
export function createSchemas() {
  const named: Record<string, DescribedSchema> = {};

  function describe(schema: object): DescribedSchema {
    const name = nameOf(schema);
    if (name === null) return jsonSchemaOf(schema, describe);
    named[name] ??= jsonSchemaOf(schema, describe);
    return { $ref: `#/components/schemas/${name}` };
  }

  return { named, describe };
}

/**
 * A TypeBox schema as JSON Schema. It is JSON Schema already; only unions are written more briefly.
 *
 * @param describe writes each inner schema; by default it stays as it is
 */
export function jsonSchemaOf(
  model: object,
  describe: Describe = (inner) => jsonSchemaOf(inner),
): DescribedSchema {
  const { anyOf, "x-items": items, ...schema } = model as DescribedSchema;
  const inner: Record<string, unknown> = items === undefined ? {} : { items: describe((items as Form)()) };
  if (schema.properties) inner.properties = mapValues(schema.properties, describe);
  for (const keyword of ["items", "additionalProperties"]) {
    const value = schema[keyword];
    if (typeof value === "object" && value !== null) inner[keyword] ??= describe(value);
  }
  return {
    ...schema,
    ...inner,
    ...(anyOf !== undefined && convertUnion(anyOf as readonly DescribedSchema[], describe)),
  };
}

/** Writes a union of constants as an enum, and a union of a type with null as a list of types. */
function convertUnion(members: readonly DescribedSchema[], describe: Describe): DescribedSchema {
  const converted = members.map(describe);
  if (converted.every((member) => "const" in member)) {
    return { type: "string", enum: converted.map((member) => member.const) };
  }
  const [first, second] = converted;
  if (converted.length !== 2 || typeof first?.type !== "string" || second?.type !== "null") {
    return { anyOf: converted };
  }
  const values = Array.isArray(first.enum) ? { enum: [...first.enum, null] } : {};
  return { ...first, type: [first.type, "null"], ...values };
}

function mapValues<Value, To>(values: Readonly<Record<string, Value>>, map: (value: Value) => To) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}
