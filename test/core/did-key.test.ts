import { describe, expect, test } from "bun:test";
import { base58btc } from "multiformats/bases/base58";
import { isDidKey } from "../../src/core/did-key.ts";

const ED25519 = [0xed, 0x01];
const SECP256K1 = [0xe7, 0x01];
const P256 = [0x80, 0x24];
const X25519 = [0xec, 0x01];

const key = (prefix: readonly number[], bytes: readonly number[]): string =>
  `did:key:${base58btc.encode(Uint8Array.from([...prefix, ...bytes]))}`;
const repeated = (length: number, first = 7): number[] => [first, ...Array<number>(length - 1).fill(7)];

/** The examples of the method's specification (W3C CCG, did:key, Test Vectors). */
const ED25519_EXAMPLE = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";
const PUBLISHED: readonly (readonly [string, string])[] = [
  ["Ed25519", ED25519_EXAMPLE],
  ["Ed25519, another", "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp"],
  ["secp256k1", "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme"],
  ["secp256k1, another", "did:key:zQ3shtxV1FrJfhqE1dvxYRcCknWNjHc3c5X1y3ZSoPDi2aur2"],
  ["P-256", "did:key:zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169"],
  ["P-256, another", "did:key:zDnaerx9CtbPJ1q36T5Ln5wYt3MQYeGRG5ehnPAmxcf5mDZpv"],
];

describe("is a did:key", () => {
  const all: readonly (readonly [string, string])[] = [
    ...PUBLISHED,
    ["Ed25519 whose first byte is 0", key(ED25519, repeated(32, 0))],
    ["secp256k1 whose point is even", key(SECP256K1, repeated(33, 2))],
    ["secp256k1 whose point is odd", key(SECP256K1, repeated(33, 3))],
    ["P-256 whose point is even", key(P256, repeated(33, 2))],
    ["P-256 whose point is odd", key(P256, repeated(33, 3))],
  ];
  for (const [name, text] of all) test(name, () => expect(isDidKey(text)).toBeTrue());
});

describe("is not a did:key", () => {
  const none: readonly (readonly [string, string])[] = [
    ["nothing", ""],
    ["the method alone", "did:key:"],
    ["a multibase prefix alone", "did:key:z"],
    ["another method", ED25519_EXAMPLE.replace("key", "web")],
    ["in capitals", ED25519_EXAMPLE.replace("did:key", "DID:KEY")],
    ["without the method", ED25519_EXAMPLE.slice("did:key:".length)],
    ["a blank before", ` ${ED25519_EXAMPLE}`],
    ["a blank after", `${ED25519_EXAMPLE} `],
    ["a line end after", `${ED25519_EXAMPLE}\n`],
    ["a fragment", `${ED25519_EXAMPLE}#${ED25519_EXAMPLE.slice(8)}`],
    ["a query", `${ED25519_EXAMPLE}?a=b`],
    ["a version", ED25519_EXAMPLE.replace("key:", "key:1.1:")],
    ["a digit less", ED25519_EXAMPLE.slice(0, -1)],
    ["a digit more", `${ED25519_EXAMPLE}2`],
    ["another multibase, though the digits are right", ED25519_EXAMPLE.replace(":z", ":Z")],
    ["hexadecimal", `did:key:f${Buffer.from([...ED25519, ...repeated(32)]).toString("hex")}`],
    ["base64url", `did:key:u${Buffer.from([...ED25519, ...repeated(32)]).toString("base64url")}`],
    ["a digit that base58 leaves out: 0", ED25519_EXAMPLE.replace("Z", "0")],
    ["a digit that base58 leaves out: O", ED25519_EXAMPLE.replace("Z", "O")],
    ["a digit that base58 leaves out: l", ED25519_EXAMPLE.replace("Z", "l")],
    ["a letter beyond ASCII", ED25519_EXAMPLE.replace("Z", "Ž")],
    ["a null character", ED25519_EXAMPLE.replace("Z", "\u0000")],
    ["Ed25519 of 31 bytes", key(ED25519, repeated(31))],
    ["Ed25519 of 33 bytes", key(ED25519, repeated(33))],
    ["secp256k1 of 32 bytes", key(SECP256K1, repeated(32, 2))],
    ["secp256k1, not compressed", key(SECP256K1, repeated(65, 4))],
    ["secp256k1 whose point is no compressed one", key(SECP256K1, repeated(33, 4))],
    ["P-256 of 34 bytes", key(P256, repeated(34, 2))],
    ["P-256 whose point is no compressed one", key(P256, repeated(33, 0))],
    ["X25519, which signs nothing", key(X25519, repeated(32))],
    ["the code without its varint", key([0xed], repeated(33))],
    ["a longer varint of the same code", key([0xed, 0x81, 0x00], repeated(32))],
    ["a zero byte in front", key([0, ...ED25519], repeated(32))],
    ["the code alone", key(ED25519, [])],
  ];
  for (const [name, text] of none) test(name, () => expect(isDidKey(text)).toBeFalse());

  test("a very long one, at once", () => expect(isDidKey(`did:key:z${"6".repeat(1_000_000)}`)).toBeFalse());
});
