import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Role } from "../../src/core/roles.ts";
import { writeKeyUses } from "../../src/jobs/key-uses.ts";
import { createAgent, setAgentStatus, updateAgent } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { createKey } from "../../src/services/admin/keys.ts";
import { createSession, type SessionInput } from "../../src/services/admin/sessions.ts";
import type { Json } from "../support/client.ts";
import { type Fields, fieldsOf, openConsole } from "../support/console.ts";
import { must, type TestAgent, type TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

/** The console's pages of agents, their keys and spend sessions, as a browser without a script has them. */

let service: Service;
let source: Source;
let home: TestOrganisation;
beforeAll(async () => {
  [source, service] = [startSource(), await startTestServer()];
  home = await service.organisation(1_000_000_000n);
});
afterAll(async () => {
  await service?.close();
  source?.stop();
});

const as = (role: "viewer" | "operator" | "admin" | "owner", of = home) =>
  openConsole(service, of.people[role].as);
const spec = { clauses: [{ kind: "json.jsonpath", path: "$.a", equals: 1 }] };
const readAll = async (of = home): Promise<Json[]> =>
  (await service.get("/v1/console/agents", { as: of.people.viewer.as })).body.data;
const read = async (id: string, of = home) => (await readAll(of)).find((agent) => agent.id === id)!;
const give = (agent: { id: string }, input: Partial<SessionInput> = {}) =>
  createSession(service.ctx, MACHINE, { agent_id: agent.id, amount_ceiling: "10000000", ...input }).then(
    must,
  );
const open = (agent: TestAgent, overrides: object = {}) =>
  service.opened(home, { amount: "2000000", spec, agent_id: agent.id, ...overrides }, { as: agent.as });
const stateOf = async (id: string): Promise<string> =>
  (await service.get(`/v1/warrants/${id}`, { as: home.people.viewer.as })).body.state;

/** The newest entry of the audit log about a subject. */
async function lastEntry(subject: string): Promise<Json> {
  const { body } = await service.get("/v1/console/audit-log?limit=100", { as: home.people.owner.as });
  return body.data.find((entry: Json) => entry.subject === subject);
}
const byAdmin = () => ({ kind: "user", id: home.people.admin.id });

/** Sends the form at a path, which is where its page is too, with these fields changed. */
async function sends(role: "operator" | "admin", path: string, fields: Fields = {}) {
  const browser = as(role);
  return browser.post(path, { ...(await browser.formOn(path, path)), ...fields });
}

describe("the list", () => {
  test("has each agent's status, budget, failures and warrants", async () => {
    const agent = await home.addAgent({ name: "Buyer <b>", failure_budget: 7 });
    await give(agent);
    await open(agent);
    const { text, html } = await as("viewer").get(`/console/agents?q=${agent.id}`);
    for (const words of ["Active", "2.00 USDC of 10.00 USDC", "0 of 7"])
      expect([words, text.includes(words)]).toEqual([words, true]);
    expect(html).toContain("Buyer &lt;b&gt;");
    expect(html).toContain('<svg class="bar low"');
    expect(html).toContain('<rect width="20"');
  });

  test("is found by id, by a part of the name and by status, and has those of its mode alone", async () => {
    const of = await service.organisation();
    const zeno = await of.addAgent({ name: "Zeno of Elea" });
    const paused = await of.addAgent({ name: "Zeno of Citium" });
    must(await setAgentStatus(service.ctx, MACHINE, { agent_id: paused.id, status: "paused" }));
    const shown = async (query: string) => {
      const { text } = await as("viewer", of).get(`/console/agents${query}`);
      return ["Elea", "Citium"].filter((name) => text.includes(`Zeno of ${name}`));
    };
    expect(await shown("")).toEqual(["Elea", "Citium"]);
    expect(await shown(`?q=${zeno.id}`)).toEqual(["Elea"]);
    expect(await shown("?q=zeno")).toEqual(["Elea", "Citium"]);
    expect(await shown("?q=CITIUM")).toEqual(["Citium"]);
    expect(await shown("?status=paused")).toEqual(["Citium"]);
    expect(await shown("?status=active&q=zeno")).toEqual(["Elea"]);
    expect(await shown("?status=killed")).toEqual([]);
    expect(await shown(`?q=${home.live.id}`)).toEqual([]);
    const sandbox = openConsole(service, await of.signIn(of.people.viewer, "sandbox"));
    expect((await sandbox.get("/console/agents")).text).not.toContain("Zeno");
  });

  test("is paged, forth and back, and a search goes on where it stopped", async () => {
    const of = await service.organisation();
    for (let i = 0; i < 58; i++) await createAgent(service.ctx, MACHINE, inLive(of, `agent-${i}.`));
    const names = (html: string) => [...html.matchAll(/agent-(\d+)\./g)].map(([, number]) => Number(number));
    for (const start of ["/console/agents", "/console/agents?q=agent-", "/console/agents?status=active"]) {
      const { seen, last } = await walk(as("viewer", of), start, names);
      const wanted = Array.from({ length: 58 }, (_, at) => 57 - at);
      expect([start, seen]).toEqual([start, wanted]);
      if (start.includes("?")) continue;
      const { html } = await as("viewer", of).get(linkIn(last, "prev")!);
      expect(names(html)).toEqual(wanted.slice(25, 50));
    }
  });

  test("of nothing says what to do next, and offers it to those who may", async () => {
    const of = await service.organisation();
    const sandbox = async (role: "viewer" | "admin") =>
      openConsole(service, await of.signIn(of.people[role], "sandbox")).get("/console/agents?q=nobody");
    expect((await sandbox("viewer")).text).toContain("No agent is like that");
    expect((await sandbox("admin")).html).toContain('href="/console/agents/new"');
    expect((await sandbox("viewer")).html).not.toContain('href="/console/agents/new"');
  });
});

const inLive = (of: TestOrganisation, name: string) => ({
  organisation_id: of.id,
  mode: "live" as const,
  name,
});
const linkIn = (html: string, rel: string) =>
  new RegExp(`href="([^"]+)" rel="${rel}"`).exec(html)?.[1]?.replaceAll("&amp;", "&") ?? null;

/** What is read on each page, from the first to the last. */
async function walk<Row>(
  browser: ReturnType<typeof openConsole>,
  start: string,
  rowsOf: (html: string) => readonly Row[],
) {
  const seen: Row[] = [];
  let last = "";
  for (let path: string | null = start; path !== null; path = linkIn(last, "next")) {
    last = (await browser.get(path)).html;
    seen.push(...rowsOf(last));
  }
  return { seen, last };
}

describe("making an agent", () => {
  const path = "/console/agents/new";

  test("it must be named unless one says otherwise, and the audit log names who made it", async () => {
    const page = await as("admin").get(path);
    expect(page.html).toMatch(/<option value="on" selected/);
    for (const [fields, mustBeNamed] of [
      [{}, true],
      [{ must_be_named: "on" }, true],
      [{ must_be_named: "off" }, false],
    ] as const) {
      const reply = await sends("admin", path, { name: "New", failure_budget: "5", ...fields });
      expect(reply.status).toBe(303);
      const id = /agt_\w+/.exec(reply.to!)![0];
      expect(await read(id)).toMatchObject({
        ...{ name: "New", mode: "live", status: "active" },
        ...{ failure_budget: 5, must_be_named: mustBeNamed },
      });
      expect(await lastEntry(id)).toMatchObject({ action: "agent.created", actor: byAdmin() });
    }
  });

  test("sent twice it makes one, and a did:key that it brings is its identity", async () => {
    const did = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";
    const browser = as("admin");
    const fields = { ...(await browser.formOn(path, path)), name: "Twice", did_key: did };
    const replies = await Promise.all([browser.post(path, fields), browser.post(path, fields)]);
    expect(replies[0]!.to).toBe(replies[1]!.to!);
    const made = (await readAll()).filter(({ name }) => name === "Twice");
    expect(made).toMatchObject([{ identity: did }]);
  });

  test.each([
    [{ name: " " }, "name-problem", "must be a string of 1 to 200 characters"],
    [{ name: "a\u202eb" }, "name-problem", "must be one line of well-formed text"],
    [{ failure_budget: "0" }, "failure_budget-problem", "must be an integer from 1 to"],
    [{ failure_budget: "many" }, "failure_budget-problem", "must be an integer from 1 to"],
    [{ did_key: "did:web:x" }, "did_key-problem", "must be the did:key:z"],
  ])("%p is refused beside its field", async (wrong, id, words) => {
    const before = (await readAll()).length;
    const reply = await sends("admin", path, { name: "Right", failure_budget: "3", ...wrong });
    expect(reply.status).toBe(400);
    const beside = reply.html.split(`id="${id}"`)[1]?.split("</p>")[0];
    expect(beside).toContain(words);
    expect((await readAll()).length).toBe(before);
  });
});

describe("one agent", () => {
  test("shows its budget, windows and lists, its failures and its latest warrants", async () => {
    const agent = await home.addAgent({ failure_budget: 9, must_be_named: true });
    await give(agent, {
      ...{ hourly_max: "6000000", daily_max: "8000000", per_warrant_max: "5000000", warrant_limit: 4 },
      ...{ payees: ["acme", "globex*"], source_origins: ["https://api.example"], failure_budget: 2 },
    });
    const first = await open(agent);
    const refund = `/console/warrants/${first.id}/settle/refund`;
    await sends("operator", refund);
    await open(agent, { amount: "1000000", payee: "globex-west" });
    const { text, html } = await as("viewer").get(`/console/agents/${agent.id}`);
    for (const words of [
      "Held or paid 1.00 USDC of 10.00 USDC",
      // What returned makes no room in a window.
      "In an hour 3.00 USDC of 6.00 USDC",
      "In a day 3.00 USDC of 8.00 USDC",
      "Warrants 2 of 4",
      "Failures in a row 0 of 2",
      "In a row 0 of 9",
      "For a warrant 5.00 USDC",
      "acme globex*",
      "https://api.example",
      "Must be named yes",
      "the built-in one",
      "did:web:localhost",
      "globex-west",
    ])
      expect([words, text.includes(words)]).toEqual([words, true]);
    expect(html).toContain(`href="/console/warrants?agent=${agent.id}&amp;state=refunded"`);
    expect(html).toContain(`href="/console/warrants/${first.id}"`);
  });

  test("says what a session does not limit, what has ended, and why it is paused", async () => {
    const agent = await home.addAgent({ failure_budget: 1 });
    const path = `/console/agents/${agent.id}`;
    expect((await as("viewer").get(path)).text).toContain("no session limits those");
    expect((await as("viewer").get(path)).text).toContain("It may hold all that is available.");
    const { id } = await give(agent);
    const warrant = await open(agent);
    const source_url = source.gives({ a: 2 });
    await service.post(`/v1/warrants/${warrant.id}/verify`, { source_url }, { as: agent.as });
    const paused = await as("viewer").get(path);
    expect(paused.text).toContain("It is paused: 1 of 1 failures in a row. Its keys");
    expect(paused.html).toContain('<svg class="bar full"');
    await sends("admin", `/console/sessions/${id}/end`);
    const ended = (await as("viewer").get(path)).text;
    expect(ended).toContain("Its last session was ended: it opens nothing in its own name");
    must(await updateAgent(service.ctx, MACHINE, { agent_id: agent.id, must_be_named: true }));
    expect((await as("viewer").get(path)).text).not.toContain("no session limits those");
  });

  test("shows its keys to admins alone, and offers each role what it may do", async () => {
    const agent = await home.addAgent();
    const path = `/console/agents/${agent.id}`;
    const offered = async (role: "viewer" | "operator" | "admin") => {
      const { html } = await as(role).get(path);
      return ["edit", "pause", "kill", "keys", "sessions/new", "activate"].filter((one) =>
        html.includes(`"${path}/${one}"`),
      );
    };
    expect(await offered("viewer")).toEqual([]);
    expect(await offered("operator")).toEqual(["pause"]);
    expect(await offered("admin")).toEqual(["edit", "pause", "kill", "keys", "sessions/new"]);
    expect((await as("operator").get(path)).text).not.toContain("API keys");
    expect((await as("admin").get(path)).text).toContain(`…${agent.secret.slice(-4)}`);
  });

  test("of another organisation, or of the other mode, is not there, and neither are its keys and sessions", async () => {
    const stranger = await service.organisation();
    const agent = await home.addAgent();
    const { id } = await give(agent);
    const sandbox = openConsole(service, await home.signIn(home.people.owner, "sandbox"));
    for (const path of [
      ...["", "/edit", "/pause", "/activate", "/kill", "/keys", "/sessions", "/sessions/new"].map(
        (rest) => `/console/agents/${agent.id}${rest}`,
      ),
      ...["rotate", "revoke"].map((verb) => `/console/keys/${agent.keyId}/${verb}`),
      ...["", "/end"].map((rest) => `/console/sessions/${id}${rest}`),
    ]) {
      expect([path, (await as("owner").get(path)).status]).toEqual([path, 200]);
      expect([path, (await as("owner", stranger).get(path)).status]).toEqual([path, 404]);
      expect([path, (await sandbox.get(path)).status]).toEqual([path, 404]);
    }
    expect((await sandbox.get(`/console/agents/${agent.id}`)).text).toContain(`has ${agent.id} in live`);
  });

  test("is changed by a form, which undoes nothing that somebody else changed meanwhile", async () => {
    const agent = await home.addAgent({ name: "Before", must_be_named: true });
    const path = `/console/agents/${agent.id}/edit`;
    const browser = as("admin");
    // A browser sends the choice that is selected, too.
    const form = { ...(await browser.formOn(path, path)), must_be_named: "on" };
    must(await updateAgent(service.ctx, MACHINE, { agent_id: agent.id, failure_budget: 11 }));
    const reply = await browser.post(path, { ...form, name: "After", must_be_named: "off" });
    expect(reply.to).toBe(`/console/agents/${agent.id}?done=changed`);
    const changed = { name: "After", failure_budget: 11, must_be_named: false };
    expect(await read(agent.id)).toMatchObject(changed);
    expect(await lastEntry(agent.id)).toMatchObject({ action: "agent.changed", actor: byAdmin() });
    const unchanged = await sends("admin", path, { must_be_named: "off" });
    expect(unchanged.to).toBe(`/console/agents/${agent.id}`);
    const wrong = await sends("admin", path, { must_be_named: "off", failure_budget: "" });
    expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining("must be an integer from 1")]);
    // The form that is shown again still knows how it was opened.
    const again = fieldsOf(wrong.html, path);
    expect([again.failure_budget, again.failure_budget_was]).toEqual(["", "11"]);
  });
});

