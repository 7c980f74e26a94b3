import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { consoleRoutes } from "../../src/console/routes.ts";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import type { AllRows } from "../support/all-rows.ts";
import { type Chats, startChats } from "../support/chats.ts";
import { consoleOfShell, type Fields, type Shown } from "../support/console.ts";
import { DEVICES, deviceForm } from "../support/devices.ts";
import { addressOf, type Everything, FAILING, makeEverything } from "../support/every-page.ts";
import {
  asksExact,
  asksVoucher,
  delivers,
  type Market,
  openMarket,
  SELLER_URL,
  silence,
} from "../support/market.ts";
import { must, PASSWORD, type Person, type TestOrganisation } from "../support/organisations.ts";
import { enrol } from "../support/passkeys.ts";
import type { ShellService } from "../support/server.ts";

/**
 * Every form of the console, filled in as a person would: sent twice at once it has one effect, sent from another site it has
 * none, and what is wrong in it stands beside its field, with what was typed.
 */

type Bad = readonly [field: string, value: string];
type Form = {
  /** The page that has the form, as the routes or as a browser name it. */
  readonly on: string | ((of: Everything, home: TestOrganisation) => string);
  /** Where it is sent; by default to the path of its route. */
  readonly to?: (of: Everything, home: TestOrganisation) => string;
  /** What a person fills in besides what stands there. */
  readonly fields?: Fields | (() => Fields);
  /** Values that are refused, each beside its field. */
  readonly bad?: readonly Bad[];
};

const LONG = "x".repeat(3_000);
const HIDDEN = "Ada\u202eadA";
const MARKUP = '"><script>alert(1)</script>';

const NAMES: readonly Bad[] = [
  ["name", ""],
  ["name", LONG],
  ["name", HIDDEN],
];
const AGENT: readonly Bad[] = [
  ...NAMES,
  ...["0", "-1", "1.5", "many", MARKUP, "99999999999"].map((value): Bad => ["failure_budget", value]),
];
const SESSION = { amount_ceiling: "5", failure_budget: "3", warrant_limit: "", lifetime: "7d" };
const RULE = {
  "bands.0.minScore": "0",
  "bands.0.outcome": "escalate",
  "bands.0.share": "",
  "bands.0.label": "",
};

