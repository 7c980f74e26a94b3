import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Fields, openConsole } from "../support/console.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

/** The console's pages of saved clauses and schemas, and the bench. */

let service: Service;
let source: Source;
let home: TestOrganisation;
beforeAll(async () => {
  [source, service] = [startSource(), await startTestServer()];
  home = await service.organisation();
});
afterAll(async () => {
  await service?.close();
  source?.stop();
});

const as = (role: "viewer" | "operator" | "admin" | "owner", of = home) =>
  openConsole(service, of.people[role].as);

/** Fills in a form of the console and sends it. */
async function send(to: string, fields: Fields, query = "") {
  const made = await as("admin").formOn(`${to}/new${query}`, to);
  return as("admin").post(to, { ...made, ...fields });
}

describe("verifiers", () => {
  const ALL = "/console/verifiers";

  test.each([
    ["http.status", { "config.equals": "200" }, { equals: 200 }],
    ["json.schema", { "config.schema": "object" }, { schema: "object" }],
    [
      "json.jsonpath",
      { "config.path": "$.a", "config.equals": '{ "b": [1] }' },
      { path: "$.a", equals: { b: [1] } },
    ],
    ["json.jsonpath", { "config.path": "$.a", "config.equals": "" }, { path: "$.a" }],
    ["file.sha256", { "config.digest": "a".repeat(64) }, { digest: "a".repeat(64) }],
    [
      "uptime.window",
      { "config.windowSeconds": "60", "config.minRatio": "0.5" },
      { windowSeconds: 60, minRatio: 0.5 },
    ],
    [
      "llm.judge",
      { "config.rubric": "Is it good?", "config.minScore": "1" },
      { rubric: "Is it good?", minScore: 1 },
    ],
  ])("a clause of the kind %s is saved as it was written", async (type, fields, config) => {
    const { status, to } = await send(ALL, { ...fields, name: `a ${type}` }, `?type=${type}`);
    expect(status).toBe(303);
    const [id = ""] = /vrf_[0-9A-Z]+/.exec(to!) ?? [];
    expect(service.ctx.reader.verifiers.get(home.id, id)).toMatchObject({ type, config });
    const entry = service.ctx.reader.auditEntries
      .list(home.id, null, 20)
      .find(({ subject }) => subject === id);
    expect(entry?.actor).toEqual({ kind: "user", id: home.people.admin.id });
    expect((await as("viewer").get(to!)).text).toContain("The clause is saved.");
  });

  test.each([
    ["http.status", { "config.equals": "many" }, "config.equals", "must be an integer"],
    ["http.status", {}, "config.equals", "is required, and must be an integer"],
    [
      "json.jsonpath",
      { "config.path": "$.a", "config.equals": "text" },
      "config.equals",
      "must be JSON, such as",
    ],
    ["json.jsonpath", { "config.path": "nothing" }, "config.path", ""],
    ["json.schema", { "config.schema": "nowhere" }, "config.schema", "there is no schema named"],
    [
      "uptime.window",
      { "config.windowSeconds": "1", "config.minRatio": "2" },
      "config.minRatio",
      "must be a number from 0 to 1",
    ],
  ])("of the kind %s, %p is refused beside its field", async (type, fields, field, says) => {
    const { status, html } = await send(ALL, { ...fields, name: "bad" }, `?type=${type}`);
    expect(status).toBe(400);
    const [, problem] = new RegExp(`id="${field.replace(".", "\\.")}-problem">([^<]*)`).exec(html) ?? [];
    expect(problem).toContain(says);
  });

  test("a name is asked for beside its field", async () => {
    const { status, html } = await send(ALL, { "config.equals": "200", name: "" });
    expect([status, html]).toEqual([400, expect.stringContaining('id="name-problem"')]);
  });

  test("are listed by pages, newest first; another organisation's are not there", async () => {
    const other = await service.organisation(0n);
    const admin = as("admin", other);
    expect((await admin.get("/console/verifiers")).text).toContain("No clause is saved yet");
    for (let count = 10; count < 36; count++) {
      const made = await admin.formOn(`${ALL}/new`, ALL);
      expect((await admin.post(ALL, { ...made, "config.equals": "200", name: `v${count}` })).status).toBe(
        303,
      );
    }
    const first = await admin.get("/console/verifiers");
    expect(first.text).toContain("v35");
    expect(first.text).not.toContain("v10");
    const [, next = ""] = /href="(\/console\/verifiers\?after=[^"]+)"/.exec(first.html) ?? [];
    expect((await admin.get(next)).text).toContain("v10");
    const [, theirs = ""] = /href="(\/console\/verifiers\/vrf_[^"]+)"/.exec(first.html) ?? [];
    expect((await as("owner").get(theirs)).status).toBe(404);
    expect((await as("owner").get(`/console/bench?verifier=${theirs.split("/").at(-1)}`)).status).toBe(404);
  });
});

