import type { Mode } from "./roles.ts";
import type { SpendSession } from "./session.ts";

export const AGENT_STATUSES = ["active", "paused", "killed"] as const;
export type AgentStatus = (typeof AGENT_STATUSES)[number];

/** A program that spends an organisation's money. */
export type Agent = {
  readonly id: string;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly name: string;
  /**
   * The `did:key:z…` of a key that it brought, else `did:web`, whose address follows from the base URL. Older versions wrote
   * the address of their time after it, which nothing reads.
   */
  readonly identity: string;
  readonly status: AgentStatus;
  readonly failureBudget: number;
  readonly failureCount: number;
  /** Whether its keys must send `agent_id` on open. */
  readonly mustBeNamed: boolean;
  readonly createdAt: number;
};

/**
 * What the end of a warrant means for its agent and spend session (docs/sessions, "Failure budgets"). Both count consecutive failures:
 * `failed` adds one, `clean` sets the count to zero, `neither` changes nothing. An agent whose count reaches its failure
 * budget becomes paused.
 */
export type Verdict = "failed" | "clean" | "neither";

const countAfter = (count: number, verdict: Verdict): number =>
  verdict === "failed" ? count + 1 : verdict === "clean" ? 0 : count;

export function agentAfter(agent: Agent, verdict: Verdict): Agent {
  const failureCount = countAfter(agent.failureCount, verdict);
  const pauses = agent.status === "active" && verdict === "failed" && failureCount >= agent.failureBudget;
  return { ...agent, failureCount, status: pauses ? "paused" : agent.status };
}

export const sessionAfter = (session: SpendSession, verdict: Verdict): SpendSession => ({
  ...session,
  failureCount: countAfter(session.failureCount, verdict),
});

/** The agent with what an administrator set. A budget that its failures have reached already pauses it. */
export function changed(
  agent: Agent,
  settings: Pick<Agent, "name" | "failureBudget" | "mustBeNamed">,
): Agent {
  const after = { ...agent, ...settings };
  const pauses = after.status === "active" && after.failureCount >= after.failureBudget;
  return pauses ? { ...after, status: "paused" } : after;
}

/** The agent with the status that a person gave it. An agent that becomes active again starts with no failures. */
export const withStatus = (agent: Agent, status: AgentStatus): Agent => ({
  ...agent,
  status,
  failureCount: status === "active" ? 0 : agent.failureCount,
});

export const isKilled = (agent: Agent | null): boolean => agent?.status === "killed";

/** The agents of a warrant: the one that it names, and the one whose key opened it. Null where there is none. */
export type AgentsOfWarrant = {
  readonly warrantAgent: Agent | null;
  readonly warrantOpener: Agent | null;
};

/**
 * The kill rule: nothing is paid for a killed agent, whether the warrant names it or its key opened the warrant. Its
 * held warrants are frozen. A check that would pay escalates. A warrant whose check was interrupted is frozen. A
 * purchase is not signed.
 */
export const isStopped = ({ warrantAgent, warrantOpener }: AgentsOfWarrant): boolean =>
  isKilled(warrantAgent) || isKilled(warrantOpener);

/** Whether a warrant that was frozen by the kill rule is held again: all of its agents are active. */
export const isFreed = ({ warrantAgent, warrantOpener }: AgentsOfWarrant): boolean =>
  [warrantAgent, warrantOpener].every((agent) => agent === null || agent.status === "active");