/** By the path of each form. A new one has its line here. */
const FORMS: Readonly<Record<string, Form>> = {
  "/console/warrants/new": {
    on: "/console/warrants/new",
    fields: {
      ...{ payee: "acme", amount: "0.01", deadline: "1d" },
      clauses: '[{"kind":"http.status","equals":200}]',
    },
    bad: [
      ["payee", ""],
      ["payee", LONG],
      ["payee", HIDDEN],
      ...["", "-1", "1e3", "0.0000001", "ten", MARKUP, "0", "99999999999999999999"].map(
        (value): Bad => ["amount", value],
      ),
      ["asset", ""],
      ["asset", "no asset"],
      ["deadline", "soon"],
      ...["", "{", "[]", '[{"kind":"none"}]', `[${LONG}`, MARKUP].map((value): Bad => ["clauses", value]),
    ],
  },
  "/console/warrants/:id/verify": {
    on: (of) => `/console/warrants/${of.held}`,
    to: (of) => `/console/warrants/${of.held}/verify`,
    fields: { source_url: "http://source.example/" },
    bad: [
      "",
      "source.example",
      "ftp://source.example",
      "http://u:p@source.example",
      `http://a/${LONG}`,
      MARKUP,
    ].map((value): Bad => ["source_url", value]),
  },
  "/console/warrants/:id/settle/:decision": {
    on: "/console/warrants/:id/settle/:decision",
    fields: { share: "25" },
    bad: ["", "0", "100", "-1", "12.345", "half", MARKUP].map((value): Bad => ["share", value]),
  },
  "/console/escalations/:id": {
    on: "/console/escalations/:id",
    fields: { decision: "partial_release", share: "25", note: "seen" },
    bad: [
      ["share", "0"],
      ["share", MARKUP],
      ["note", LONG],
      ["note", HIDDEN],
      ["decision", ""],
      ["decision", "burn"],
    ],
  },
  "/console/settings/notices": {
    on: "/console/settings/notices",
    fields: { from: "08:00", until: "18:00", time_zone: "Europe/Berlin" },
    bad: [
      ["from", "8"],
      ["until", "25:00"],
      ["time_zone", ""],
      ["time_zone", "Mars/Olympus"],
      ["time_zone", MARKUP],
    ],
  },
  "/console/settings/notices/chat": {
    on: "/console/settings/notices/chat",
    fields: { password: PASSWORD },
    bad: [
      ["password", ""],
      ["password", "not mine at all"],
    ],
  },
  "/console/settings/notices/chat/unlink": { on: "/console/settings/notices" },
  "/console/settings/notices/test": { on: "/console/settings/notices" },
  "/console/settings/notices/devices": {
    on: "/console/settings/notices",
    fields: () => deviceForm(),
    bad: NAMES.map(([, value]): Bad => ["device_name", value]),
  },
  "/console/settings/notices/devices/remove": { on: "/console/settings/notices" },
  "/console/policies": {
    on: "/console/policies/new",
    fields: { ...RULE, name: "new" },
    bad: [
      ["name", ""],
      ["name", LONG],
      ["name", HIDDEN],
      ["bands.0.minScore", ""],
      ["bands.0.minScore", "2"],
      ["bands.0.minScore", MARKUP],
      ["bands.0.outcome", "burn"],
      ["bands.0.label", LONG],
      ["max_amount", "-1"],
      ["max_amount", MARKUP],
    ],
  },
  "/console/verifiers": {
    on: "/console/verifiers/new",
    fields: { name: "up", "config.equals": "200" },
    bad: [...NAMES, ["config.equals", ""], ["config.equals", "many"], ["config.equals", MARKUP]],
  },
  "/console/schemas": {
    on: "/console/schemas/new",
    fields: { name: "weather.v1", schema: '{"type":"object"}' },
    bad: [
      ...NAMES,
      ["name", "no name"],
      ["schema", ""],
      ["schema", "{"],
      ["schema", '{"type":"thing"}'],
      ["schema", MARKUP],
    ],
  },
  "/console/webhooks/new": {
    on: "/console/webhooks/new",
    fields: { url: "https://hook.example/in" },
    bad: ["", "hook.example", "ftp://hook.example", `https://hook.example/${LONG}`, MARKUP].map(
      (value): Bad => ["url", value],
    ),
  },
  "/console/webhooks/:id/example": {
    on: "/console/webhooks/:id",
    to: (of) => `/console/webhooks/${of.webhook}/example`,
  },
  "/console/webhooks/:id/recover": {
    on: "/console/webhooks/:id",
    to: (of) => `/console/webhooks/${of.webhook}/recover`,
    fields: { since: "1d" },
    bad: [
      ["since", ""],
      ["since", MARKUP],
    ],
  },
  "/console/webhooks/:id/disable": { on: "/console/webhooks/:id/disable" },
  "/console/deliveries/:id/redeliver": {
    on: "/console/deliveries/:id",
    to: (of) => `/console/deliveries/${of.delivery}/redeliver`,
  },
  "/console/purchases/:id/say/:verb": {
    on: "/console/purchases/:id/say/:verb",
    fields: { note: "seen" },
    bad: [
      ["note", LONG],
      ["note", HIDDEN],
    ],
  },
  "/console/money/deposit": { on: "/console/money/deposit" },
  "/console/welcome": { on: "/console/welcome" },
  "/console/people/new": {
    on: "/console/people/new",
    fields: () => ({ name: "Grace", email: `${crypto.randomUUID()}@example.com`, role: "viewer" }),
    bad: [
      ...NAMES,
      ...["", "grace", "@example.com", `${LONG}@example.com`, MARKUP].map((value): Bad => ["email", value]),
      ["role", "king"],
    ],
  },
  "/console/people/:id/role": {
    on: "/console/people/:id",
    to: (of) => `/console/people/${of.person}/role`,
    fields: { role: "operator" },
    bad: [["role", "king"]],
  },
  "/console/people/:id/sign-out": {
    on: (_, { people }) => `/console/people/${people.viewer.id}`,
    to: (_, { people }) => `/console/people/${people.viewer.id}/sign-out`,
  },
  "/console/people/:id/reset-link": {
    on: "/console/people/:id",
    to: (of) => `/console/people/${of.person}/reset-link`,
  },
  "/console/people/:id/remove": { on: "/console/people/:id/remove" },
  "/console/account/name": { on: "/console/account", fields: { name: "Grace" }, bad: NAMES },
  "/console/account/password": {
    on: "/console/account",
    fields: { current_password: PASSWORD, new_password: "velvet harbour ginger notion" },
    bad: [
      ["current_password", ""],
      ["current_password", "not mine at all"],
      ["new_password", ""],
      ["new_password", "short"],
      ["new_password", LONG],
    ],
  },
  "/console/account/sign-out": { on: "/console/account" },
  "/console/account/remove-passkey": {
    on: "/console/account/remove-passkey",
    fields: { password: PASSWORD },
    bad: [
      ["password", ""],
      ["password", "not mine at all"],
    ],
  },
  "/console/money/payouts/submit": {
    on: "/console/money/payouts/submit",
    to: () => "/console/money/payouts/submit",
  },
  "/console/money/payouts/end": {
    on: "/console/money/payouts/end",
    fields: { reference: "wire 17" },
    bad: ["", LONG, HIDDEN].map((value): Bad => ["reference", value]),
  },
  "/console/money/corrections/new": {
    on: "/console/money/corrections/new",
    fields: { amount: "1", reason: "typed wrongly" },
    bad: [
      ...["-1", "ten", "0.0000001", "99999999999999999999", MARKUP].map((value): Bad => ["amount", value]),
      ...["", LONG, HIDDEN].map((value): Bad => ["reason", value]),
    ],
  },
  "/console/money/corrections/decide": { on: "/console/money/corrections/decide" },
  "/console/settings/kill-switch/:state": { on: "/console/settings/kill-switch/:state" },
  "/console/settings/passkey-threshold": {
    on: "/console/settings",
    fields: { amount: "1 000.00" },
    bad: ["-1", "ten", "0.0000001", "99999999999999999999", MARKUP].map((value): Bad => ["amount", value]),
  },
  "/console/settings/second-factor": { on: "/console/settings" },
  "/console/settings/receipt-specs": { on: "/console/settings" },
  "/console/settings/messaging-decisions": { on: "/console/settings" },
  "/console/agents/new": {
    on: "/console/agents/new",
    fields: { name: "Buyer", failure_budget: "3", must_be_named: "on" },
    bad: [...AGENT, ["did_key", "did:key:nonsense"], ["did_key", LONG]],
  },
  "/console/agents/:id/edit": {
    on: "/console/agents/:id/edit",
    fields: { name: "Buyer", failure_budget: "4", must_be_named: "on" },
    bad: AGENT,
  },
  "/console/agents/:id/pause": { on: "/console/agents/:id/pause" },
  "/console/agents/:id/activate": { on: "/console/agents/:id/activate" },
  "/console/agents/:id/kill": { on: "/console/agents/:id/kill" },
  "/console/agents/:id/keys": { on: "/console/agents/:id/keys" },
  "/console/keys/:id/rotate": {
    on: "/console/keys/:id/rotate",
    fields: { overlap_seconds: "3600" },
    bad: [
      ["overlap_seconds", ""],
      ["overlap_seconds", "-1"],
      ["overlap_seconds", MARKUP],
    ],
  },
  "/console/keys/:id/revoke": { on: "/console/keys/:id/revoke" },
  "/console/agents/:id/sessions/new": {
    on: "/console/agents/:id/sessions/new",
    fields: SESSION,
    bad: [
      ...["", "-1", "ten", "0.0000001", "99999999999999999999", MARKUP].map(
        (value): Bad => ["amount_ceiling", value],
      ),
      ["per_warrant_max", "ten"],
      ["hourly_max", "-1"],
      ["daily_max", MARKUP],
      ["warrant_limit", "0"],
      ["warrant_limit", "1.5"],
      ["failure_budget", "0"],
      ["failure_budget", MARKUP],
      ["payees", LONG],
      ["payees", HIDDEN],
      ["source_origins", "not an origin"],
      ["source_origins", MARKUP],
      ["lifetime", "for ever"],
      ["expires_at", "2001-01-01T00:00"],
      ["expires_at", "tomorrow"],
    ],
  },
  "/console/sessions/:id/end": { on: "/console/sessions/:id/end" },
};

