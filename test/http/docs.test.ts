import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { FormatRegistry } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Ajv2020 } from "ajv/dist/2020.js";
import { sha256 } from "../../src/core/canonical.ts";
import { CLAUSE_KINDS } from "../../src/core/clauses/registry.ts";
import { compileSchema } from "../../src/core/clauses/schema.ts";
import { ERRORS, type ErrorCode, statusOf, typeOf } from "../../src/core/errors.ts";
import { nameOf } from "../../src/core/form.ts";
import { PAGES } from "../../src/docs/pages.ts";
import { PICTURES } from "../../src/docs/pictures.ts";
import { app, openApiDocument } from "../../src/http/app.ts";
import { answersOf } from "../../src/http/route.ts";
import { createShell, type Shell } from "../../src/http/shell.ts";
import { benchSchemas } from "../../src/resources/bench-schemas.ts";
import { errorForm } from "../../src/resources/error.ts";
import { createAgent } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createKey } from "../../src/services/admin/keys.ts";
import { createPolicy } from "../../src/services/admin/policies.ts";
import { createSession } from "../../src/services/admin/sessions.ts";
import { createVerifier } from "../../src/services/admin/verifiers.ts";
import { createWebhook } from "../../src/services/admin/webhooks.ts";
import { createAuthenticator } from "../support/authenticator.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { asksExact, delivers, givesAway, type Market, openMarket, SELLER_URL } from "../support/market.ts";
import { ALL_PASS, createCaller, createStage, fresh, must, SCRIPTED, type Stage } from "../support/stage.ts";

let ctx: TestContext;
let market: Market;
let shell: Shell;
let stage: Stage;
beforeAll(async () => {
  FormatRegistry.Set("date-time", (value) => !Number.isNaN(Date.parse(value)));
  market = openMarket();
  ctx = createTestContext({ ...SCRIPTED, x402: market.x402 });
  const rateLimits = { read: 100_000, write: 100_000, bench: 100_000 };
  shell = createShell(ctx, {
    docsUrl: "http://localhost:8080/docs",
    rateLimits,
    trustedProxies: [],
    secretHashes: { worker: sha256("worker"), messaging: sha256("messaging") },
    onFault: (error) => console.error(error),
  });
  stage = await createStage(ctx, { mode: "sandbox" });
});
afterAll(async () => {
  FormatRegistry.Delete("date-time");
  await ctx.close();
});

const send = (method: string, path: string, headers: Record<string, string> = {}, body?: object) =>
  shell(
    new Request(`http://localhost:8080${path}`, {
      method,
      headers: {
        ...(method === "POST" && { "Idempotency-Key": fresh("key") }),
        ...(body && { "Content-Type": "application/json" }),
        ...headers,
      },
      body: body ? JSON.stringify(body) : null,
    }),
    () => "192.0.2.1",
  );

const get = (path: string) => send("GET", path);

