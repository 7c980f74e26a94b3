import { type Form, nameOf } from "../core/form.ts";

/** A schema of OpenAPI 3.1, which is JSON Schema 2020-12. */
export type OpenApiSchema = {
  readonly [keyword: string]: unknown;
  readonly properties?: Readonly<Record<string, OpenApiSchema>>;
  readonly required?: readonly string[];
};

/** The schemas of a document: each named form stands once in `named`, and is referred to wherever it is. */
export function createSchemas() {
  const named: Record<string, OpenApiSchema> = {};

  function describe(schema: object): OpenApiSchema {
    const name = nameOf(schema);
    if (name === null) return convert(schema as OpenApiSchema, describe);
    named[name] ??= convert(schema as OpenApiSchema, describe);
    return { $ref: `#/components/schemas/${name}` };
  }

  return { named, describe };
}

type Describe = (schema: object) => OpenApiSchema;

/** TypeBox writes JSON Schema already. What is in a schema is described in turn, and a union is written short. */
function convert(model: OpenApiSchema, describe: Describe): OpenApiSchema {
  const { anyOf, "x-items": items, ...schema } = model;
  const inner: Record<string, unknown> = items === undefined ? {} : { items: describe((items as Form)()) };
  if (schema.properties) inner.properties = mapValues(schema.properties, describe);
  for (const keyword of ["items", "additionalProperties"]) {
    const value = schema[keyword];
    if (typeof value === "object" && value !== null) inner[keyword] ??= describe(value);
  }
  return {
    ...schema,
    ...inner,
    ...(anyOf !== undefined && convertUnion(anyOf as readonly OpenApiSchema[], describe)),
  };
}

/** A union of constants is an enum, and one of a type with null is a list of types. */
function convertUnion(members: readonly OpenApiSchema[], describe: Describe): OpenApiSchema {
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
