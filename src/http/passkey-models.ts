import { Type } from "@sinclair/typebox";

/** The forms of what `/auth/passkeys` and `/auth/passkey` answer, for the API's description. */

const text = Type.String();
const time = Type.String({ format: "date-time" });
const integer = Type.Integer();

const passkey = Type.Object({
  object: Type.Literal("passkey"),
  id: text,
  name: text,
  counts_for_threshold: Type.Boolean(),
  created_at: time,
  last_used_at: Type.Union([time, Type.Null()]),
});

const descriptors = Type.Array(
  Type.Object({ type: Type.Literal("public-key"), id: text, transports: Type.Array(text) }),
);

/** Named models, as `components.schemas` has them. The options are WebAuthn's own, as its JSON functions take them. */
export const passkeyModels = {
  Passkey: passkey,
  PasskeyList: Type.Object({ object: Type.Literal("list"), data: Type.Array(passkey) }),
  PasskeyCreationOptions: Type.Object({
    challenge: text,
    rp: Type.Object({ id: text, name: text }),
    user: Type.Object({ id: text, name: text, displayName: text }),
    pubKeyCredParams: Type.Array(Type.Object({ type: Type.Literal("public-key"), alg: integer })),
    timeout: integer,
    attestation: Type.Literal("none"),
    authenticatorSelection: Type.Object({
      residentKey: Type.Literal("required"),
      requireResidentKey: Type.Boolean(),
      userVerification: Type.Literal("required"),
    }),
    excludeCredentials: descriptors,
  }),
  PasskeyRequestOptions: Type.Object({
    challenge: text,
    rpId: text,
    timeout: integer,
    userVerification: Type.Literal("required"),
    allowCredentials: descriptors,
  }),
  PasskeyApproval: Type.Object({
    object: Type.Literal("passkey_approval"),
    token: text,
    expires_at: time,
  }),
};
