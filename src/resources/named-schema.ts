import { Type } from "@sinclair/typebox";
import type { JsonSchema } from "../core/clauses/schema.ts";
import { form, hash, is, object, text, time, type Wire } from "../core/form.ts";
import type { NamedSchema } from "../core/named-schema.ts";
import { isoTime } from "../core/time.ts";

/** A JSON Schema that clauses name. */

const schemaForm = form("Schema", () =>
  object({
    id: text,
    object: is("schema"),
    name: text,
    schema: Type.Unsafe<JsonSchema>(Type.Unknown()),
    schema_hash: hash,
    created_at: time,
  }),
);

export const schemaResource = (schema: NamedSchema): Wire<typeof schemaForm> => ({
  id: schema.id,
  object: "schema",
  name: schema.name,
  schema: schema.schema,
  schema_hash: schema.schemaHash,
  created_at: isoTime(schema.createdAt),
});
