import type { Role } from "../../src/core/roles.ts";
import { ROLE_OF } from "./console-roles.ts";
import { deviceForm } from "./devices.ts";

/** Every page of the console as an address, and every form as it is sent by somebody who may send it. */

/** The ids of what the pages are about. An agent, a key and so on are named by what is done to them. */
export type Things = {
  readonly source: string;
  readonly receiver: string;
  readonly password: string;
  readonly warrants: { readonly toVerify: string; readonly toSettle: string };
  readonly escalations: { readonly toDecide: string };
  readonly agents: { readonly active: string; readonly paused: string };
  readonly keys: { readonly toRotate: string; readonly toRevoke: string };
  readonly sessions: { readonly toEnd: string };
  readonly policies: { readonly saved: string };
  readonly verifiers: { readonly saved: string };
  readonly schemas: { readonly saved: string };
  readonly webhooks: { readonly enabled: string };
  readonly deliveries: { readonly delivered: string };
  readonly purchases: { readonly unknown: string };
  readonly people: { readonly lowest: string };
  /** A payout under way, a deposit as it came in, a correction that waits, and a payee who is owed less than the threshold. */
  readonly money: {
    readonly payout: string;
    readonly deposit: string;
    readonly correction: string;
    readonly payee: string;
  };
};

/** What stands for a parameter that is no id. */
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  decision: ["release", "partial_release", "refund"],
  verb: ["paid", "unpaid", "acknowledge"],
  state: ["on", "off"],
};

/** The addresses that a page's path stands for. */
export function addressesOf(path: string, things: Things): readonly string[] {
  const [, section = ""] = /^\/console\/(\w+)\/:id/.exec(path) ?? [];
  const ids = Object.values(
    (things as unknown as Readonly<Record<string, object>>)[section] ?? {},
  ) as string[];
  let addresses = path.includes(":id") ? ids.map((id) => path.replace(":id", id)) : [path];
  for (const [name, choices] of Object.entries(CHOICES)) {
    if (path.includes(`:${name}`))
      addresses = addresses.flatMap((address) => choices.map((one) => address.replace(`:${name}`, one)));
  }
  addresses = [...addresses, ...(ofMoney(things)[path] ?? []).map((query) => `${path}?${query}`)];
  if (addresses.length === 0) throw new Error(`nothing stands for the :id of ${path}: give it to Things`);
  return addresses;
}

/** What is asked of the pages of money. */
const ofMoney = ({ money }: Things): Readonly<Record<string, readonly string[]>> => ({
  "/console/money/deposit": ["amount=1&asset=USDC&reference=asked"],
  "/console/money/payouts/submit": [`payee=${money.payee}&asset=USDC`],
  "/console/money/payouts/end": [`payout=${money.payout}&as=paid`, `payout=${money.payout}&as=failed`],
  "/console/money/corrections/new": [`deposit=${money.deposit}`],
  "/console/money/corrections/decide": ["approve", "withdraw"].map(
    (as) => `correction=${money.correction}&as=${as}`,
  ),
});

/** The line of the table of roles that an address belongs to, such as "GET /console/agents/:id". Exact paths come first. */
export function lineOf(method: string, address: string): string {
  const { pathname } = new URL(address, "http://localhost");
  const fits = (line: string) =>
    new RegExp(`^${line.replaceAll(/:\w+/g, "[^/]+")}$`).test(`${method} ${pathname}`);
  const exact = `${method} ${pathname}`;
  return exact in ROLE_OF ? exact : (Object.keys(ROLE_OF).find(fits) ?? exact);
}

/** A form as it is sent by hand. */
export type Sent = {
  readonly to: string;
  readonly fields: Readonly<Record<string, string>>;
  /** What it answers to somebody who may: 303 by default, where it leads on to. */
  readonly answers?: number;
};

/** The forms that need a role, each with values that work; in an order in which one leaves to the next what it needs. */
export const formsOf = (things: Things): Readonly<Record<string, Sent>> => ({
  ...formsOfWork(things),
  ...formsOfAdministration(things),
  ...formsOfAgents(things),
  ...formsOfPeople(things),
});

