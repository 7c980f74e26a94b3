import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { consoleRoutes } from "../../src/console/routes.ts";
import { setAgentStatus, updateAgent } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { sendExample } from "../../src/services/admin/deliveries.ts";
import { inviteUser } from "../../src/services/admin/invitations.ts";
import { createKey, revokeKey } from "../../src/services/admin/keys.ts";
import { createSchema } from "../../src/services/admin/schemas.ts";
import { createSession, revokeSession } from "../../src/services/admin/sessions.ts";
import { setKillSwitch, setPasskeyThreshold, setReceiptSpecs } from "../../src/services/admin/switches.ts";
import { removeUser, setUserRole } from "../../src/services/admin/users.ts";
import { createVerifier } from "../../src/services/admin/verifiers.ts";
import { createWebhook, disableWebhook } from "../../src/services/admin/webhooks.ts";
import { writeKeyUse } from "../../src/services/auth/key-uses.ts";
import { consoleOfShell, quietSite } from "../support/console.ts";
import { eventsOf } from "../support/event-stream.ts";
import {
  AMOUNT,
  addressOf,
  type Everything,
  FAILING,
  makeEverything,
  verify,
} from "../support/every-page.ts";
import { openMarket, SELLER_URL } from "../support/market.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** Every page of the console: which parts of it show by themselves what changes, and why others need not. */

const FORM = "It is a form: what is half written must stay.";
const CONFIRMS =
  "It asks about what it was opened for, and is sent or left at once. What changed meanwhile is refused.";
const FOR_GOOD = "What it shows never changes.";
const AT_HAND = "It shows what its reader has just done.";

/** What each page listens to, part by part, or why it need not. A new page has its line here. */
const LIVE: Readonly<Record<string, string | Readonly<Record<string, string>>>> = {
  "/console": { figures: "money", needs: "escalations", pictures: "money escalations" },
  "/console/components": FOR_GOOD,
  "/console/welcome": AT_HAND,
  "/console/warrants": { results: "warrants" },
  "/console/warrants/new": { available: "money" },
  "/console/warrants/:id": { head: "ID", verify: "ID", seen: "ID", facts: "ID", deliveries: "ID deliveries" },
  "/console/warrants/:id/settle/:decision": CONFIRMS,
  "/console/escalations": { inbox: "escalations", "of-ESCALATION": "WARRANT" },
  "/console/escalations/:id": { inbox: "escalations", "of-ESCALATION": "WARRANT" },
  "/console/settings/notices": { devices: "notices", recent: "notices" },
  "/console/settings/notices/chat": FORM,
  "/console/policies": { policies: "policies" },
  "/console/policies/new": FORM,
  "/console/policies/:id": { head: "policies", versions: "policies" },
  "/console/verifiers": { verifiers: "verifiers" },
  "/console/verifiers/new": FORM,
  "/console/verifiers/:id": FOR_GOOD,
  "/console/schemas": { schemas: "schemas" },
  "/console/schemas/new": FORM,
  "/console/schemas/:id": FOR_GOOD,
  "/console/bench": FORM,
  "/console/webhooks": { endpoints: "webhooks", latest: "deliveries" },
  "/console/webhooks/new": FORM,
  "/console/webhooks/:id": { head: "webhooks", deliveries: "ID", recover: "webhooks" },
  "/console/webhooks/:id/disable": CONFIRMS,
  "/console/deliveries": { results: "deliveries" },
  "/console/deliveries/:id": { head: "webhooks", response: "ID", progress: "ID" },
  "/console/purchases": { purchases: "purchases warrants" },
  "/console/purchases/:id": { head: "ID PAID", about: "ID PAID" },
  "/console/purchases/:id/say/:verb": CONFIRMS,
  "/console/money": { balances: "money", deposits: "money" },
  "/console/money/deposit": CONFIRMS,
  "/console/money/statements": FORM,
  "/console/money/solvency": "a statement does not change, and the next one comes after hours",
  "/console/money/payees": { payees: "money" },
  "/console/money/payouts": { payouts: "money" },
  "/console/money/payouts/submit": CONFIRMS,
  "/console/money/payouts/end": CONFIRMS,
  "/console/money/corrections": { corrections: "money" },
  "/console/money/corrections/new": CONFIRMS,
  "/console/money/corrections/decide": CONFIRMS,
  "/console/people": { people: "people" },
  "/console/people/new": FORM,
  "/console/people/:id": { head: "people", about: "people", powers: "people" },
  "/console/people/:id/remove": CONFIRMS,
  "/console/audit-log": { results: "audit" },
  "/console/account": FORM,
  "/console/account/remove-passkey": CONFIRMS,
  "/console/settings": { organisation: "organisation" },
  "/console/settings/kill-switch/:state": CONFIRMS,
  "/console/agents": { results: "agents warrants sessions" },
  "/console/agents/new": FORM,
  "/console/agents/:id": {
    head: "ID",
    warnings: "ID warrants-of-ID sessions",
    budget: "ID warrants-of-ID sessions",
    keys: "keys",
    warrants: "ID warrants-of-ID",
    facts: "ID warrants-of-ID policies",
  },
  "/console/agents/:id/edit": FORM,
  "/console/agents/:id/pause": CONFIRMS,
  "/console/agents/:id/activate": CONFIRMS,
  "/console/agents/:id/kill": CONFIRMS,
  "/console/agents/:id/keys": { keys: "keys" },
  "/console/keys/:id/rotate": CONFIRMS,
  "/console/keys/:id/revoke": CONFIRMS,
  "/console/agents/:id/sessions": { sessions: "sessions AGENT warrants-of-AGENT" },
  "/console/agents/:id/sessions/new": FORM,
  "/console/sessions/:id": { head: "sessions AGENT", used: "sessions AGENT warrants-of-AGENT" },
  "/console/sessions/:id/end": CONFIRMS,
};

