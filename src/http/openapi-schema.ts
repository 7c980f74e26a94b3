import { type Form, nameOf } from "../core/form.ts";

/** A schema of OpenAPI 3.0: JSON Schema as it was, without `const`, `null` types and numeric exclusive bounds. */
export type OpenApiSchema = {
  readonly [keyword: string]: unknown;
  readonly properties?: Readonly<Record<string, OpenApiSchema>>;
  readonly required?: readonly string[];
};

/** The schemas of a document: each named form stands once in `named`, and is referred to wherever it is. */
export function createSchemas() {
  const named: Record<string, OpenApiSchema> = {};

  /** A form in OpenAPI 3.0's dialect; what is named in it is referred to. */
  function describe(schema: object): OpenApiSchema {
    const name = nameOf(schema);
    if (name === null) return convert(schema as OpenApiSchema, describe);
    named[name] ??= convert(schema as OpenApiSchema, describe);
    return { $ref: `#/components/schemas/${name}` };
  }

  return { named, describe };
}

type Describe = (schema: object) => OpenApiSchema;

function convert(model: OpenApiSchema, describe: Describe): OpenApiSchema {
  const { anyOf, const: only, exclusiveMinimum, exclusiveMaximum, "x-items": items, ...rest } = model;
  const schema: Record<string, unknown> = {
    ...rest,
    ...(items !== undefined && { items: (items as Form)() }),
  };
  if (only !== undefined) schema.enum = [only];
  if (typeof exclusiveMinimum === "number") {
    Object.assign(schema, { minimum: exclusiveMinimum, exclusiveMinimum: true });
  }
  if (typeof exclusiveMaximum === "number") {
    Object.assign(schema, { maximum: exclusiveMaximum, exclusiveMaximum: true });
  }
  if (rest.properties) schema.properties = mapValues(rest.properties, describe);
  for (const keyword of ["items", "additionalProperties"]) {
    const inner = schema[keyword];
    if (typeof inner === "object" && inner !== null) schema[keyword] = describe(inner);
  }
  return anyOf === undefined
    ? schema
    : { ...schema, ...convertUnion(anyOf as readonly OpenApiSchema[], describe) };
}

/** A union of constants is an enum; one with null is nullable. */
function convertUnion(members: readonly OpenApiSchema[], describe: Describe): OpenApiSchema {
  const solid = members.filter(({ type }) => type !== "null");
  const nullable = solid.length < members.length ? { nullable: true } : {};
  if (solid.every((member) => "const" in member)) {
    const values = solid.map((member) => member.const);
    // A null value must stand in the enum too.
    return { type: "string", ...nullable, enum: solid.length < members.length ? [...values, null] : values };
  }
  const converted = solid.map(describe);
  const [single] = converted;
  if (converted.length > 1 || !single) return { ...nullable, anyOf: converted };
  if ("$ref" in single) return { ...nullable, allOf: [single] };
  return Array.isArray(single.enum)
    ? { ...single, ...nullable, enum: [...single.enum, null] }
    : { ...single, ...nullable };
}

function mapValues<Value, To>(values: Readonly<Record<string, Value>>, map: (value: Value) => To) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}
