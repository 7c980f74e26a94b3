import {
  CLAUSE_KINDS,
  type ClauseKind,
  fitsSpec,
  parseClause,
  refuseJsonPath,
} from "../../core/clauses/registry.ts";
import { isRefusal, type Refusal, refuseField } from "../../core/errors.ts";
import type { SavedVerifier } from "../../core/verifier.ts";
import { verifierResource } from "../../resources/verifier.ts";
import type { Audited } from "../audited.ts";
import { builtInsBesides, newSchemaIds } from "../built-in-schemas.ts";
import type { Context } from "../context.ts";
import { refuseText, refuseUnlisted } from "../fields.ts";
import { type Authority, administer, refuseAuthority } from "./authority.ts";
import { schemaCreated } from "./schemas.ts";

export type VerifierInput = {
  readonly organisation_id: string;
  readonly type: ClauseKind;
  readonly name: string;
  /** The clause's fields apart from `kind`. */
  readonly config: unknown;
};

type VerifierResource = ReturnType<typeof verifierResource>;

/**
 * Saves a clause under a name. A warrant that names it in `verifier_id` gets the clause added to its spec.
 */
export async function createVerifier(
  ctx: Context,
  authority: Authority,
  input: VerifierInput,
): Promise<VerifierResource | Refusal> {
  const refused =
    refuseAuthority(authority, "admin") ??
    refuseUnlisted("type", input.type, CLAUSE_KINDS) ??
    refuseText("name", input.name);
  if (refused) return refused;
  const { config } = input;
  if (typeof config !== "object" || config === null || Array.isArray(config))
    return refuseField("config", "must be an object");
  if (Object.hasOwn(config, "kind")) return refuseField("config.kind", "is given as type");
  const clause = parseClause({ kind: input.type, ...config }, "config");
  if (isRefusal(clause)) return clause;
  const unsupported = refuseJsonPath(clause, "config");
  if (unsupported) return unsupported;
  if (!fitsSpec([clause])) return refuseField("config", "must be at most 64 kB of canonical JSON");
  const id = ctx.newId("verifier");
  const schemaNames = clause.kind === "json.schema" ? [clause.schema] : [];
  const schemaIds = newSchemaIds(ctx, [clause]);
  return administer(ctx, authority, "admin", {
    scope: { organisationId: input.organisation_id, mode: "live" },
    needs: { schemas: schemaNames },
    decide: (snapshot, now): Audited<VerifierResource> => {
      const createdAt = now;
      const { organisation_id: organisationId } = input;
      const builtIns = builtInsBesides(snapshot.schemas, schemaIds, { organisationId, createdAt });
      if (snapshot.schemas.length + builtIns.length < schemaNames.length) {
        const [name] = schemaNames;
        return { answer: refuseField("config.schema", `there is no schema named ${JSON.stringify(name)}`) };
      }
      const row: SavedVerifier = {
        id,
        organisationId,
        type: input.type,
        name: input.name,
        config: config as SavedVerifier["config"],
        createdAt,
      };
      const answer = verifierResource(row);
      const created = { action: "verifier.created", subject: id, before: null, after: answer } as const;
      // A clause names one schema at most.
      const [builtIn] = builtIns;
      return {
        answer,
        put: [
          { kind: "verifier", row },
          ...builtIns.map((schema) => ({ kind: "schema", row: schema }) as const),
        ],
        entries: builtIn ? [schemaCreated(builtIn), created] : [created],
      };
    },
  });
}
