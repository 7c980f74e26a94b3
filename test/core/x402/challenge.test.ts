import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isRefusal, type Refusal } from "../../../src/core/errors.ts";
import { ASSET_PATTERN, PAYEE_PATTERN } from "../../../src/core/money.ts";
import { type Challenge, type ChallengeEntry, parseChallenge } from "../../../src/core/x402/challenge.ts";
import { openBody } from "../../../src/resources/warrant.ts";

const PAY_TO = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C";
const ASSET = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
const SIMPLE = { amount: "250000", asset: "USDC", payee: "acme" };
const V1 = {
  scheme: "exact",
  network: "base-sepolia",
  maxAmountRequired: "10000",
  resource: "https://seller.example/report",
  description: "",
  mimeType: "application/json",
  payTo: PAY_TO,
  maxTimeoutSeconds: 60,
  asset: ASSET,
  outputSchema: null,
  extra: { name: "USDC", version: "2" },
};
const V2 = {
  scheme: "exact",
  network: "eip155:84532",
  amount: "10000",
  payTo: PAY_TO,
  maxTimeoutSeconds: 60,
  asset: ASSET,
  extra: { name: "USDC", version: "2" },
};
const v1 = (...accepts: readonly unknown[]) => ({ x402Version: 1, error: "X-PAYMENT is required", accepts });
const RESOURCE = { url: "https://seller.example/report" };
const v2 = (...accepts: readonly unknown[]) => ({ x402Version: 2, resource: RESOURCE, accepts });
const base64 = (text: string): string => Buffer.from(text).toString("base64");

const ofBody = (body: unknown) => parseChallenge({ headers: {}, body: JSON.stringify(body) });
const ofText = (body: string | Uint8Array) => parseChallenge({ headers: {}, body });
const ofHeader = (value: unknown, body: unknown = "") =>
  parseChallenge({
    headers: { "payment-required": base64(JSON.stringify(value)) },
    body: JSON.stringify(body),
  });
const must = (parsed: Challenge | Refusal): Challenge => {
  if (isRefusal(parsed)) throw new Error(parsed.message);
  return parsed;
};
const entriesOf = (parsed: Challenge | Refusal): readonly ChallengeEntry[] => {
  const challenge = must(parsed);
  return challenge.kind === "protocol" ? challenge.entries : [];
};
/** What is wrong, without the words that every refusal begins with. */
const problemOf = (parsed: Challenge | Refusal): string => {
  if (!isRefusal(parsed)) throw new Error("it was read");
  expect(parsed.refused).toBe("x402_challenge_invalid");
  expect(parsed.message).toStartWith("The seller's 402 cannot be read: ");
  expect(parsed.message).toEndWith(".");
  return parsed.message.slice("The seller's 402 cannot be read: ".length, -1);
};

describe("the simple form", () => {
  const READ: Challenge = { kind: "simple", amount: 250_000n, asset: "USDC", payee: "acme" };

  test("is read at the top level, and under x402", () => {
    expect(ofBody(SIMPLE)).toEqual(READ);
    expect(ofBody({ error: "pay", x402: SIMPLE })).toEqual(READ);
    expect(ofBody({ ...SIMPLE, error: "pay", x402: { ...SIMPLE, amount: "1" } })).toEqual(READ);
    expect(ofText(Buffer.from(JSON.stringify(SIMPLE)))).toEqual(READ);
  });

  test("may have leading zeros, and amounts above those of the ledger", () => {
    expect(ofBody({ ...SIMPLE, amount: "000250000" })).toEqual(READ);
    expect(ofBody({ ...SIMPLE, amount: "9223372036854775808" })).toMatchObject({ amount: 2n ** 63n });
  });

  const DIGITS = "amount must be a string of digits";
  const ASSET_RULE = "asset must be 1 to 32 characters of A-Z a-z 0-9 . _ : -";
  const PAYEE_RULE = "payee must be 1 to 512 characters, without control or invisible characters";
  const WRONG: readonly (readonly [changed: object, problem: string])[] = [
    [{ amount: 250_000 }, DIGITS],
    [{ amount: 0.25 }, DIGITS],
    [{ amount: null }, DIGITS],
    [{ amount: ["250000"] }, DIGITS],
    [{ amount: { toString: "1" } }, DIGITS],
    [{ amount: "" }, DIGITS],
    [{ amount: "-250000" }, DIGITS],
    [{ amount: "+250000" }, DIGITS],
    [{ amount: "0.25" }, DIGITS],
    [{ amount: "250000.0" }, DIGITS],
    [{ amount: "2.5e5" }, DIGITS],
    [{ amount: "0x3d090" }, DIGITS],
    [{ amount: " 250000" }, DIGITS],
    [{ amount: "250000\n" }, DIGITS],
    [{ amount: "250_000" }, DIGITS],
    [{ amount: "٢٥" }, DIGITS],
    [{ amount: "0" }, "amount must be greater than zero"],
    [{ amount: "000" }, "amount must be greater than zero"],
    [{ amount: "9".repeat(79) }, "amount must be at most 78 digits"],
    [{ asset: undefined }, ASSET_RULE],
    [{ asset: "" }, ASSET_RULE],
    [{ asset: "US DC" }, ASSET_RULE],
    [{ asset: "X".repeat(33) }, ASSET_RULE],
    [{ asset: 1 }, ASSET_RULE],
    [{ payee: undefined }, PAYEE_RULE],
    [{ payee: "" }, PAYEE_RULE],
    [{ payee: "a\u0000b" }, PAYEE_RULE],
    [{ payee: "a\nb" }, PAYEE_RULE],
    [{ payee: "acme\u202e" }, PAYEE_RULE],
    [{ payee: "x".repeat(513) }, PAYEE_RULE],
    [{ payee: { id: 1 } }, PAYEE_RULE],
  ];
  for (const [changed, problem] of WRONG) {
    test(`with ${JSON.stringify(changed).slice(0, 60)} is refused: ${problem}`, () => {
      expect(problemOf(ofBody({ ...SIMPLE, ...changed }))).toBe(problem);
      expect(problemOf(ofBody({ x402: { ...SIMPLE, ...changed } }))).toBe(`x402.${problem}`);
    });
  }

  test("has the assets and payees of POST /v1/warrants", () => {
    expect(ASSET_PATTERN).toBe(openBody.properties.asset.pattern as string);
    expect(PAYEE_PATTERN).toBe(openBody.properties.payee.pattern as string);
    expect(ofBody({ ...SIMPLE, payee: "𝒜".repeat(512) })).toMatchObject({ kind: "simple" });
  });
});

