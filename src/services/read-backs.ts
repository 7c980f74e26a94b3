import { ACCESS, type Caller, refuseAccess } from "../core/roles.ts";
import { escalationResource } from "../resources/escalation.ts";
import { listResource } from "../resources/list.ts";
import { policyResource } from "../resources/policy.ts";
import { verifierListResource } from "../resources/verifier.ts";
import type { Context } from "./context.ts";

/** Lists that only the console shows, to a signed-in person of any role. */

const ESCALATIONS_MAX = 1_000;

/** The organisation's saved verifiers, and every kind of clause with its description. */
export async function readVerifiers(ctx: Context, caller: Caller) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const verifiers = await ctx.store.read((reader) => reader.verifiers.list(caller.organisationId));
  return verifierListResource(verifiers);
}

/** Every policy version, newest first within each name. */
export async function readPolicies(ctx: Context, caller: Caller) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const policies = await ctx.store.read((reader) => reader.policies.list(caller.organisationId));
  return listResource(policies.map(policyResource));
}

/** Escalations: first those that wait for a person, the longest waiting at the top. */
export async function readEscalations(ctx: Context, caller: Caller) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const escalations = await ctx.store.read((reader) => reader.escalations.list(caller, ESCALATIONS_MAX));
  return listResource(escalations.map(escalationResource));
}