describe("stopping an agent", () => {
  test("the confirmation of a kill says which warrants freeze and how much they hold, and the kill freezes those", async () => {
    const agent = await home.addAgent();
    const other = await home.addAgent();
    const named = await open(agent, { amount: "2500000", payee: "acme" });
    const byKey = await service.opened(home, { amount: "1500000", spec }, { as: agent.as });
    const gold = await service.post("/v1/warrants", service.body({ amount: "1", spec }), { as: other.as });
    expect(gold.status).toBe(201);
    const path = `/console/agents/${agent.id}/kill`;
    const page = await as("admin").get(path);
    expect(page.text).toContain(
      "What it holds freezes, whether a warrant names it or its keys opened it: 2 warrants with 4.00 USDC .",
    );
    expect(page.html).toContain(`href="/console/warrants/${named.id}"`);
    expect(page.html).toContain(`href="/console/warrants/${byKey.id}"`);
    expect((await sends("admin", path)).to).toBe(`/console/agents/${agent.id}?done=killed&was=active`);
    expect(await Promise.all([named, byKey, gold.body].map(({ id }) => stateOf(id)))).toEqual([
      "frozen",
      "frozen",
      "held",
    ]);
    expect((await read(agent.id)).status).toBe("killed");
    expect(await lastEntry(agent.id)).toMatchObject({ action: "agent.status_changed", actor: byAdmin() });
    expect((await as("admin").get(path)).text).toContain("The agent is killed already.");
    const killed = await as("viewer").get(`/console/agents/${agent.id}`);
    expect(killed.text).toContain("Frozen warrants that name it: 1.");
  });

  test("an operator pauses it, what it holds stays held, and an admin makes it active again", async () => {
    const agent = await home.addAgent();
    const { id } = await open(agent);
    const path = `/console/agents/${agent.id}`;
    expect((await as("operator").get(`${path}/pause`)).text).toContain(
      "What it holds stays held, and goes on as before: 1 warrant with 2.00 USDC .",
    );
    expect((await sends("operator", `${path}/pause`)).to).toBe(`${path}?done=paused&was=active`);
    expect([(await read(agent.id)).status, await stateOf(id)]).toEqual(["paused", "held"]);
    expect(await lastEntry(agent.id)).toMatchObject({ actor: { kind: "user", id: home.people.operator.id } });
    expect((await as("operator").get(path)).html).not.toContain(`"${path}/activate"`);
    expect((await sends("admin", `${path}/activate`)).to).toBe(`${path}?done=activated&was=paused`);
    expect((await read(agent.id)).status).toBe("active");
  });

  test("each change offers the way back where it was done, to those who may go it, as long as it is one", async () => {
    const agent = await home.addAgent();
    const path = `/console/agents/${agent.id}`;
    const undoAt = async (by: Role, shown: string) =>
      /<a href="([^"]+)"[^>]*>Undo<\/a>/.exec((await as(by).get(shown)).html)?.[1] ?? null;
    const { to: paused } = await sends("operator", `${path}/pause`);
    expect(await undoAt("admin", paused!)).toBe(`${path}/activate`);
    // An operator may pause, but not make it active again.
    expect(await undoAt("operator", paused!)).toBeNull();
    const { to: killed } = await sends("admin", `${path}/kill`);
    expect(await undoAt("admin", killed!)).toBe(`${path}/pause`);
    const { to: revived } = await sends("admin", (await undoAt("admin", killed!))!);
    expect((await read(agent.id)).status).toBe("paused");
    expect(await undoAt("admin", revived!)).toBe(`${path}/kill`);
    expect(await undoAt("admin", paused!)).toBe(`${path}/activate`);
    await sends("admin", `${path}/activate`);
    // It is as it was before the pause, so there is nothing to undo.
    expect(await undoAt("admin", paused!)).toBeNull();
    expect(await undoAt("admin", path)).toBeNull();
    expect(await undoAt("admin", `${path}?done=paused&was=nothing`)).toBeNull();
  });

  test("made active again, what is frozen is held again, and the page says how much before", async () => {
    const agent = await home.addAgent();
    const { id } = await open(agent);
    const path = `/console/agents/${agent.id}`;
    await sends("admin", `${path}/kill`);
    const page = await as("admin").get(`${path}/activate`);
    expect(page.text).toContain("What is frozen is held again, and may be paid: 1 warrant with 2.00 USDC ,");
    expect(page.text).not.toContain("stays frozen");
    await sends("admin", `${path}/activate`);
    expect(await stateOf(id)).toBe("held");
  });

  test("a killed agent is not paused by an operator, and by an admin its warrants stay frozen", async () => {
    const agent = await home.addAgent();
    const { id } = await open(agent);
    const path = `/console/agents/${agent.id}`;
    const operators = await as("operator").formOn(`${path}/pause`, `${path}/pause`);
    await sends("admin", `${path}/kill`);
    const late = await as("operator").post(`${path}/pause`, operators);
    expect([late.status, late.text]).toEqual([403, expect.stringContaining("needs the role admin")]);
    expect((await as("operator").get(`${path}/pause`)).text).toContain("An admin or owner does this.");
    expect((await as("admin").get(`${path}/pause`)).text).toContain(
      "What is frozen stays so until it is active, or a person decides: 1 warrant with 2.00 USDC .",
    );
    await sends("admin", `${path}/pause`);
    expect([(await read(agent.id)).status, await stateOf(id)]).toEqual(["paused", "frozen"]);
  });

  test("what freezes is summed up by asset, and of very many those that expire soonest", async () => {
    const agent = await home.addAgent();
    const gold = { organisation_id: home.id, mode: "live", amount: "9", asset: "GOLD" } as const;
    must(await fundBalance(service.ctx, MACHINE, gold));
    await open(agent);
    await open(agent, { asset: "GOLD", amount: "7", deadline: service.timeIn(60_000) });
    await open(agent, { amount: "500000" });
    const { text } = await as("admin").get(`/console/agents/${agent.id}/kill`);
    expect(text).toContain("3 warrants with 7 GOLD and 2.50 USDC .");
    const { warrants } = service.ctx.reader;
    expect(warrants.sumsOfAgent(agent.id, "held", -1, 1)).toEqual([{ asset: "GOLD", count: 1, amount: 7n }]);
    expect(warrants.sumsOfAgent("agt_none", "held", -1, 1)).toEqual([]);
  });
});