describe("the pages", () => {
  const PATHS = ["/docs", "/docs/search?q=deadline", "/docs/api-reference", ...PAGES.map(({ path }) => path)];

  for (const path of PATHS) {
    test(`${path} needs no other file but the stylesheet and our pictures, and runs no other script but the search`, async () => {
      const response = await get(path);
      expect(response.status).toBe(200);
      expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
      expect(response.headers.get("x-content-type-options")).toBe("nosniff");
      const policy = response.headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).not.toContain("unsafe");
      const html = await response.text();
      expect(html).toStartWith("<!doctype html>");
      const rest = html
        .replace('<script type="module" src="/docs/search.js"></script>', "")
        .replace(/<img src="pictures\/[a-z]+\.png" alt="[^"]+" \/>/g, "");
      expect(rest).not.toMatch(/<script|<style|<img|<iframe|<[^>]*\s(style|src|on[a-z]+)=/);
      expect([...html.matchAll(/<link [^>]*href="([^"]*)"/g)].map(([, href]) => href)).toEqual([
        "/docs/style.css",
      ]);
    });

    test(`${path} has no broken link or anchor, and no anchor twice`, async () => {
      const html = await (await get(path)).text();
      const ids = idsOf(html);
      expect(ids.filter((id, index) => ids.indexOf(id) < index)).toEqual([]);
      const links = [...html.matchAll(/\shref="([^"]+)"/g)].map(([, link = ""]) => link);
      expect(links).toContain("/docs/style.css");
      for (const link of new Set(links)) {
        if (link.startsWith("https://")) continue;
        const [to = "", anchor] = link.split("#");
        const page = to === "" ? html : await pageAt(to);
        if (anchor !== undefined) expect([link, idsOf(page).includes(anchor)]).toEqual([link, true]);
      }
    });
  }

  const idsOf = (html: string): string[] => [...html.matchAll(/\sid="([^"]+)"/g)].map(([, id = ""]) => id);

  /** A page that a link leads to, which must be there. */
  const pageAt = async (path: string): Promise<string> => {
    const response = await get(path);
    expect([path, response.status]).toEqual([path, 200]);
    return response.text();
  };

  test("each picture is shown by a page, and served as it is in the repository", async () => {
    const shown = await Promise.all(
      PAGES.map(async ({ path }) => {
        const html = await (await get(path)).text();
        return [...html.matchAll(/<img src="([^"]+)"/g)].map(
          ([, to = ""]) => new URL(to, `http://localhost${path}`).pathname,
        );
      }),
    );
    const paths = [...new Set(shown.flat())];
    expect(paths.toSorted()).toEqual(Object.keys(PICTURES).toSorted());
    for (const path of paths) {
      const response = await get(path);
      expect([path, response.status, response.headers.get("content-type")]).toEqual([path, 200, "image/png"]);
      const file = Bun.file(join(import.meta.dir, "../../src", path));
      expect(await response.bytes()).toEqual(await file.bytes());
    }
  });

  test("Scalar's page allows its style elements, and no script or file but this service's", async () => {
    const response = await get("/docs/api-reference/interactive");
    expect(response.headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    const sources = [...(await response.text()).matchAll(/\ssrc="([^"]*)"/g)].map(([, src = ""]) => src);
    expect(sources).toEqual(["/docs/api-reference/interactive.js"]);
    const start = await (await get(sources[0]!)).text();
    const [, scalar = ""] = start.match(/^import "([^"]*)";$/m) ?? [];
    const served = await get(scalar);
    expect(served.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(await served.text()).toContain("createApiReference");
  });

  test("the stylesheet has the type of a stylesheet", async () => {
    const response = await get("/docs/style.css");
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/css; charset=utf-8"]);
    expect(await response.text()).toContain(":target");
  });

  test("every error code has its anchor, status, type and cause", async () => {
    const html = await (await get("/docs/api-reference/errors")).text();
    for (const code of Object.keys(ERRORS) as ErrorCode[]) {
      const entry = html.split(`<h3 id="${code}">`)[1]?.split("<h3 ")[0] ?? "";
      expect(entry).toContain(`${statusOf(code)} · type <code>${typeOf(code)}</code>`);
      expect(entry).toContain(`<p>${Bun.escapeHTML(ERRORS[code][1])}</p>`);
    }
  });

  test("doc_url of an error leads to its anchor", async () => {
    const { error } = (await (await get("/v1/warrants")).json()) as { error: Record<string, string> };
    const { pathname, hash } = new URL(error.doc_url ?? "");
    expect(await (await get(pathname)).text()).toContain(`id="${hash.slice(1)}"`);
  });

  test("HEAD has the headers and no body; a POST is 404", async () => {
    const head = await send("HEAD", "/docs");
    expect([head.status, await head.text()]).toEqual([200, ""]);
    expect((await send("POST", "/docs")).status).toBe(404);
  });
});

type Json = Record<string, unknown>;
type Operation = {
  operationId: string;
  summary: string;
  security: Record<string, string[]>[];
  parameters?: { name: string; in: string; required: boolean; schema: Json }[];
  requestBody?: { required: boolean; content: Record<string, { schema: Json }> };
  responses: Record<
    string,
    { $ref?: string; description?: string; content?: Record<string, { schema: Json }> }
  >;
};
type Document = {
  openapi: string;
  info: { title: string; version: string };
  paths: Record<string, Record<string, Operation>>;
  components: Record<string, Record<string, Json>>;
};

