import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isRefusal } from "../../src/core/errors.ts";
import {
  allowsSource,
  type Charge,
  parseOrigin,
  parsePayee,
  refuseByLimits,
  refuseSource,
  type SessionLimits,
  type WindowUses,
} from "../../src/core/session-limits.ts";
import { UNLIMITED } from "../support/unlimited.ts";

const ADDRESS = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";

describe("an entry of source_origins", () => {
  const READ: readonly (readonly [entry: string, read: string])[] = [
    ["https://good.example", "https://good.example"],
    ["HTTPS://Good.Example", "https://good.example"],
    ["https://good.example/", "https://good.example"],
    ["https://good.example:443", "https://good.example"],
    ["http://good.example:80/", "http://good.example"],
    ["http://good.example:8080", "http://good.example:8080"],
    ["https://bücher.example", "https://xn--bcher-kva.example"],
    ["http://127.0.0.1:8081", "http://127.0.0.1:8081"],
    ["http://[::1]:8081", "http://[::1]:8081"],
    ["https://good.example:*", "https://good.example:*"],
    ["https://good.example:84*", "https://good.example:84*"],
    ["https://good.example/*", "https://good.example"],
    ["https://good.example:8443/*", "https://good.example:8443"],
    ["https://*", "https://*"],
  ];
  for (const [entry, read] of READ) {
    test(`${entry} is ${read}, and stays so`, () => {
      expect(parseOrigin("o", entry)).toBe(read);
      expect(parseOrigin("o", read)).toBe(read);
    });
  }

  test("that ends within the host is refused, with what it would also allow", () => {
    expect(parseOrigin("source_origins.0", "https://good.example*")).toMatchObject({
      refused: "validation_failed",
      message: expect.stringMatching(
        /^source_origins\.0: must not end within the host: https:\/\/good\.example\* would also allow https:\/\/good\.example\.evil\.example;/,
      ),
    });
  });

  const NONE: readonly unknown[] = [
    ...[
      "",
      "*",
      "http*",
      "https:*",
      "good.example",
      "ftp://good.example",
      "https://",
      "https:// good.example",
    ],
    ...["https://*.example", "https://good.*", "https://good.example/path", "https://good.example/path*"],
    ...[
      "https://a@good.example",
      "https://good.example@evil.example",
      "https://good.example:",
      "https://a\\b",
    ],
    ...["https://good.example?x", "https://good.example#x", "https://good.example:99999", "https://[::1", 7],
    ...[
      "https://good.example\n",
      "//good.example",
      "https://good.example:8 ",
      "https://good\u200b.example",
      "https://good.example//*",
    ],
  ];
  for (const entry of NONE)
    test(`${JSON.stringify(entry)} is none`, () => expect(isRefusal(parseOrigin("o", entry))).toBeTrue());
});

describe("a source is allowed", () => {
  const CASES: readonly (readonly [entry: string, url: string, allowed: boolean])[] = [
    ["https://good.example", "https://good.example/a?b#c", true],
    ["https://good.example", "https://GOOD.example:443/", true],
    ["https://good.example", "https://good.example:8443/", false],
    ["https://good.example", "http://good.example/", false],
    ["https://good.example", "https://good.example.evil.example/", false],
    ["https://good.example", "https://evil.example/https://good.example", false],
    ["https://good.example", "https://good.example./", false],
    ["https://good.example", "https://api.good.example/", false],
    ["https://xn--bcher-kva.example", "https://bücher.example/", true],
    ["https://good.example:*", "https://good.example/", true],
    ["https://good.example:*", "https://good.example:8443/", true],
    ["https://good.example:*", "https://good.example.evil.example/", false],
    ["https://good.example:84*", "https://good.example:8443/", true],
    ["https://good.example:84*", "https://good.example/", false],
    ["https://*", "https://any.example/", true],
    ["https://*", "http://any.example/", false],
  ];
  for (const [entry, url, allowed] of CASES)
    test(`${entry}: ${url} ${allowed}`, () => expect(allowsSource([entry], new URL(url))).toBe(allowed));

  test("by an entry of a host never where the URL has another host", () => {
    // What begins with "xn--" is a label in Punycode, and most of these are not valid.
    const label = fc
      .stringMatching(/^[a-z]([a-z0-9-]{0,6}[a-z0-9])?$/)
      .filter((text) => !text.startsWith("xn--"));
    const host = fc.array(label, { minLength: 1, maxLength: 3 }).map((labels) => labels.join("."));
    const end = fc.constantFrom("", ":8443", ":*", "/*", ":8*");
    fc.assert(
      fc.property(
        host,
        host,
        end,
        fc.boolean(),
        fc.constantFrom("", ":8443", ":80"),
        (a, b, tail, joins, port) => {
          const entry = parseOrigin("o", `https://${a}.example${tail}`);
          if (isRefusal(entry)) throw new Error(entry.message);
          const other = joins ? `${a}.example.${b}` : `${b}.${a}.example`;
          expect(allowsSource([entry], new URL(`https://${other}.x${port}/`))).toBeFalse();
        },
      ),
    );
  });
});

