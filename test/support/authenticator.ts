import { createHash, createSign, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import type { AssertionResponse, RegistrationResponse } from "../../src/platform/passkeys.ts";
import type { Json } from "./client.ts";

/** What a test changes: another origin or host name, a person who was not verified, another counter. */
export type Twist = {
  readonly origin?: string;
  readonly rpId?: string;
  readonly userVerified?: boolean;
  readonly counter?: number;
  readonly type?: string;
  readonly userHandle?: string | null;
  /** Registers this one again, as a copy would. */
  readonly credential?: Credential;
  /** The attestation's format. */
  readonly attestation?: string;
};

export type Credential = {
  readonly id: string;
  readonly userHandle: string;
  readonly rpId: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  counter: number;
};

/** An authenticator in software: ES256, attestation "none", a counter that rises with every signature. */
export type Authenticator = {
  create(options: Json, twist?: Twist): RegistrationResponse;
  get(options: Json, credential: Credential, twist?: Twist): AssertionResponse;
  readonly credentials: Credential[];
};

const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;
const ATTESTED = 0x40;

const sha256 = (data: string | Buffer): Buffer => createHash("sha256").update(data).digest();
const text = (value: string): Buffer =>
  Buffer.concat([Buffer.from([0x60 + value.length]), Buffer.from(value)]);
const bytes = (value: Buffer): Buffer => {
  const head = Buffer.from([0x59, 0, 0]);
  head.writeUInt16BE(value.length, 1);
  return Buffer.concat([head, value]);
};

/** COSE_Key of P-256: kty 2, alg -7, crv 1, x, y (RFC 9053). */
function coseKeyOf(key: KeyObject): Buffer {
  const { x = "", y = "" } = key.export({ format: "jwk" }) as { x?: string; y?: string };
  const coordinate = (value: string): Buffer =>
    Buffer.concat([Buffer.from([0x58, 32]), Buffer.from(value, "base64url")]);
  const head = Buffer.from([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01]);
  return Buffer.concat([head, Buffer.from([0x21]), coordinate(x), Buffer.from([0x22]), coordinate(y)]);
}

export function createAuthenticator(ownOrigin = "http://localhost:8080"): Authenticator {
  const credentials: Credential[] = [];
  const clientDataOf = (type: string, challenge: string, twist: Twist): Buffer =>
    Buffer.from(
      JSON.stringify({
        type: twist.type ?? type,
        challenge,
        origin: twist.origin ?? ownOrigin,
        crossOrigin: false,
      }),
    );
  const authenticatorDataOf = (rpId: string, flags: number, counter: number, twist: Twist): Buffer => {
    const counted = Buffer.alloc(4);
    counted.writeUInt32BE(counter);
    const verified = twist.userVerified === false ? 0 : USER_VERIFIED;
    return Buffer.concat([sha256(twist.rpId ?? rpId), Buffer.from([flags | verified]), counted]);
  };
  return {
    credentials,
    create(options, twist = {}) {
      const { privateKey, publicKey } =
        twist.credential ?? generateKeyPairSync("ec", { namedCurve: "P-256" });
      const id = twist.credential ? Buffer.from(twist.credential.id, "base64url") : randomBytes(32);
      const counter = twist.counter ?? 1;
      const length = Buffer.from([0, id.length]);
      const authData = Buffer.concat([
        authenticatorDataOf(options.rp.id, USER_PRESENT | ATTESTED, counter, twist),
        Buffer.alloc(16),
        length,
        id,
        coseKeyOf(publicKey),
      ]);
      const attestation = Buffer.concat([
        Buffer.from([0xa3]),
        text("fmt"),
        text(twist.attestation ?? "none"),
        text("attStmt"),
        Buffer.from([0xa0]),
        text("authData"),
        bytes(authData),
      ]);
      const encoded = id.toString("base64url");
      credentials.push({
        id: encoded,
        userHandle: options.user.id,
        rpId: options.rp.id,
        privateKey,
        publicKey,
        counter,
      });
      return {
        id: encoded,
        rawId: encoded,
        type: "public-key",
        response: {
          clientDataJSON: clientDataOf("webauthn.create", options.challenge, twist).toString("base64url"),
          attestationObject: attestation.toString("base64url"),
          transports: ["internal"],
        },
      };
    },
    get(options, credential, twist = {}) {
      credential.counter = twist.counter ?? credential.counter + 1;
      const clientData = clientDataOf("webauthn.get", options.challenge, twist);
      const data = authenticatorDataOf(options.rpId, USER_PRESENT, credential.counter, twist);
      const signature = createSign("sha256")
        .update(Buffer.concat([data, sha256(clientData)]))
        .sign(credential.privateKey);
      return {
        id: credential.id,
        rawId: credential.id,
        type: "public-key",
        response: {
          clientDataJSON: clientData.toString("base64url"),
          authenticatorData: data.toString("base64url"),
          signature: signature.toString("base64url"),
          userHandle: twist.userHandle === undefined ? credential.userHandle : twist.userHandle,
        },
      };
    },
  };
}