const CLAUSES = '[{ "kind": "http.status", "equals": 200 }]';
const BANDS = {
  "bands.0.minScore": "0",
  "bands.0.outcome": "escalate",
  "bands.0.share": "",
  "bands.0.label": "",
};

const formsOfWork = ({ source, warrants, escalations }: Things): Readonly<Record<string, Sent>> => ({
  "POST /console/mode": { to: "/console/mode", fields: { mode: "live", back: "/console" } },
  "POST /console/bench": {
    to: "/console/bench",
    fields: { do: "body", clauses: CLAUSES, raw: "{}", status: "200" },
    answers: 200,
  },
  "POST /console/warrants/new": {
    to: "/console/warrants/new",
    fields: { payee: "By hand", amount: "0.01", asset: "USDC", deadline: "1d", clauses: CLAUSES },
  },
  "POST /console/warrants/:id/verify": {
    to: `/console/warrants/${warrants.toVerify}/verify`,
    fields: { version: "1", source_url: source },
  },
  "POST /console/warrants/:id/settle/:decision": {
    to: `/console/warrants/${warrants.toSettle}/settle/release`,
    fields: { version: "1", decision: "release", passkey_token: "" },
  },
  "POST /console/escalations/:id": {
    to: `/console/escalations/${escalations.toDecide}`,
    // Held, verifying, escalated.
    fields: { version: "3", decision: "refund", note: "by hand", passkey_token: "" },
  },
});

const formsOfAdministration = (things: Things): Readonly<Record<string, Sent>> => ({
  "POST /console/policies/try": {
    to: "/console/policies/try",
    fields: { do: "test", name: "by hand", ...BANDS },
    answers: 200,
  },
  "POST /console/policies": { to: "/console/policies", fields: { name: "by hand", ...BANDS } },
  "POST /console/verifiers": {
    to: "/console/verifiers",
    fields: { type: "http.status", name: "by hand", "config.equals": "200" },
  },
  "POST /console/schemas": {
    to: "/console/schemas",
    fields: { name: "by-hand.v1", schema: '{ "type": "object" }' },
  },
  "POST /console/webhooks/new": {
    to: "/console/webhooks/new",
    fields: { url: things.receiver, "event_warrant.refunded": "on" },
    answers: 201,
  },
  "POST /console/deliveries/:id/redeliver": {
    to: `/console/deliveries/${things.deliveries.delivered}/redeliver`,
    fields: {},
  },
  "POST /console/webhooks/:id/example": {
    to: `/console/webhooks/${things.webhooks.enabled}/example`,
    fields: {},
  },
  "POST /console/webhooks/:id/recover": {
    to: `/console/webhooks/${things.webhooks.enabled}/recover`,
    fields: { since: "1d" },
  },
  "POST /console/webhooks/:id/disable": {
    to: `/console/webhooks/${things.webhooks.enabled}/disable`,
    fields: {},
  },
  "POST /console/purchases/:id/say/:verb": {
    to: `/console/purchases/${things.purchases.unknown}/say/unpaid`,
    fields: { note: "by hand" },
    // A chain may still say so: an admin is asked only when the payment has expired.
    answers: 409,
  },
  "POST /console/money/deposit": {
    to: "/console/money/deposit",
    fields: { amount: "1000000", asset: "USDC", reference: "by hand" },
  },
  "POST /console/money/payouts/submit": {
    to: "/console/money/payouts/submit",
    fields: { payee: things.money.payee, asset: "USDC" },
  },
  "POST /console/money/payouts/end": {
    to: "/console/money/payouts/end",
    fields: { payout: things.money.payout, as: "paid", reference: "by hand" },
  },
  "POST /console/money/corrections/new": {
    to: "/console/money/corrections/new",
    fields: { deposit: things.money.deposit, amount: "0.5", reason: "by hand" },
  },
  "POST /console/money/corrections/decide": {
    to: "/console/money/corrections/decide",
    fields: { correction_id: things.money.correction, as: "withdraw" },
  },
  "POST /console/welcome": { to: "/console/welcome", fields: {}, answers: 200 },
  "POST /console/settings/messaging-decisions": {
    to: "/console/settings/messaging-decisions",
    fields: { to: "on" },
  },
  "POST /console/settings/receipt-specs": { to: "/console/settings/receipt-specs", fields: { to: "on" } },
  "POST /console/settings/kill-switch/:state": { to: "/console/settings/kill-switch/on", fields: {} },
  "POST /console/settings/passkey-threshold": {
    to: "/console/settings/passkey-threshold",
    fields: { amount: "4.99" },
  },
});

