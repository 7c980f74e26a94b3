import { clauseTemplates } from "../../core/clauses/registry.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import type { Context } from "../context.ts";
import { escalationResource, listResource, policyResource, verifierResource } from "../resources.ts";

/** What only the console shows (interface.md, Console read-backs). A signed-in person's, from viewer up. */

const ESCALATIONS_MAX = 1_000;

export function readVerifiers(ctx: Context, caller: Caller) {
  return (
    refuseAccess(caller, ACCESS.readConsole) ??
    listResource(ctx.store.reader.verifiers.list(caller.organisationId).map(verifierResource), {
      templates: clauseTemplates,
    })
  );
}

/** Every version, newest first within each name. */
export function readPolicies(ctx: Context, caller: Caller) {
  return (
    refuseAccess(caller, ACCESS.readConsole) ??
    listResource(ctx.store.reader.policies.list(caller.organisationId).map(policyResource))
  );
}

/** Those that wait for a person first, the longest of them before the others. */
export function readEscalations(ctx: Context, caller: Caller) {
  return (
    refuseAccess(caller, ACCESS.readConsole) ??
    listResource(ctx.store.reader.escalations.list(caller, ESCALATIONS_MAX).map(escalationResource))
  );
}