describe("keys", () => {
  const secretIn = (html: string) => /id="secret"[^>]* value="([^"]+)"/.exec(html)?.[1] ?? null;

  test("one is made by one click, its secret is shown once, and it works", async () => {
    const agent = await home.addAgent();
    const browser = as("admin");
    const [page, path] = [`/console/agents/${agent.id}`, `/console/agents/${agent.id}/keys`];
    const fields = await browser.formOn(page, path);
    const replies = await Promise.all([browser.post(path, fields), browser.post(path, fields)]);
    const secret = secretIn(replies[0]!.html)!;
    expect(secret).toMatch(/^hf_live_/);
    expect(secretIn(replies[1]!.html)).toBe(secret);
    const keys = await service.ctx.reader.apiKeys.ofAgent(agent.id, {}, 10);
    expect(keys.length).toBe(2);
    const as_ = { Authorization: `Bearer ${secret}` };
    expect((await service.get("/v1/warrants", { as: as_ })).status).toBe(200);
    expect(await lastEntry(keys[0]!.id)).toMatchObject({ action: "api_key.created", actor: byAdmin() });
    for (const again of [page, path]) {
      const { html } = await browser.get(again);
      expect(html).toContain(`…${secret.slice(-4)}`);
      expect(html).not.toContain(secret);
    }
  });

  test("the last use of one is shown", async () => {
    const agent = await home.addAgent();
    const path = `/console/agents/${agent.id}`;
    const row = async () => (await as("admin").get(path)).text.split("Works")[1]?.slice(0, 12).trim();
    expect(await row()).toStartWith("never");
    await service.get("/v1/warrants", { as: agent.as });
    await writeKeyUses(service.ctx);
    expect(await row()).toMatch(/^used \d+ \w+/);
  });

  test("one is rotated with an overlap, and the new secret is shown once", async () => {
    const agent = await home.addAgent();
    const path = `/console/keys/${agent.keyId}/rotate`;
    const wrong = await sends("admin", path, { overlap_seconds: "99999999" });
    expect([wrong.status, wrong.text]).toEqual([
      400,
      expect.stringContaining("must be an integer from 0 to"),
    ]);
    const reply = await sends("admin", path, { overlap_seconds: "3600" });
    const secret = secretIn(reply.html)!;
    for (const as_ of [agent.as, { Authorization: `Bearer ${secret}` }])
      expect((await service.get("/v1/warrants", { as: as_ })).status).toBe(200);
    const old = await service.ctx.reader.apiKeys.get(agent.keyId);
    expect(old!.expiresAt! - service.ctx.now()).toBeGreaterThan(3_500_000);
    expect(await lastEntry(agent.keyId)).toMatchObject({ action: "api_key.rotated", actor: byAdmin() });
    expect((await as("admin").get(`/console/agents/${agent.id}`)).text).toContain("Works until");
    const twice = await sends("admin", path, { overlap_seconds: "3600" });
    expect([twice.status, twice.text]).toEqual([409, expect.stringContaining("is being replaced already")]);
  });

  test("one is revoked, after the page has said what that does", async () => {
    const agent = await home.addAgent();
    const path = `/console/keys/${agent.keyId}/revoke`;
    expect((await as("admin").get(path)).text).toContain("Every request with it is refused from now on.");
    expect((await sends("admin", path)).to).toBe(`/console/agents/${agent.id}?done=revoked`);
    expect((await service.get("/v1/warrants", { as: agent.as })).status).toBe(401);
    expect(await lastEntry(agent.keyId)).toMatchObject({ action: "api_key.revoked", actor: byAdmin() });
    expect((await as("admin").get(path)).text).toContain("It is revoked already.");
  });

  test("are paged, those of this agent alone", async () => {
    const agent = await home.addAgent();
    const made = [agent.keyId];
    for (let i = 0; i < 29; i++)
      made.push(must(await createKey(service.ctx, MACHINE, { agent_id: agent.id })).id);
    const idsIn = (html: string) => [...html.matchAll(/title="(key_\w+)"/g)].map(([, id]) => id);
    const { seen, last } = await walk(as("admin"), `/console/agents/${agent.id}/keys`, idsIn);
    expect(seen).toEqual(made.toReversed());
    const { html } = await as("admin").get(linkIn(last, "prev")!);
    expect(idsIn(html)).toEqual(made.toReversed().slice(0, 25));
    const short = await as("admin").get(`/console/agents/${agent.id}`);
    expect(idsIn(short.html)).toEqual(made.toReversed().slice(0, 5));
    expect(short.html).toContain(`"/console/agents/${agent.id}/keys">All keys`);
  });
});

