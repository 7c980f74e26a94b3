import { describe, expect, spyOn, test } from "bun:test";
import fc from "fast-check";
import { RE2JS } from "re2js";
import { hashJson } from "../../../src/core/canonical.ts";
import { jsonEquals } from "../../../src/core/clauses/document.ts";
import { numberFormats, textFormats } from "../../../src/core/clauses/formats.ts";
import { compileSchema, type JsonSchema, parseSchema } from "../../../src/core/clauses/schema.ts";
import { benchSchemas } from "../../../src/resources/bench-schemas.ts";

const validates = (schema: JsonSchema, value: unknown): boolean =>
  compileSchema({ hash: hashJson(schema), schema })(value);
const DRAFT_07 = "http://json-schema.org/draft-07/schema#";
const DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema";

describe("parseSchema", () => {
  test.each([
    [true],
    [false],
    [{}],
    [{ type: "object", required: ["a"], properties: { a: { type: "string", pattern: "^[a-z]+$" } } }],
    [{ $schema: DRAFT_2020, $defs: { a: { type: "null" } }, $ref: "#/$defs/a" }],
    [{ $schema: DRAFT_07, definitions: { a: { type: "null" } }, items: [{ $ref: "#/definitions/a" }] }],
    [
      {
        $id: "https://example.com/a",
        $dynamicAnchor: "node",
        properties: { next: { $dynamicRef: "#node" } },
      },
    ],
    [{ title: "T", description: "D", examples: [1], deprecated: true, $comment: "c", default: 1 }],
    [
      {
        patternProperties: { "^x-": true },
        properties: { "x-a": { type: "string" } },
        additionalProperties: false,
      },
    ],
    [{ type: ["string", "null"], format: "date-time" }],
  ])("takes %j", (schema) => {
    expect(parseSchema(schema)).toEqual({ schema: schema as JsonSchema });
  });

  test.each([
    [null, "schema: must be an object or a boolean"],
    [[], "schema: must be an object or a boolean"],
    ["{}", "schema: must be an object or a boolean"],
    [{ type: "strng" }, "schema.type: "],
    [{ properties: { a: { minimum: "1" } } }, "schema.properties.a.minimum: must be number"],
    [{ properties: { "a/b": { minLength: -1 } } }, "schema.properties.a/b.minLength: must be >= 0"],
    [{ requird: ["a"] }, "schema: does not compile: strict mode: unknown keyword"],
    [{ $schema: "http://json-schema.org/draft-04/schema#" }, "schema.$schema: must be"],
    [{ $schema: 5 }, "schema.$schema: must be"],
    [{ $ref: "https://example.com/other" }, "schema: does not compile: can't resolve reference"],
    [{ $ref: DRAFT_2020 }, "schema: does not compile: can't resolve reference"],
    [{ $ref: "#/$defs/missing" }, "schema: does not compile: can't resolve reference"],
    [{ pattern: "(?=a)" }, "schema: has a pattern that cannot be used: look-arounds"],
    [
      { properties: { a: { pattern: "(a)\\1" } } },
      "schema: has a pattern that cannot be used: backreferences",
    ],
    [{ patternProperties: { "(?!a)": true } }, "schema: has a pattern that cannot be used: look-arounds"],
    [{ pattern: "(" }, "schema: has a pattern that cannot be used: not a regular expression"],
    [{ format: "credit-card" }, "schema: does not compile: unknown format"],
    [{ $async: true }, "schema: must not use $async"],
    [JSON.parse('{"properties":{"__proto__":false}}'), "schema: must not name __proto__"],
    [{ const: Number.NaN }, "schema: must be JSON"],
    [{ const: "\ud800" }, "schema: must be JSON"],
    [{ const: "x".repeat(65_536) }, "schema: must be at most 64 kB"],
  ])("refuses %j", (schema, message) => {
    const refusal = parseSchema(schema);
    expect(refusal).toMatchObject({ refused: "validation_failed" });
    expect((refusal as { message: string }).message).toStartWith(message);
  });

  test("keeps schemas apart: the $id of one is not found by the $ref of another", () => {
    const inner = { $id: "https://example.com/inner", type: "null" };
    expect(parseSchema({ $id: "https://example.com/a", $defs: { inner } })).toHaveProperty("schema");
    expect(parseSchema({ $ref: "https://example.com/inner" })).toHaveProperty("refused");
    expect(parseSchema({ $id: "https://example.com/a", type: "string" })).toHaveProperty("schema");
  });

  test("refuses a schema that is nested too deep, without an exception", () => {
    let schema: unknown = {};
    for (let level = 0; level < 9_000; level++) schema = { not: schema };
    expect(parseSchema(schema)).toHaveProperty("refused");
  });
});

