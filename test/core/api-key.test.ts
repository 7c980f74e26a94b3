import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { ApiKey } from "../../src/core/api-key.ts";
import { endOf, hashSecret, looksLikeApiKey, newApiKeySecret } from "../../src/core/api-key.ts";
import { MODES } from "../../src/core/roles.ts";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Gives all bytes from `first` on, again and again. */
const bytesFrom = (first: number) => {
  let next = first;
  return () => next++ % 256;
};
const PREFIXES = { sandbox: "hf_test_", live: "hf_live_" } as const;

describe("a new key", () => {
  for (const mode of MODES) {
    test(`of ${mode} reads ${PREFIXES[mode]}, 30 digits, and 6 of a checksum`, () => {
      const secret = newApiKeySecret(mode, bytesFrom(7));
      expect(secret).toMatch(new RegExp(`^${PREFIXES[mode]}[0-9A-Za-z]{36}$`));
      expect(looksLikeApiKey(secret)).toBeTrue();
      // 160 random bits or more, even after the checksum.
      expect(30 * Math.log2(62)).toBeGreaterThan(160);
    });
  }

  test("ends in the CRC-32 of what is before it, in base62", () => {
    const secret = newApiKeySecret("live", bytesFrom(42));
    const digits = [...secret.slice(-6)].reduce((value, digit) => value * 62 + BASE62.indexOf(digit), 0);
    expect(digits).toBe(crc32(secret.slice(0, -6)));
  });

  test("uses every digit equally often: bytes that would favour some digits are not used", () => {
    const counts = new Map<string, number>();
    const byte = bytesFrom(0);
    // 124 keys of 30 digits use 15 rounds of the 248 bytes that count.
    for (let key = 0; key < 124; key++) {
      for (const digit of newApiKeySecret("sandbox", byte).slice(8, 38)) {
        counts.set(digit, (counts.get(digit) ?? 0) + 1);
      }
    }
    expect([...counts.keys()].toSorted().join("")).toBe(BASE62);
    expect(new Set(counts.values())).toEqual(new Set([60]));
  });

  test("differs with the randomness alone", () => {
    const secrets = Array.from({ length: 1_000 }, () =>
      newApiKeySecret("live", () => crypto.getRandomValues(new Uint8Array(1))[0]!),
    );
    expect(new Set(secrets).size).toBe(1_000);
    expect(secrets.every(looksLikeApiKey)).toBeTrue();
    expect(newApiKeySecret("live", bytesFrom(1))).toBe(newApiKeySecret("live", bytesFrom(1)));
  });
});

describe("looksLikeApiKey", () => {
  const secret = newApiKeySecret("sandbox", bytesFrom(99));

  test("sees every change of one character", () => {
    const passed: string[] = [];
    for (let index = 0; index < secret.length; index++) {
      for (let code = 32; code < 127; code++) {
        const changed = secret.slice(0, index) + String.fromCharCode(code) + secret.slice(index + 1);
        if (changed !== secret && looksLikeApiKey(changed)) passed.push(changed);
      }
    }
    expect(passed).toEqual([]);
  });

  test("sees every swap of neighbours, in many keys", () => {
    for (let first = 0; first < 256; first++) {
      const key = newApiKeySecret("live", bytesFrom(first));
      for (let index = 0; index + 1 < key.length; index++) {
        const swapped =
          key.slice(0, index) + key.charAt(index + 1) + key.charAt(index) + key.slice(index + 2);
        if (swapped !== key) expect([swapped, looksLikeApiKey(swapped)]).toEqual([swapped, false]);
      }
    }
  });

  const OTHERS: readonly (readonly [name: string, text: string])[] = [
    ["nothing", ""],
    ["a prefix alone", "hf_test_"],
    ["the other mode's prefix", secret.replace("hf_test_", "hf_live_")],
    ["an unknown prefix", secret.replace("hf_test_", "hf_prod_")],
    ["no prefix", secret.slice(8)],
    ["a digit less", secret.slice(0, -1)],
    ["a digit more", `${secret}0`],
    ["a new line at the end", `${secret}\n`],
    ["a blank before", ` ${secret}`],
    ["upper case", secret.toUpperCase()],
    ["a letter that is not ASCII", `${secret.slice(0, 20)}é${secret.slice(21)}`],
  ];
  for (const [name, text] of OTHERS) {
    test(`refuses ${name}`, () => expect(looksLikeApiKey(text)).toBeFalse());
  }
});

describe("an end", () => {
  const KEY: ApiKey = {
    id: "key_1",
    organisationId: "org_1",
    agentId: "agt_1",
    mode: "sandbox",
    secretHash: "0",
    lastFour: "0000",
    createdAt: 0,
    expiresAt: null,
    lastUsedAt: null,
    revokedAt: null,
  };
  type Row = readonly [expiresAt: number | null, revokedAt: number | null, end: "revoked" | "expired" | null];
  const AT_1000: readonly Row[] = [
    [null, null, null],
    [1_001, null, null],
    [1_000, null, "expired"],
    [999, null, "expired"],
    [null, 1_000, "revoked"],
    [null, 2_000, "revoked"],
    [999, 998, "revoked"],
    [1_001, 1_000, "revoked"],
  ];
  for (const [expiresAt, revokedAt, end] of AT_1000) {
    test(`at 1000, expires at ${expiresAt} and revoked at ${revokedAt}: ${end}`, () =>
      expect(endOf({ ...KEY, expiresAt, revokedAt }, 1_000)).toBe(end));
  }
});

test("the hash that is stored is the SHA-256 of the whole secret", () => {
  const secret = newApiKeySecret("live", bytesFrom(3));
  expect(hashSecret(secret)).toBe(createHash("sha256").update(secret).digest("hex"));
  expect(hashSecret(secret)).not.toContain(secret.slice(8, 20));
});
