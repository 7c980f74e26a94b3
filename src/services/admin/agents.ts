import { AGENT_STATUSES, type Agent, type AgentStatus, changed, withStatus } from "../../core/agent.ts";
import { isDidKey } from "../../core/did-key.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { ACCESS, MODES, type Mode } from "../../core/roles.ts";
import { agentRecord } from "../../resources/agent.ts";
import { listResource } from "../../resources/list.ts";
import type { Reader } from "../../store/reader.ts";
import { agentDetails } from "../agent-details.ts";
import type { Audited } from "../audited.ts";
import type { Context } from "../context.ts";
import { refuseInteger, refuseText, refuseUnlisted } from "../fields.ts";
import { ofScope, type PageOfList, pageOfList } from "../page-of-list.ts";
import { followAgentStatus } from "../warrants/freeze.ts";
import { type Authority, administer, reaches, readableScope, refuseAuthority } from "./authority.ts";

export const FAILURE_BUDGET_MAX = 1_000_000;
const FAILURE_BUDGET_DEFAULT = 3;
/** The address after it follows from the base URL, which may change, and is not known before the first server. */
const DID_WEB = "did:web";

export type AgentInput = {
  readonly organisation_id: string;
  readonly mode: Mode;
  readonly name: string;
  /** Consecutive failures after which the agent pauses itself. */
  readonly failure_budget?: number;
  /** Whether its keys must send `agent_id` on open. */
  readonly must_be_named?: boolean;
  /** The `did:key:z…` of the agent's own key. Without it the agent is a `did:web` of this instance. */
  readonly did_key?: string;
};

type AgentResource = Awaited<ReturnType<typeof agentDetails>>;

/** Creates an agent, active, in one of the two modes. */
export async function createAgent(
  ctx: Context,
  authority: Authority,
  input: AgentInput,
): Promise<AgentResource | Refusal> {
  const {
    failure_budget: failureBudget = FAILURE_BUDGET_DEFAULT,
    must_be_named: mustBeNamed = false,
    did_key: didKey,
  } = input;
  const refused =
    refuseAuthority(authority, "admin") ??
    refuseUnlisted("mode", input.mode, MODES) ??
    refuseText("name", input.name) ??
    refuseInteger("failure_budget", failureBudget, 1, FAILURE_BUDGET_MAX) ??
    (didKey === undefined ? null : refuseDidKey("did_key", didKey));
  if (refused) return refused;
  const id = ctx.newId("agent");
  const scope = { organisationId: input.organisation_id, mode: input.mode };
  const created = await administer(ctx, authority, "admin", {
    scope,
    needs: {},
    decide: (_, now): Audited<Agent> => {
      const agent: Agent = {
        ...scope,
        id,
        name: input.name,
        identity: didKey ?? DID_WEB,
        status: "active",
        failureBudget,
        failureCount: 0,
        mustBeNamed,
        createdAt: now,
      };
      return {
        answer: agent,
        put: [{ kind: "agent", before: null, row: agent }],
        entries: [{ action: "agent.created", subject: id, before: null, after: agentRecord(agent) }],
      };
    },
  });
  if (isRefusal(created)) return created;
  return ctx.store.read((reader) => agentDetails(ctx, reader, created));
}

/**
 * Sets an agent's status. Then it freezes the held warrants of a killed agent, or thaws the frozen warrants
 * of an agent that is active again. From operator up, a person may pause an active agent; every other change
 * needs an admin.
 */
export async function setAgentStatus(
  ctx: Context,
  authority: Authority,
  input: { readonly agent_id: string; readonly status: AgentStatus },
): Promise<AgentResource | Refusal> {
  const { role } = input.status === "paused" ? ACCESS.pauseAgent : ACCESS.administer;
  const refused = refuseAuthority(authority, role) ?? refuseUnlisted("status", input.status, AGENT_STATUSES);
  if (refused) return refused;
  const known = await ctx.store.read((reader) => findAgent(reader, authority, input.agent_id));
  if (isRefusal(known)) return known;
  const agent = await administer(ctx, authority, role, {
    scope: known,
    needs: { agent: known.id },
    decide: ({ agent: before }, _, current): Audited<Agent> => {
      if (!before) return { answer: agentNotFound(known.id) };
      // To pause a killed agent gives it back some powers, so that needs an admin too.
      const revives = before.status === "killed" ? refuseAuthority(current, "admin") : null;
      if (revives) return { answer: revives };
      const after = withStatus(before, input.status);
      if (after.status === before.status && after.failureCount === before.failureCount)
        return { answer: before };
      return written("agent.status_changed", before, after);
    },
  });
  if (isRefusal(agent)) return agent;
  await followAgentStatus(ctx, agent);
  return ctx.store.read((reader) => agentDetails(ctx, reader, agent));
}

