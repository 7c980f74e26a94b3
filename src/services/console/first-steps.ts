import { sha256 } from "../../core/canonical.ts";
import type { Clause } from "../../core/clauses/registry.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import type { PersonCaller } from "../../core/roles.ts";
import { DAY_MS, HOUR_MS, isoTime, SECOND_MS } from "../../core/time.ts";
import type { Warrant } from "../../core/warrant.ts";
import { createAgent } from "../admin/agents.ts";
import { fundBalance } from "../admin/balances.ts";
import { createKey } from "../admin/keys.ts";
import { callerOfApiKey } from "../auth/callers.ts";
import type { Context } from "../context.ts";
import type { Idempotency } from "../idempotency.ts";
import { openWarrant } from "../warrants/open.ts";
import { verifyWarrant } from "../warrants/verify.ts";

/** The play money of a new sandbox, and what its first warrant holds: 100.00 and 8.40 USDC. */
export const FIRST_FUNDS = 100_000_000n;
export const FIRST_AMOUNT = 8_400_000n;

const CLAUSES: readonly Clause[] = [
  { kind: "http.status", equals: 200 },
  { kind: "json.jsonpath", path: "$.city", equals: "Oslo" },
  { kind: "data.freshness", maxAgeSeconds: HOUR_MS / SECOND_MS },
];

/** The deposit's reference: somebody who comes back gets no second one. */
const REFERENCE = "first steps";

export type FirstSteps = {
  readonly agentId: string;
  /** The API key, shown only here: only its hash is kept. */
  readonly secret: string;
  readonly warrant: Warrant;
};

/**
 * Makes what a sandbox needs to be tried: play money, an agent and its key. The key then opens a warrant and has it verified
 * against a seller that runs for this on the same machine, so nothing is asked of the internet, and nothing is left out of the
 * check but the way there.
 */
export async function takeFirstSteps(
  ctx: Context,
  caller: PersonCaller,
  gone: AbortSignal,
): Promise<FirstSteps | Refusal> {
  if (caller.mode !== "sandbox")
    return refuse("validation_failed", "The first steps are in the sandbox only.");
  const scope = { organisation_id: caller.organisationId, mode: caller.mode };
  const funded = await fundBalance(ctx, caller, { ...scope, amount: `${FIRST_FUNDS}`, reference: REFERENCE });
  if (isRefusal(funded)) return funded;
  const agent = await createAgent(ctx, caller, { ...scope, name: "First agent", must_be_named: true });
  if (isRefusal(agent)) return agent;
  const key = await createKey(ctx, caller, { agent_id: agent.id });
  if (isRefusal(key)) return key;
  const agentKey = await callerOfApiKey(ctx, key.secret);
  if (!agentKey) throw new Error("a new API key that is not valid");
  const opened = await openWarrant(
    ctx,
    agentKey,
    {
      amount: `${FIRST_AMOUNT}`,
      payee: "Northwind Weather",
      deadline: isoTime(ctx.now() + DAY_MS),
      spec: { clauses: [...CLAUSES] },
      agent_id: agent.id,
    },
    keyOf(agent.id, "open"),
  );
  if (isRefusal(opened)) return opened;
  const { id } = JSON.parse(opened.body) as { readonly id: string };
  const verified = await ctx.withTrySeller(({ url: sourceUrl, fetchEvidence }) =>
    verifyWarrant(
      { ...ctx, fetchEvidence },
      agentKey,
      { warrantId: id, sourceUrl, ifMatch: null },
      keyOf(agent.id, "verify"),
      gone,
    ),
  );
  if (isRefusal(verified)) return verified;
  const warrant = await ctx.store.read((reader) => reader.warrants.get(caller, id));
  if (!warrant) throw new Error("a new warrant that is not there");
  return { agentId: agent.id, secret: key.secret, warrant };
}

/** The agent is new, so nobody has used the key. */
const keyOf = (agentId: string, step: string): Idempotency => ({
  key: `first-steps-${step}-${agentId}`,
  fingerprint: sha256(`${agentId} ${step}`),
});
