import { afterAll, beforeAll, expect, test } from "bun:test";
import { app } from "../../src/http/app.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** What the API does not have, on purpose: agents, policies and the like are managed by people, not over the API. */

let service: ShellService;
let home: TestOrganisation;
beforeAll(async () => {
  service = startTestShell();
  home = await service.organisation();
});
afterAll(() => service?.close());

const METHODS = ["POST", "PUT", "PATCH", "DELETE"] as const;

/** Without a credential, with a key, as an owner: each gets 404 `route_not_found`, and nothing is written. */
async function isAbsent(method: string, path: string): Promise<void> {
  for (const as of [{}, home.live.as, home.people.owner.as]) {
    await service.refuses(home, [404, "route_not_found"], () =>
      service.send(method, path, method === "GET" ? undefined : { name: "x" }, { as }),
    );
  }
}

test("no create, update or delete of agents, verifiers, policies, sessions, webhooks, keys, schemas or people", async () => {
  const nouns = [
    "agents",
    "verifiers",
    "policies",
    "sessions",
    "webhooks",
    "keys",
    "api_keys",
    "schemas",
    "users",
    "balances",
    "escalations",
    "organisations",
  ];
  for (const noun of nouns) {
    for (const path of [`/v1/${noun}`, `/v1/${noun}/x`, `/v1/console/${noun}`, `/v1/console/${noun}/x`])
      for (const method of METHODS) await isAbsent(method, path);
    await isAbsent("GET", `/v1/${noun}`);
  }
});

test("no facilitator, no settlement callback, no registration", async () => {
  const paths = [
    "facilitator",
    "v1/facilitator",
    "facilitate",
    "settle",
    "v1/settle",
    "v1/x402/settle",
    "v1/x402/verify",
    "v1/x402/supported",
    "v1/x402/facilitator",
    "v1/callbacks",
    "v1/register",
    "v1/plugins",
  ];
  for (const path of paths) for (const method of ["GET", ...METHODS]) await isAbsent(method, `/${path}`);
});

test("no warrant is edited or deleted, and only an open creates one", async () => {
  const { id } = await service.opened(home);
  for (const method of ["PUT", "PATCH", "DELETE"]) {
    for (const path of ["/v1/warrants", `/v1/warrants/${id}`, `/v1/warrants/${id}/trace`])
      await isAbsent(method, path);
  }
  for (const verb of ["expire", "freeze", "escalate", "dispute", "hold", "cancel", "capture", "void"])
    await isAbsent("POST", `/v1/warrants/${id}/${verb}`);
});

test("the only unsafe routes under /v1 are these", () => {
  const unsafe = app.routes
    .filter(({ method, path }) => method !== "GET" && path.startsWith("/v1"))
    .map(({ method, path }) => `${method} ${path}`)
    .sort();
  const known = [
    "POST /v1/console/escalations/:id/resolve",
    "POST /v1/warrants",
    "POST /v1/warrants/:id/partial",
    "POST /v1/warrants/:id/refund",
    "POST /v1/warrants/:id/release",
    "POST /v1/warrants/:id/verify",
    "POST /v1/x402/pay",
  ];
  expect(unsafe.filter((route) => !known.includes(route))).toEqual([]);
});

test("there is no ninth kind, in a spec, on the bench or in the registry", async () => {
  const kinds = [
    "http.header",
    "json.xpath",
    "file.md5",
    "custom",
    "plugin",
    "js",
    "http.status ",
    "HTTP.STATUS",
    "",
    "toString",
    "__proto__",
  ];
  for (const kind of kinds) {
    const clauses = [JSON.parse(`{"kind":${JSON.stringify(kind)}}`)];
    await service.refuses(home, [400, "validation_failed", "spec.clauses.0.kind: must be one of "], () =>
      service.post("/v1/warrants", service.body({ spec: { clauses } }), { as: home.live.as }),
    );
    const benched = await service.post("/bench/run", { clauses, deliverable: { reached: true } });
    expect([kind, benched.code]).toEqual([kind, "validation_failed"]);
  }
  const { body } = await service.get("/v1/console/verifiers", { as: home.people.viewer.as });
  expect(body.templates).toHaveLength(8);
});