describe("a compiled schema", () => {
  test.each<[JsonSchema, unknown, boolean]>([
    [true, 1, true],
    [false, 1, false],
    [{ type: "integer" }, 1.0, true],
    [{ type: "number" }, Number.POSITIVE_INFINITY, false],
    [{ required: ["toString"] }, {}, false],
    [{ required: ["constructor"] }, { constructor: 1 }, true],
    [{ properties: { constructor: false } }, {}, true],
    [{ const: { a: 1, b: [null] } }, { b: [null], a: 1 }, true],
    [{ const: { constructor: {} } }, { constructor: {} }, true],
    [{ const: { valueOf: 1 } }, { valueOf: 1 }, true],
    [{ not: { const: { constructor: { a: 1 } } } }, { constructor: { a: 1 } }, false],
    [{ const: null }, null, true],
    [{ enum: [[1], { a: 1 }] }, { a: 1 }, true],
    [{ enum: [[1], { a: 1 }] }, { a: 2 }, false],
    [{ uniqueItems: true }, [1, 1.0], false],
    [{ uniqueItems: true }, [0, -0], false],
    [{ uniqueItems: true }, [1, "1", true, null, [1], { a: 1 }], true],
    [
      { uniqueItems: true },
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      false,
    ],
    [{ uniqueItems: true }, [{ constructor: {} }, { constructor: {} }], false],
    [{ uniqueItems: true, items: { type: "string" } }, ["__proto__", "__proto__"], false],
    [{ uniqueItems: false }, [1, 1], true],
    [{ not: { pattern: "^(a+)+$" } }, `${"a".repeat(50_000)}b`, true],
    [{ not: { pattern: "^(a+)+$" } }, "a".repeat(50_000), false],
    [{ patternProperties: { "^a": { type: "string" } }, additionalProperties: false }, { ab: "x" }, true],
    [{ allOf: [{ pattern: "^a" }, { pattern: "b$" }] }, "ab", true],
    [{ allOf: [{ pattern: "^a" }, { pattern: "b$" }] }, "ac", false],
    [{ maxLength: 1 }, "😀", true],
    [
      { $schema: DRAFT_07, items: [{ type: "string" }], additionalItems: false } as JsonSchema,
      ["a", 1],
      false,
    ],
    [{ prefixItems: [{ type: "string" }], items: false }, ["a", 1], false],
    [{ properties: { a: true }, unevaluatedProperties: false }, { a: 1, b: 1 }, false],
  ])("%j on %j is %p", (schema, value, expected) => {
    expect(validates(schema, value)).toBe(expected);
  });

  test("does not pass where a schema answers with a promise", () => {
    expect(validates({ $async: true, type: "string" }, "text")).toBe(false);
  });

  test("finds items unique exactly where no two are equal", () => {
    const items = fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 6 });
    fc.assert(
      fc.property(items, fc.boolean(), (values, repeat) => {
        const all = repeat && values.length > 0 ? [...values, structuredClone(values[0])] : values;
        const unique = all.every((one, index) =>
          all.every((other, at) => at <= index || !jsonEquals(one, other)),
        );
        expect(validates({ uniqueItems: true }, all)).toBe(unique);
      }),
    );
  });

  test("checks the uniqueness of 100,000 objects in time", () => {
    const items = Array.from({ length: 100_000 }, (_, id) => ({ id, name: `item ${id}` }));
    const started = performance.now();
    expect(validates({ uniqueItems: true }, items)).toBe(true);
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

test.each<[string, readonly string[], readonly string[]]>([
  [
    "date-time",
    ["2026-01-31T23:59:59Z", "2026-01-31t23:59:59.123+02:00"],
    ["2026-13-01T00:00:00Z", "2026-01-31", ""],
  ],
  ["date", ["2024-02-29"], ["2023-02-29", "2024-2-9"]],
  ["time", ["23:59:59Z"], ["24:00:00Z", "23:59:59"]],
  ["duration", ["P1D", "PT1H30M", "P1Y2M3DT4H5M6S", "P2W"], ["P", "PT", "1D", "P1DT", "P1W2D"]],
  ["email", ["a.b+c@example.com"], ["a", "@b", "a@b@c", "ſ@ſ.com", "a b@c.de"]],
  ["hostname", ["example.com", "a-b.c"], ["-a.com", "a..b", "a".repeat(64), `${"a.".repeat(130)}a`]],
  ["ipv4", ["127.0.0.1"], ["256.0.0.1", "1.2.3", "01.2.3.4"]],
  ["ipv6", ["::1", "2001:db8::1", "::ffff:1.2.3.4"], ["1.2.3.4", ":::", "::1]/[::2", "fe80::1%eth0"]],
  ["uri", ["https://example.com/a?b#c", "urn:x:y"], ["/a", "a b:c", "http://a b"]],
  ["uri-reference", ["/a", "a", "#b", "https://a"], ["\\a", "a b"]],
  ["uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567"]],
  ["json-pointer", ["", "/a/~0~1"], ["a", "/~2"]],
  ["relative-json-pointer", ["0", "1/a", "2#"], ["01", "/a", ""]],
  ["uri-template", ["/a/{b}{?c,d*}", "{+x:3}"], ["{a", "a}"]],
  ["byte", ["", "YQ==", "YWI=", "YWJj"], ["YQ=", "Y"]],
  ["regex", ["^a$"], ["("]],
])("the format %s", (name, good, bad) => {
  const check = textFormats[name] as (text: string) => boolean;
  for (const text of good) expect([text, check(text)]).toEqual([text, true]);
  for (const text of bad) expect([text, check(text)]).toEqual([text, false]);
});

test("a format's pattern is compiled once, when its first text comes, and no other format's with it", async () => {
  const compile = spyOn(RE2JS, "compile");
  try {
    const freshFormats = `${import.meta.dir}/../../../src/core/clauses/formats.ts?fresh`;
    const { textFormats: fresh }: { textFormats: typeof textFormats } = await import(freshFormats);
    expect(compile).toHaveBeenCalledTimes(0);
    const isIpv4 = fresh.ipv4 as (text: string) => boolean;
    expect([isIpv4("127.0.0.1"), isIpv4("127.0.0.256")]).toEqual([true, false]);
    expect(compile).toHaveBeenCalledTimes(1);
  } finally {
    compile.mockRestore();
  }
});

test("the number formats", () => {
  expect(numberFormats.int32?.(2_147_483_647)).toBe(true);
  expect(numberFormats.int32?.(-2_147_483_648)).toBe(true);
  expect(numberFormats.int32?.(2_147_483_648)).toBe(false);
  expect(numberFormats.int32?.(-2_147_483_649)).toBe(false);
  expect(numberFormats.int64?.(1.5)).toBe(false);
});

describe("the bench's schemas", () => {
  test("are these five, and compile", () => {
    expect(Object.keys(benchSchemas)).toEqual([
      "object",
      "array",
      "non_empty_array",
      "holdfast.receipt",
      "holdfast.event",
    ]);
    for (const { hash, schema } of Object.values(benchSchemas)) {
      expect(parseSchema(schema)).toHaveProperty("schema");
      expect(hash).toBe(hashJson(schema));
    }
  });

  test.each([
    ["object", {}, true],
    ["object", [], false],
    ["array", [], true],
    ["array", null, false],
    ["non_empty_array", [0], true],
    ["non_empty_array", [], false],
    ["holdfast.receipt", { object: "receipt" }, false],
    ["holdfast.event", { object: "event" }, false],
  ])("%s on %j is %p", (name, value, expected) => {
    const schema = benchSchemas[name];
    expect(schema && compileSchema(schema)(value)).toBe(expected);
  });

  test("holdfast.event takes a webhook's body", () => {
    const digest = "a".repeat(64);
    const data = {
      warrant_id: "wrt_1",
      mode: "sandbox",
      from: "verifying",
      to: "released",
      version: 3,
      actor: { kind: "system", id: null },
      recorded_at: "2026-01-01T00:00:00.000Z",
      amount: "8400000",
      asset: "USDC",
      payee: "acme",
      released_bps: 10_000,
      spec_hash: digest,
      agent_id: null,
      policy_id: null,
      policy_version: null,
      rules_hash: digest,
    };
    const event = {
      id: "evt_1",
      object: "event",
      type: "warrant.released",
      mode: "sandbox",
      created_at: data.recorded_at,
      data,
    };
    const schema = benchSchemas["holdfast.event"];
    expect(schema && compileSchema(schema)(event)).toBe(true);
    expect(schema && compileSchema(schema)({ ...event, data: { ...data, amount: 8_400_000 } })).toBe(false);
  });
});