/** Forms without a key: they are not signed in, or change nothing that is kept. */
const WITHOUT_KEY = [
  "/console/sign-in",
  "/console/set-up",
  "/reset-password",
  "/console/enter",
  "/console/theme",
  // They end or change the sign-in that sends them.
  "/console/sign-out",
  "/console/mode",
];
const TRIALS = ["/console/policies/try", "/console/bench"];

const routes = consoleRoutes(true).filter(({ method }) => method === "POST");

test("each form of the routes is sent here", () => {
  const listed = [...Object.keys(FORMS), ...WITHOUT_KEY, ...TRIALS];
  expect(listed.sort()).toEqual(routes.map(({ path }) => path).sort());
});

let chats: Chats;
let service: ShellService;
let market: Market;
beforeAll(() => {
  market = openMarket();
  chats = startChats({
    x402: market.x402,
    withTrySeller: (work) =>
      work({ url: "http://source.example/", fetchEvidence: service.ctx.fetchEvidence }),
  });
  ({ service } = chats);
});
afterAll(() => chats?.stop());

let chatsMade = 0;

/** An organisation with one of everything, and a form of it as it stands on its page. */
async function filled(path: string) {
  const form = FORMS[path];
  if (!form) throw new Error(`no form ${path}`);
  const home = await service.organisation();
  const all = await makeEverything(service, home);
  const { owner } = home.people;
  if (path.endsWith("/activate"))
    must(await setAgentStatus(service.ctx, MACHINE, { agent_id: all.agent, status: "paused" }));
  if (path.endsWith("/unlink") || path.endsWith("/test")) await chats.link(owner, ++chatsMade);
  if (path.endsWith("/devices/remove")) await addDeviceOf(owner);
  const passkey = path.endsWith("/remove-passkey")
    ? (await enrol(service, owner, ORIGIN)).credential.id
    : null;
  const isInSandbox = path === "/console/welcome" || path.includes("/say/");
  const purchase = path.includes("/say/") ? await unknownPurchase(home) : all.purchase;
  const as = await home.signIn(owner, isInSandbox ? "sandbox" : "live");
  const browser = consoleOfShell(service)(as);
  const place = typeof form.on === "string" ? addressOf({ ...all, purchase }, form.on) : form.on(all, home);
  const on = passkey === null ? place : `${place}?passkey=${encodeURIComponent(String(passkey))}`;
  const to = form.to?.(all, home) ?? addressOf({ ...all, purchase }, path);
  const action = path === "/console/policies" ? "/console/policies/try" : to.split("?")[0]!;
  const stands = await browser.formOn(on, action);
  const filledIn = typeof form.fields === "function" ? form.fields() : form.fields;
  const fields: Fields = { ...stands, ...filledIn };
  return { home, browser, to: to.split("?")[0]!, fields };
}

