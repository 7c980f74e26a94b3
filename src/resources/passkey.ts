import { Type } from "@sinclair/typebox";
import { arrayOf, boolean, form, integer, is, object, orNull, text, time, type Wire } from "../core/form.ts";
import { ALGORITHMS, type Passkey, SETTLEMENTS, userHandleOf } from "../core/passkey.ts";
import { MODES } from "../core/roles.ts";
import { isoTime, isoTimeOrNull } from "../core/time.ts";
import type { User } from "../core/user.ts";
import { assetInput, closed, id, literals, password, payeeInput, plainText, releasedBps } from "./input.ts";
import { listForm } from "./list.ts";

/**
 * Passkeys, and the requests to browsers about them: WebAuthn's own options, in the JSON that browsers take.
 */

export const passkeyForm = form("Passkey", () =>
  object({
    object: is("passkey"),
    id: text,
    name: text,
    counts_for_threshold: boolean,
    created_at: time,
    last_used_at: orNull(time),
  }),
);

/** A passkey as its owner sees it. */
export const passkeyResource = (passkey: Passkey): Wire<typeof passkeyForm> => ({
  object: "passkey",
  id: passkey.id,
  name: passkey.name,
  counts_for_threshold: passkey.countsForThreshold,
  created_at: isoTime(passkey.createdAt),
  last_used_at: isoTimeOrNull(passkey.lastUsedAt),
});

export const passkeyListForm = form("PasskeyList", () => listForm(passkeyForm(), {}));

const descriptorForm = () => object({ type: is("public-key"), id: text, transports: arrayOf(text) });

/** An existing passkey, as browsers take it: `PublicKeyCredentialDescriptorJSON`. */
const descriptorOf = ({ id, transports }: Passkey): Wire<typeof descriptorForm> => ({
  type: "public-key",
  id,
  transports,
});

export const creationOptionsForm = form("PasskeyCreationOptions", () =>
  object({
    challenge: text,
    rp: object({ id: text, name: text }),
    user: object({ id: text, name: text, displayName: text }),
    pubKeyCredParams: arrayOf(object({ type: is("public-key"), alg: integer })),
    timeout: integer,
    attestation: is("none"),
    authenticatorSelection: object({
      residentKey: is("required"),
      requireResidentKey: boolean,
      userVerification: is("required"),
    }),
    excludeCredentials: arrayOf(descriptorForm()),
  }),
);

export type CreationOptions = Wire<typeof creationOptionsForm>;

/** The request to a browser for a new passkey: `PublicKeyCredentialCreationOptionsJSON`. */
export const creationOptions = (
  user: User,
  rpId: string,
  challenge: string,
  timeoutMs: number,
  passkeys: readonly Passkey[],
): CreationOptions => ({
  challenge,
  rp: { id: rpId, name: "Holdfast" },
  user: { id: userHandleOf(user), name: user.email, displayName: user.name },
  pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: "public-key" as const, alg })),
  timeout: timeoutMs,
  attestation: "none",
  authenticatorSelection: {
    residentKey: "required",
    requireResidentKey: true,
    userVerification: "required",
  },
  excludeCredentials: passkeys.map(descriptorOf),
});

export const requestOptionsForm = form("PasskeyRequestOptions", () =>
  object({
    challenge: text,
    rpId: text,
    timeout: integer,
    userVerification: is("required"),
    allowCredentials: arrayOf(descriptorForm()),
  }),
);
export type RequestOptions = Wire<typeof requestOptionsForm>;

/** The request to a browser for a signature: `PublicKeyCredentialRequestOptionsJSON`. */
export const requestOptions = (
  rpId: string,
  challenge: string,
  timeoutMs: number,
  passkeys: readonly Passkey[] = [],
): RequestOptions => ({
  challenge,
  rpId,
  timeout: timeoutMs,
  userVerification: "required",
  allowCredentials: passkeys.map(descriptorOf),
});

export const approvalForm = form("PasskeyApproval", () =>
  object({
    object: is("passkey_approval"),
    token: text,
    expires_at: time,
  }),
);
export type Approval = Wire<typeof approvalForm>;

/**
 * @param token is for `Service-Passkey` of that one decision. It is shown only here: only its hash is kept
 */
export const approvalResource = (token: string, expiresAt: number): Approval => ({
  object: "passkey_approval",
  token,
  expires_at: isoTime(expiresAt),
});

/** Whoever adds or removes a passkey shows the password again. */
export const ownPasswordBody = Type.Object({ password }, closed);

const base64url = (maxLength: number) =>
  Type.String({ pattern: "^[A-Za-z0-9_-]+$", maxLength, description: "base64url" });

/** What a browser sends about a credential. It may send more fields than are read here. */
const credential = {
  id: base64url(1_400),
  rawId: base64url(1_400),
  type: literals(["public-key"]),
};
const registrationResponse = Type.Object(
  {
    ...credential,
    response: Type.Object(
      {
        clientDataJSON: base64url(16_384),
        attestationObject: base64url(65_536),
        transports: Type.Optional(
          Type.Array(plainText({ lengthMax: 32, description: "a transport" }), {
            maxItems: 16,
            description: "an array of strings",
          }),
        ),
      },
      { description: "an AuthenticatorAttestationResponse as JSON" },
    ),
  },
  { description: "what PublicKeyCredential.toJSON() gave" },
);
const assertionResponse = Type.Object(
  {
    ...credential,
    response: Type.Object(
      {
        clientDataJSON: base64url(16_384),
        authenticatorData: base64url(16_384),
        signature: base64url(4_096),
        userHandle: Type.Optional(Type.Union([base64url(128), Type.Null()], { description: "base64url" })),
      },
      { description: "an AuthenticatorAssertionResponse as JSON" },
    ),
  },
  { description: "what PublicKeyCredential.toJSON() gave" },
);

export const passkeyBody = Type.Object(
  {
    name: Type.Optional(
      plainText({ lengthMin: 1, lengthMax: 200, description: "a string of 1 to 200 characters" }),
    ),
    response: registrationResponse,
  },
  closed,
);

export const passkeySignInBody = Type.Object(
  { response: assertionResponse, mode: Type.Optional(literals(MODES)) },
  closed,
);

export const decisionBody = Type.Object(
  {
    warrant_id: id,
    version: Type.Integer({ minimum: 1, description: "the warrant's version, an integer from 1" }),
    decision: literals(SETTLEMENTS),
    released_bps: Type.Optional(releasedBps),
  },
  closed,
);

export const correctionApprovalBody = Type.Object({ correction_id: id }, closed);

export const payoutsBody = Type.Object(
  {
    batch: Type.String({
      pattern: "^[0-9a-f]{64}$",
      description: "the digest of the payouts that are submitted, 64 hex digits",
    }),
    payee: Type.Optional(payeeInput),
    asset: assetInput,
  },
  closed,
);

export const assertionBody = Type.Object({ response: assertionResponse }, closed);
