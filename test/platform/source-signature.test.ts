import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { hasDigest, statedSignatures } from "../../src/core/http-signature.ts";
import { type PublicJwk, thumbprintOf } from "../../src/core/source-key.ts";
import { holdsItsDigest, signerAmong } from "../../src/platform/source-signature.ts";

/** The signatures of responses: RFC 9421 with the vectors of its appendix B, and RFC 9530. */

/** RFC 9421, B.1.3 and B.1.4. */
const P256: PublicJwk = {
  kty: "EC",
  crv: "P-256",
  x: "qIVYZVLCrPZHGHjP17CTW0_-D9Lfw0EkjqF7xB4FivA",
  y: "Mc4nN9LTDOBhfoUeg8Ye9WedFRhnZXZJA12Qp0zZ6F0",
};
const ED25519: PublicJwk = { kty: "OKP", crv: "Ed25519", x: "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs" };
/** The response of B.2, and its signature of B.2.4. */
const BODY = '{"message": "good dog"}';
const DIGEST =
  "sha-512=:mEWXIS7MaLRuGgxOBdODa3xqM1XdEvxoYhvlCFJ41QJgJc4GTsPp29l5oGX69wWdXymyU0rjJuahq4l5aGgfLQ==:";
const COVERED = '("@status" "content-type" "content-digest" "content-length")';
const HEADERS: Readonly<Record<string, string>> = {
  date: "Tue, 20 Apr 2021 02:07:56 GMT",
  "content-type": "application/json",
  "content-digest": DIGEST,
  "content-length": "23",
  "signature-input": `sig-b24=${COVERED};created=1618884473;keyid="test-key-ecc-p256"`,
  signature:
    "sig-b24=:wNmSUAhwb5LxtOtOpNa6W5xj067m5hFrj0XQ4fvpaCLx0NKocgPquLgyahnzDnDAUy5eCdlYUEkLIj+32oiasw==:",
};
const NOW = 1_618_884_473_000;
const URL_ASKED = "https://example.com:8443/foo?a=1&b=%20";

const answerWith = (headers: Readonly<Record<string, string>>, status = 200, digest = true) => ({
  hops: [{ url: URL_ASKED, status, address: null, certificateSha256: null }],
  headers: Object.entries(headers),
  holdsItsDigest: digest,
});
type Changed = {
  readonly headers?: object;
  readonly status?: number;
  readonly digest?: boolean;
  readonly keys?: readonly PublicJwk[];
  readonly now?: number;
};
const signer = ({ headers = {}, status, digest, keys = [ED25519, P256], now = NOW }: Changed = {}) =>
  signerAmong({ answer: answerWith({ ...HEADERS, ...headers }, status, digest), method: "GET", keys, now });

test("the response of B.2.4 is signed with its key, and its bytes have its digest", async () => {
  expect(await holdsItsDigest(Object.entries(HEADERS), Buffer.from(BODY))).toBe(true);
  expect(await signer()).toEqual(P256);
});

describe("a signature does not count", () => {
  const CASES: Readonly<Record<string, Changed>> = {
    "of another status": { status: 201 },
    "of another digest": { headers: { "content-digest": "sha-256=:AAAA:" } },
    "of another header that it covers": { headers: { "content-type": "text/plain" } },
    "over bytes that do not have the digest": { digest: false },
    "with a key that is not registered": { keys: [ED25519] },
    "without any key": { keys: [] },
    "that was altered": { headers: { signature: HEADERS.signature!.replace("wNm", "wNn") } },
    "that is made later": { now: NOW - 301_000 },
    "that has expired": {
      headers: { "signature-input": `${HEADERS["signature-input"]};expires=1618884472` },
    },
    "of another label": { headers: { signature: HEADERS.signature!.replace("sig-b24", "sig-b25") } },
    "whose input is no dictionary": { headers: { "signature-input": "(((" } },
    "whose algorithm is said to be another": {
      headers: { "signature-input": `${HEADERS["signature-input"]};alg="ed25519"` },
    },
  };
  test.each(Object.keys(CASES))("%s", async (name) => {
    expect(await signer(CASES[name])).toBeNull();
  });

  test("with a point that is not on the curve, and nothing throws", async () => {
    expect(await signer({ keys: [{ ...P256, y: P256.x } as PublicJwk] })).toBeNull();
  });
});

test("a signature that says its algorithm counts with a key of that algorithm alone", async () => {
  const how = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const { publicKey, privateKey } = (await crypto.subtle.generateKey(how, true, [
    "sign",
    "verify",
  ])) as CryptoKeyPair;
  const { kty, crv, x, y } = await crypto.subtle.exportKey("jwk", publicKey);
  const key = { kty, crv, x, y } as PublicJwk;
  const signedAs = async (algorithm: string) => {
    const params = `("@status" "content-digest");alg="${algorithm}"`;
    const base = `"@status": 200\n"content-digest": ${DIGEST}\n"@signature-params": ${params}`;
    const signature = Buffer.from(await crypto.subtle.sign(how, privateKey, Buffer.from(base))).toString(
      "base64",
    );
    return signer({
      headers: { "signature-input": `s=${params}`, signature: `s=:${signature}:` },
      keys: [key],
    });
  };
  expect(await signedAs("ecdsa-p256-sha256")).toEqual(key);
  expect(await signedAs("ed25519")).toBeNull();
});