describe("an entry of payees", () => {
  for (const entry of ["acme", "acme*", "a*c", ADDRESS, "0x03*", "x".repeat(512), `${"x".repeat(512)}*`])
    test(`${entry.slice(0, 50)} is one`, () => expect(parsePayee("p", entry)).toBe(entry));
  for (const entry of ["", "*", "x".repeat(513), "a\nb", "a\nb*", 7, null])
    test(`${JSON.stringify(entry)} is none`, () => expect(isRefusal(parsePayee("p", entry))).toBeTrue());
});

const USES: WindowUses = { at: 0, hourly: null, daily: null };
const charge = (rest: Partial<Charge> = {}): Charge => ({
  amount: 100n,
  asset: "USDC",
  payee: "acme",
  sourceUrl: "https://good.example/goods",
  ...rest,
});
const refusalOf = (
  limits: Partial<SessionLimits>,
  given: Partial<Charge> = {},
  uses: Partial<WindowUses> = {},
) => refuseByLimits({ ...UNLIMITED, id: "ses_1", ...limits }, charge(given), { ...USES, ...uses });

describe("a payee", () => {
  const CASES: readonly (readonly [entry: string, payee: string, allowed: boolean])[] = [
    ["acme", "acme", true],
    ["acme", "Acme", false],
    ["acme", "acme2", false],
    ["acme*", "acme2", true],
    ["acme*", "acme", true],
    ["acme*", "acm", false],
    [ADDRESS, ADDRESS.toLowerCase(), true],
    [ADDRESS.toLowerCase(), ADDRESS, true],
    ["0X036CBD*", ADDRESS, true],
    [ADDRESS, `${ADDRESS.slice(0, -1)}0`, false],
    // Only a whole address is written in either case.
    ["0xab", "0xAB", false],
  ];
  for (const [entry, payee, allowed] of CASES)
    test(`${payee} under ${entry}: ${allowed}`, () => {
      expect(refusalOf({ payees: ["other", entry] }, { payee }) === null).toBe(allowed);
    });
});

test("the limits are asked in a fixed order, and each message names its field, limit, use and time", () => {
  const FITS = { used: 0n, fitsAt: null };
  const broken = {
    payees: ["a", "b", "c", "d", "e", "f", "g"],
    sourceOrigins: ["https://other.example"],
    perWarrantMax: 99n,
    hourlyMax: 150n,
    dailyMax: 160n,
  };
  const full = {
    hourly: { used: 60n, fitsAt: Date.UTC(2030, 0, 1) },
    daily: { used: 70n, fitsAt: Date.UTC(2030, 0, 2) },
  };
  const messages: readonly (readonly [string, Partial<SessionLimits>, Partial<WindowUses>])[] = [
    [
      'payees: the spend session ses_1 may pay only "a", "b", "c", "d", "e" and 2 more, and "acme" was named. It would pass only under another session.',
      { payees: ["acme"] },
      {},
    ],
    [
      'source_origins: the spend session ses_1 may ask only "https://other.example", and https://good.example was named. It would pass only under another session.',
      { sourceOrigins: ["https://good.example"] },
      {},
    ],
    [
      "per_warrant_max: the spend session ses_1 holds at most 99 for a warrant, and 100 was requested. It would pass only under another session.",
      { perWarrantMax: 100n },
      {},
    ],
    [
      "hourly_max: the spend session ses_1 holds at most 150 in an hour, 60 is used, and 100 was requested. It would pass at 2030-01-01T00:00:00.000Z.",
      {},
      { hourly: { used: 50n, fitsAt: null } },
    ],
    [
      "daily_max: the spend session ses_1 holds at most 160 in a day, 70 is used, and 100 was requested. It would pass at 2030-01-02T00:00:00.000Z.",
      {},
      { daily: FITS },
    ],
  ];
  let [limits, uses]: [Partial<SessionLimits>, Partial<WindowUses>] = [broken, full];
  for (const [message, corrected, used] of messages) {
    expect(refusalOf(limits, {}, uses)).toEqual({ refused: "session_limit_exceeded", message });
    limits = { ...limits, ...corrected };
    uses = { ...uses, ...used };
  }
  expect(refusalOf(limits, {}, uses)).toBeNull();
});

test("what is not known yet is not asked; a window that was not looked up is a fault", () => {
  const lists = { payees: ["other"], sourceOrigins: ["https://other.example"] };
  expect(refusalOf(lists, { payee: null, sourceUrl: null })).toBeNull();
  expect(refuseSource({ ...UNLIMITED, id: "ses_1", ...lists }, "https://good.example/")?.refused).toBe(
    "session_limit_exceeded",
  );
  expect(() => refusalOf({ hourlyMax: 100n })).toThrow("hourly_max is not known");
  const ofAnother = { hourly: { used: 60n, fitsAt: null } };
  expect(() => refusalOf({ hourlyMax: 150n }, {}, ofAnother)).toThrow("was looked up for another amount");
});

test("more than a window holds never passes", () => {
  const never = refusalOf({ dailyMax: 99n }, {}, { daily: { used: 0n, fitsAt: null } });
  expect(never?.message).toEndWith("and 100 was requested. It would pass only under another session.");
});