/** On every page. */
const FRAME = { waiting: "escalations", "kill-switch": "organisation" };

let service: ShellService;
let home: TestOrganisation;
let all: Everything;
let browser: ReturnType<ReturnType<typeof consoleOfShell>>;
beforeAll(async () => {
  service = startTestShell({ x402: openMarket().x402, site: quietSite() });
  home = await service.organisation();
  all = await makeEverything(service, home);
  browser = consoleOfShell(service)(home.people.owner.as);
});
afterAll(() => service?.close());

const pages = consoleRoutes(true).filter(({ kind }) => kind === "page");
const shownAt = async (path: string) => {
  const page = await browser.get(addressOf(all, path));
  // Without a passkey there is none to remove.
  if (path !== "/console/account/remove-passkey") expect([path, page.status]).toEqual([path, 200]);
  return page.html;
};

/** The parts of a page that listen, and what to. */
function partsOf(html: string): Record<string, string> {
  const parts: Record<string, string> = {};
  new HTMLRewriter()
    .on("[data-live]", {
      element(part) {
        parts[part.getAttribute("id") ?? ""] = part.getAttribute("data-live") ?? "";
      },
    })
    .transform(html);
  return parts;
}

test("each page of the routes says what it listens to, or why it need not", () => {
  expect(Object.keys(LIVE).sort()).toEqual(pages.map(({ path }) => path).sort());
});

test.each(pages.map(({ path }) => path).filter((path) => path !== "/console/account/remove-passkey"))(
  "%s listens to that",
  async (path) => {
    const own = LIVE[path] ?? "";
    const about = addressOf(all, path).split("/")[3]?.split("?")[0] ?? "";
    const [purchase] = service.ctx.reader.purchases.list({ organisationId: home.id, mode: "live" }, null, 1);
    const named = (text: string) =>
      text
        .replaceAll("ESCALATION", all.escalation)
        .replaceAll("WARRANT", all.escalated)
        .replaceAll("AGENT", all.agent)
        .replaceAll("PAID", purchase?.warrantId ?? "")
        .replaceAll("ID", about);
    const wanted = typeof own === "string" ? {} : own;
    expect(partsOf(await shownAt(path))).toEqual({
      ...FRAME,
      ...Object.fromEntries(Object.entries(wanted).map(([id, names]) => [named(id), named(names)])),
    });
  },
);

/**
 * The parts of a page that are there instead of those that have gone. Who looked at one that has gone is told that it changed,
 * and nothing comes in its place: they might take it for the first one.
 */
