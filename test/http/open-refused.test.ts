import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { freshKey } from "../support/client.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";

/** Opens with an invalid body. None holds anything, leaves a trace or uses up its key: the same key opens with a good body. */

let service: Service;
let home: TestOrganisation;
beforeAll(async () => {
  service = await startTestServer();
  home = await service.organisation();
});
afterAll(() => service?.close());

/** The fields that replace those of a good body (or, as a function, the whole body), and how the message must start. */
type Scenario = readonly [name: string, sent: object | (() => unknown), start: string, code?: string];

function refusals(scenarios: readonly Scenario[]): void {
  for (const [name, sent, start, code = "validation_failed"] of scenarios) {
    test(name, async () => {
      const key = freshKey();
      const body = typeof sent === "function" ? sent() : service.body(sent);
      const { as } = home.live;
      await service.refuses(home, [400, code, start], () => service.post("/v1/warrants", body, { as, key }));
      const good = await service.post("/v1/warrants", service.body({ amount: "1" }), { as, key });
      expect([good.status, good.headers.get("idempotent-replayed")]).toEqual([201, null]);
    });
  }
}

const without = (field: string) => () => {
  const { [field]: _, ...rest } = service.body();
  return rest;
};

describe("amounts", () => {
  const wrong: readonly [string, unknown][] = [
    ["a number", 100],
    ["a number with a fraction", 100.5],
    ["zero", "0"],
    ["many zeros", "0000"],
    ["empty", ""],
    ["null", null],
    ["true", true],
    ["an array", ["100"]],
    ["an object", { value: "100" }],
    ["a decimal point", "100.0"],
    ["a decimal comma", "100,0"],
    ["a plus sign", "+100"],
    ["a minus sign", "-100"],
    ["an exponent", "1e2"],
    ["hexadecimal", "0x64"],
    ["an underscore", "1_000"],
    ["a blank before", " 100"],
    ["a line end after", "100\n"],
    ["a null character after", "100\u0000"],
    ["Arabic-Indic digits", "١٠٠"],
    ["full-width digits", "１００"],
    ["superscript digits", "10²"],
    ["a word", "one hundred"],
    ["NaN", "NaN"],
    ["Infinity", "Infinity"],
    ["2^63", "9223372036854775808"],
    ["2^64", "18446744073709551616"],
    ["twenty nines", "99999999999999999999"],
    ["a thousand digits", "9".repeat(1_000)],
  ];
  refusals(wrong.map(([name, amount]) => [name, { amount }, "amount: "]));
  refusals([["none", without("amount"), "amount: is required"]]);
});

describe("assets and payees", () => {
  refusals([
    ["no payee", without("payee"), "payee: is required"],
    ["an empty payee", { payee: "" }, "payee: "],
    ["a payee of 513 characters", { payee: "x".repeat(513) }, "payee: "],
    ["a payee that is a number", { payee: 7 }, "payee: "],
    ["a payee with a null character", { payee: "ac\u0000me" }, "payee: "],
    ["a payee with a line end", { payee: "acme\n" }, "payee: "],
    ["an empty asset", { asset: "" }, "asset: "],
    ["an asset of 33 characters", { asset: "A".repeat(33) }, "asset: "],
    ["an asset with a blank", { asset: "US DC" }, "asset: "],
    ["an asset with a slash", { asset: "US/DC" }, "asset: "],
    ["an asset beyond ASCII", { asset: "UЅDC" }, "asset: "],
    ["an asset with a line end", { asset: "USDC\n" }, "asset: "],
    ["an asset that is null", { asset: null }, "asset: "],
  ]);
});

