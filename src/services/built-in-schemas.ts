import { type Clause, schemaNamesOf } from "../core/clauses/registry.ts";
import type { NamedSchema } from "../core/named-schema.ts";
import { benchSchemas } from "../resources/bench-schemas.ts";
import type { Context } from "./context.ts";

/**
 * The built-in schemas, for warrants. An organisation that has no schema of that name gets it as its own, with the first warrant
 * or verifier that names it. From then on the name means what it meant then, whatever a later version builds in.
 *
 * With a verifier it is an administrator's change, and the audit log has it. With a warrant it is not: whoever opens one may be an
 * agent, which the audit log does not know, and the trace has it already, since the entry of the open holds the schema's hash.
 */

/** Ids for the built-in schemas that may have to be saved, by name. They are drawn first, since deciding is pure. */
export type SchemaIds = Readonly<Record<string, string>>;

export const newSchemaIds = ({ newId }: Pick<Context, "newId">, clauses: readonly Clause[]): SchemaIds =>
  Object.fromEntries(
    schemaNamesOf(clauses)
      .filter(isBuiltIn)
      .map((name) => [name, newId("schema")]),
  );

export const BUILT_IN_NAMES: readonly string[] = Object.keys(benchSchemas);

export const isBuiltIn = (name: string): boolean => Object.hasOwn(benchSchemas, name);

/** The built-in schemas that the organisation does not have yet, as rows to save. */
export const builtInsBesides = (
  known: readonly NamedSchema[],
  ids: SchemaIds,
  { organisationId, createdAt }: Pick<NamedSchema, "organisationId" | "createdAt">,
): readonly NamedSchema[] =>
  Object.entries(ids).flatMap(([name, id]) => {
    const builtIn = known.some((schema) => schema.name === name) ? undefined : benchSchemas[name];
    return builtIn
      ? [{ id, organisationId, name, schema: builtIn.schema, schemaHash: builtIn.hash, createdAt }]
      : [];
  });
