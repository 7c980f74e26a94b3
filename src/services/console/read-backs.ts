import { clauseTemplates } from "../../core/clauses/registry.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import { type AuditLogPage, readAuditLogPage } from "../admin/audit-log.ts";
import { agentDetails } from "../agent-details.ts";
import type { Context } from "../context.ts";
import {
  escalationResource,
  listResource,
  policyResource,
  userResource,
  verifierResource,
} from "../resources.ts";

/** What the console shows of what it manages (interface.md, Console read-backs). A signed-in person's, from viewer up. */

const ESCALATIONS_MAX = 1_000;

export function readVerifiers(ctx: Context, caller: Caller) {
  return (
    refuseAccess(caller, ACCESS.readConsole) ??
    listResource(ctx.store.reader.verifiers.list(caller.organisationId).map(verifierResource), {
      templates: clauseTemplates,
    })
  );
}

export function readAgents(ctx: Context, caller: Caller) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const { agents, policies } = ctx.store.reader;
  const organisationPolicy = policies.ofOrganisation(caller.organisationId);
  return listResource(agents.list(caller).map((agent) => agentDetails(ctx, agent, organisationPolicy)));
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

/** The people of the organisation, in the order in which they came. An admin's. */
export function readUsers(ctx: Context, caller: Caller) {
  return (
    refuseAccess(caller, ACCESS.administer) ??
    listResource(ctx.store.reader.users.list(caller.organisationId).map(userResource))
  );
}

/** What was done to the organisation, in both modes, newest first. An admin's. */
export function readAuditLog(ctx: Context, caller: Caller, page: AuditLogPage) {
  return refuseAccess(caller, ACCESS.administer) ?? readAuditLogPage(ctx, caller.organisationId, page);
}
