import { hashJson } from "../../core/canonical.ts";
import { SCHEMA_NAME_LENGTH_MAX } from "../../core/clauses/registry.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import type { NamedSchema } from "../../core/named-schema.ts";
import { schemaResource } from "../../resources/named-schema.ts";
import type { Audited, Entry } from "../audited.ts";
import { type Context, refusedBusy } from "../context.ts";
import { type Authority, administer, refuseAuthority } from "./authority.ts";

const NAME = new RegExp(`^[A-Za-z0-9._-]{1,${SCHEMA_NAME_LENGTH_MAX}}$`);

export type SchemaInput = {
  readonly organisation_id: string;
  readonly name: string;
  readonly schema: unknown;
};

type SchemaResource = ReturnType<typeof schemaResource>;

/**
 * Saves a JSON Schema under a name. It can never be changed, so a clause that names it always means the same
 * schema.
 */
export async function createSchema(
  ctx: Context,
  authority: Authority,
  input: SchemaInput,
): Promise<SchemaResource | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  if (typeof input.name !== "string" || !NAME.test(input.name)) {
    return refuseField(
      "name",
      `must be 1 to ${SCHEMA_NAME_LENGTH_MAX} characters of A-Z, a-z, 0-9, '.', '_' and '-'`,
    );
  }
  const parsed = await ctx.parseSchema(input.schema).catch(refusedBusy);
  if (isRefusal(parsed)) return parsed;
  const saved: Omit<NamedSchema, "createdAt"> = {
    id: ctx.newId("schema"),
    organisationId: input.organisation_id,
    name: input.name,
    schema: parsed.schema,
    schemaHash: hashJson(parsed.schema),
  };
  return administer(ctx, authority, "admin", {
    scope: { organisationId: saved.organisationId, mode: "live" },
    needs: { schemas: [saved.name] },
    decide: (snapshot, now): Audited<SchemaResource> => {
      if (snapshot.schemas.length > 0) {
        return {
          answer: refuse(
            "already_exists",
            `name: a schema named ${saved.name} exists already, and never changes. Save the new one under another name.`,
          ),
        };
      }
      const row = { ...saved, createdAt: now };
      return {
        answer: schemaResource(row),
        put: [{ kind: "schema", row }],
        entries: [schemaCreated(row)],
      };
    },
  });
}

/** The audit entry of a schema that is saved. It leaves the schema out: that may be long, and its hash identifies it. */
export function schemaCreated(row: NamedSchema): Entry {
  const { schema: _, ...after } = schemaResource(row);
  return { action: "schema.created", subject: row.id, before: null, after };
}
