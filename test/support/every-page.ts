import { expect } from "bun:test";
import { updateAgent } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { correctBalance } from "../../src/services/admin/corrections.ts";
import { sendExample } from "../../src/services/admin/deliveries.ts";
import { inviteUser } from "../../src/services/admin/invitations.ts";
import { submitPayouts } from "../../src/services/admin/payouts.ts";
import { createSchema } from "../../src/services/admin/schemas.ts";
import { createSession } from "../../src/services/admin/sessions.ts";
import { setPasskeyThreshold } from "../../src/services/admin/switches.ts";
import { createVerifier } from "../../src/services/admin/verifiers.ts";
import { createWebhook } from "../../src/services/admin/webhooks.ts";
import { SELLER_URL } from "./market.ts";
import { must, type TestOrganisation } from "./organisations.ts";
import type { Service } from "./server.ts";

/** In the smallest unit: no other number of a page has these digits. */
export const AMOUNT = "7654321";
const FUNDS = "987654321";
/** The source of a test's context answers `{}`, so it fails. */
export const FAILING = { clauses: [{ kind: "json.jsonpath", path: "$.done", equals: true }] };
const RULES = {
  bands: [
    { minScore: 1, outcome: "release" },
    { minScore: 0, outcome: "escalate" },
  ],
  maxAmount: AMOUNT,
};

/** The ids of one thing of each kind, in live. */
export type Everything = Awaited<ReturnType<typeof makeEverything>>;

/** One of everything that a page of the console shows. The service sells and buys by `openMarket`. */
export async function makeEverything(service: Service, home: TestOrganisation) {
  const { ctx } = service;
  const organisation = { organisation_id: home.id };
  const live = { ...organisation, mode: "live" } as const;
  const agent = home.live;
  const deposit = must(await fundBalance(ctx, MACHINE, { ...live, amount: FUNDS, reference: "bank 1" }));
  const webhook = must(
    await createWebhook(ctx, MACHINE, { ...live, url: "http://127.0.0.1:9/in", events: [] }),
  );
  const delivery = must(await sendExample(ctx, MACHINE, { webhook_id: webhook.id }));
  must(await updateAgent(ctx, MACHINE, { agent_id: agent.id, failure_budget: 50 }));
  const limits = { amount_ceiling: FUNDS, per_warrant_max: AMOUNT, hourly_max: FUNDS, daily_max: FUNDS };
  const session = must(await createSession(ctx, MACHINE, { agent_id: agent.id, ...limits }));
  const older = await home.addPolicy(RULES, { name: "careful" });
  const policy = await home.addPolicy({ ...RULES, maxAmount: FUNDS }, { name: "careful" });
  const config = { equals: 200 };
  const verifier = must(
    await createVerifier(ctx, MACHINE, { ...organisation, type: "http.status", name: "up", config }),
  );
  const schema = must(
    await createSchema(ctx, MACHINE, { ...organisation, name: "an.object", schema: { type: "object" } }),
  );
  const invited = must(
    await inviteUser(ctx, MACHINE, {
      ...organisation,
      email: `new.${home.id}@example.com`,
      name: "Ada",
      role: "viewer",
    }),
  );
  const deadline = service.timeIn(3_600_000);
  const named = { agent_id: agent.id, amount: AMOUNT, spec: FAILING, deadline };
  const held = (await service.opened(home, named)).id as string;
  const escalated = (await service.opened(home, named)).id as string;
  await verify(service, home, escalated);
  const listed = await service.get("/v1/console/escalations", { as: home.people.owner.as });
  const order = { url: SELLER_URL, max_amount: AMOUNT, spec: FAILING };
  await service.post("/v1/x402/pay", order, { as: agent.as });
  const [purchase] = ctx.reader.purchases.list({ organisationId: home.id, mode: "live" }, null, 1);
  const pay = async (payee: string): Promise<void> => {
    const { id } = await service.opened(home, { ...named, payee });
    await service.post(`/v1/warrants/${id}/release`, {}, { as: home.people.operator.as });
  };
  await pay("a paid one");
  const [payout] = must(await submitPayouts(ctx, MACHINE, live)).data;
  await pay("a payee");
  const late = must(await fundBalance(ctx, MACHINE, { ...live, amount: AMOUNT, reference: "bank 3" }));
  const correction = await proposeCorrection(service, home, deposit.id);
  return {
    ...{ deposit: late.id, payout: payout?.id ?? "", correction },
    ...{ agent: agent.id, key: agent.keyId, session: session.id, held, escalated },
    escalation: listed.body.data[0].id as string,
    ...{ policy: policy.id, olderPolicy: older.id, verifier: verifier.id, schema: schema.id },
    ...{ webhook: webhook.id, delivery: delivery.id, purchase: purchase?.id ?? "", person: invited.user.id },
  };
}