describe("version 1, in the body", () => {
  test("is read at the top level, and under x402", () => {
    const entry = {
      scheme: "exact",
      network: "base-sepolia",
      amount: 10_000n,
      asset: ASSET,
      payTo: PAY_TO,
      timeoutSeconds: 60,
      extra: { name: "USDC", version: "2" },
      given: V1,
    };
    const read = { kind: "protocol", protocol: 1, resource: null } as const;
    expect(must(ofBody(v1(V1)))).toEqual({ ...read, entries: [{ path: "accepts.0", ...entry }] });
    expect(must(ofBody({ x402: v1(V1) }))).toEqual({
      ...read,
      entries: [{ path: "x402.accepts.0", ...entry }],
    });
    expect(must(ofBody({ accepts: [V1] }))).toMatchObject({ protocol: 1 });
    expect(entriesOf(ofBody(v1({ ...V1, extra: null })))).toMatchObject([{ extra: {} }]);
    const { extra, ...bare } = V1;
    expect(entriesOf(ofBody(v1(bare)))).toMatchObject([{ extra: {} }]);
  });

  test("wins over a simple form beside it", () => {
    expect(ofBody({ ...SIMPLE, ...v1(V1) })).toMatchObject({ kind: "protocol" });
  });
});

describe("version 2, in the header", () => {
  test("is read, with its resource", () => {
    expect(must(ofHeader(v2(V2)))).toEqual({
      kind: "protocol",
      protocol: 2,
      resource: RESOURCE,
      entries: [
        {
          path: "PAYMENT-REQUIRED accepts.0",
          scheme: "exact",
          network: "eip155:84532",
          amount: 10_000n,
          asset: ASSET,
          payTo: PAY_TO,
          timeoutSeconds: 60,
          extra: { name: "USDC", version: "2" },
          given: V2,
        },
      ],
    });
    expect(must(ofHeader({ ...v2(V2), resource: "x" }))).toMatchObject({ resource: null });
  });

  test("wins over the body, whatever that says", () => {
    for (const body of [SIMPLE, v1(V1), "<html>", null]) {
      expect(must(ofHeader(v2(V2), body))).toMatchObject({ kind: "protocol", protocol: 2 });
      expect(problemOf(ofHeader(v2(), body))).toStartWith("PAYMENT-REQUIRED accepts must be");
    }
    const tooLong = parseChallenge({
      headers: { "payment-required": base64(JSON.stringify(v2(V2))) },
      body: "x".repeat(10 * 1024 * 1024),
    });
    expect(must(tooLong)).toMatchObject({ protocol: 2 });
  });

  test("counts as missing where it is empty", () => {
    const parsed = parseChallenge({ headers: { "payment-required": "" }, body: JSON.stringify(SIMPLE) });
    expect(parsed).toMatchObject({ kind: "simple" });
  });

  test("is understood in the body too, where that says so", () => {
    expect(must(ofBody(v2(V2)))).toMatchObject({ protocol: 2, resource: RESOURCE });
  });

  const WRONG: readonly (readonly [header: string, problem: string])[] = [
    ["{}", "PAYMENT-REQUIRED is not base64"],
    ["a b", "PAYMENT-REQUIRED is not base64"],
    [`${base64("{}")}, ${base64("{}")}`, "PAYMENT-REQUIRED is not base64"],
    [base64("nonsense"), "PAYMENT-REQUIRED is not JSON"],
    [Buffer.from([0xff, 0xfe]).toString("base64"), "PAYMENT-REQUIRED is not UTF-8"],
    [base64('{"accepts":[],"accepts":[]}'), "PAYMENT-REQUIRED has the same key twice in one object"],
    [base64("[]"), "PAYMENT-REQUIRED is not a JSON object"],
    [base64("null"), "PAYMENT-REQUIRED is not a JSON object"],
    ["A".repeat(64 * 1024 + 4), "PAYMENT-REQUIRED is longer than 64 kB"],
    [base64(JSON.stringify(v1(V1))), "PAYMENT-REQUIRED x402Version must be 2"],
  ];
  for (const [header, problem] of WRONG) {
    test(`as ${header.slice(0, 40)} is refused, and the body is not asked: ${problem}`, () => {
      const parsed = parseChallenge({
        headers: { "payment-required": header },
        body: JSON.stringify(SIMPLE),
      });
      expect(problemOf(parsed)).toBe(problem);
    });
  }
});