describe("a saved clause", () => {
  const ALL = "/console/verifiers";

  test("says that it never changes, and another one begins with it", async () => {
    const fields = {
      type: "json.jsonpath",
      name: "done",
      "config.path": "$.a",
      "config.equals": '{"b":[1,"x"]}',
    };
    const { to } = await send(ALL, fields);
    const page = await as("admin").get(to ?? "");
    expect(page.text).toContain("It never changes and is never deleted");
    expect((await as("viewer").get(to ?? "")).text).not.toContain("Draft done.v2");
    const [id = ""] = /vrf_[0-9A-Z]+/.exec(to ?? "") ?? [];
    expect(page.html).toContain(`href="${ALL}/new?from=${id}"`);
    const next = await as("admin").formOn(`${ALL}/new?from=${id}`, ALL);
    expect(next).toMatchObject({ type: "json.jsonpath", name: "done.v2", "config.path": "$.a" });
    // What the form has is what was saved: sent as it stands, it is the same clause under another name.
    const again = await as("admin").post(ALL, { ...next, "config.equals": fields["config.equals"] });
    const other = service.ctx.reader.verifiers.get(home.id, /vrf_[0-9A-Z]+/.exec(again.to ?? "")?.[0] ?? "");
    const first = service.ctx.reader.verifiers.get(home.id, id);
    expect([other?.type, other?.config]).toEqual([first?.type, first?.config]);
    expect((await as("admin").get(`${ALL}/new?from=vrf_none`)).status).toBe(404);
  });
});

describe("schemas", () => {
  const ALL = "/console/schemas";
  const SCHEMA = { type: "object", required: ["temperature"] };

  test("are saved under a name, and the next version begins with the last one", async () => {
    const { status, to } = await send(ALL, { name: "weather.v1", schema: JSON.stringify(SCHEMA) });
    expect(status).toBe(303);
    const page = await as("viewer").get(to!);
    expect(page.text).toContain("The schema is saved.");
    expect(page.text).not.toContain("Draft weather.v2");
    expect((await as("admin").get(to!)).text).toContain("Draft weather.v2");
    const [id = ""] = /sch_[0-9A-Z]+/.exec(to!) ?? [];
    const next = await as("admin").get(`${ALL}/new?from=${id}`);
    expect(next.html).toContain('value="weather.v2"');
    expect(next.text).toContain("temperature");
    expect(service.ctx.reader.schemas.get(home.id, id)).toMatchObject({ name: "weather.v1", schema: SCHEMA });
    const entry = service.ctx.reader.auditEntries
      .list(home.id, null, 5)
      .find(({ subject }) => subject === id);
    expect(entry?.actor).toEqual({ kind: "user", id: home.people.admin.id });
    expect((await as("viewer").get("/console/schemas")).text).toContain("weather.v1");
  });

  test.each([
    [{ name: "weather v1", schema: "{}" }, 400, "name", "must be 1 to"],
    [{ name: "a", schema: "{" }, 400, "schema", "is not JSON"],
    [{ name: "a", schema: '{ "type": "nothing" }' }, 400, "schema", ""],
    [{ name: "taken", schema: "{}" }, 409, "name", "exists already, and never changes"],
  ])("%p is refused with %p, beside its field", async (fields, expected, field, says) => {
    await send(ALL, { name: "taken", schema: "true" });
    const { status, html } = await send(ALL, fields);
    expect(status).toBe(expected);
    const [, problem] = new RegExp(`id="${field}-problem">([^<]*)`).exec(html) ?? [];
    expect(problem).toContain(says);
  });

  test("are listed by pages, by name, so that versions stand together", async () => {
    const other = await service.organisation(0n);
    const admin = as("admin", other);
    expect((await admin.get("/console/schemas")).text).toContain("No schema is saved yet");
    for (let count = 35; count >= 10; count--) {
      const made = await admin.formOn(`${ALL}/new`, ALL);
      expect((await admin.post(ALL, { ...made, name: `s${count}`, schema: "true" })).status).toBe(303);
    }
    const first = await admin.get("/console/schemas");
    expect(first.text).toMatch(/s10.*s11.*s34/);
    expect(first.text).not.toContain("s35");
    const [, next = ""] = /href="(\/console\/schemas\?after=[^"]+)"/.exec(first.html) ?? [];
    expect((await admin.get(next)).text).toContain("s35");
    const [, theirs = ""] = /href="(\/console\/schemas\/sch_[^"]+)"/.exec(first.html) ?? [];
    expect((await as("owner").get(theirs)).status).toBe(404);
  });
});

