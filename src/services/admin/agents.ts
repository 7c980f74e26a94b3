import { AGENT_STATUSES, type Agent, type AgentStatus, withStatus } from "../../core/agent.ts";
import { isDidKey } from "../../core/did-key.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { MODES, type Mode } from "../../core/roles.ts";
import { agentDetails } from "../agent-details.ts";
import type { Context } from "../context.ts";
import { agentRecord, listResource } from "../resources.ts";
import { followAgentStatus } from "../warrants/freeze.ts";
import { recordingAct } from "./acts.ts";
import {
  type Authority,
  administer,
  reaches,
  readableScope,
  refuseAuthority,
  refuseOrganisation,
} from "./authority.ts";
import { refuseInteger, refuseText, refuseUnlisted } from "./fields.ts";

export const FAILURE_BUDGET_MAX = 1_000_000;
const FAILURE_BUDGET_DEFAULT = 3;

export type AgentInput = {
  readonly organisation_id: string;
  readonly mode: Mode;
  readonly name: string;
  /** Consecutive failures after which the agent pauses itself. */
  readonly failure_budget?: number;
  /** Whether its keys must send `agent_id` on open. */
  readonly must_be_named?: boolean;
  /** The `did:key:z…` of a key that the agent brings; without it, a `did:web` of this instance. */
  readonly did_key?: string;
};

type AgentResource = ReturnType<typeof agentDetails>;

/** Creates an agent, active, in one of the two worlds. */
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
  const agent: Agent = {
    id,
    organisationId: input.organisation_id,
    mode: input.mode,
    name: input.name,
    identity: didKey ?? identityOf(id, ctx.baseUrl),
    status: "active",
    failureBudget,
    failureCount: 0,
    mustBeNamed,
    createdAt: ctx.now(),
  };
  const recorded = recordingAct(ctx, authority, "agent.created");
  const created = await administer<Agent>(ctx, authority, "admin", {
    scope: agent,
    needs: { organisation: true },
    decide: (snapshot) => {
      const unknown = refuseOrganisation(authority, snapshot.organisation);
      if (unknown) return { answer: unknown };
      const act = recorded(agent.organisationId, id, null, agentRecord(agent));
      return { answer: agent, change: { rows: [{ kind: "agent", row: agent }, act] } };
    },
  });
  return isRefusal(created) ? created : agentDetails(ctx, created);
}

/**
 * Sets an agent's status, then freezes what a killed agent holds, or thaws what is frozen of one that is active again.
 * Anyone from operator up may pause an active agent; the rest is an admin's.
 */
export async function setAgentStatus(
  ctx: Context,
  authority: Authority,
  input: { readonly agent_id: string; readonly status: AgentStatus },
): Promise<AgentResource | Refusal> {
  const role = input.status === "paused" ? "operator" : "admin";
  const refused = refuseAuthority(authority, role) ?? refuseUnlisted("status", input.status, AGENT_STATUSES);
  if (refused) return refused;
  const known = findAgent(ctx, authority, input.agent_id);
  if (isRefusal(known)) return known;
  const recorded = recordingAct(ctx, authority, "agent.status_changed");
  const agent = await administer<Agent>(ctx, authority, role, {
    scope: known,
    needs: { agentId: known.id },
    decide: ({ agent: before }, current) => {
      if (!before) return { answer: agentNotFound(known.id) };
      // A paused agent may do more than a killed one.
      const revives = before.status === "killed" ? refuseAuthority(current, "admin") : null;
      if (revives) return { answer: revives };
      const after = withStatus(before, input.status);
      if (after.status === before.status && after.failureCount === before.failureCount)
        return { answer: before };
      const act = recorded(before.organisationId, before.id, agentRecord(before), agentRecord(after));
      return { answer: after, change: { rows: [{ kind: "agent", row: after }, act] } };
    },
  });
  if (isRefusal(agent)) return agent;
  await followAgentStatus(ctx, agent);
  return agentDetails(ctx, agent);
}

/** The agents of an organisation in one mode, oldest first. */
export async function listAgents(
  ctx: Context,
  authority: Authority,
  input: { readonly organisation_id: string; readonly mode: Mode },
) {
  const scope = readableScope(ctx, authority, "viewer", input);
  if (isRefusal(scope)) return scope;
  const { agents, policies } = ctx.store.reader;
  const organisationPolicy = policies.ofOrganisation(input.organisation_id);
  return listResource(
    agents
      .list(scope)
      .filter((agent) => reaches(authority, agent))
      .map((agent) => agentDetails(ctx, agent, organisationPolicy)),
  );
}

/** One agent, as it is read back. */
export async function showAgent(
  ctx: Context,
  authority: Authority,
  input: { readonly agent_id: string },
): Promise<AgentResource | Refusal> {
  const refused = refuseAuthority(authority, "viewer");
  if (refused) return refused;
  const agent = findAgent(ctx, authority, input.agent_id);
  return isRefusal(agent) ? agent : agentDetails(ctx, agent);
}

/** The agent of an id, where the authority reaches it. */
export function findAgent(ctx: Context, authority: Authority, id: string): Agent | Refusal {
  const agent = ctx.store.reader.agents.get(id);
  return agent && reaches(authority, agent) ? agent : agentNotFound(id);
}

export const agentNotFound = (id: string): Refusal => refuse("agent_not_found", `There is no agent ${id}.`);

const refuseDidKey = (path: string, value: unknown): Refusal | null =>
  typeof value === "string" && isDidKey(value)
    ? null
    : refuseField(path, "must be the did:key:z… of an Ed25519, secp256k1 or P-256 public key");

/** `did:web` of the host that the instance is reached at; a port's colon is escaped, as the method asks. */
const identityOf = (id: string, baseUrl: string): string =>
  `did:web:${encodeURIComponent(new URL(baseUrl).host)}:agents:${id}`;