async function addDeviceOf({ as }: Person): Promise<void> {
  const stands = await consoleOfShell(service)(as).formOn("/console/settings/notices", DEVICES);
  expect((await consoleOfShell(service)(as).post(DEVICES, { ...stands, ...deviceForm() })).status).toBe(303);
}

/** A purchase of which nobody knows whether it was paid, at a time at which a person may say it. */
async function unknownPurchase(home: TestOrganisation): Promise<string> {
  market.first = asksExact("100");
  market.paid = () => silence(true);
  const order = { url: SELLER_URL, max_amount: "1000", spec: FAILING };
  await service.post("/v1/x402/pay", order, { as: home.sandbox.as });
  market.first = asksVoucher("100");
  market.paid = () => delivers({});
  service.clock.now += 2 * 3_600_000;
  const [purchase] = service.ctx.reader.purchases.list({ organisationId: home.id, mode: "sandbox" }, null, 1);
  return purchase?.id ?? "";
}

const ORIGIN = "http://localhost:8080";

const rowsOf = (home: TestOrganisation) => service.allRows(home);
const countsOf = (home: TestOrganisation): Record<string, number> =>
  Object.fromEntries(Object.entries(rowsOf(home)).map(([table, rows]) => [table, rows.length]));

describe.each(Object.keys(FORMS))("the form %s", (path) => {
  const { bad = [] } = FORMS[path] ?? {};
  let sent: Awaited<ReturnType<typeof filled>>;
  let before: AllRows;
  beforeAll(async () => {
    sent = await filled(path);
    before = rowsOf(sent.home);
  });

  test("has no effect from elsewhere, nor without its key", async () => {
    const { home, browser, to, fields } = sent;
    const { _key: _, ...withoutKey } = fields;
    const evil = { Origin: "https://evil.example", "Sec-Fetch-Site": "cross-site" };
    expect((await browser.post(to, fields, evil)).status).toBe(401);
    expect((await browser.post(to, fields, {})).status).toBe(401);
    expect((await browser.post(to, withoutKey)).status).toBe(400);
    expect(rowsOf(home)).toEqual(before);
  });

  if (bad.length > 0)
    test("says what is wrong beside its field, keeps what was typed, and does nothing", async () => {
      const { home, browser, to, fields } = sent;
      for (const [field, value] of bad) {
        const reply = await browser.post(to, { ...fields, _key: crypto.randomUUID(), [field]: value });
        const at = [field, value.slice(0, 40)];
        expect([400, 401], at.join(": ")).toContain(reply.status);
        expect([...at, problemBeside(reply, field)]).toEqual([...at, expect.stringMatching(/\S/)]);
        expect([...at, standsIn(reply, field, value)]).toEqual([...at, value]);
        expect(reply.html).not.toContain("<script>alert");
      }
      expect(rowsOf(home)).toEqual(before);
    });

  test("that is sent twice at once, and once more, has one effect and one answer", async () => {
    const once = await filled(path);
    const single = await once.browser.post(once.to, once.fields);
    expect([200, 201, 303], single.text).toContain(single.status);
    const { home, browser, to, fields } = sent;
    const both = await Promise.all([browser.post(to, fields), browser.post(to, fields)]);
    expect(both.map(({ status }) => status)).toEqual([single.status, single.status]);
    expect(both[0]?.to).toBe(both[1]?.to ?? null);
    await browser.post(to, fields);
    expect(countsOf(home)).toEqual(countsOf(once.home));
  });
});

