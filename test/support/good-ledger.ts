import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { createPolicy } from "../../src/services/admin/policies.ts";
import { createSchema } from "../../src/services/admin/schemas.ts";
import { createSession } from "../../src/services/admin/sessions.ts";
import { createVerifier } from "../../src/services/admin/verifiers.ts";
import { expireWarrant } from "../../src/services/warrants/expire.ts";
import { resolveEscalation } from "../../src/services/warrants/resolve.ts";
import type { TestContext } from "./context.ts";
import {
  ALL_PASS,
  createCaller,
  createStage,
  FOUR_CLAUSES,
  idempotencyOf,
  must,
  NONE_PASS,
  open,
  type Script,
  settle,
  verify,
  warrantIn,
} from "./stage.ts";

const HALF_PASS: Script = [null, null, "path_not_found", "value_mismatch"];
/** An amount above 2^53, where a double cannot hold every whole number. */
export const HUGE = 9_007_199_254_740_993n;

const SESSION = {
  amount_ceiling: "5000",
  warrant_limit: 50,
  per_warrant_max: "4000",
  hourly_max: "9000000000",
  payees: ["acme", "me*"],
};

/** Moves money in every possible way: warrants in all nine states, under policies, a session, a schema and a verifier. */
export async function buildGoodLedger(ctx: TestContext): Promise<void> {
  const stage = await createStage(ctx);
  const { organisationId, operator, admin } = stage;
  const organisation = { organisation_id: organisationId };
  must(await fundBalance(ctx, MACHINE, { ...organisation, mode: "live", asset: "HUGE", amount: `${HUGE}` }));
  must(await fundBalance(ctx, MACHINE, { ...organisation, mode: "live", amount: "23", reference: "second" }));
  must(await createSchema(ctx, MACHINE, { ...organisation, name: "an.object", schema: { type: "object" } }));
  const verifier = must(
    await createVerifier(ctx, MACHINE, {
      ...organisation,
      type: "json.schema",
      name: "object",
      config: { schema: "an.object" },
    }),
  );
  const rules = {
    bands: [
      { minScore: 1, outcome: "release" },
      { minScore: 0.5, outcome: "partial_release", releasedBps: 3_333, label: "half" },
      { minScore: 0, outcome: "escalate" },
    ],
  };
  const agent = await createCaller(stage, { failure_budget: 100 });
  const policy = must(
    await createPolicy(ctx, MACHINE, { ...organisation, name: "banded", rules, agent_id: agent.agentId }),
  );
  must(await createSession(ctx, MACHINE, { agent_id: agent.agentId, ...SESSION }));
  const named = { agent_id: agent.agentId };
  const opened = async (
    input: Parameters<typeof open>[2] = named,
    caller: typeof agent | typeof operator = agent,
  ) => warrantIn(await open(stage, caller, input)).id;

  must(await verify(stage, agent, await opened({ ...named, policy_id: policy.id }), ALL_PASS));
  must(await verify(stage, agent, await opened({ ...named, amount: "101" }), HALF_PASS));
  must(await verify(stage, agent, await opened({ ...named, verifier_id: verifier.id }), ALL_PASS));
  const resolved = await opened();
  must(await verify(stage, agent, resolved, NONE_PASS));
  const decision = { decision: "partial_release", releasedBps: 1, note: "a token" } as const;
  must(await settle(stage, operator, await opened(), "refund"));
  must(await settle(stage, operator, await opened({ payee: "acme", amount: "7" }, operator), "release"));
  must(await resolve(resolved, operator, { ...decision, releasedBps: 5_000 }));
  for (const disputes of [false, true]) {
    const id = await opened();
    must(await verify(stage, agent, id, NONE_PASS));
    if (disputes) must(await resolve(id, operator, { decision: "dispute", releasedBps: null, note: null }));
  }
  const disputed = await opened();
  must(await verify(stage, agent, disputed, NONE_PASS));
  must(await resolve(disputed, operator, { decision: "dispute", releasedBps: null, note: null }));
  must(await resolve(disputed, admin, { decision: "refund", releasedBps: null, note: null }));

  const soon = new Date(ctx.now() + 1_000).toISOString();
  const late = await opened({ ...named, deadline: soon });
  await opened();
  await opened({ asset: "HUGE", amount: `${HUGE - 2n}` }, operator);
  const part = await opened({ asset: "HUGE", amount: "2" }, operator);
  must(await settle(stage, operator, part, "partial_release", { releasedBps: 9_999 }));
  await opened(
    { spec: { clauses: [...FOUR_CLAUSES, { kind: "json.schema", schema: "an.object" }] } },
    operator,
  );
  const frozen = await createCaller(stage);
  await opened({ agent_id: frozen.agentId }, frozen);
  must(await setAgentStatus(ctx, MACHINE, { agent_id: frozen.agentId, status: "killed" }));
  ctx.clock.now += 2_000;
  const overdue = ctx.reader.warrants.find(late);
  if (overdue) must(await expireWarrant(ctx, overdue));

  must(await createPolicy(ctx, MACHINE, { ...organisation, name: "of everyone", rules }));
  const sandbox = await createStage(ctx, { mode: "sandbox" });
  const tester = await createCaller(sandbox);
  const tested = warrantIn(await open(sandbox, tester, { agent_id: tester.agentId })).id;
  must(await verify(sandbox, tester, tested, ALL_PASS));

  function resolve(
    id: string,
    caller: typeof operator,
    input: Omit<Parameters<typeof resolveEscalation>[2], "id" | "ifMatch">,
  ) {
    return resolveEscalation(ctx, caller, { ...input, id, ifMatch: null }, idempotencyOf());
  }
}
