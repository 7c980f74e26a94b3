import { hashJson } from "../../core/canonical.ts";
import { SCHEMA_NAME_LENGTH_MAX } from "../../core/clauses/registry.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import type { NamedSchema } from "../../core/named-schema.ts";
import { type Context, refusedBusy } from "../context.ts";
import { schemaResource } from "../resources.ts";
import { recordingAct } from "./acts.ts";
import { type Authority, administer, refuseAuthority, refuseOrganisation } from "./authority.ts";

const NAME = new RegExp(`^[A-Za-z0-9._-]{1,${SCHEMA_NAME_LENGTH_MAX}}$`);

export type SchemaInput = {
  readonly organisation_id: string;
  readonly name: string;
  readonly schema: unknown;
};

/** Saves a JSON Schema under a name, for good: a warrant's clauses name it, and the name pins its hash. */
export async function createSchema(
  ctx: Context,
  authority: Authority,
  input: SchemaInput,
): Promise<ReturnType<typeof schemaResource> | Refusal> {
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
  const row: NamedSchema = {
    id: ctx.newId("schema"),
    organisationId: input.organisation_id,
    name: input.name,
    schema: parsed.schema,
    schemaHash: hashJson(parsed.schema),
    createdAt: ctx.now(),
  };
  const record = recordingAct(ctx, authority, "schema.created");
  return administer(ctx, authority, "admin", {
    scope: { organisationId: row.organisationId, mode: "live" },
    needs: { organisation: true, schemaNames: [row.name] },
    decide: (snapshot) => {
      const unknown = refuseOrganisation(authority, snapshot.organisation);
      if (unknown) return { answer: unknown };
      if (snapshot.schemas.length > 0) {
        return {
          answer: refuse(
            "already_exists",
            `name: a schema named ${row.name} exists already, and never changes. Save the new one under another name.`,
          ),
        };
      }
      const answer = schemaResource(row);
      // It may be long, and never changes: its hash says which it was.
      const { schema: _, ...after } = answer;
      return {
        answer,
        change: { rows: [{ kind: "schema", row }, record(row.organisationId, row.id, null, after)] },
      };
    },
  });
}