/** The change of an agent, with its audit entry. */
const written = (
  action: "agent.changed" | "agent.status_changed",
  before: Agent,
  after: Agent,
): Audited<Agent> => ({
  answer: after,
  put: [{ kind: "agent", before, row: after }],
  entries: [{ action, subject: before.id, before: agentRecord(before), after: agentRecord(after) }],
});

export type AgentChange = {
  readonly agent_id: string;
  readonly name?: string;
  readonly failure_budget?: number;
  readonly must_be_named?: boolean;
};

/** Changes what is set of an agent: those fields that are given, of which there must be one. */
export async function updateAgent(
  ctx: Context,
  authority: Authority,
  input: AgentChange,
): Promise<AgentResource | Refusal> {
  const { name, failure_budget: failureBudget, must_be_named: mustBeNamed } = input;
  const isNothing = name === undefined && failureBudget === undefined && mustBeNamed === undefined;
  const refused =
    refuseAuthority(authority, "admin") ??
    (isNothing
      ? refuse(
          "validation_failed",
          "Give what is to change: a name, a failure budget, or whether it must be named.",
        )
      : null) ??
    (name === undefined ? null : refuseText("name", name)) ??
    (failureBudget === undefined
      ? null
      : refuseInteger("failure_budget", failureBudget, 1, FAILURE_BUDGET_MAX));
  if (refused) return refused;
  const known = await ctx.store.read((reader) => findAgent(reader, authority, input.agent_id));
  if (isRefusal(known)) return known;
  const agent = await administer(ctx, authority, "admin", {
    scope: known,
    needs: { agent: known.id },
    decide: ({ agent: before }): Audited<Agent> => {
      if (!before) return { answer: agentNotFound(known.id) };
      const after = changed(before, {
        name: name ?? before.name,
        failureBudget: failureBudget ?? before.failureBudget,
        mustBeNamed: mustBeNamed ?? before.mustBeNamed,
      });
      return Bun.deepEquals(after, before) ? { answer: before } : written("agent.changed", before, after);
    },
  });
  if (isRefusal(agent)) return agent;
  return ctx.store.read((reader) => agentDetails(ctx, reader, agent));
}

/** The agents of an organisation in one mode, oldest first. */
export async function listAgents(
  ctx: Context,
  authority: Authority,
  input: { readonly organisation_id: string; readonly mode: Mode } & PageOfList,
) {
  return ctx.store.read(async (reader) => {
    const scope = await readableScope(reader, authority, "viewer", input);
    if (isRefusal(scope)) return scope;
    const isReached = reaches(authority, scope);
    const page = await pageOfList(
      input,
      async (part) => (isReached ? reader.agents.list(scope, part) : []),
      async (id) => ofScope(scope, await reader.agents.get(id)),
    );
    if (isRefusal(page)) return page;
    const organisationPolicy = await reader.policies.ofOrganisation(scope.organisationId);
    const data = page.rows.map((agent) => agentDetails(ctx, reader, agent, organisationPolicy));
    return { ...listResource(await Promise.all(data)), ...page.more };
  });
}

/** One agent, with its policy, its live session and the counts of its warrants. */
export async function showAgent(
  ctx: Context,
  authority: Authority,
  input: { readonly agent_id: string },
): Promise<AgentResource | Refusal> {
  const refused = refuseAuthority(authority, "viewer");
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const agent = await findAgent(reader, authority, input.agent_id);
    return isRefusal(agent) ? agent : agentDetails(ctx, reader, agent);
  });
}

/** The agent with this id, where the authority may see it. */
export async function findAgent(reader: Reader, authority: Authority, id: string): Promise<Agent | Refusal> {
  const agent = await reader.agents.get(id);
  return agent && reaches(authority, agent) ? agent : agentNotFound(id);
}

export const agentNotFound = (id: string): Refusal => refuse("agent_not_found", `There is no agent ${id}.`);

const refuseDidKey = (path: string, value: unknown): Refusal | null =>
  typeof value === "string" && isDidKey(value)
    ? null
    : refuseField(path, "must be the did:key:z… of an Ed25519, secp256k1 or P-256 public key");