describe("deadlines", () => {
  const years = (count: number): string => new Date(Date.now() + count * 365.25 * 86_400_000).toISOString();
  refusals([
    ["none", without("deadline"), "deadline: is required"],
    ["now", () => service.body({ deadline: service.timeIn(0) }), "deadline: ", "deadline_in_past"],
    [
      "a second ago",
      () => service.body({ deadline: service.timeIn(-1_000) }),
      "deadline: ",
      "deadline_in_past",
    ],
    ["long ago", { deadline: "1969-12-31T23:59:59.999Z" }, "deadline: ", "deadline_in_past"],
    ["six years ahead", { deadline: years(6) }, "deadline: must be at most 5 years ahead"],
    ["the year 9999", { deadline: "9999-12-31T23:59:59Z" }, "deadline: must be at most 5 years ahead"],
    ["a number", { deadline: Date.now() + 60_000 }, "deadline: "],
    ["null", { deadline: null }, "deadline: "],
    ["empty", { deadline: "" }, "deadline: "],
    ["a date", { deadline: "2030-01-31" }, "deadline: "],
    ["no zone", { deadline: "2030-01-31T12:00:00" }, "deadline: "],
    ["a zone by name", { deadline: "2030-01-31T12:00:00 UTC" }, "deadline: "],
    ["a blank in the place of the T", { deadline: "2030-01-31 12:00:00Z" }, "deadline: "],
    ["30 February", { deadline: "2030-02-30T12:00:00Z" }, "deadline: "],
    ["hour 24", { deadline: "2030-01-31T24:00:00Z" }, "deadline: "],
    ["minute 60", { deadline: "2030-01-31T12:60:00Z" }, "deadline: "],
    ["month 13", { deadline: "2030-13-01T12:00:00Z" }, "deadline: "],
    ["a zone of 25 hours", { deadline: "2030-01-31T12:00:00+25:00" }, "deadline: "],
    ["a week date", { deadline: "2030-W05-4T12:00:00Z" }, "deadline: "],
    ["a fraction without end", { deadline: `2030-01-31T12:00:00.${"0".repeat(500)}Z` }, "deadline: "],
    ["Unicode digits", { deadline: "２030-01-31T12:00:00Z" }, "deadline: "],
  ]);
});

const spec = (...clauses: readonly unknown[]) => ({ spec: { clauses } });
const EIGHT =
  "spec.clauses.0.kind: must be one of http.status, json.schema, json.jsonpath, file.sha256, data.freshness, uptime.window, chain.event, llm.judge";

