import { Type } from "@sinclair/typebox";
import { AGENT_STATUSES, type Agent } from "../core/agent.ts";
import { didKeyOf } from "../core/did-key.ts";
import { didOfAgent } from "../core/did-web.ts";
import {
  anyObject,
  count,
  form,
  integer,
  is,
  object,
  oneOf,
  orNull,
  text,
  time,
  type Wire,
} from "../core/form.ts";
import type { Policy } from "../core/policy.ts";
import { MODES } from "../core/roles.ts";
import type { SpendSession } from "../core/session.ts";
import { isoTime } from "../core/time.ts";
import type { State } from "../core/warrant.ts";
import { readBackForm } from "./list.ts";
import { spendSessionForm, spendSessionResource } from "./spend-session.ts";

/** An agent: alone, or with its policy, session and counts. */

type CountsByState = Readonly<Partial<Record<State, number>>>;

const agentRecordForm = form("AgentRecord", () =>
  object({
    id: text,
    object: is("agent"),
    mode: oneOf(MODES),
    name: text,
    did_key: orNull(text),
    status: oneOf(AGENT_STATUSES),
    failure_budget: integer,
    failure_count: count,
    must_be_named: Type.Boolean({ description: "Whether its keys must send agent_id on open." }),
    created_at: time,
  }),
);

/** An agent alone, as the audit log records it: everything that an administrator sets. */
export const agentRecord = (agent: Agent): Wire<typeof agentRecordForm> => ({
  id: agent.id,
  object: "agent",
  mode: agent.mode,
  name: agent.name,
  did_key: didKeyOf(agent.identity),
  status: agent.status,
  failure_budget: agent.failureBudget,
  failure_count: agent.failureCount,
  must_be_named: agent.mustBeNamed,
  created_at: isoTime(agent.createdAt),
});

const agentForm = form("Agent", () =>
  object({
    ...Type.Omit(agentRecordForm(), ["did_key"]).properties,
    identity: text,
    policy: orNull(object({ agentId: orNull(text), name: text, version: integer })),
    session: orNull(spendSessionForm()),
    warrants: object({
      total: count,
      by_state: anyObject<CountsByState>("Keyed by state.", count),
    }),
  }),
);

export type AgentDetails = {
  /** Where the instance is reached now. The agent's `did:web` follows from it. */
  readonly baseUrl: string;
  readonly policy: Policy | null;
  readonly session: SpendSession | null;
  readonly countsByState: CountsByState;
};

export const agentResource = (
  agent: Agent,
  { baseUrl, policy, session, countsByState }: AgentDetails,
): Wire<typeof agentForm> => {
  const { did_key, ...record } = agentRecord(agent);
  return {
    ...record,
    identity: did_key ?? didOfAgent(baseUrl, agent.id),
    policy: policy && { agentId: policy.agentId, name: policy.name, version: policy.version },
    session: session && spendSessionResource(session),
    warrants: {
      total: Object.values(countsByState).reduce((sum, one) => sum + one, 0),
      by_state: countsByState,
    },
  };
};

export const agentListForm = form("AgentList", () => readBackForm(agentForm(), {}));
