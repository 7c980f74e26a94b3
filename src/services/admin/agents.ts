import { AGENT_STATUSES, type Agent, type AgentStatus, withStatus } from "../../core/agent.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { MODES, type Mode } from "../../core/roles.ts";
import { agentDetails } from "../agent-details.ts";
import type { Context } from "../context.ts";
import { followAgentStatus } from "../warrants/freeze.ts";
import { type Authority, reaches, refuseAuthority, refuseOrganisation } from "./authority.ts";
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
};

type AgentResource = ReturnType<typeof agentDetails>;

/** Creates an agent, active, in one of the two worlds. */
export async function createAgent(
  ctx: Context,
  authority: Authority,
  input: AgentInput,
): Promise<AgentResource | Refusal> {
  const { failure_budget: failureBudget = FAILURE_BUDGET_DEFAULT, must_be_named: mustBeNamed = false } =
    input;
  const refused =
    refuseAuthority(authority, "admin") ??
    refuseUnlisted("mode", input.mode, MODES) ??
    refuseText("name", input.name) ??
    refuseInteger("failure_budget", failureBudget, 1, FAILURE_BUDGET_MAX);
  if (refused) return refused;
  const id = ctx.newId("agent");
  const agent: Agent = {
    id,
    organisationId: input.organisation_id,
    mode: input.mode,
    name: input.name,
    identity: identityOf(id, ctx.baseUrl),
    status: "active",
    failureBudget,
    failureCount: 0,
    mustBeNamed,
    createdAt: ctx.now(),
  };
  const created = await ctx.store.execute<Agent>({
    scope: agent,
    needs: { organisation: true },
    decide: (snapshot) => {
      const unknown = refuseOrganisation(authority, snapshot.organisation);
      if (unknown) return { answer: unknown };
      return { answer: agent, change: { rows: [{ kind: "agent", row: agent }] } };
    },
  });
  return isRefusal(created) ? created : agentDetails(ctx, created);
}

/**
 * Sets an agent's status, then freezes what a killed agent holds, or thaws what is frozen of one that is active again.
 * Anyone from operator up may pause; the rest is an admin's.
 */
export async function setAgentStatus(
  ctx: Context,
  authority: Authority,
  input: { readonly agent_id: string; readonly status: AgentStatus },
): Promise<AgentResource | Refusal> {
  const refused =
    refuseAuthority(authority, input.status === "paused" ? "operator" : "admin") ??
    refuseUnlisted("status", input.status, AGENT_STATUSES);
  if (refused) return refused;
  const known = findAgent(ctx, authority, input.agent_id);
  if (isRefusal(known)) return known;
  const agent = await ctx.store.execute<Agent>({
    scope: known,
    needs: { agentId: known.id },
    decide: (snapshot) => {
      if (!snapshot.agent) return { answer: agentNotFound(known.id) };
      const after = withStatus(snapshot.agent, input.status);
      return { answer: after, change: { rows: [{ kind: "agent", row: after }] } };
    },
  });
  if (isRefusal(agent)) return agent;
  await followAgentStatus(ctx, agent);
  return agentDetails(ctx, agent);
}

/** The agent of an id, where the authority reaches it. */
export function findAgent(ctx: Context, authority: Authority, id: string): Agent | Refusal {
  const agent = ctx.store.reader.agents.get(id);
  return agent && reaches(authority, agent) ? agent : agentNotFound(id);
}

export const agentNotFound = (id: string): Refusal => refuse("agent_not_found", `There is no agent ${id}.`);

/** `did:web` of the host that the instance is reached at; a port's colon is escaped, as the method asks. */
const identityOf = (id: string, baseUrl: string): string =>
  `did:web:${encodeURIComponent(new URL(baseUrl).host)}:agents:${id}`;