describe("spend sessions", () => {
  const pathOf = (agent: { id: string }) => `/console/agents/${agent.id}/sessions/new`;
  const LIMITS = {
    amount_ceiling: "1 250.50",
    warrant_limit: "20",
    failure_budget: "4",
    per_warrant_max: "8.40",
    hourly_max: "100",
    daily_max: "500",
    payees: "acme\r\n\r\n  globex*  \r\n",
    source_origins: "https://API.example\nhttps://b.example:*",
    expires_at: "2031-02-03T04:05",
  };

  test("one is given by a form, with every limit, and the audit log names who gave it", async () => {
    const agent = await home.addAgent();
    const reply = await sends("admin", pathOf(agent), LIMITS);
    expect(reply.to).toBe(`/console/agents/${agent.id}?done=budgeted`);
    const { session } = await read(agent.id);
    expect(session).toMatchObject({
      ...{ amount_ceiling: "1250500000", warrant_limit: 20, failure_budget: 4 },
      ...{ per_warrant_max: "8400000", hourly_max: "100000000", daily_max: "500000000" },
      ...{ payees: ["acme", "globex*"], source_origins: ["https://api.example", "https://b.example:*"] },
      expires_at: "2031-02-03T04:05:00.000Z",
    });
    expect(await lastEntry(session.id)).toMatchObject({ action: "spend_session.created", actor: byAdmin() });
  });

  test("what is left out is not limited, and it ends after the time that was chosen", async () => {
    const agent = await home.addAgent({ failure_budget: 6 });
    const nothing = { per_warrant_max: "", hourly_max: "", daily_max: "", payees: " \n", source_origins: "" };
    await sends("admin", pathOf(agent), { ...nothing, amount_ceiling: "5", lifetime: "1d" });
    const { session } = await read(agent.id);
    expect(session).toMatchObject({
      ...{ amount_ceiling: "5000000", warrant_limit: null, per_warrant_max: null },
      ...{ hourly_max: null, daily_max: null, payees: null, source_origins: null, failure_budget: 6 },
    });
    const left = Date.parse(session.expires_at) - service.ctx.now();
    expect(Math.round(left / 3_600_000)).toBe(24);
  });

  test.each([
    [{ amount_ceiling: "" }, "amount_ceiling", "must be an amount of USDC, such as 8.40"],
    [{ amount_ceiling: "-1" }, "amount_ceiling", "must be an amount of USDC"],
    [{ hourly_max: "1.0000001" }, "hourly_max", "must be an amount of USDC"],
    [{ warrant_limit: "x" }, "warrant_limit", "must be an integer from 1"],
    [{ failure_budget: "0" }, "failure_budget", "must be an integer from 1"],
    [{ payees: "acme\n*" }, "payees", "entry 2 must not be * alone"],
    [{ source_origins: "https://good.example*" }, "source_origins", "entry 1 must not end within the host"],
    [{ lifetime: "9y" }, "lifetime", "must be one of the list"],
    [{ expires_at: "2020-01-01T00:00" }, "expires_at", "must be in the future"],
    [{ expires_at: "soon" }, "expires_at", "must be an ISO 8601 time"],
  ])("%p is refused beside its field", async (wrong, name, words) => {
    const agent = await home.addAgent();
    const { expires_at: _, ...right } = LIMITS;
    const reply = await sends("admin", pathOf(agent), { ...right, ...wrong });
    expect(reply.status).toBe(400);
    expect(reply.html.split(`id="${name}-problem"`)[1]?.split("</p>")[0]).toContain(words);
    expect((await read(agent.id)).session).toBeNull();
    // What was written stays.
    if (name !== "per_warrant_max") expect(reply.html).toContain('value="8.40"');
  });

  test("a new one begins with the limits of the last, whose end the page names", async () => {
    const agent = await home.addAgent();
    await sends("admin", pathOf(agent), LIMITS);
    const before = (await read(agent.id)).session;
    await open(agent);
    const page = await as("admin").get(pathOf(agent));
    expect(page.text).toContain("with 2.00 USDC of 1 250.50 USDC held or paid");
    const fields = fieldsOf(page.html, pathOf(agent));
    expect(fields).toMatchObject({ amount_ceiling: "1250.50", per_warrant_max: "8.40", warrant_limit: "20" });
    expect(page.html).toContain("acme\nglobex*</textarea>");
    await sends("admin", pathOf(agent), { amount_ceiling: "3" });
    const { session } = await read(agent.id);
    expect(session).toMatchObject({ amount_ceiling: "3000000", amount_spent: "0", hourly_max: "100000000" });
    expect(await lastEntry(before.id)).toMatchObject({ action: "spend_session.revoked", actor: byAdmin() });
  });

  test("one is ended, after the page has said what stays held, and its page keeps what it was", async () => {
    const agent = await home.addAgent();
    const { id } = await give(agent);
    await open(agent);
    const path = `/console/sessions/${id}`;
    expect((await as("admin").get(`${path}/end`)).text).toContain(
      "2.00 USDC of 10.00 USDC are held or paid under it.",
    );
    expect((await as("viewer").get(path)).html).not.toContain(`${path}/end`);
    expect((await sends("admin", `${path}/end`)).to).toBe(`/console/agents/${agent.id}?done=ended`);
    expect((await read(agent.id)).session).toBeNull();
    expect(await lastEntry(id)).toMatchObject({ action: "spend_session.revoked", actor: byAdmin() });
    const { text } = await as("viewer").get(path);
    expect(text).toContain("Held or paid 2.00 USDC of 10.00 USDC");
    expect(text).toMatch(/, ended \d+ \w+ 20/);
    expect((await as("admin").get(`${path}/end`)).text).toContain("It has ended already.");
  });

  test("are paged in the order in which they were given", async () => {
    const agent = await home.addAgent();
    const given: string[] = [];
    for (let i = 0; i < 30; i++) given.push((await give(agent)).id);
    const idsIn = (html: string) =>
      [...html.matchAll(/\/console\/sessions\/(ses_\w+)"/g)].map(([, id]) => id);
    const { seen, last } = await walk(as("viewer"), `/console/agents/${agent.id}/sessions`, idsIn);
    expect(seen).toEqual(given.toReversed());
    const { html } = await as("viewer").get(linkIn(last, "prev")!);
    expect(idsIn(html)).toEqual(given.toReversed().slice(0, 25));
  });
});
