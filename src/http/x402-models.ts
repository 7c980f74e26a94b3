import { type TSchema, Type } from "@sinclair/typebox";
import { REASON_CODES } from "../core/clauses/reason-codes.ts";
import { STATES } from "../core/warrant.ts";

/** The forms of what a purchase answers, and of the keys that its vouchers are checked with, for the API's description. */

const orNull = (schema: TSchema) => Type.Union([schema, Type.Null()]);
const oneOf = (values: readonly string[]) => Type.Union(values.map((value) => Type.Literal(value)));
const text = Type.String();
const amount = Type.String({ pattern: "^[0-9]+$", description: "In the asset's smallest unit." });

/** Named models, as `components.schemas` has them. */
export const x402Models = {
  Payment: Type.Object({
    warrant_id: orNull(text),
    state: orNull(oneOf(STATES)),
    quoted: orNull(Type.Object({ amount, asset: text, payee: text })),
    paid: Type.Boolean(),
    released_bps: orNull(Type.Integer({ minimum: 1, maximum: 10_000, description: "In basis points." })),
    passed: Type.Boolean(),
    reason_codes: Type.Array(oneOf(REASON_CODES)),
    status: Type.Integer({ description: "Of what the seller answered; 0 where it did not." }),
    body: Type.String({ description: "Text, or base64 with `Service-Body-Encoding: base64`." }),
  }),
  JsonWebKeySet: Type.Object({
    keys: Type.Array(
      Type.Object({
        kty: Type.Literal("OKP"),
        crv: Type.Literal("Ed25519"),
        x: text,
        kid: text,
        alg: Type.Literal("EdDSA"),
        use: Type.Literal("sig"),
      }),
    ),
  }),
} satisfies Record<string, TSchema>;