const formsOfAgents = ({ agents, keys, sessions }: Things): Readonly<Record<string, Sent>> => ({
  "POST /console/agents/new": {
    to: "/console/agents/new",
    fields: { name: "By hand", failure_budget: "3", must_be_named: "on" },
  },
  "POST /console/agents/:id/edit": {
    to: `/console/agents/${agents.active}/edit`,
    fields: { name: "Renamed by hand", name_was: "" },
  },
  "POST /console/agents/:id/keys": { to: `/console/agents/${agents.active}/keys`, fields: {}, answers: 200 },
  "POST /console/keys/:id/rotate": {
    to: `/console/keys/${keys.toRotate}/rotate`,
    fields: { overlap_seconds: "3600" },
    answers: 200,
  },
  "POST /console/keys/:id/revoke": { to: `/console/keys/${keys.toRevoke}/revoke`, fields: {} },
  "POST /console/sessions/:id/end": { to: `/console/sessions/${sessions.toEnd}/end`, fields: {} },
  "POST /console/agents/:id/sessions/new": {
    to: `/console/agents/${agents.active}/sessions/new`,
    fields: { amount_ceiling: "5", lifetime: "1d" },
  },
  "POST /console/agents/:id/pause": { to: `/console/agents/${agents.active}/pause`, fields: {} },
  "POST /console/agents/:id/activate": { to: `/console/agents/${agents.paused}/activate`, fields: {} },
  "POST /console/agents/:id/kill": { to: `/console/agents/${agents.active}/kill`, fields: {} },
});

const formsOfPeople = ({ people, password }: Things): Readonly<Record<string, Sent>> => ({
  "POST /console/people/new": {
    to: "/console/people/new",
    fields: { name: "By hand", email: "by-hand@example.com", role: "viewer" },
    answers: 200,
  },
  "POST /console/people/:id/role": {
    to: `/console/people/${people.lowest}/role`,
    fields: { role: "operator" },
  },
  "POST /console/people/:id/sign-out": { to: `/console/people/${people.lowest}/sign-out`, fields: {} },
  "POST /console/people/:id/reset-link": {
    to: `/console/people/${people.lowest}/reset-link`,
    fields: {},
    answers: 200,
  },
  "POST /console/people/:id/remove": { to: `/console/people/${people.lowest}/remove`, fields: {} },
  "POST /console/settings/notices": {
    to: "/console/settings/notices",
    fields: { email: "on", push: "on", from: "", until: "", time_zone: "UTC" },
  },
  "POST /console/settings/notices/chat/unlink": { to: "/console/settings/notices/chat/unlink", fields: {} },
  // Who has a chat makes no code.
  "POST /console/settings/notices/chat": {
    to: "/console/settings/notices/chat",
    fields: { password },
    answers: 200,
  },
  "POST /console/settings/notices/devices": {
    to: "/console/settings/notices/devices",
    fields: deviceForm(),
  },
  // It goes to the device.
  "POST /console/settings/notices/test": { to: "/console/settings/notices/test", fields: {} },
  "POST /console/settings/notices/devices/remove": {
    to: "/console/settings/notices/devices/remove",
    fields: { device: "none" },
    // There is none.
    answers: 400,
  },
  "POST /console/account/name": { to: "/console/account/name", fields: { name: "Changed by hand" } },
  "POST /console/account/remove-passkey": {
    to: "/console/account/remove-passkey",
    fields: { passkey: "none", password },
    // There is none.
    answers: 303,
  },
  "POST /console/sign-out": { to: "/console/sign-out", fields: {} },
  "POST /console/account/sign-out": { to: "/console/account/sign-out", fields: {} },
  "POST /console/account/password": {
    to: "/console/account/password",
    fields: { current_password: password, new_password: `${password} again` },
  },
  // The owner is asked for a passkey from then on.
  "POST /console/settings/second-factor": {
    to: "/console/settings/second-factor",
    fields: { to: "on" },
  },
});