/** The signature base of a response that is said to be signed so. */
const baseOf = (input: string, headers: readonly (readonly [string, string])[] = []): string | undefined =>
  statedSignatures(
    {
      status: 200,
      headers: [
        ["content-digest", DIGEST],
        ["signature-input", `sig=${input}`],
        ["signature", "sig=:AAAA:"],
        ...headers,
      ],
      request: { method: "GET", url: URL_ASKED },
    },
    NOW,
  )[0]?.base;

describe("the signature base", () => {
  test("of B.2.4 is that of the RFC, with the lines of a header joined and trimmed", () => {
    expect(
      baseOf(`${COVERED};created=1618884473;keyid="test-key-ecc-p256"`, [
        ["content-type", " application/json "],
        ["content-length", "2"],
        ["content-length", " 3 "],
      ]),
    ).toBe(
      `"@status": 200\n"content-type": application/json\n"content-digest": ${DIGEST}\n"content-length": 2, 3\n` +
        `"@signature-params": ${COVERED};created=1618884473;keyid="test-key-ecc-p256"`,
    );
  });

  test("has the derived components of the request", () => {
    const names = ["@method", "@target-uri", "@authority", "@scheme", "@request-target", "@path", "@query"];
    const lines = baseOf(`("@status" "content-digest" ${names.map((name) => `"${name}";req`).join(" ")})`);
    expect(lines?.split("\n").slice(2, -1)).toEqual([
      '"@method";req: GET',
      `"@target-uri";req: ${URL_ASKED}`,
      '"@authority";req: example.com:8443',
      '"@scheme";req: https',
      '"@request-target";req: /foo?a=1&b=%20',
      '"@path";req: /foo',
      '"@query";req: ?a=1&b=%20',
    ]);
  });

  test.each([
    ["without @status", '("content-digest")'],
    ["without content-digest", '("@status")'],
    ["with the digest of the request", '("@status" "content-digest";req)'],
    ["with the status as a header's key", '("@status";key="a" "content-digest")'],
    ["with one twice", '("@status" "content-digest" "@status")'],
    ["with a header that is not there", '("@status" "content-digest" "etag")'],
    ["with a component that is not known", '("@status" "content-digest" "@wrong")'],
    ["with the request's method as the response's", '("@status" "content-digest" "@method")'],
    ["with cookies", '("@status" "content-digest" "set-cookie")'],
    ["with a structured field", '("@status" "content-digest";sf)'],
    ["with a token", "(@status content-digest)"],
  ])("is none %s", (_, input) => {
    expect(baseOf(input, [["set-cookie", "a=1"]])).toBeUndefined();
  });

  test("is none with a header of two lines in one, which could be taken for another component", () => {
    expect(baseOf('("@status" "content-digest" "x")', [["x", 'a\n"@status": 500']])).toBeUndefined();
  });
});

describe("a Content-Digest", () => {
  const digests = { "sha-256": new Uint8Array(createHash("sha256").update("a").digest()) };
  const right = createHash("sha256").update("a").digest("base64");
  const wrong = createHash("sha256").update("b").digest("base64");
  test.each([
    [`sha-256=:${right}:`, true],
    [`unknown=:AAAA:, sha-256=:${right}:`, true],
    [`sha-256=:${wrong}:`, false],
    ["unknown=:AAAA:", false],
    ["", false],
    [`sha-256="${right}"`, false],
    ["sha-256=(:AAAA:)", false],
    ["\u0000", false],
  ])("%p: %p", (text, holds) => {
    expect(hasDigest(text, digests)).toBe(holds);
  });

  test("is not looked at where nothing is signed", async () => {
    expect(await holdsItsDigest([["content-digest", DIGEST]], Buffer.from(BODY))).toBe(false);
    expect(await holdsItsDigest(null, Buffer.from(BODY))).toBe(false);
    expect(await holdsItsDigest(Object.entries(HEADERS), Buffer.from("other"))).toBe(false);
  });

  test("counts only where all of its known digests are right", async () => {
    const both = (sha256: string) =>
      holdsItsDigest(
        Object.entries({ ...HEADERS, "content-digest": `${DIGEST}, sha-256=:${sha256}:` }),
        Buffer.from(BODY),
      );
    expect(await both(createHash("sha256").update(BODY).digest("base64"))).toBe(true);
    expect(await both(right)).toBe(false);
  });
});

test("a thumbprint is that of RFC 8037, appendix A.3", () => {
  const jwk: PublicJwk = { kty: "OKP", crv: "Ed25519", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" };
  expect(thumbprintOf(jwk)).toBe("kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
});
