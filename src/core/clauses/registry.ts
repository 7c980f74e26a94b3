import { type Static, type TObject, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { isRefusal, type Refusal, refuseField } from "../errors.ts";
import { NOTHING_HIDDEN, PLAIN_TEXT_PATTERN } from "../hidden-characters.ts";
import { JSONPATH_LENGTH_MAX } from "./limits.ts";

export const CLAUSES_MAX = 64;
/** Bytes of a spec's canonical JSON. */
const SPEC_BYTES_MAX = 64 * 1024;
export const SCHEMA_NAME_LENGTH_MAX = 128;

/** A field's `description` completes the sentence "must be …" of its refusal. */
const positiveSeconds = Type.Integer({
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: "an integer greater than 0",
});
const fraction = Type.Number({ minimum: 0, maximum: 1, description: "a number from 0 to 1" });
const name = (lengthMax: number) =>
  Type.String({
    minLength: 1,
    maxLength: lengthMax,
    pattern: PLAIN_TEXT_PATTERN,
    description: `a string of 1 to ${lengthMax} characters, ${NOTHING_HIDDEN}`,
  });
const RUBRIC_LENGTH_MAX = 8_192;

const NOT_JSON = { body_not_json: "The body is not JSON, so nothing in it could be looked at." };

/**
 * The closed registry of clauses: what each kind asserts, its fields besides `kind`, and the reason codes that it fails with, each
 * with a sentence for people.
 */
const REGISTRY = {
  "http.status": {
    description: "The response status equals `equals` exactly.",
    fields: {
      equals: Type.Integer({
        minimum: Number.MIN_SAFE_INTEGER,
        maximum: Number.MAX_SAFE_INTEGER,
        description: "an integer",
      }),
    },
    codes: {
      status_mismatch: "The source answered with another status.",
      source_not_found: "The source says that there is nothing at this address (404 or 410).",
    },
  },
  "json.schema": {
    description: "The body is JSON and validates against the named schema.",
    fields: { schema: name(SCHEMA_NAME_LENGTH_MAX) },
    codes: {
      ...NOT_JSON,
      schema_mismatch: "The body is JSON, but not as the schema wants it.",
      schema_not_found: "There is no schema of that name. Save one, or name a built-in one.",
    },
  },
  "json.jsonpath": {
    description: "The JSONPath resolves in the body; with `equals`, to exactly one value, equal to it.",
    fields: {
      path: Type.String({
        minLength: 1,
        maxLength: JSONPATH_LENGTH_MAX,
        description: `a JSONPath of at most ${JSONPATH_LENGTH_MAX} characters`,
      }),
      equals: Type.Optional(Type.Unknown({ description: "a JSON value" })),
    },
    codes: {
      ...NOT_JSON,
      path_not_found: "Nothing in the body is at this path.",
      path_unsupported: "The path is not a JSONPath of RFC 9535.",
      value_mismatch: "What is at the path is not exactly the value that is asked for.",
    },
  },
  "file.sha256": {
    description: "The bytes hash to the given SHA-256 digest.",
    fields: { digest: Type.String({ pattern: "^[0-9A-Fa-f]{64}$", description: "64 hex digits" }) },
    codes: {
      digest_mismatch: "The bytes hash to another SHA-256. A single byte makes another one.",
    },
  },
  "data.freshness": {
    description: "The payload is no older than `maxAgeSeconds`.",
    fields: { maxAgeSeconds: positiveSeconds },
    codes: {
      data_stale: "The data is older than allowed, or says that it was made more than 5 minutes from now.",
      no_timestamp:
        "Neither generated_at in the body nor the header Last-Modified says when the data was made.",
    },
  },
  "uptime.window": {
    description: "Coming soon: a supplied uptime ratio over the window reaches `minRatio`.",
    fields: { windowSeconds: positiveSeconds, minRatio: fraction },
    codes: {
      uptime_below_minimum: "The uptime that was supplied is below the minimum.",
      no_uptime_data: "No uptime was supplied. On a warrant nothing supplies it yet.",
    },
  },
  "chain.event": {
    description: "Coming soon: the supplied event log contains `topic`.",
    fields: { topic: name(512) },
    codes: {
      event_not_emitted: "The topic is not among the events that were supplied.",
      no_event_log: "No events were supplied. On a warrant nothing supplies them yet.",
    },
  },
  "llm.judge": {
    description: "Coming soon: a supplied judgement of the rubric reaches `minScore`.",
    fields: {
      rubric: Type.String({
        minLength: 1,
        maxLength: RUBRIC_LENGTH_MAX,
        description: `a string of 1 to ${RUBRIC_LENGTH_MAX} characters`,
      }),
      minScore: fraction,
    },
    codes: {
      score_below_minimum: "The judgement that was supplied is below the minimum.",
      no_judgement: "No judgement was supplied. On a warrant nothing supplies one yet.",
    },
  },
} as const satisfies Record<
  string,
  { description: string; fields: Record<string, TSchema>; codes: Readonly<Record<string, string>> }
>;

type Registry = typeof REGISTRY;
export type ClauseKind = keyof Registry;
type ClauseOf<Kind extends ClauseKind> = Kind extends ClauseKind
  ? { readonly kind: Kind } & Readonly<Static<TObject<Registry[Kind]["fields"]>>>
  : never;
/** A clause of any kind, or of the given kinds. */
export type Clause<Kind extends ClauseKind = ClauseKind> = ClauseOf<Kind>;

export const CLAUSE_KINDS = Object.keys(REGISTRY) as readonly ClauseKind[];

export const isClauseKind = (value: unknown): value is ClauseKind =>
  typeof value === "string" && Object.hasOwn(REGISTRY, value);

type CodeOfKind = { [Kind in ClauseKind]: keyof Registry[Kind]["codes"] }[ClauseKind];

/** The reason codes of all kinds, each with its sentence. */
export const EXPLAINED_CODES = Object.assign(
  {},
  ...CLAUSE_KINDS.map((kind) => REGISTRY[kind].codes),
) as Readonly<Record<CodeOfKind, string>>;
export const CODES_OF_KINDS = Object.keys(EXPLAINED_CODES) as readonly CodeOfKind[];

/** The registry as the list of verifiers shows it. */
export const clauseTemplates: readonly { readonly kind: ClauseKind; readonly description: string }[] =
  CLAUSE_KINDS.map((kind) => ({ kind, description: REGISTRY[kind].description }));

/** The clauses' models, for the API's description; refusals come from `parseClauses`. */
export const clauseModels = Object.fromEntries(
  CLAUSE_KINDS.map((kind) => [kind, modelOf(kind, REGISTRY[kind])]),
) as Readonly<Record<ClauseKind, TObject>>;

function modelOf(kind: ClauseKind, entry: { description: string; fields: TProperties }): TObject {
  const options = { additionalProperties: false, title: kind, description: entry.description };
  return Type.Object({ kind: Type.Literal(kind), ...entry.fields }, options);
}

/**
 * The clauses of a spec, or `validation_failed` whose message starts with the path of what is wrong.
 * The caller checks whether the named schemas exist (`schemaNamesOf`).
 */
export function parseClauses(value: unknown, path: string): readonly Clause[] | Refusal {
  if (!Array.isArray(value)) return refuseField(path, "must be an array of clauses");
  if (value.length < 1 || value.length > CLAUSES_MAX)
    return refuseField(path, `must hold 1 to ${CLAUSES_MAX} clauses`);
  const clauses: Clause[] = [];
  for (const [index, item] of value.entries()) {
    const clause = parseClause(item, `${path}.${index}`);
    if (isRefusal(clause)) return clause;
    clauses.push(clause);
  }
  if (!fitsSpec(clauses)) return refuseField(path, "must be at most 64 kB of canonical JSON");
  return clauses;
}

/** Whether a spec of these clauses is within 64 kB. Plain JSON is as long as canonical JSON: only the order of keys differs. */
export const fitsSpec = (clauses: readonly Clause[]): boolean =>
  Buffer.byteLength(JSON.stringify({ clauses })) <= SPEC_BYTES_MAX;

/**
 * One clause, or `validation_failed` naming the path. `value` comes from `parseJsonText`. A saved verifier is parsed as
 * `{ kind: type, ...config }`.
 */
export function parseClause(value: unknown, path: string): Clause | Refusal {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return refuseField(path, "must be an object");
  const given = value as Readonly<Record<string, unknown>>;
  const kind = Object.hasOwn(given, "kind") ? given.kind : undefined;
  if (!isClauseKind(kind)) return refuseField(`${path}.kind`, `must be one of ${CLAUSE_KINDS.join(", ")}`);

  const fields: Readonly<Record<string, TSchema>> = REGISTRY[kind].fields;
  for (const [name, model] of Object.entries(fields)) {
    const required = clauseModels[kind].required?.includes(name) ?? false;
    if (!Object.hasOwn(given, name)) {
      if (required) return refuseField(`${path}.${name}`, `is required, and must be ${model.description}`);
    } else if (!checkOf(model).Check(given[name])) {
      return refuseField(`${path}.${name}`, `must be ${model.description}`);
    }
  }
  const unknown = Object.keys(given).find((name) => name !== "kind" && !Object.hasOwn(fields, name));
  if (unknown !== undefined)
    return refuseField(
      `${path}.${unknown}`,
      `is not a field of ${kind}, which has ${Object.keys(fields).join(", ")}`,
    );
  return given as Clause;
}

const compiled = new Map<TSchema, TypeCheck<TSchema>>();

function checkOf(model: TSchema): TypeCheck<TSchema> {
  const known = compiled.get(model) ?? TypeCompiler.Compile(model);
  compiled.set(model, known);
  return known;
}

/** The package is loaded by the first clause with a JSONPath, so that no start waits for it. */
const jsonPaths = (): typeof import("./jsonpath.ts") => require("./jsonpath.ts");

/** Refuses a JSONPath that is not supported. For clauses that are stored: the bench reports it as a failed clause instead. */
export function refuseJsonPath(clause: Clause, path: string): Refusal | null {
  const problem = clause.kind === "json.jsonpath" ? jsonPaths().parseJsonPath(clause.path) : null;
  return problem === null ? null : refuseField(`${path}.path`, problem);
}

/** The names of the schemas in the clauses, each once. */
export const schemaNamesOf = (clauses: readonly Clause[]): readonly string[] => [
  ...new Set(clauses.flatMap((clause) => (clause.kind === "json.schema" ? [clause.schema] : []))),
];
