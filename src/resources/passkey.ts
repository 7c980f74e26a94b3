import { arrayOf, boolean, form, integer, is, object, orNull, text, time, type Wire } from "../core/form.ts";
import { ALGORITHMS, type Passkey, userHandleOf } from "../core/passkey.ts";
import { isoTime, isoTimeOrNull } from "../core/time.ts";
import type { User } from "../core/user.ts";
import { listForm } from "./list.ts";

/** Passkeys, and what browsers are asked about them: WebAuthn's own options, as its JSON functions take them. */

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

/** How a browser is told of passkeys that exist: `PublicKeyCredentialDescriptorJSON`. */
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

/** What is asked of a browser to make a passkey: `PublicKeyCredentialCreationOptionsJSON`. */
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

/** What is asked of a browser to have something signed: `PublicKeyCredentialRequestOptionsJSON`. */
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

/** @param token goes into `Service-Passkey` of that one decision; shown once, only its hash is kept */
export const approvalResource = (token: string, expiresAt: number): Approval => ({
  object: "passkey_approval",
  token,
  expires_at: isoTime(expiresAt),
});
