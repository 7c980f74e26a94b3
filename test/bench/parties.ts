import type { KeyCaller, Mode } from "../../src/core/roles.ts";
import { createAgent } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createKey } from "../../src/services/admin/keys.ts";
import { createPolicy } from "../../src/services/admin/policies.ts";
import { createUser } from "../../src/services/admin/users.ts";
import type { Context } from "../../src/services/context.ts";
import { createStage, must, type Stage } from "../support/stage.ts";
import type { Party } from "./fill-warrant.ts";

/** What a measurement has to know of a filled folder. */
export type Facts = {
  readonly warrants: number;
  readonly traceEntries: number;
  readonly organisationId: string;
  readonly mode: Mode;
  /** The secret of the busy agent's key. */
  readonly secret: string;
  readonly email: string;
  readonly password: string;
  readonly agents: Readonly<Record<AgentName, string>>;
};

/**
 * The agents of the measured organisation. `busy` opens many warrants. `early` opens only in the first
 * fiftieth of the fill, so a list that starts at the newest warrant passes all others first. The warrants of
 * `waiting` are all held; those of `killed` are frozen in the end; `idle` opens none.
 */
const AGENTS = ["busy", "early", "waiting", "killed", "idle"] as const;
type AgentName = (typeof AGENTS)[number];

const FUNDS = "1000000000000000";
const FAILURE_BUDGET = 1_000_000;
const EMAIL = "bench@example.com";
const PASSWORD = "correct horse battery staple";
/** The policy: it decides by how many of four clauses pass. */
const RULES = {
  bands: [
    { minScore: 1, outcome: "release" },
    { minScore: 0.7, outcome: "partial_release", releasedBps: 6_000 },
    { minScore: 0.4, outcome: "escalate" },
    { minScore: 0, outcome: "refund" },
  ],
};

/**
 * @param present the context that makes the keys, which are used now
 * @param past the context that opens the warrants
 */
export async function createParties(present: Context, past: Context) {
  const measured = await stageOf(past, "sandbox");
  const other = await stageOf(past, "sandbox");
  const live = await stageOf(past, "live");
  const agents = {
    busy: await agentOf(measured, present, "busy"),
    early: await agentOf(measured, present, "early"),
    waiting: await agentOf(measured, present, "waiting"),
    killed: await agentOf(measured, present, "killed"),
    idle: await agentOf(measured, present, "idle"),
  };
  const always = { until: 1, fate: null, measured: true };
  const by = ({ key, id }: { key: KeyCaller; id: string }) => ({ stage: measured, key, agentId: id });
  const nobody = { key: null, agentId: null };
  const killed: Party = { ...by(agents.killed), ...always, share: 6, fate: "held" };
  const parties: readonly Party[] = [
    { stage: measured, ...nobody, ...always, share: 41 },
    { ...by(agents.busy), ...always, share: 27 },
    { ...by(agents.early), ...always, share: 100, until: 0.02 },
    { ...by(agents.waiting), ...always, share: 6, fate: "held" },
    killed,
    { stage: other, ...nobody, ...always, share: 14, measured: false },
    { stage: live, ...nobody, ...always, share: 6, measured: false },
  ];
  const { organisationId, mode } = measured;
  const person = {
    organisation_id: organisationId,
    email: EMAIL,
    password: PASSWORD,
    role: "admin",
  } as const;
  must(await createUser(present, MACHINE, person));
  const facts = {
    ...{ organisationId, mode, email: EMAIL, password: PASSWORD, secret: agents.busy.secret },
    agents: {
      busy: agents.busy.id,
      early: agents.early.id,
      waiting: agents.waiting.id,
      killed: agents.killed.id,
      idle: agents.idle.id,
    },
  };
  return { parties, killed, facts };
}

async function stageOf(ctx: Context, mode: Mode): Promise<Stage> {
  const stage = await createStage(ctx, { mode, funds: FUNDS });
  const { organisationId } = stage;
  must(await createPolicy(ctx, MACHINE, { organisation_id: organisationId, name: "by score", rules: RULES }));
  return stage;
}

async function agentOf({ ctx, organisationId, mode }: Stage, present: Context, name: AgentName) {
  const input = { organisation_id: organisationId, mode, name, failure_budget: FAILURE_BUDGET };
  const { id } = must(await createAgent(ctx, MACHINE, input));
  const { id: keyId, secret } = must(await createKey(present, MACHINE, { agent_id: id }));
  const key: KeyCaller = { kind: "key", keyId, agentId: id, organisationId, mode };
  return { id, secret, key };
}
