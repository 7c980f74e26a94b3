import { describe, expect, test } from "bun:test";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { calculateJwkThumbprint, compactVerify, createLocalJWKSet, decodeProtectedHeader } from "jose";
import { readSecrets } from "../../src/config.ts";
import { KEY_FILES, keyFile } from "../../src/platform/key-files.ts";
import { createTokens, newSigningKey } from "../../src/platform/tokens.ts";

const publicPem = (pem: string): string =>
  createPublicKey(pem).export({ type: "spki", format: "pem" }).toString();
const OTHERS = {
  rsa: generateKeyPairSync("rsa", { modulusLength: 2_048 }).privateKey,
  ec: generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
  x25519: generateKeyPairSync("x25519").privateKey,
};
const pemOf = (key: typeof OTHERS.rsa): string => key.export({ type: "pkcs8", format: "pem" }).toString();

describe("a signing key", () => {
  test("signs a compact JWS that jose verifies with the JWKS alone", async () => {
    const { sign, jwks } = createTokens(newSigningKey());
    const jws = await sign('{"a":1}', "holdfast-voucher+jwt");
    const { payload, protectedHeader } = await compactVerify(
      jws,
      createLocalJWKSet({ keys: [...jwks.keys] }),
    );
    expect(new TextDecoder().decode(payload)).toBe('{"a":1}');
    expect(protectedHeader).toEqual({ alg: "EdDSA", kid: jwks.keys[0]!.kid, typ: "holdfast-voucher+jwt" });
  });

  test("is shown by its public half, under its RFC 7638 thumbprint", async () => {
    const { jwks } = createTokens(newSigningKey());
    expect(jwks.keys).toHaveLength(1);
    const [key] = jwks.keys;
    expect(Object.keys(key!).sort()).toEqual(["alg", "crv", "kid", "kty", "use", "x"]);
    expect(key!.kid).toBe(await calculateJwkThumbprint({ ...key! }));
  });

  test("is different each time it is made, and the same when it is read again", () => {
    const made = newSigningKey();
    expect(newSigningKey()).not.toBe(made);
    expect(createTokens(`${made}\r\n`).jwks).toEqual(createTokens(made).jwks);
  });
});

describe("a rotated key", () => {
  const [newer, older, oldest] = [newSigningKey(), newSigningKey(), newSigningKey()];

  test("stays in the JWKS, so what it signed still verifies; the first signs", async () => {
    const before = createTokens(older);
    const signed = await before.sign("before", "t");
    const after = createTokens([newer, older, publicPem(oldest)].join("\n"));
    expect(after.jwks.keys).toEqual([newer, older, oldest].map((pem) => createTokens(pem).jwks.keys[0]!));
    const keySet = createLocalJWKSet({ keys: [...after.jwks.keys] });
    expect((await compactVerify(signed, keySet)).payload).toEqual(new TextEncoder().encode("before"));
    const { kid } = decodeProtectedHeader(await after.sign("after", "t"));
    expect(kid).toBe(after.jwks.keys[0]!.kid);
  });

  test("that is there twice is shown once", () => {
    const { jwks } = createTokens([newer, older, publicPem(older), newer].join("\n"));
    expect(jwks).toEqual(createTokens([newer, older].join("\n")).jwks);
  });
});

describe("a text that is not a signing key", () => {
  const good = newSigningKey();
  const TABLE: readonly (readonly [name: string, pem: string])[] = [
    ["nothing", ""],
    ["words", "not a key"],
    ["a public key first", `${publicPem(good)}${good}`],
    ["a broken block", good.replace(/\n.{10}/, "\nAAAAAAAAAA")],
    ["a block without its end", good.replace(/-----END.*/, "")],
    ["an RSA key", pemOf(OTHERS.rsa)],
    ["a P-256 key", pemOf(OTHERS.ec)],
    ["an X25519 key", pemOf(OTHERS.x25519)],
    ["an RSA key among the rotated ones", `${good}\n${pemOf(OTHERS.rsa)}`],
  ];
  for (const [name, pem] of TABLE) {
    test(`${name}: stops the start, without repeating it`, () => {
      expect(() => createTokens(pem)).toThrow(
        "the signing key must be Ed25519 keys in PEM, a private one first",
      );
      if (pem === "") return;
      const refused = readSecrets({ HOLDFAST_SIGNING_KEY: pem });
      expect(refused).toEqual({
        refused: "validation_failed",
        message:
          "HOLDFAST_SIGNING_KEY: must be an Ed25519 key in PEM, as `openssl genpkey -algorithm ed25519` makes it",
      });
    });
  }
});

test("the environment's key is taken, from a file too, with rotated ones after it", () => {
  const pem = `${newSigningKey()}\n${publicPem(newSigningKey())}`;
  expect(readSecrets({ HOLDFAST_SIGNING_KEY: pem })).toMatchObject({ signingKey: pem });
  expect(readSecrets({ HOLDFAST_SIGNING_KEY_FILE: "/run/key" }, () => `${pem}\n`)).toMatchObject({
    signingKey: pem,
  });
});

test("the data folder's key is made once, for its owner only", () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-key-"));
  try {
    const made = keyFile(folder, KEY_FILES.signing, newSigningKey);
    expect(keyFile(folder, KEY_FILES.signing, newSigningKey)).toBe(made);
    expect(createTokens(made).jwks.keys).toHaveLength(1);
    expect(statSync(join(folder, "signing.key")).mode & 0o777).toBe(0o600);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