describe("the OpenAPI document", () => {
  const document = openApiDocument() as Document;
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );

  test("is served as the command line prints it", async () => {
    const response = await get("/openapi.json");
    expect([response.status, response.headers.get("content-type")]).toEqual([
      200,
      "application/json;charset=utf-8",
    ]);
    expect(await response.json()).toEqual(JSON.parse(JSON.stringify(document)));
  });

  test("has every route, and no other", () => {
    expect(operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`).sort()).toEqual(
      app.routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`).sort(),
    );
  });

  test("has the structure of OpenAPI 3.1", () => {
    expect(document.openapi).toMatch(/^3\.1\.\d$/);
    expect(document.info).toMatchObject({ title: expect.any(String), version: expect.any(String) });
    expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(operations.length);
    for (const { method, path, operation } of operations) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const parameters = operation.parameters ?? [];
      expect(path).toStartWith("/");
      expect(parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name)).toEqual(
        named as string[],
      );
      for (const parameter of parameters) {
        expect(["path", "query", "header"]).toContain(parameter.in);
        expect(parameter.schema).toBeObject();
        if (parameter.in === "path") expect(parameter.required).toBeTrue();
      }
      expect(new Set(parameters.map((parameter) => `${parameter.in} ${parameter.name}`)).size).toBe(
        parameters.length,
      );
      for (const scheme of operation.security.flatMap((entry) => Object.keys(entry)))
        expect(document.components.securitySchemes).toHaveProperty(scheme);
      if (method === "get" || method === "delete") expect(operation.requestBody).toBeUndefined();
      for (const [status, response] of Object.entries(operation.responses)) {
        expect(status).toMatch(/^([1-5]\d\d|default)$/);
        if (!response.$ref) expect(response.description).toBeString();
      }
    }
  });

  test("says in every schema only what it means to, and every reference leads somewhere", () => {
    const KEYWORDS = new Set([
      ...["type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems", "enum"],
      ...["anyOf", "const", "pattern", "minLength", "maxLength", "format", "description", "title"],
      ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "$ref"],
    ]);
    const TYPES = new Set(["object", "array", "string", "integer", "number", "boolean", "null"]);
    const check = (schema: Json): void => {
      expect(Object.keys(schema).filter((keyword) => !KEYWORDS.has(keyword))).toEqual([]);
      for (const type of [schema.type ?? []].flat()) expect(TYPES).toContain(type as string);
      if (schema.type === "array") expect(schema.items).toBeObject();
      for (const bound of ["exclusiveMinimum", "exclusiveMaximum"])
        if (bound in schema) expect(schema[bound]).toBeNumber();
      if (typeof schema.$ref === "string") {
        const [, , group = "", name = ""] = schema.$ref.split("/");
        expect(document.components[group]).toHaveProperty([name]);
      }
      const { properties = {}, anyOf = [], items, additionalProperties } = schema;
      const inner = [...Object.values(properties as object), ...(anyOf as Json[])];
      for (const each of [...inner, items, additionalProperties])
        if (typeof each === "object" && each !== null) check(each as Json);
    };
    for (const schema of Object.values(document.components.schemas ?? {})) check(schema);
    for (const { operation } of operations) {
      for (const { schema } of operation.parameters ?? []) check(schema);
      for (const { content } of [operation.requestBody, ...Object.values(operation.responses)].filter(
        (part) => part !== undefined,
      ))
        for (const { schema } of Object.values(content ?? {})) check(schema);
    }
  });

  test("has schemas that compile as JSON Schema 2020-12", () => {
    const engine = new Ajv2020({ strictSchema: true, allowUnionTypes: true, formats: { "date-time": true } });
    const text = JSON.stringify(document.components.schemas);
    const $defs = JSON.parse(text.replaceAll("#/components/schemas/", "#/$defs/"));
    for (const name of Object.keys($defs)) {
      expect(engine.compile({ $ref: `#/$defs/${name}`, $defs })).toBeFunction();
    }
  });

  test("shows the bodies to send, the eight clause kinds among them", () => {
    const bodies = operations.flatMap(({ operation }) => operation.requestBody ?? []);
    expect(bodies.length).toBe(19);
    for (const { content } of bodies) {
      if ("text/plain" in content) expect(content["text/plain"]?.schema.type).toBe("string");
      else expect(content["application/json"]?.schema.properties).not.toBeEmptyObject();
    }
    const { Clause = {}, ...schemas } = document.components.schemas ?? {};
    const kinds = (Clause.anyOf as { $ref: string }[]).map(({ $ref }) => {
      const schema = schemas[$ref.split("/").at(-1) ?? ""] as { properties: { kind: { const: string } } };
      return schema.properties.kind.const;
    });
    expect(kinds).toEqual([...CLAUSE_KINDS]);
    expect(JSON.stringify(document.paths["/v1/warrants"]?.post?.requestBody)).toContain("schemas/Clause");
  });

  test("shows what every operation answers, the error envelope included", () => {
    for (const { method, path, operation } of operations) {
      const success = Object.entries(operation.responses).find(([status]) => status.startsWith("2"));
      const content = success?.[1].content;
      if (success?.[0] === "204") expect(content).toBeUndefined();
      else if (path !== "/openapi.json")
        expect([
          method,
          path,
          JSON.stringify(content).includes("$ref") ||
            /"text\/\w+"|"application\/octet-stream"|"image\/png"/.test(JSON.stringify(content)),
        ]).toContainEqual(true);
      expect(operation.responses.default).toEqual({ $ref: "#/components/responses/Error" });
    }
  });

  test("the API reference has every operation, and every object, with its fields", async () => {
    const html = await (await get("/docs/api-reference")).text();
    for (const { method, path, operation } of operations) {
      const section = html.split(`<h3 id="${operation.operationId}">`)[1]?.split(/<h[23] /)[0] ?? "";
      expect(section).toContain(`<code>${method.toUpperCase()} ${path}</code>`);
      expect(section).toContain(Bun.escapeHTML(operation.summary));
      for (const { name } of operation.parameters ?? []) expect(section).toContain(`<code>${name} (`);
    }
    expect(html).toContain("<code>spec.clauses</code>");
    for (const name of Object.keys(document.components.schemas!))
      expect([name, html.includes(`id="object-${name}"`)]).toEqual([name, true]);
  });

  test("asks for an Idempotency-Key on the routes that move money", () => {
    const asking = operations.filter(({ operation }) =>
      operation.parameters?.some(({ name }) => name === "Idempotency-Key"),
    );
    expect(asking.map(({ path }) => path)).toEqual([
      "/v1/warrants",
      ...["verify", "release", "partial", "refund"].map((verb) => `/v1/warrants/{id}/${verb}`),
      "/v1/x402/pay",
      "/v1/console/escalations/{id}/resolve",
    ]);
  });

  test("takes a passkey's token on the moves that only a person makes", () => {
    const taking = operations.filter(({ operation }) =>
      operation.parameters?.some(({ name }) => name === "Service-Passkey"),
    );
    expect(taking.map(({ path }) => path)).toEqual([
      ...["release", "partial", "refund"].map((verb) => `/v1/warrants/{id}/${verb}`),
      "/v1/console/escalations/{id}/resolve",
    ]);
  });
});

