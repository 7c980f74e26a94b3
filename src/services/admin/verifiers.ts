import {
  CLAUSE_KINDS,
  type ClauseKind,
  fitsSpec,
  parseClause,
  refuseJsonPath,
} from "../../core/clauses/registry.ts";
import { isRefusal, type Refusal, refuseField } from "../../core/errors.ts";
import type { SavedVerifier } from "../../core/verifier.ts";
import type { Context } from "../context.ts";
import { verifierResource } from "../resources.ts";
import { recordingAct } from "./acts.ts";
import { type Authority, administer, refuseAuthority, refuseOrganisation } from "./authority.ts";
import { refuseText, refuseUnlisted } from "./fields.ts";

export type VerifierInput = {
  readonly organisation_id: string;
  readonly type: ClauseKind;
  readonly name: string;
  /** The clause's fields apart from `kind`. */
  readonly config: unknown;
};

/** Saves a clause under a name; a warrant that names it in `verifier_id` has it added to its spec. */
export async function createVerifier(
  ctx: Context,
  authority: Authority,
  input: VerifierInput,
): Promise<ReturnType<typeof verifierResource> | Refusal> {
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
  const verifier: SavedVerifier = {
    id: ctx.newId("verifier"),
    organisationId: input.organisation_id,
    type: input.type,
    name: input.name,
    config: config as SavedVerifier["config"],
    createdAt: ctx.now(),
  };
  const record = recordingAct(ctx, authority, "verifier.created");
  const schemaNames = clause.kind === "json.schema" ? [clause.schema] : [];
  return administer(ctx, authority, "admin", {
    scope: { organisationId: verifier.organisationId, mode: "live" },
    needs: { organisation: true, schemaNames },
    decide: (snapshot) => {
      const unknown = refuseOrganisation(authority, snapshot.organisation);
      if (unknown) return { answer: unknown };
      if (snapshot.schemas.length < schemaNames.length) {
        const [name] = schemaNames;
        return { answer: refuseField("config.schema", `there is no schema named ${JSON.stringify(name)}`) };
      }
      const answer = verifierResource(verifier);
      const act = record(verifier.organisationId, verifier.id, null, answer);
      return { answer, change: { rows: [{ kind: "verifier", row: verifier }, act] } };
    },
  });
}
