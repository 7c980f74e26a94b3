import { CLAUSE_KINDS, clauseTemplates } from "../core/clauses/registry.ts";
import { anyObject, arrayOf, form, is, object, oneOf, text, time, type Wire } from "../core/form.ts";
import { isoTime } from "../core/time.ts";
import type { SavedVerifier } from "../core/verifier.ts";
import { readBackForm } from "./list.ts";

/** A saved verifier, and the list of them, which also has every kind of clause. */

const verifierForm = form("Verifier", () =>
  object({
    id: text,
    object: is("verifier"),
    type: oneOf(CLAUSE_KINDS),
    name: text,
    config: anyObject<SavedVerifier["config"]>("The clause's fields apart from kind."),
    created_at: time,
  }),
);

export const verifierResource = (verifier: SavedVerifier): Wire<typeof verifierForm> => ({
  id: verifier.id,
  object: "verifier",
  type: verifier.type,
  name: verifier.name,
  config: verifier.config,
  created_at: isoTime(verifier.createdAt),
});

export const verifierListForm = form("VerifierList", () =>
  readBackForm(verifierForm(), {
    templates: arrayOf(object({ kind: oneOf(CLAUSE_KINDS), description: text })),
  }),
);

export const verifierListResource = (verifiers: readonly SavedVerifier[]): Wire<typeof verifierListForm> => ({
  object: "list",
  data: verifiers.map(verifierResource),
  templates: clauseTemplates.map(({ kind, description }) => ({ kind, description })),
});
