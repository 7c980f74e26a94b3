import type { Evaluation, Evidence } from "../../core/clauses/evidence.ts";
import { type Clause, schemaNamesOf } from "../../core/clauses/registry.ts";
import type { Schemas } from "../../core/clauses/schema.ts";
import type { Warrant } from "../../core/warrant.ts";
import type { Reader } from "../../store/reader.ts";
import type { Context } from "../context.ts";

/** The schemas that clauses name, as their organisation has saved them. They never change. */
export async function schemasOf(
  reader: Reader,
  organisationId: string,
  clauses: readonly Clause[],
): Promise<Schemas> {
  const schemas = await reader.schemas.named(organisationId, schemaNamesOf(clauses));
  return Object.fromEntries(
    schemas.map(({ name, schemaHash, schema }) => [name, { hash: schemaHash, schema }]),
  );
}

/** An evaluation, with the schemas that it was made with. */
export type Evaluated = { readonly evaluation: Evaluation; readonly schemas: Schemas };

/**
 * Evaluates every clause of the warrant against the evidence, as if it were `now`. Rejects with a refusal
 * where the evaluator has no free child.
 */
export async function evaluateEvidence(
  ctx: Context,
  { organisationId, mode, spec: { clauses } }: Warrant,
  evidence: Evidence,
  now: number,
): Promise<Evaluated> {
  const schemas = await ctx.store.read((reader) => schemasOf(reader, organisationId, clauses));
  const party = { organisationId, mode };
  return { evaluation: await ctx.evaluate({ clauses, evidence, schemas, now, party }), schemas };
}