/** What stands beside a field that is wrong, and is read out with it; null where nothing does. */
function problemBeside({ html }: Shown, field: string): string | null {
  const id = `${field}-problem`;
  const isDescribed = new RegExp(`aria-describedby="(?:[^"]* )?${id.replaceAll(".", "\\.")}"`).test(html);
  const [, after = ""] = html.split(`id="${id}"`);
  return isDescribed ? (/>([^<]*)/.exec(after)?.[1] ?? null) : null;
}

/** What was typed, where it stands in its field still. A password never does, and what is no choice of a list cannot. */
function standsIn({ html }: Shown, field: string, value: string): string | null {
  const name = ` name="${field.replaceAll(".", "\\.")}"`;
  const text = new RegExp(`<textarea[^>]*${name}[^>]*>([^<]*)</textarea>`).exec(html)?.[1];
  if (text !== undefined) return plain(text);
  const [element = null] = new RegExp(`<(?:input|select)[^>]*${name}[^>]*>`).exec(html) ?? [];
  if (element === null) return null;
  if (element.includes('type="password"')) return value === "" || !html.includes(value) ? value : null;
  const isChoice = element.startsWith("<select") || element.includes('type="radio"');
  return isChoice ? value : plain(/ value="([^"]*)"/.exec(element)?.[1] ?? "");
}

const plain = (html: string): string =>
  html
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");
