import type { Agent } from "../../core/agent.ts";
import { type Refusal, refuse } from "../../core/errors.ts";
import { BUILT_IN_RULES, type Policy, type PolicyRules } from "../../core/policy.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import type { Reader } from "../../store/reader.ts";
import type { Context } from "../context.ts";

/** Policies as people see them: where each is used, its versions, and what a new one begins with. */

/** A version of a policy, with the agent whose own it is; null for the organisation. */
export type PolicyOf = {
  readonly policy: Policy;
  readonly agent: Agent | null;
  /** Whether new warrants get it where they name none. */
  readonly isInUse: boolean;
};

const PAGE_SIZE = 25;

/** A page of policies, the newest version of each name, by name. */
export async function listPolicies(ctx: Context, caller: Caller, after: string | null) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const { organisationId } = caller;
  return ctx.store.read(async (reader) => {
    const place = after === null ? null : await reader.policies.get(organisationId, after);
    const rows = await reader.policies.newest(organisationId, place, PAGE_SIZE + 1);
    const policies: PolicyOf[] = [];
    for (const row of rows.slice(0, PAGE_SIZE)) policies.push(await policyOf(reader, row));
    return {
      policies,
      isFirst: place === null,
      /** The id after which the next page begins; null where there is none. */
      next: rows.length > PAGE_SIZE ? (policies.at(-1)?.policy.id ?? null) : null,
      ofOrganisation: await reader.policies.ofOrganisation(organisationId),
    };
  });
}

async function policyOf(reader: Reader, policy: Policy): Promise<PolicyOf> {
  const { agentId, organisationId } = policy;
  if (agentId === null) {
    const used = await reader.policies.ofOrganisation(organisationId);
    return { policy, agent: null, isInUse: used?.id === policy.id };
  }
  const used = await reader.agents.ownPolicy(agentId);
  return { policy, agent: await reader.agents.get(agentId), isInUse: used?.id === policy.id };
}

/** The agents of this mode that may have a policy of their own. */
const agentsOf = async ({ agents }: Reader, caller: Caller): Promise<readonly Agent[]> =>
  (await agents.list(caller)).filter(({ status }) => status !== "killed");

const policyNotFound = (): Refusal => refuse("policy_not_found", "There is no such policy.");

/**
 * One version, beside other versions of its name, newest first.
 *
 * @param other the version to compare it with; null for none
 * @param olderThan the version after which the list of versions goes on; null for its beginning
 */
export async function readPolicy(
  ctx: Context,
  caller: Caller,
  {
    id,
    other,
    olderThan,
  }: { readonly id: string; readonly other: string | null; readonly olderThan: number | null },
) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const { organisationId } = caller;
  return ctx.store.read(async (reader) => {
    const { policies } = reader;
    const policy = await policies.get(organisationId, id);
    if (!policy) return policyNotFound();
    const compared = other === null ? null : await policies.get(organisationId, other);
    const rows = await policies.versions(policy, olderThan ?? Number.MAX_SAFE_INTEGER, PAGE_SIZE + 1);
    const isSameName = compared?.name === policy.name && compared.agentId === policy.agentId;
    return {
      ...(await policyOf(reader, policy)),
      agents: await agentsOf(reader, caller),
      other: isSameName ? compared : null,
      versions: rows.slice(0, PAGE_SIZE),
      hasNewer: olderThan !== null,
      olderThan: rows.length > PAGE_SIZE ? (rows[PAGE_SIZE - 1]?.version ?? null) : null,
    };
  });
}

/** What the editor begins with, and what it offers. */
export type EditorChoices = {
  /** The agents of this mode that may have a policy of their own. */
  readonly agents: readonly Agent[];
  /** The version that the draft comes from; null for the rules that are built in. */
  readonly base: Policy | null;
  /** The version that the draft would follow under its name; null where it would be the first. */
  readonly previous: Policy | null;
};

/** @param base the id of the version that a draft comes from; null for none */
export async function readEditorChoices(
  ctx: Context,
  caller: Caller,
  {
    base,
    name,
    agentId,
  }: { readonly base: string | null; readonly name: string; readonly agentId: string | null },
): Promise<EditorChoices | Refusal> {
  const refused = refuseAccess(caller, ACCESS.administer);
  if (refused) return refused;
  const { organisationId } = caller;
  return ctx.store.read(async (reader) => {
    const { policies } = reader;
    const found = base === null ? null : await policies.get(organisationId, base);
    if (base !== null && found === null) return policyNotFound();
    const place = { organisationId, name, agentId };
    const [previous] = name === "" ? [] : await policies.versions(place, Number.MAX_SAFE_INTEGER, 1);
    return { agents: await agentsOf(reader, caller), base: found, previous: previous ?? null };
  });
}

/** The rules that a draft is compared with: those that it would replace, else those that it comes from. */
export const rulesBefore = ({ previous, base }: EditorChoices): PolicyRules =>
  (previous ?? base)?.rules ?? BUILT_IN_RULES;
