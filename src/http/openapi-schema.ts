import { responseModels } from "./response-models.ts";

/** A schema of OpenAPI 3.0: JSON Schema as it was, without `const`, `null` types and numeric exclusive bounds. */
export type OpenApiSchema = {
  readonly [keyword: string]: unknown;
  readonly properties?: Readonly<Record<string, OpenApiSchema>>;
  readonly required?: readonly string[];
};

/** Converted named models by their JSON, so that one inside another becomes a reference. Inner ones come first. */
const names = new Map<string, string>();

/** `components.schemas`. */
export const namedSchemas: Readonly<Record<string, OpenApiSchema>> = Object.fromEntries(
  Object.entries(responseModels).map(([name, model]) => {
    const schema = convert(model as unknown as OpenApiSchema);
    names.set(JSON.stringify(schema), name);
    return [name, schema];
  }),
);

/** A model in OpenAPI 3.0's dialect; what is named in it is referred to. */
export function openApiSchema(model: object): OpenApiSchema {
  const schema = convert(model as OpenApiSchema);
  const name = names.get(JSON.stringify(schema));
  return name === undefined ? schema : { $ref: `#/components/schemas/${name}` };
}

function convert(model: OpenApiSchema): OpenApiSchema {
  const { anyOf, const: only, exclusiveMinimum, exclusiveMaximum, "x-items": items, ...rest } = model;
  const schema: Record<string, unknown> = { ...rest, ...(items !== undefined && { items }) };
  if (only !== undefined) schema.enum = [only];
  if (typeof exclusiveMinimum === "number") {
    Object.assign(schema, { minimum: exclusiveMinimum, exclusiveMinimum: true });
  }
  if (typeof exclusiveMaximum === "number") {
    Object.assign(schema, { maximum: exclusiveMaximum, exclusiveMaximum: true });
  }
  if (rest.properties) schema.properties = mapValues(rest.properties, openApiSchema);
  for (const keyword of ["items", "additionalProperties"]) {
    const inner = schema[keyword];
    if (typeof inner === "object" && inner !== null) schema[keyword] = openApiSchema(inner);
  }
  return anyOf === undefined ? schema : { ...schema, ...convertUnion(anyOf as readonly OpenApiSchema[]) };
}

/** A union of constants is an enum; one with null is nullable. */
function convertUnion(members: readonly OpenApiSchema[]): OpenApiSchema {
  const solid = members.filter(({ type }) => type !== "null");
  const nullable = solid.length < members.length ? { nullable: true } : {};
  if (solid.every((member) => "const" in member)) {
    const values = solid.map((member) => member.const);
    // A null value must stand in the enum too.
    return { type: "string", ...nullable, enum: solid.length < members.length ? [...values, null] : values };
  }
  const converted = solid.map(openApiSchema);
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