/** The same model, which refuses fields that it does not name. */
function closed<Part>(part: Part): Part {
  if (Array.isArray(part)) return part.map(closed) as Part;
  if (typeof part !== "object" || part === null) return part;
  const copy = Object.fromEntries(Reflect.ownKeys(part).map((key) => [key, closed(part[key as keyof Part])]));
  const isOpen = "properties" in copy && !("additionalProperties" in copy) && "type" in copy;
  return (isOpen ? { ...copy, additionalProperties: false } : copy) as Part;
}

/** The forms of all answers, by their names. */
const forms = new Map(
  [errorForm, ...app.routes.map(({ hooks }) => answersOf(hooks.detail as object))]
    .filter((answers) => typeof answers === "function")
    .map((answers) => [nameOf(answers()), answers()]),
);

/** The models describe real answers: each is held against one. */
describe("the named models fit what is answered", () => {
  let agent: Record<string, string>;
  let person: Record<string, string>;
  const answered = async (
    model: string,
    status: number,
    response: Response | Promise<Response>,
  ): Promise<Json> => {
    const { status: got, headers } = await response;
    const body = (await (await response).json()) as Json;
    expect([got, body]).toEqual([status, expect.anything()]);
    const schema = closed(forms.get(model)!);
    expect([...Value.Errors(schema, body)].map(({ path, message }) => `${path}: ${message}`)).toEqual([]);
    expect(headers.get("x-request-id")).toBeString();
    return body;
  };
  const open = async () => {
    const deadline = new Date(ctx.now() + 3_600_000).toISOString();
    const clauses = [0, 1, 2, 3].map((index) => ({ kind: "json.jsonpath", path: `$.c${index}` }));
    const body = { amount: "100", payee: "acme", deadline, spec: { clauses } };
    const warrant = await answered("Warrant", 201, send("POST", "/v1/warrants", agent, body));
    return String(warrant.id);
  };
  const verify = (id: string, script: readonly unknown[]) =>
    answered(
      "Warrant",
      200,
      send("POST", `/v1/warrants/${id}/verify`, agent, {
        source_url: `http://source.example/#${encodeURIComponent(JSON.stringify(script))}`,
      }),
    );

  beforeAll(async () => {
    const { agentId } = await createCaller(stage);
    const { secret } = must(await createKey(ctx, MACHINE, { agent_id: agentId }));
    agent = { Authorization: `Bearer ${secret}` };
    const owner = ctx.reader.users.get(stage.owner.userId);
    const body = { email: owner?.email, password: "correct horse battery staple", mode: "sandbox" };
    const signedIn = await send("POST", "/auth/session", {}, body);
    person = { Cookie: signedIn.headers.get("set-cookie")?.split(";")[0] ?? "" };
    await answered("AuthSession", 201, signedIn);
  });

  test("Warrant, WarrantList, TraceList, CheckList, Receipt", async () => {
    const id = await open();
    await verify(id, ALL_PASS);
    await answered("Warrant", 200, send("GET", `/v1/warrants/${id}`, agent));
    await answered("WarrantList", 200, send("GET", "/v1/warrants?sort=created", agent));
    await answered("WarrantList", 200, send("GET", "/v1/warrants?limit=1", agent));
    await answered("TraceList", 200, send("GET", `/v1/warrants/${id}/trace`, agent));
    await answered("CheckList", 200, send("GET", `/v1/warrants/${id}/checks`, agent));
    const receipt = await answered("Receipt", 200, get(`/t/${id}`));
    const takes = compileSchema(benchSchemas["holdfast.receipt"]!);
    expect(takes(receipt)).toBe(true);
    expect(takes({ ...receipt, trace: [] })).toBe(false);
  });

  test("Payment", async () => {
    const spec = { clauses: [{ kind: "json.jsonpath", path: "$.c" }] };
    const body = { url: SELLER_URL, max_amount: "100", spec };
    const pay = () => answered("Payment", 200, send("POST", "/v1/x402/pay", agent, body));
    market.paid = () => delivers([null]);
    expect(await pay()).toMatchObject({ state: "released" });
    market.first = asksExact("100");
    expect(await pay()).toMatchObject({ state: "escalated", reason_codes: ["payment_unknown"] });
    market.first = givesAway("free");
    expect(await pay()).toMatchObject({ state: null, quoted: null });
  });

  test("EscalationList, ResolvedEscalation", async () => {
    const id = await open();
    await verify(id, ["value_mismatch", null, null, null]);
    await answered("EscalationList", 200, send("GET", "/v1/console/escalations", person));
    const decision = { decision: "partial_release", released_bps: 2_500, note: "a part of it" };
    await answered(
      "ResolvedEscalation",
      200,
      send("POST", `/v1/console/escalations/${id}/resolve`, person, decision),
    );
    await answered("EscalationList", 200, send("GET", "/v1/console/escalations", person));
  });

  test("AgentList, ApiKeyList, PolicyList, VerifierList, UserList, AuditLog", async () => {
    const { organisationId: organisation_id } = stage;
    must(
      await createVerifier(ctx, MACHINE, {
        organisation_id,
        type: "http.status",
        name: "ok",
        config: { equals: 200 },
      }),
    );
    const agent_id = must(
      await createAgent(ctx, MACHINE, { organisation_id, mode: "sandbox", name: "spender" }),
    ).id;
    must(await createSession(ctx, MACHINE, { agent_id, amount_ceiling: "1000" }));
    const rules = {
      bands: [
        { minScore: 0.5, outcome: "partial_release", releasedBps: 1, label: "half" },
        { minScore: 0, outcome: "refund" },
      ],
      maxAmount: "1000",
      alwaysRefund: ["data_stale"],
      alwaysEscalate: [],
    };
    must(await createPolicy(ctx, MACHINE, { organisation_id, name: "full", rules, agent_id }));
    await answered("AgentList", 200, send("GET", "/v1/console/agents", person));
    await answered("PolicyList", 200, send("GET", "/v1/console/policies", person));
    await answered("ApiKeyList", 200, send("GET", "/v1/console/keys", person));
    await answered("VerifierList", 200, send("GET", "/v1/console/verifiers", person));
    await answered("UserList", 200, send("GET", "/v1/console/users", person));
    await answered("AuditLog", 200, send("GET", "/v1/console/audit-log?limit=100", person));
  });

  test("Passkey, PasskeyList, PasskeyApproval, and what browsers are asked", async () => {
    const { create, get: sign, credentials } = createAuthenticator();
    const id = await open();
    const begin = send("POST", "/auth/passkeys/options", person, {
      password: "correct horse battery staple",
    });
    const created = create(await answered("PasskeyCreationOptions", 200, begin));
    await answered("Passkey", 201, send("POST", "/auth/passkeys", person, { response: created }));
    await answered("PasskeyList", 200, send("GET", "/auth/passkeys", person));
    const signIn = await answered(
      "PasskeyRequestOptions",
      200,
      send("POST", "/auth/passkey/sign-in/options"),
    );
    const response = sign(signIn, credentials[0]!);
    await answered("AuthSession", 201, send("POST", "/auth/passkey/sign-in", {}, { response }));
    const decision = { warrant_id: id, version: 1, decision: "release" };
    const challenge = await answered(
      "PasskeyRequestOptions",
      200,
      send("POST", "/auth/passkey/challenge", person, decision),
    );
    const signed = { response: sign(challenge, credentials[0]!) };
    await answered("PasskeyApproval", 201, send("POST", "/auth/passkey/assertion", person, signed));
  });

  test("WebhookList, DeliveryJob", async () => {
    const { organisationId: organisation_id } = stage;
    const url = "https://hook.example/";
    must(await createWebhook(ctx, MACHINE, { organisation_id, mode: "sandbox", url }));
    await open();
    await answered("WebhookList", 200, send("GET", "/v1/console/webhooks", person));
    const worker = { "X-Service-Worker": "worker" };
    await answered("DeliveryJob", 200, send("POST", "/internal/jobs/webhooks", worker));
    await answered("WebhookList", 200, send("GET", "/v1/console/webhooks", person));
  });

  test("CheckResult, AuthSession, Health, Error", async () => {
    await answered("AuthSession", 200, send("GET", "/auth/session", person));
    await answered("Health", 200, get("/healthz"));
    await answered("Readiness", 200, get("/readyz"));
    await answered("Error", 404, get("/nowhere"));
    const bench = {
      clauses: [
        { kind: "json.jsonpath", path: "$.c" },
        { kind: "json.jsonpath", path: "$.d" },
      ],
      deliverable: { reached: true, raw: '["value_mismatch",null]' },
    };
    await answered("CheckResult", 200, send("POST", "/bench/run", {}, bench));
  });
});