/** An operation of the interface, as whoever may would call it. */
export type Operation = { readonly role: Role; readonly to: string; readonly body?: object };

/** What a person's cookie may call beside the console, as its description writes it. */
export const operationsOf = ({ source, warrants, escalations, people }: Things) => {
  const viewer = (to: string): Operation => ({ role: "viewer", to });
  const sentBy =
    (role: "operator" | "admin") =>
    (to: string, body?: object): Operation => ({ role, to, ...(body && { body }) });
  const [operator, admin] = [sentBy("operator"), sentBy("admin")];
  const { toVerify, toSettle } = warrants;
  const deadline = new Date(Date.now() + 3_600_000).toISOString();
  const spec = { clauses: JSON.parse(CLAUSES) };
  const signIns = `/auth/users/${people.lowest}/sessions`;
  return {
    "GET /v1/warrants": viewer("/v1/warrants"),
    "GET /v1/warrants/{id}": viewer(`/v1/warrants/${toSettle}`),
    "GET /v1/warrants/{id}/trace": viewer(`/v1/warrants/${toSettle}/trace`),
    "GET /v1/warrants/{id}/checks": viewer(`/v1/warrants/${toSettle}/checks`),
    "GET /v1/console/verifiers": viewer("/v1/console/verifiers"),
    "GET /v1/console/agents": viewer("/v1/console/agents"),
    "GET /v1/console/policies": viewer("/v1/console/policies"),
    "GET /v1/console/escalations": viewer("/v1/console/escalations"),
    "GET /auth/session": viewer("/auth/session"),
    "GET /auth/sessions": viewer("/auth/sessions"),
    "GET /auth/passkeys": viewer("/auth/passkeys"),
    "POST /v1/warrants": operator("/v1/warrants", { amount: "1", payee: "By hand", deadline, spec }),
    "POST /v1/warrants/{id}/verify": operator(`/v1/warrants/${toVerify}/verify`, { source_url: source }),
    "POST /v1/warrants/{id}/release": operator(`/v1/warrants/${toSettle}/release`),
    "POST /v1/warrants/{id}/partial": operator(`/v1/warrants/${toSettle}/partial`, { released_bps: 1 }),
    "POST /v1/warrants/{id}/refund": operator(`/v1/warrants/${toSettle}/refund`),
    "POST /v1/x402/pay": operator("/v1/x402/pay", { url: source, max_amount: "1", spec }),
    "POST /v1/console/escalations/{id}/resolve": operator(
      `/v1/console/escalations/${escalations.toDecide}/resolve`,
      { decision: "refund" },
    ),
    "POST /auth/passkey/challenge": operator("/auth/passkey/challenge", {
      ...{ warrant_id: toSettle, version: 1, decision: "release" },
    }),
    "POST /auth/passkey/assertion": operator("/auth/passkey/assertion", { response: {} }),
    "POST /auth/passkey/corrections/challenge": admin("/auth/passkey/corrections/challenge", {
      correction_id: "cor_none",
    }),
    "POST /auth/passkey/payouts/challenge": admin("/auth/passkey/payouts/challenge", {
      batch: "0".repeat(64),
    }),
    "GET /v1/console/webhooks": admin("/v1/console/webhooks"),
    "GET /v1/console/keys": admin("/v1/console/keys"),
    "GET /v1/console/users": admin("/v1/console/users"),
    "GET /v1/console/audit-log": admin("/v1/console/audit-log"),
    "GET /auth/users/{id}/sessions": admin(signIns),
    "DELETE /auth/users/{id}/sessions": admin(signIns),
    "DELETE /auth/users/{id}/sessions/{session}": admin(`${signIns}/none`),
  } satisfies Readonly<Record<string, Operation>>;
};

/** What everybody does to their own sign-in and passkeys; no role is too low for it. */
export const OWN: readonly string[] = [
  "DELETE /auth/session",
  "DELETE /auth/sessions",
  "DELETE /auth/sessions/{id}",
  "POST /auth/password",
  "POST /auth/passkeys",
  "POST /auth/passkeys/options",
  "POST /auth/passkeys/{id}/remove",
];
