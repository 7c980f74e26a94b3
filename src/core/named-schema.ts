import type { JsonSchema } from "./clauses/schema.ts";

/** A JSON Schema that clauses name. Immutable once saved, so a name pins its hash. */
export type NamedSchema = {
  readonly id: string;
  readonly organisationId: string;
  readonly name: string;
  readonly schema: JsonSchema;
  readonly schemaHash: string;
  readonly createdAt: number;
};
