import { clauseTemplates } from "../../core/clauses/registry.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import type { Context } from "../context.ts";
import {
  agentResource,
  escalationResource,
  listResource,
  policyResource,
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
  const now = ctx.now();
  return listResource(
    agents.list(caller).map((agent) =>
      agentResource(agent, {
        policy: agents.ownPolicy(agent.id) ?? organisationPolicy,
        session: agents.liveSession(agent.id, now),
        countsByState: agents.countsByState(agent),
      }),
    ),
  );
}

/** Every version, newest first within each name. */
export function readPolicies(ctx: Context, caller: Caller) {
  return (
    refuseAccess(caller, ACCESS.readConsole) ??
    listResource(ctx.store.reader.policies.list(caller.organisationId).map(policyResource))
  );
}

/** Those that wait for a person first, the newest of them first. */
export function readEscalations(ctx: Context, caller: Caller) {
  return (
    refuseAccess(caller, ACCESS.readConsole) ??
    listResource(ctx.store.reader.escalations.list(caller, ESCALATIONS_MAX).map(escalationResource))
  );
}