describe("an entry", () => {
  const NAME = "must be a string of 1 to 128 characters, without control or invisible characters";
  const TIMEOUT = "must be an integer from 1 to 157680000";
  const WRONG: readonly (readonly [changed: object, problem: string])[] = [
    [{ scheme: undefined }, `.scheme ${NAME}`],
    [{ scheme: "" }, `.scheme ${NAME}`],
    [{ scheme: "x".repeat(129) }, `.scheme ${NAME}`],
    [{ scheme: "exact\u009b" }, `.scheme ${NAME}`],
    [{ network: "base\u200b" }, `.network ${NAME}`],
    [{ asset: "\u2066USDC" }, `.asset ${NAME}`],
    [{ network: 84_532 }, `.network ${NAME}`],
    [{ asset: undefined }, `.asset ${NAME}`],
    [{ asset: null }, `.asset ${NAME}`],
    [{ payTo: undefined }, ".payTo must be 1 to 512 characters, without control or invisible characters"],
    [{ payTo: "\u007f" }, ".payTo must be 1 to 512 characters, without control or invisible characters"],
    ...[undefined, null, "60", 0, -1, 1.5, 157_680_001, 1e12].map(
      (maxTimeoutSeconds) => [{ maxTimeoutSeconds }, `.maxTimeoutSeconds ${TIMEOUT}`] as const,
    ),
    [{ extra: "USDC" }, ".extra must be an object"],
    [{ extra: ["USDC"] }, ".extra must be an object"],
  ];
  for (const [changed, problem] of WRONG) {
    test(`with ${JSON.stringify(changed).slice(0, 60)} cannot be read: ${problem}`, () => {
      expect(problemOf(ofBody(v1({ ...V1, ...changed })))).toBe(`accepts.0${problem}`);
      expect(problemOf(ofHeader(v2({ ...V2, ...changed })))).toBe(`PAYMENT-REQUIRED accepts.0${problem}`);
    });
  }

  for (const amount of [10_000, -1, "-1", "1.5", "", null, undefined, "1e3", {}]) {
    test(`with the amount ${JSON.stringify(amount)} cannot be read, in the field of its version`, () => {
      expect(problemOf(ofBody(v1({ ...V1, amount: "1", maxAmountRequired: amount })))).toBe(
        "accepts.0.maxAmountRequired must be a string of digits",
      );
      expect(problemOf(ofHeader(v2({ ...V2, maxAmountRequired: "1", amount })))).toBe(
        "PAYMENT-REQUIRED accepts.0.amount must be a string of digits",
      );
    });
  }

  for (const entry of [null, "exact", 1, [], [V1]]) {
    test(`that is ${JSON.stringify(entry).slice(0, 20)} cannot be read`, () =>
      expect(problemOf(ofBody(v1(entry)))).toBe("accepts.0 must be an object"));
  }

  test("that cannot be read is left out where another one can be read", () => {
    const parsed = ofBody(v1({ ...V1, maxAmountRequired: 5 }, null, V1, { ...V1, maxAmountRequired: "0" }));
    expect(entriesOf(parsed)).toMatchObject([{ path: "accepts.2", amount: 10_000n }]);
  });

  test("may be one of 32, but not of 33 or of thousands", () => {
    const many = (count: number) => ofBody(v1(...Array.from({ length: count }, () => V1)));
    expect(entriesOf(many(32))).toHaveLength(32);
    for (const count of [33, 500])
      expect(problemOf(many(count))).toBe("accepts must have at most 32 entries");
    const small = ofBody(v1(...Array.from({ length: 50_000 }, () => 1)));
    expect(problemOf(small)).toBe("accepts must have at most 32 entries");
  });
});

