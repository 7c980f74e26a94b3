import type { Mode } from "./roles.ts";
import type { SpendSession } from "./session.ts";

export const AGENT_STATUSES = ["active", "paused", "killed"] as const;
export type AgentStatus = (typeof AGENT_STATUSES)[number];

/** A spender (interface.md, Agent). */
export type Agent = {
  readonly id: string;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly name: string;
  /** A decentralised identifier. */
  readonly identity: string;
  readonly status: AgentStatus;
  readonly failureBudget: number;
  readonly failureCount: number;
  /** Whether its keys must send `agent_id` on open. */
  readonly mustBeNamed: boolean;
  readonly createdAt: number;
};

/**
 * Consecutive failures, of the agent and its session alike (decisions.md, Verification): `failed` adds one, `clean` resets,
 * `neither` leaves the count. An agent whose count reaches its budget pauses itself.
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

/** A person's change of status; making an agent active again zeroes its count (decisions.md, Verification). */
export const withStatus = (agent: Agent, status: AgentStatus): Agent => ({
  ...agent,
  status,
  failureCount: status === "active" ? 0 : agent.failureCount,
});

/**
 * The kill rule: of a killed agent nothing is paid. What it holds is frozen, a check of it that would pay escalates, one
 * that was interrupted freezes it, and a purchase for it is not signed. Null where no agent is meant.
 */
export const isKilled = (agent: Agent | null): boolean => agent?.status === "killed";
