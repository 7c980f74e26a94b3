import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { KeyCaller, PersonCaller } from "../../../src/core/roles.ts";
import { createAgent, setAgentStatus, updateAgent } from "../../../src/services/admin/agents.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { fundBalance } from "../../../src/services/admin/balances.ts";
import { inviteUser } from "../../../src/services/admin/invitations.ts";
import { createKey, revokeKey, rotateKey } from "../../../src/services/admin/keys.ts";
import { issuePasswordReset } from "../../../src/services/admin/password-resets.ts";
import { createPolicy } from "../../../src/services/admin/policies.ts";
import { createSchema } from "../../../src/services/admin/schemas.ts";
import { createSession, revokeSession } from "../../../src/services/admin/sessions.ts";
import { setKillSwitch, setPasskeyThreshold } from "../../../src/services/admin/switches.ts";
import { createUser, removeUser, setUserRole } from "../../../src/services/admin/users.ts";
import { createVerifier } from "../../../src/services/admin/verifiers.ts";
import { signedInBy } from "../../../src/services/auth/callers.ts";
import { signIn, signOut } from "../../../src/services/auth/sign-in.ts";
import { payForUrl } from "../../../src/services/x402/pay.ts";
import { resolvePurchase } from "../../../src/services/x402/purchases.ts";
import { openAllRows } from "../../support/all-rows.ts";
import { callerAt } from "../../support/client.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { asksExactOnBase, type Market, openMarket, SELLER_URL, silence } from "../../support/market.ts";
import {
  createCaller,
  createStage,
  FOUR_CLAUSES,
  idempotencyOf,
  must,
  type Stage,
} from "../../support/stage.ts";
import { together } from "../../support/together.ts";

/** Administrative changes whose admin is removed meanwhile: the commit checks the admin once more. */

let ctx: TestContext;
let stage: Stage;
/** The owner as a request knows them: by a sign-in. Another owner stays. */
let caller: PersonCaller;
let token: string;
let key: KeyCaller;
let sessionId: string;
let purchaseId: string;
let organisation: { readonly organisation_id: string };
beforeEach(async () => {
  const market = openMarket();
  ctx = createTestContext({ x402: market.x402 });
  stage = await createStage(ctx);
  organisation = { organisation_id: stage.organisationId };
  key = await createCaller(stage);
  sessionId = must(await createSession(ctx, MACHINE, { agent_id: key.agentId, amount_ceiling: "5" })).id;
  purchaseId = await buyUnknown(market);
  const person = { email: "another@gone.example", password: "correct horse", role: "owner" } as const;
  must(await createUser(ctx, MACHINE, { ...organisation, ...person }));
  ({ token } = must(await signIn(ctx, person, callerAt("192.0.2.1"))));
  ({ caller } = await signedIn());
});
afterEach(() => ctx.close());

/** A purchase of which nobody knows whether its seller was paid, so long ago that a person may say it. */
async function buyUnknown(market: Market): Promise<string> {
  market.first = asksExactOnBase("100");
  market.paid = () => silence(true);
  const order = { url: SELLER_URL, max_amount: "100", spec: { clauses: FOUR_CLAUSES } };
  must(await payForUrl(ctx, key, order, idempotencyOf()));
  ctx.clock.now += 2 * 3_600_000;
  return ctx.reader.purchases.list(stage, null, 1)[0]!.id;
}

async function signedIn() {
  const found = await signedInBy(ctx, token);
  if (!found) throw new Error("not signed in");
  return found;
}

const isGone = (role: "viewer" | "operator" | "admin") =>
  setUserRole(ctx, MACHINE, { user_id: caller.userId, role });

const GOINGS: readonly (readonly [how: string, code: string, go: () => Promise<unknown>])[] = [
  ["removed", "not_authenticated", () => removeUser(ctx, MACHINE, { user_id: caller.userId })],
  ["made a viewer", "insufficient_role", () => isGone("viewer")],
  [
    "signed out",
    "not_authenticated",
    () => signedIn().then((found) => signOut(ctx, found, callerAt("192.0.2.1"))),
  ],
];