function instead(before: string, after: string, names: readonly string[]): readonly string[] {
  const [was, is] = [partsOf(before), partsOf(after)];
  const gone = Object.entries(was).filter(([id]) => !(id in is));
  const isTold = gone.some(([, listens]) => listens.split(" ").some((name) => names.includes(name)));
  return isTold ? Object.keys(is).filter((id) => !(id in was)) : [];
}

/** What of a page is no part that hears one of the names. Forms stay as they were opened: with keys of their own, and their choices. */
function restOf(html: string, names: readonly string[], besides: readonly string[] = []): string {
  return new HTMLRewriter()
    .on("[data-live]", {
      element(part) {
        const hears = part
          .getAttribute("data-live")
          ?.split(" ")
          .some((name) => names.includes(name));
        if (hears || besides.includes(part.getAttribute("id") ?? "")) part.remove();
      },
    })
    .on("input[type=hidden], form[method=get], select", { element: (field) => void field.remove() })
    .on("body", { element: (body) => void body.removeAttribute("data-position") })
    .transform(html);
}

/** What a reader hears of what happens meanwhile. */
async function namesOf(act: () => Promise<unknown>): Promise<readonly string[]> {
  const cookie = home.people.owner.as;
  const from = /data-position="([^"]+)"/.exec((await browser.get("/console/bench")).html)?.[1] ?? "";
  await act();
  // Who watches is told after the answers.
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  const response = await service.ask(`/console/events?after=${from}`, cookie);
  if (!response.body) throw new Error("no stream");
  const events = eventsOf(response.body);
  const told = (await events.next()).value;
  await events.return(null);
  const { names } = JSON.parse(told?.data ?? "{}") as { readonly names: readonly string[] | null };
  if (names === null) throw new Error("it was told that anything may have changed");
  return names;
}

const live = () => ({ organisation_id: home.id, mode: "live" }) as const;
const machine = async <T>(answer: Promise<T>) => must((await answer) as never);
const state: { key: string; session: string; person: string; webhook: string } = {
  ...{ key: "", session: "", person: "", webhook: "" },
};

