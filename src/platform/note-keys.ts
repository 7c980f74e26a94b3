import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { sha256Bytes } from "../core/canonical.ts";
import { type NoteKey, type NoteKeyType, noteKey, type Sign, type Verify } from "../core/signed-note.ts";

/** The Ed25519 keys of signed notes, with the machine's own cryptography. */

/** A private key that signs notes under a name. */
export type NoteSigner = { readonly key: NoteKey; readonly sign: Sign };

/** PKCS8 of an Ed25519 private key (RFC 8410), up to its 32 bytes. */
const PKCS8_START = Buffer.from("302e020100300506032b657004220420", "hex");

/** @param seed the 32 bytes of an Ed25519 private key (RFC 8032) */
export function noteSignerOf(name: string, type: NoteKeyType, seed: Uint8Array): NoteSigner {
  const der = Buffer.concat([PKCS8_START, seed]);
  const privateKey = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  return {
    key: noteKey(name, type, publicBytesOf(privateKey), sha256Bytes),
    sign: (message) => new Uint8Array(sign(null, message, privateKey)),
  };
}

function publicBytesOf(privateKey: KeyObject): Uint8Array {
  const { x = "" } = createPublicKey(privateKey).export({ format: "jwk" });
  return new Uint8Array(Buffer.from(x, "base64url"));
}

/** Whether a signature is the key's. A key that is no point of the curve has signed nothing. */
export const verifyEd25519: Verify = (publicKey, message, signature) => {
  const x = Buffer.from(publicKey).toString("base64url");
  try {
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    return verify(null, message, key, signature);
  } catch {
    return false;
  }
};