describe("specs", () => {
  const status = { kind: "http.status", equals: 200 };
  refusals([
    ["none", without("spec"), "spec: is required"],
    ["null", { spec: null }, "spec: "],
    ["an array", { spec: [status] }, "spec: "],
    ["without clauses", { spec: {} }, "spec.clauses: is required"],
    ["no clause", spec(), "spec.clauses: "],
    ["65 clauses", spec(...Array(65).fill(status)), "spec.clauses: "],
    ["clauses that are no array", { spec: { clauses: status } }, "spec.clauses: "],
    ["over 64 kB", spec({ kind: "json.jsonpath", path: "$", equals: "x".repeat(66_000) }), "spec.clauses: "],
    [
      "a byte over 64 kB",
      spec({ kind: "json.jsonpath", path: "$", equals: "x".repeat(65_537 - 61) }),
      "spec.clauses: ",
    ],
    [
      "over 64 kB in UTF-8 alone",
      spec({ kind: "json.jsonpath", path: "$", equals: "é".repeat(33_000) }),
      "spec.clauses: ",
    ],
    ["a clause that is null", spec(null), "spec.clauses.0: "],
    ["a clause that is text", spec("http.status"), "spec.clauses.0: "],
    ["a kind outside the registry, which names the eight", spec({ kind: "file.md5", digest: "0" }), EIGHT],
    ["no kind", spec({ equals: 200 }), EIGHT],
    ["a kind in other case", spec({ kind: "HTTP.STATUS", equals: 200 }), EIGHT],
    ["a kind of every object", spec({ kind: "constructor" }), EIGHT],
    ["the second clause", spec(status, { kind: "http.status", equals: "200" }), "spec.clauses.1.equals: "],
    ["a status with a fraction", spec({ kind: "http.status", equals: 200.5 }), "spec.clauses.0.equals: "],
    ["a status left out", spec({ kind: "http.status" }), "spec.clauses.0.equals: is required"],
    ["a schema that is not there", spec({ kind: "json.schema", schema: "none" }), "spec.clauses.0.schema: "],
    ["an inherited schema", spec({ kind: "json.schema", schema: "toString" }), "spec.clauses.0.schema: "],
    ["a path without $", spec({ kind: "json.jsonpath", path: "a.b" }), "spec.clauses.0.path: "],
    ["a path that is cut off", spec({ kind: "json.jsonpath", path: "$[" }), "spec.clauses.0.path: "],
    [
      "a path that runs code",
      spec({ kind: "json.jsonpath", path: "$[(@.length-1)]" }),
      "spec.clauses.0.path: ",
    ],
    [
      "a path that calls out",
      spec({ kind: "json.jsonpath", path: "$[?(process.exit(1))]" }),
      "spec.clauses.0.path: ",
    ],
    [
      "a path of 10 kB",
      spec({ kind: "json.jsonpath", path: `$${".a".repeat(5_000)}` }),
      "spec.clauses.0.path: ",
    ],
    [
      "a digest of 63 digits",
      spec({ kind: "file.sha256", digest: "a".repeat(63) }),
      "spec.clauses.0.digest: ",
    ],
    [
      "a digest with a prefix",
      spec({ kind: "file.sha256", digest: `sha256:${"a".repeat(64)}` }),
      "spec.clauses.0.digest: ",
    ],
    ["an age of zero", spec({ kind: "data.freshness", maxAgeSeconds: 0 }), "spec.clauses.0.maxAgeSeconds: "],
    [
      "a ratio above 1",
      spec({ kind: "uptime.window", windowSeconds: 60, minRatio: 1.01 }),
      "spec.clauses.0.minRatio: ",
    ],
    [
      "a score below 0",
      spec({ kind: "llm.judge", rubric: "good", minScore: -0.1 }),
      "spec.clauses.0.minScore: ",
    ],
    ["an empty topic", spec({ kind: "chain.event", topic: "" }), "spec.clauses.0.topic: "],
  ]);
});

describe("unknown fields, at every level", () => {
  refusals([
    ["of the body", { released_bps: 10_000 }, "released_bps: unknown field"],
    ["of the body, by a wrong case", { Amount: "100" }, "Amount: unknown field"],
    ["of the body, camel case", { agentId: "agt_1" }, "agentId: unknown field"],
    [
      "of the spec",
      { spec: { clauses: [{ kind: "http.status", equals: 200 }], all: true } },
      "spec.all: unknown field",
    ],
    ["of a clause", spec({ kind: "http.status", equals: 200, not: true }), "spec.clauses.0.not: "],
    ["of another kind", spec({ kind: "http.status", equals: 200, path: "$" }), "spec.clauses.0.path: "],
    [
      "a prototype of the body",
      () => JSON.stringify(service.body()).replace("{", '{"__proto__":{"a":1},'),
      "__proto__",
    ],
    [
      "a prototype of a clause",
      () => JSON.stringify(service.body()).replace('{"kind"', '{"__proto__":{"equals":1},"kind"'),
      "spec.clauses.0.__proto__: ",
    ],
    [
      "a constructor",
      () => JSON.stringify(service.body()).replace("{", '{"constructor":{},'),
      "constructor: unknown field",
    ],
    ["an agent_id that is null", { agent_id: null }, "agent_id: "],
    ["an empty policy_id", { policy_id: "" }, "policy_id: "],
    ["a verifier_id that is a number", { verifier_id: 1 }, "verifier_id: "],
  ]);
});

test("every field is refused by its path, and none of the messages carries what was sent back", async () => {
  const secret = "hf_live_notasecretbutlookslikeone";
  const reply = await service.post("/v1/warrants", service.body({ amount: secret }), { as: home.live.as });
  expect(reply.status).toBe(400);
  expect(reply.text).not.toContain(secret);
});