/** What happens to one thing after the other, in this order. */
const ACTS: readonly (readonly [string, () => Promise<unknown>])[] = [
  [
    "a warrant is opened",
    () => service.opened(home, { agent_id: home.live.id, amount: AMOUNT, spec: FAILING }),
  ],
  ["a check escalates", () => verify(service, home, all.held)],
  [
    "an escalation is resolved",
    () =>
      service.post(
        `/v1/console/escalations/${all.escalation}/resolve`,
        { decision: "refund" },
        { as: home.people.admin.as },
      ),
  ],
  [
    "money comes in",
    () => machine(fundBalance(service.ctx, MACHINE, { ...live(), amount: AMOUNT, reference: "3" })),
  ],
  [
    "an agent is paused",
    () => machine(setAgentStatus(service.ctx, MACHINE, { agent_id: all.agent, status: "paused" })),
  ],
  [
    "it is active again",
    () => machine(setAgentStatus(service.ctx, MACHINE, { agent_id: all.agent, status: "active" })),
  ],
  [
    "its failure budget changes",
    () => machine(updateAgent(service.ctx, MACHINE, { agent_id: all.agent, failure_budget: 9 })),
  ],
  [
    "a key is made",
    async () => {
      state.key = must(await createKey(service.ctx, MACHINE, { agent_id: all.agent })).id;
    },
  ],
  [
    "a key calls",
    () =>
      writeKeyUse(service.ctx, {
        scope: { organisationId: home.id, mode: "live" },
        keyId: state.key,
        at: service.ctx.now(),
      }),
  ],
  ["a key is revoked", () => machine(revokeKey(service.ctx, MACHINE, { key_id: state.key }))],
  [
    "a budget is replaced",
    async () => {
      const made = await createSession(service.ctx, MACHINE, { agent_id: all.agent, amount_ceiling: AMOUNT });
      state.session = must(made).id;
    },
  ],
  ["a session is ended", () => machine(revokeSession(service.ctx, MACHINE, { session_id: state.session }))],
  [
    "a policy is saved",
    () => home.addPolicy({ bands: [{ minScore: 0, outcome: "refund" }] }, { name: "careful" }),
  ],
  [
    "an agent's own policy is saved",
    () => home.addPolicy({ bands: [{ minScore: 0, outcome: "refund" }] }, { agent_id: all.agent }),
  ],
  [
    "a verifier is saved",
    () =>
      machine(
        createVerifier(service.ctx, MACHINE, {
          ...{ organisation_id: home.id, type: "http.status", name: "another", config: { equals: 201 } },
        }),
      ),
  ],
  [
    "a schema is saved",
    () => machine(createSchema(service.ctx, MACHINE, { organisation_id: home.id, name: "b", schema: {} })),
  ],
  [
    "an endpoint is added",
    async () => {
      const made = await createWebhook(service.ctx, MACHINE, {
        ...live(),
        url: "http://127.0.0.1:9/b",
        events: [],
      });
      state.webhook = must(made).id;
    },
  ],
  ["an example is on its way", () => machine(sendExample(service.ctx, MACHINE, { webhook_id: all.webhook }))],
  [
    "an endpoint is disabled",
    () => machine(disableWebhook(service.ctx, MACHINE, { webhook_id: all.webhook })),
  ],
  [
    "somebody is invited",
    async () => {
      const input = {
        organisation_id: home.id,
        email: `b.${home.id}@example.com`,
        name: "Bob",
        role: "viewer",
      } as const;
      state.person = must(await inviteUser(service.ctx, MACHINE, input)).user.id;
    },
  ],
  [
    "a role changes",
    () => machine(setUserRole(service.ctx, MACHINE, { user_id: all.person, role: "operator" })),
  ],
  ["somebody is removed", () => machine(removeUser(service.ctx, MACHINE, { user_id: state.person }))],
  ["somebody signs in", () => home.signIn(home.people.viewer)],
  [
    "the kill switch is on",
    () => machine(setKillSwitch(service.ctx, MACHINE, { organisation_id: home.id, on: true })),
  ],
  [
    "the kill switch is off",
    () => machine(setKillSwitch(service.ctx, MACHINE, { organisation_id: home.id, on: false })),
  ],
  [
    "receipts hide specs",
    () => machine(setReceiptSpecs(service.ctx, MACHINE, { organisation_id: home.id, hidden: true })),
  ],
  [
    "the threshold changes",
    () =>
      machine(setPasskeyThreshold(service.ctx, MACHINE, { organisation_id: home.id, amount: "1000000000" })),
  ],
  [
    "something is bought",
    () =>
      service.post(
        "/v1/x402/pay",
        { url: SELLER_URL, max_amount: AMOUNT, spec: FAILING },
        { as: home.live.as },
      ),
  ],
];

describe("what changes on a page is in a part that hears of it, where", () => {
  const followed = pages
    .map(({ path }) => path)
    .filter((path) => typeof LIVE[path] !== "string" || LIVE[path] === FOR_GOOD);

  test.each(ACTS)("%s", async (_, act) => {
    const before = new Map<string, string>();
    for (const path of followed) before.set(path, await shownAt(path));
    const names = await namesOf(act);
    for (const path of followed) {
      const [was, is] = [before.get(path) ?? "", await shownAt(path)];
      const expected = restOf(was, names);
      expect([path, restOf(is, names, instead(was, is, names))]).toEqual([path, expected]);
    }
  });
});

test("a viewer hears nothing of what only admins see", async () => {
  const { viewer } = home.people;
  const of = consoleOfShell(service)(viewer.as);
  const from = /data-position="([^"]+)"/.exec((await of.get("/console/bench")).html)?.[1] ?? "";
  must(await createKey(service.ctx, MACHINE, { agent_id: all.agent }));
  must(await setUserRole(service.ctx, MACHINE, { user_id: all.person, role: "viewer" }));
  await service.opened(home);
  const response = await service.ask(`/console/events?after=${from}`, viewer.as);
  if (!response.body) throw new Error("no stream");
  const events = eventsOf(response.body);
  const { names } = JSON.parse((await events.next()).value?.data ?? "{}");
  await events.return(null);
  expect(names).toContain("warrants");
  for (const name of ["keys", "people", "audit", all.person]) expect(names).not.toContain(name);
});
