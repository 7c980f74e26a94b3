import { Ajv, type AnySchemaObject, type Options } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { canonicalJson } from "../canonical.ts";
import { type Refusal, refuseField } from "../errors.ts";
import { canHash, jsonEquals } from "./document.ts";
import { numberFormats, textFormats } from "./formats.ts";
import { compilePattern, PatternProblem } from "./pattern.ts";

/** A named JSON Schema: draft 2020-12, or draft-07 where `$schema` says so. */
export type JsonSchema = boolean | { readonly [keyword: string]: unknown };

/** A schema with the SHA-256 of its canonical JSON. A schema never changes. */
export type NamedSchema = { readonly hash: string; readonly schema: JsonSchema };
export type Schemas = Readonly<Record<string, NamedSchema>>;

const SCHEMA_BYTES_MAX = 64 * 1024;
const COMPILED_MAX = 128;

const DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema";
const DRAFT_07 = "http://json-schema.org/draft-07/schema";

type Draft = "2020-12" | "draft-07";
export type Validator = (value: unknown) => boolean;

const linearRegExp = Object.assign((source: string) => compilePattern(source), { code: "linearRegExp" });

const OPTIONS: Options = {
  // Without it, a mistyped keyword is ignored, and every value passes it.
  strictSchema: true,
  strictTypes: false,
  strictTuples: false,
  // Without it, a member that every object inherits, such as `constructor`, counts as present.
  ownProperties: true,
  allowMatchingProperties: true,
  allowUnionTypes: true,
  messages: true,
  logger: false,
  code: { regExp: linearRegExp, optimize: false },
};

/** An engine of its own for each schema: one schema's `$id` must not be found by another's `$ref`. */
function createEngine(draft: Draft, options: Options): Ajv {
  const engine =
    draft === "draft-07" ? new Ajv({ ...OPTIONS, ...options }) : new Ajv2020({ ...OPTIONS, ...options });
  for (const [name, check] of Object.entries(textFormats)) engine.addFormat(name, check);
  for (const [name, validate] of Object.entries(numberFormats))
    engine.addFormat(name, { type: "number", validate });
  engine.addKeyword("example");
  return engine;
}

/**
 * Replaces three keywords of Ajv. Members named `constructor` or `valueOf` mislead its equality, and its
 * `uniqueItems` takes quadratic time.
 */
function replaceEquality(engine: Ajv): void {
  for (const keyword of ["const", "enum", "uniqueItems"]) engine.removeKeyword(keyword);
  engine.addKeyword({
    keyword: "const",
    compile: (wanted: unknown) => (value: unknown) => jsonEquals(value, wanted),
  });
  engine.addKeyword({
    keyword: "enum",
    schemaType: "array",
    compile: (wanted: readonly unknown[]) => (value: unknown) => wanted.some((one) => jsonEquals(value, one)),
  });
  engine.addKeyword({
    keyword: "uniqueItems",
    type: "array",
    schemaType: "boolean",
    compile: (unique: boolean) => (items: readonly unknown[]) => !unique || areUnique(items),
  });
}

function areUnique(items: readonly unknown[]): boolean {
  const seen = new Set<string>();
  for (const item of items) {
    const text = sortedJson(item);
    if (seen.has(text)) return false;
    seen.add(text);
  }
  return true;
}

/** Values that are equal as JSON have the same text here. Unlike canonical JSON it takes lone surrogates too. */
function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return value === 0 ? "0" : String(JSON.stringify(value));
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${sortedJson(member)}`).join(",")}}`;
}

const compiled = new Map<string, Validator>();

/** The schema's check, compiled once for a hash. Throws where the schema cannot be compiled. */
export function compileSchema({ hash, schema }: NamedSchema): Validator {
  const known = compiled.get(hash);
  if (known) return known;
  if (compiled.size >= COMPILED_MAX) compiled.clear();
  const validator = compile(schema);
  compiled.set(hash, validator);
  return validator;
}

function compile(schema: JsonSchema): Validator {
  const draft = draftOf(schema);
  if (draft === null) throw new Error("unknown draft");
  const engine = createEngine(draft, { meta: false, validateSchema: false });
  replaceEquality(engine);
  const validate = engine.compile(schema as boolean | AnySchemaObject);
  // Ajv's `$async` schemas answer with a promise, which is not a pass.
  return (value) => (validate(value) as unknown) === true;
}

function draftOf(schema: JsonSchema): Draft | null {
  if (typeof schema === "boolean" || schema.$schema === undefined) return "2020-12";
  const name = typeof schema.$schema === "string" ? schema.$schema.replace(/#$/, "") : null;
  if (name === DRAFT_2020) return "2020-12";
  return name === DRAFT_07 ? "draft-07" : null;
}

const metaEngines = new Map<Draft, Ajv>();

/** The engine that holds a draft's meta-schema. It validates schemas by it, and none of them is added to it. */
function metaEngineOf(draft: Draft): Ajv {
  const known = metaEngines.get(draft);
  if (known) return known;
  const engine = createEngine(draft, {});
  metaEngines.set(draft, engine);
  return engine;
}

/** A schema to save, or `validation_failed` naming where in `schema` it is wrong. */
export function parseSchema(value: unknown): { readonly schema: JsonSchema } | Refusal {
  if (typeof value !== "boolean" && (typeof value !== "object" || value === null || Array.isArray(value)))
    return refuseField("schema", "must be an object or a boolean");
  const schema = value as JsonSchema;
  const problem = contentProblem(schema);
  if (problem !== null) return refuseField("schema", problem);

  const draft = draftOf(schema);
  if (draft === null) return refuseField("schema.$schema", `must be ${DRAFT_2020} or ${DRAFT_07}#`);
  const engine = metaEngineOf(draft);
  if (engine.validateSchema(schema as boolean | AnySchemaObject) !== true) {
    const error = engine.errors?.[0];
    const path = (error?.instancePath ?? "").replaceAll("/", ".").replaceAll("~1", "/").replaceAll("~0", "~");
    return refuseField(`schema${path}`, error?.message ?? "is not a JSON Schema");
  }
  try {
    compile(schema);
  } catch (error) {
    const what = error instanceof PatternProblem ? "has a pattern that cannot be used" : "does not compile";
    return refuseField("schema", `${what}: ${(error as Error).message.slice(0, 300)}`);
  }
  return { schema };
}

/** The problem with a schema that its meta-schema does not find; null where there is none. */
function contentProblem(schema: JsonSchema): string | null {
  if (!canHash(schema)) return "must be JSON of finite numbers and well-formed text";
  const text = canonicalJson(schema);
  if (Buffer.byteLength(text) > SCHEMA_BYTES_MAX) return "must be at most 64 kB of canonical JSON";
  if (text.includes('"__proto__"')) return "must not name __proto__";
  if (text.includes('"$async"')) return "must not use $async";
  return null;
}
