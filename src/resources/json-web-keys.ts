import { arrayOf, form, is, object, text, type Wire } from "../core/form.ts";

/** The public keys of vouchers and receipts, as RFC 7517 writes them. */

export const jsonWebKeyForm = () =>
  object({ kty: is("OKP"), crv: is("Ed25519"), x: text, kid: text, alg: is("EdDSA"), use: is("sig") });

export const jsonWebKeySetForm = form("JsonWebKeySet", () => object({ keys: arrayOf(jsonWebKeyForm()) }));
export type JsonWebKeySet = Wire<typeof jsonWebKeySetForm>;

export const jsonWebKeySetResource = ({ keys }: JsonWebKeySet): JsonWebKeySet => ({
  keys: keys.map(({ kty, crv, x, kid, alg, use }) => ({ kty, crv, x, kid, alg, use })),
});