describe("the bench", () => {
  const BENCH = "/console/bench";
  const CLAUSES = JSON.stringify([
    { kind: "http.status", equals: 200 },
    { kind: "json.jsonpath", path: "$.report", equals: "done" },
  ]);
  async function tries(role: "viewer" | "operator", fields: Fields) {
    const { _key = "", _mode = "" } = await as(role).formOn(BENCH, BENCH);
    return as(role).post(BENCH, { _key, _mode, clauses: CLAUSES, ...fields });
  }

  test("explains each clause on a body that is pasted, and records nothing", async () => {
    const before = service.allRows(home);
    const { status, text } = await tries("viewer", {
      do: "body",
      status: "404",
      raw: '{ "report": "done" }',
    });
    expect(status).toBe(200);
    expect(text).toContain("1 of 2 passed");
    expect(text).toContain("Would lead to Escalate, by the built-in rules");
    expect(text).toContain("source not found The source says that there is nothing at this address");
    expect(text).toContain("What was seen: 404");
    expect(text).toMatch(/Passed json\.jsonpath path: \$\.report · equals: done/);
    expect(service.allRows(home)).toEqual(before);
  });

  test("fetches a URL as a check does, for those who may verify", async () => {
    const url = source.gives({ report: "done" });
    const { text } = await tries("operator", { do: "url", url });
    expect(text).toContain("All clauses passed");
    expect(text).toMatch(/Answer 200, 17 bytes in \d+ ms/);
    expect(source.asked).toContain(new URL(url).pathname);
    const refused = await tries("viewer", { do: "url", url: source.gives({}) });
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining("needs the role operator")]);
    expect((await as("viewer").get(BENCH)).text).not.toContain("On a URL");
  });

  test("knows the organisation's schemas, and those that are built in", async () => {
    const ALL = "/console/schemas";
    await send(ALL, { name: "report.v1", schema: '{ "required": ["report"] }' });
    const clauses = JSON.stringify(
      ["report.v1", "object", "nowhere"].map((schema) => ({ kind: "json.schema", schema })),
    );
    for (const fields of [
      { do: "body", raw: "{}" },
      { do: "url", url: source.gives({}) },
    ]) {
      const { text } = await tries("operator", { ...fields, clauses });
      expect(text).toMatch(/Failed json\.schema schema: report\.v1.*schema mismatch/);
      expect(text).toMatch(/Passed json\.schema schema: object/);
      expect(text).toMatch(/Failed json\.schema schema: nowhere.*schema not found/);
    }
  });

  test("looks at what else is supplied", async () => {
    const clauses = JSON.stringify([
      { kind: "uptime.window", windowSeconds: 60, minRatio: 0.9 },
      { kind: "chain.event", topic: "paid" },
      { kind: "llm.judge", rubric: "good", minScore: 0.5 },
      { kind: "data.freshness", maxAgeSeconds: 60 },
    ]);
    const supplied = {
      uptime_ratio: "0.95",
      emitted_topics: "held, paid",
      judge_score: "0.4",
      generated_at: new Date(service.ctx.now()).toISOString(),
    };
    const { text } = await tries("viewer", { do: "body", raw: "", clauses, ...supplied });
    expect(text).toContain("3 of 4 passed");
    expect(text).toContain("The judgement that was supplied is below the minimum.");
  });

  test.each([
    [{ clauses: "{" }, "clauses", "is not JSON"],
    [{ clauses: "{}" }, "clauses", "must be an array of clauses"],
    [{ clauses: '[{ "kind": "nothing" }]' }, "clauses", "clauses.0.kind: must be one of"],
    [{ status: "many" }, "status", "must be an integer"],
    [{ generated_at: "yesterday" }, "generated_at", "must be an ISO 8601 time"],
    [{ do: "url", url: "ftp://a.example" }, "url", ""],
  ])("%p is refused beside its field", async (fields, field, says) => {
    const { status, html } = await tries("operator", { do: "body", raw: "{}", ...fields });
    expect(status).toBe(400);
    const [, problem] = new RegExp(`id="${field}-problem">([^<]*)`).exec(html) ?? [];
    expect(problem).toContain(says);
  });

  test("what a private address answers is not shown", async () => {
    const { text } = await tries("operator", { do: "url", url: "http://169.254.169.254/latest/meta-data" });
    expect(text).toContain("source blocked The address is private or otherwise not allowed here.");
  });

  test("begins with a saved clause, and with what the form of a warrant has", async () => {
    const ALL = "/console/verifiers";
    const { to } = await send(ALL, { "config.equals": "418", name: "teapot" });
    const [id = ""] = /vrf_[0-9A-Z]+/.exec(to!) ?? [];
    expect((await as("viewer").get(`${BENCH}?verifier=${id}`)).text).toContain("&quot;equals&quot;: 418");
    const opening = await as("operator").get(`/console/warrants/new?verifier=${id}`);
    expect(opening.html).toContain(`<option value="${id}" selected`);
    expect(opening.html).toMatch(/<button[^>]*formaction="\/console\/bench"[^>]*formtarget="_blank"/);
    const made = await as("operator").formOn("/console/warrants/new", "/console/warrants/new");
    const sent = { ...made, payee: "acme", clauses: '[{ "kind": "http.status", "equals": 418 }]' };
    const { status, text } = await as("operator").post(BENCH, sent);
    expect([status, text]).toEqual([200, expect.stringContaining("&quot;equals&quot;: 418")]);
    expect(text).toContain("Each clause is explained here");
  });
});