describe("a body without a challenge", () => {
  const NEITHER = "it has no PAYMENT-REQUIRED, and its body has neither accepts nor amount";
  const TABLE: readonly (readonly [body: string | Uint8Array, problem: string])[] = [
    ["", "it has no PAYMENT-REQUIRED, and its body is not JSON"],
    ["<!doctype html><title>Pay</title>", "it has no PAYMENT-REQUIRED, and its body is not JSON"],
    ["Payment Required", "it has no PAYMENT-REQUIRED, and its body is not JSON"],
    [new Uint8Array([0xff, 0x00]), "it has no PAYMENT-REQUIRED, and its body is not UTF-8"],
    ["null", NEITHER],
    ["[]", NEITHER],
    ["[{}]", NEITHER],
    ["5", NEITHER],
    ["{}", NEITHER],
    ['{"x402":null}', NEITHER],
    ['{"x402":[]}', NEITHER],
    ['{"x402":{}}', NEITHER],
    ['{"x402":{"x402":{"amount":"1","asset":"USDC","payee":"a"}}}', NEITHER],
    ['{"__proto__":{"amount":"1","asset":"USDC","payee":"a"}}', NEITHER],
    ['{"asset":"USDC","payee":"a"}', NEITHER],
    ['{"error":"insufficient_quota"}', NEITHER],
    [
      '{"amount":"1","amount":"2","asset":"USDC","payee":"a"}',
      "it has no PAYMENT-REQUIRED, and its body has the same key twice in one object",
    ],
    [
      `{"amount":${"[".repeat(70)}${"]".repeat(70)}}`,
      "it has no PAYMENT-REQUIRED, and its body is nested deeper than 64",
    ],
    [
      '{"amount":1e999,"asset":"USDC","payee":"a"}',
      "it has no PAYMENT-REQUIRED, and its body has a number that is out of range",
    ],
    ['{"accepts":[]}', "accepts must be an array of at least one entry"],
    ['{"accepts":{}}', "accepts must be an array of at least one entry"],
    ['{"accepts":"exact"}', "accepts must be an array of at least one entry"],
    ['{"accepts":{"length":1}}', "accepts must be an array of at least one entry"],
    ['{"x402Version":3,"accepts":[1]}', "x402Version must be 1"],
    ['{"x402Version":"1","accepts":[1]}', "x402Version must be 1"],
    ['{"x402Version":null,"accepts":[1]}', "x402Version must be 1"],
    ["x".repeat(10 * 1024 * 1024), "its body is larger than 256 kB"],
    [new Uint8Array(10 * 1024 * 1024), "its body is larger than 256 kB"],
    ["é".repeat(140 * 1024), "its body is larger than 256 kB"],
    ["[".repeat(200_000), "it has no PAYMENT-REQUIRED, and its body is not JSON"],
  ];
  for (const [body, problem] of TABLE) {
    test(`${body.length} of ${JSON.stringify(body.slice(0, 50))}: ${problem}`, () =>
      expect(problemOf(ofText(body))).toBe(problem));
  }
});

test("whatever a seller sends is read or refused, and what is read has an amount above zero", () => {
  const field = fc.oneof(fc.constantFrom("exact", "base", "1", "0", PAY_TO, ASSET, 60, -1), fc.jsonValue());
  const names = [
    ...["amount", "asset", "payee", "accepts", "x402", "x402Version", "scheme", "network"],
    ...["maxAmountRequired", "payTo", "maxTimeoutSeconds", "extra"],
  ];
  const entry = fc.dictionary(fc.constantFrom(...names), field);
  const body = fc.oneof(
    fc.jsonValue(),
    entry,
    fc.record({ accepts: fc.array(entry) }),
    fc.record({ x402: fc.record({ accepts: fc.array(fc.oneof(entry, fc.constant(V1))) }) }),
  );
  fc.assert(
    fc.property(body, fc.boolean(), (value, inHeader) => {
      const parsed = inHeader ? ofHeader(value) : ofBody(value);
      if (isRefusal(parsed)) return void problemOf(parsed);
      if (parsed.kind === "simple") return expect(parsed.amount > 0n).toBeTrue();
      expect(parsed.entries).not.toBeEmpty();
      for (const { amount } of parsed.entries) expect(amount > 0n).toBeTrue();
    }),
    { numRuns: 500 },
  );
});
