import { Type } from "@sinclair/typebox";
import { arrayOf, boolean, form, named, object, oneOf, orNull } from "../form.ts";
import type { Spec } from "../warrant.ts";
import { CLAUSE_CODES, REASON_CODES } from "./reason-codes.ts";
import { CLAUSE_KINDS, type Clause, clauseModels } from "./registry.ts";

/** Clauses and specs are answered as they were given, so they have no encoder. */

export const clauseForm = form("Clause", () =>
  Type.Unsafe<Clause>(Type.Union(CLAUSE_KINDS.map((kind) => named(formNameOf(kind), clauseModels[kind])))),
);

/** `http.status` → HttpStatusClause. */
function formNameOf(kind: string): string {
  const words = kind.split(".").map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${words.join("")}Clause`;
}

export const specForm = () => Type.Unsafe<Spec>(object({ clauses: arrayOf(clauseForm()) }));

export const reasonCodesForm = () => arrayOf(oneOf(REASON_CODES));

/** What became of a clause in a check (docs/clauses, "What a verify fetches"). */
export const clauseResultForm = form("ClauseResult", () =>
  object({
    kind: oneOf(CLAUSE_KINDS),
    clause: clauseForm(),
    passed: boolean,
    reason_code: orNull(oneOf(CLAUSE_CODES)),
    observed: Type.Unknown({ description: "What was seen; null where there is nothing to show." }),
  }),
);