/** A correction that waits for a second person, since its difference was above the threshold of that moment. */
async function proposeCorrection({ ctx }: Service, home: TestOrganisation, deposit: string): Promise<string> {
  const setThreshold = (amount: string | null) =>
    setPasskeyThreshold(ctx, MACHINE, { organisation_id: home.id, amount }).then(must);
  await setThreshold("1");
  const amount = String(BigInt(FUNDS) + BigInt(AMOUNT));
  const input = { deposit_id: deposit, amount, reason: "a digit too few" };
  const { id } = must(await correctBalance(ctx, MACHINE, input));
  await setThreshold(null);
  return id;
}

/** Has a warrant checked by its agent. */
export async function verify(service: Service, home: TestOrganisation, id: string): Promise<void> {
  const body = { source_url: "http://source.example/" };
  expect((await service.post(`/v1/warrants/${id}/verify`, body, { as: home.live.as })).status).toBe(200);
}

/** The address of each page about these things, by its path in the routes. */
const pathsOf = (of: Everything): Readonly<Record<string, string>> => ({
  "/console/warrants/:id": `/console/warrants/${of.escalated}`,
  "/console/warrants/:id/settle/:decision": `/console/warrants/${of.held}/settle/partial_release`,
  "/console/escalations/:id": `/console/escalations/${of.escalation}`,
  "/console/policies/:id": `/console/policies/${of.policy}?with=${of.olderPolicy}`,
  "/console/policies/new": `/console/policies/new?from=${of.olderPolicy}`,
  "/console/verifiers/:id": `/console/verifiers/${of.verifier}`,
  "/console/schemas/:id": `/console/schemas/${of.schema}`,
  "/console/webhooks/:id": `/console/webhooks/${of.webhook}`,
  "/console/webhooks/:id/disable": `/console/webhooks/${of.webhook}/disable`,
  "/console/deliveries/:id": `/console/deliveries/${of.delivery}`,
  "/console/purchases/:id": `/console/purchases/${of.purchase}`,
  "/console/purchases/:id/say/:verb": `/console/purchases/${of.purchase}/say/paid`,
  "/console/money/deposit": `/console/money/deposit?amount=7.654321&asset=USDC&reference=bank+2`,
  "/console/money/payouts/submit": `/console/money/payouts/submit?payee=a+payee&asset=USDC`,
  "/console/money/payouts/end": `/console/money/payouts/end?payout=${of.payout}&as=paid`,
  "/console/money/corrections/new": `/console/money/corrections/new?deposit=${of.deposit}`,
  "/console/money/corrections/decide": `/console/money/corrections/decide?correction=${of.correction}&as=approve`,
  "/console/people/:id": `/console/people/${of.person}`,
  "/console/people/:id/remove": `/console/people/${of.person}/remove`,
  "/console/settings/kill-switch/:state": "/console/settings/kill-switch/on",
  "/console/agents/:id": `/console/agents/${of.agent}`,
  "/console/agents/:id/edit": `/console/agents/${of.agent}/edit`,
  "/console/agents/:id/pause": `/console/agents/${of.agent}/pause`,
  "/console/agents/:id/activate": `/console/agents/${of.agent}/activate`,
  "/console/agents/:id/kill": `/console/agents/${of.agent}/kill`,
  "/console/agents/:id/keys": `/console/agents/${of.agent}/keys`,
  "/console/agents/:id/sessions": `/console/agents/${of.agent}/sessions`,
  "/console/agents/:id/sessions/new": `/console/agents/${of.agent}/sessions/new`,
  "/console/keys/:id/rotate": `/console/keys/${of.key}/rotate`,
  "/console/keys/:id/revoke": `/console/keys/${of.key}/revoke`,
  "/console/sessions/:id": `/console/sessions/${of.session}`,
  "/console/sessions/:id/end": `/console/sessions/${of.session}/end`,
});

/** The address of a page of the routes. */
export const addressOf = (of: Everything, path: string): string => pathsOf(of)[path] ?? path;
