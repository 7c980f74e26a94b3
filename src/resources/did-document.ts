import { Type } from "@sinclair/typebox";
import type { Agent } from "../core/agent.ts";
import { didKeyOf, multibaseOf } from "../core/did-key.ts";
import { didOfAgent, didOfInstance } from "../core/did-web.ts";
import { arrayOf, form, is, object, text, type Wire } from "../core/form.ts";
import { type JsonWebKeySet, jsonWebKeyForm, jsonWebKeySetResource } from "./json-web-keys.ts";

/** What a `did:web` resolves to (W3C DID Core 1.0; docs/witnesses, "Identities"). */

const CONTEXT = "https://www.w3.org/ns/did/v1";

export const instanceDocumentForm = form("InstanceDidDocument", () =>
  object({
    "@context": arrayOf(text),
    id: text,
    verificationMethod: arrayOf(
      object({ id: text, type: is("JsonWebKey2020"), controller: text, publicKeyJwk: jsonWebKeyForm() }),
    ),
    assertionMethod: arrayOf(text),
  }),
);

/** The instance with the keys that it signs with and those that signed before: what they signed still holds. */
export function instanceDocument(baseUrl: string, jwks: JsonWebKeySet): Wire<typeof instanceDocumentForm> {
  const did = didOfInstance(baseUrl);
  const methods = jsonWebKeySetResource(jwks).keys.map((publicKeyJwk) => ({
    id: `${did}#${publicKeyJwk.kid}`,
    type: "JsonWebKey2020" as const,
    controller: did,
    publicKeyJwk,
  }));
  return {
    "@context": [CONTEXT, "https://w3id.org/security/suites/jws-2020/v1"],
    id: did,
    verificationMethod: methods,
    assertionMethod: methods.map(({ id }) => id),
  };
}

export const agentDocumentForm = form("AgentDidDocument", () =>
  object({
    "@context": arrayOf(text),
    id: text,
    controller: text,
    alsoKnownAs: Type.Optional(arrayOf(text)),
    verificationMethod: Type.Optional(
      arrayOf(object({ id: text, type: is("Multikey"), controller: text, publicKeyMultibase: text })),
    ),
    assertionMethod: Type.Optional(arrayOf(text)),
    authentication: Type.Optional(arrayOf(text)),
  }),
);

/** An agent, with the key that it brought. Without one nobody can sign as the agent; the instance speaks for it. */
export function agentDocument(
  baseUrl: string,
  { id, identity }: Pick<Agent, "id" | "identity">,
): Wire<typeof agentDocumentForm> {
  const did = didOfAgent(baseUrl, id);
  const controller = didOfInstance(baseUrl);
  const didKey = didKeyOf(identity);
  if (didKey === null) return { "@context": [CONTEXT], id: did, controller };
  const publicKeyMultibase = multibaseOf(didKey);
  const method = `${did}#${publicKeyMultibase}`;
  return {
    "@context": [CONTEXT, "https://w3id.org/security/multikey/v1"],
    id: did,
    controller,
    alsoKnownAs: [didKey],
    verificationMethod: [{ id: method, type: "Multikey", controller: did, publicKeyMultibase }],
    assertionMethod: [method],
    authentication: [method],
  };
}
