import { type Static, type TProperties, type TSchema, Type } from "@sinclair/typebox";

import { ID_PREFIXES, type Noun } from "./ids.ts";

/**
 * The form of something on the wire, as a TypeBox schema. It is built when it is first asked for: only the API's description
 * and the bench read the forms of answers, and no start waits for them.
 */
export type Form<Schema extends TSchema = TSchema> = () => Schema;

/**
 * The type that a form describes. An encoder returns it, so a field that only the form or only the encoder
 * has does not compile.
 */
export type Wire<Of extends TSchema | Form> = ReadonlyWire<Static<Of extends Form ? ReturnType<Of> : Of>>;

type ReadonlyWire<Value> = Value extends readonly (infer Item)[]
  ? readonly ReadonlyWire<Item>[]
  : Value extends object
    ? { readonly [Key in keyof Value]: ReadonlyWire<Value[Key]> }
    : Value;

const NAME = Symbol("the name of a form");

/** A form with a name in the API's description. Other forms there refer to it by this name. */
export function form<Schema extends TSchema>(name: string, build: () => Schema): Form<Schema> {
  let built: Schema | undefined;
  return () => {
    built ??= named(name, build());
    return built;
  };
}

/** A copy of a schema with a name. */
export const named = <Schema extends TSchema>(name: string, schema: Schema): Schema => ({
  ...schema,
  [NAME]: name,
});

/** Null for a schema without a name. */
export const nameOf = (schema: object): string | null =>
  (schema as { readonly [NAME]?: string })[NAME] ?? null;

/** An object whose fields are all required. Later versions may add fields. */
export const object = <Properties extends TProperties>(properties: Properties) => Type.Object(properties);

export const arrayOf = <Item extends TSchema>(item: Item) => Type.Array(item);

export const orNull = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

export const oneOf = <const Value extends string>(values: readonly Value[]) =>
  Type.Unsafe<Value>(Type.Union(values.map((value) => Type.Literal(value))));

/** A JSON object with any fields, or with values of this form. `Value` is its type in code. */
export const anyObject = <Value extends object>(description: string, values: TSchema | true = true) =>
  Type.Unsafe<Value>(Type.Object({}, { additionalProperties: values, description }));

export const is = <const Value extends string>(value: Value) => Type.Literal(value);
export const text = Type.String();
/** An id with its noun's prefix. */
export const idOf = (noun: Noun) => Type.String({ pattern: `^${ID_PREFIXES[noun]}` });

export const boolean = Type.Boolean();
export const integer = Type.Integer();
export const count = Type.Integer({ minimum: 0 });
export const time = Type.String({ format: "date-time" });
export const amount = Type.String({ pattern: "^[0-9]+$", description: "In the asset's smallest unit." });
export const hash = Type.String({ pattern: "^[0-9a-f]{64}$", description: "Lower-case hex SHA-256." });
export const fraction = Type.Number({ minimum: 0, maximum: 1 });
export const score = Type.Integer({ minimum: 0, maximum: 10_000, description: "In basis points." });
export const share = orNull(Type.Integer({ minimum: 1, maximum: 10_000, description: "In basis points." }));
