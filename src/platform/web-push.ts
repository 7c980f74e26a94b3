import { createECDH, createPrivateKey, randomBytes } from "node:crypto";
import { SignJWT } from "jose";
import { HOUR_MS, SECOND_MS } from "../core/time.ts";

/** Web push: messages that only one browser can read (RFC 8291), and proof of who sends them (RFC 8292, VAPID). */
export type WebPush = {
  /** The key by which push services and browsers know this instance: an uncompressed point of P-256, base64url. */
  readonly publicKey: string;
  /** Encrypts a text for the browser whose keys these are. Throws where `p256dh` is no point of P-256. */
  encrypt(text: string, browser: BrowserKeys): Promise<Uint8Array>;
  /**
   * The `Authorization` of a message.
   *
   * @param contact how the operator of a push service reaches the operator of this instance: a mailto: or https: URL
   * @param now epoch milliseconds
   */
  authorization(endpoint: string, contact: string, now: number): Promise<string>;
};

/** The public key of a browser and its authentication secret, base64url. */
export type BrowserKeys = { readonly p256dh: string; readonly auth: string };

export const PUSH_KEY_BYTES = 32;
const CURVE = "prime256v1";
const SALT_BYTES = 16;

/** A token may hold for 24 hours at most. */
const TOKEN_MS = 12 * HOUR_MS;

/** Throws where the 32 bytes are no private key of P-256. */
export function createWebPush(privateKey: Uint8Array): WebPush {
  if (privateKey.length !== PUSH_KEY_BYTES) throw new RangeError(`a key has ${PUSH_KEY_BYTES} bytes`);
  const pair = createECDH(CURVE);
  pair.setPrivateKey(privateKey);
  const point = pair.getPublicKey();
  const publicKey = point.toString("base64url");
  const jwk = {
    ...{ kty: "EC", crv: "P-256", d: Buffer.from(privateKey).toString("base64url") },
    ...{ x: point.subarray(1, 33).toString("base64url"), y: point.subarray(33).toString("base64url") },
  };
  const key = createPrivateKey({ key: jwk, format: "jwk" });
  return {
    publicKey,
    encrypt: encryptFor,
    async authorization(endpoint, contact, now) {
      const token = await new SignJWT()
        .setProtectedHeader({ typ: "JWT", alg: "ES256" })
        .setAudience(new URL(endpoint).origin)
        .setExpirationTime(Math.floor((now + TOKEN_MS) / SECOND_MS))
        .setSubject(contact)
        .sign(key);
      return `vapid t=${token}, k=${publicKey}`;
    },
  };
}

/** A private key of P-256 in base64. */
export function newPushKey(): string {
  const pair = createECDH(CURVE);
  pair.generateKeys();
  // It comes without leading zeros.
  return Buffer.concat([Buffer.alloc(PUSH_KEY_BYTES), pair.getPrivateKey()])
    .subarray(-PUSH_KEY_BYTES)
    .toString("base64");
}

async function encryptFor(text: string, { p256dh, auth }: BrowserKeys): Promise<Uint8Array> {
  const { encrypt } = await import("http_ece");
  // A key pair of this message alone.
  const pair = createECDH(CURVE);
  pair.generateKeys();
  return encrypt(Buffer.from(text), {
    version: "aes128gcm",
    ...{ salt: randomBytes(SALT_BYTES), privateKey: pair, dh: p256dh, authSecret: auth },
  });
}