const person = { email: "p@gone.example", password: "correct horse", role: "viewer" } as const;
const bands = [{ minScore: 0, outcome: "refund" }];
const CHANGES: readonly (readonly [verb: string, change: () => Promise<unknown>])[] = [
  ["createUser", () => createUser(ctx, caller, { ...organisation, ...person })],
  ["inviteUser", () => inviteUser(ctx, caller, { ...organisation, ...person, email: "invited@example.com" })],
  ["setUserRole", () => setUserRole(ctx, caller, { user_id: stage.operator.userId, role: "viewer" })],
  ["issuePasswordReset", () => issuePasswordReset(ctx, caller, { user_id: stage.operator.userId })],
  ["removeUser", () => removeUser(ctx, caller, { user_id: stage.operator.userId })],
  ["createAgent", () => createAgent(ctx, caller, { ...organisation, mode: "live", name: "new" })],
  ["setAgentStatus", () => setAgentStatus(ctx, caller, { agent_id: key.agentId, status: "killed" })],
  ["setAgentStatus paused", () => setAgentStatus(ctx, caller, { agent_id: key.agentId, status: "paused" })],
  ["updateAgent", () => updateAgent(ctx, caller, { agent_id: key.agentId, name: "changed" })],
  ["createKey", () => createKey(ctx, caller, { agent_id: key.agentId })],
  ["rotateKey", () => rotateKey(ctx, caller, { key_id: key.keyId })],
  ["revokeKey", () => revokeKey(ctx, caller, { key_id: key.keyId })],
  ["createSession", () => createSession(ctx, caller, { agent_id: key.agentId, amount_ceiling: "9" })],
  ["revokeSession", () => revokeSession(ctx, caller, { session_id: sessionId })],
  ["createPolicy", () => createPolicy(ctx, caller, { ...organisation, name: "p", rules: { bands } })],
  [
    "createVerifier",
    () =>
      createVerifier(ctx, caller, {
        ...organisation,
        type: "http.status",
        name: "v",
        config: { equals: 200 },
      }),
  ],
  ["createSchema", () => createSchema(ctx, caller, { ...organisation, name: "s", schema: {} })],
  ["fundBalance", () => fundBalance(ctx, caller, { ...organisation, mode: "live", amount: "5" })],
  ["resolvePurchase", () => resolvePurchase(ctx, caller, { purchase_id: purchaseId, known: "unpaid" })],
  ["setKillSwitch", () => setKillSwitch(ctx, caller, { ...organisation, on: true })],
  ["setPasskeyThreshold", () => setPasskeyThreshold(ctx, caller, { ...organisation, amount: "5" })],
];

async function changesNothing(change: () => Promise<unknown>, code: string): Promise<void> {
  const allRows = openAllRows(ctx.folder);
  const before = allRows.all();
  expect(await change()).toMatchObject({ refused: code });
  expect(allRows.all()).toEqual(before);
  allRows.close();
}

for (const [how, code, go] of GOINGS) {
  describe(`who is ${how} while the request is on its way`, () => {
    for (const [verb, change] of CHANGES) {
      test(`${verb}: changes nothing`, async () => {
        await go();
        await changesNothing(change, code);
      });
    }
  });
}

test("an admin who is still there, and still may, makes every change", async () => {
  for (const [, change] of CHANGES) expect(await change()).not.toHaveProperty("refused");
});

test("a change that is queued behind the removal of its admin, in one commit with it, changes nothing", async () => {
  const [removed, stopped] = await together(
    () => removeUser(ctx, MACHINE, { user_id: caller.userId }),
    () => setKillSwitch(ctx, caller, { ...organisation, on: true }),
  );
  expect([removed, stopped]).toMatchObject([{ id: caller.userId }, { refused: "not_authenticated" }]);
  expect(ctx.reader.organisations.get(stage.organisationId)?.killSwitch).toBeFalse();
});

describe("the role at the commit counts", () => {
  test("an owner who is an admin now manages no admins", async () => {
    await isGone("admin");
    const user_id = stage.admin.userId;
    for (const change of [
      () => setUserRole(ctx, caller, { user_id, role: "viewer" }),
      () => removeUser(ctx, caller, { user_id }),
      () => issuePasswordReset(ctx, caller, { user_id }),
      () => createUser(ctx, caller, { ...organisation, ...person, role: "admin" }),
      () => inviteUser(ctx, caller, { ...organisation, ...person, role: "admin" }),
      () => setPasskeyThreshold(ctx, caller, { ...organisation, amount: "5" }),
    ]) {
      await changesNothing(change, "insufficient_role");
    }
    must(await removeUser(ctx, caller, { user_id: stage.operator.userId }));
  });

  test("an admin who is an operator now pauses agents, and brings no killed one back", async () => {
    const pause = () => setAgentStatus(ctx, caller, { agent_id: key.agentId, status: "paused" });
    await isGone("operator");
    must(await pause());
    must(await setAgentStatus(ctx, MACHINE, { agent_id: key.agentId, status: "killed" }));
    await changesNothing(pause, "insufficient_role");
  });
});
