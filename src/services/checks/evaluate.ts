import type { Evaluation, Evidence } from "../../core/clauses/evidence.ts";
import { schemaNamesOf } from "../../core/clauses/registry.ts";
import type { Warrant } from "../../core/warrant.ts";
import type { Context } from "../context.ts";

/**
 * Evaluates every clause of the warrant against the evidence, as if it were `now`. Rejects with a refusal
 * where the evaluator has no free child.
 */
export async function evaluateEvidence(
  ctx: Context,
  { organisationId, mode, spec: { clauses } }: Warrant,
  evidence: Evidence,
  now: number,
): Promise<Evaluation> {
  const schemas = await ctx.store.read((reader) =>
    reader.schemas.named(organisationId, schemaNamesOf(clauses)),
  );
  return ctx.evaluate({
    clauses,
    evidence,
    schemas: Object.fromEntries(
      schemas.map(({ name, schemaHash, schema }) => [name, { hash: schemaHash, schema }]),
    ),
    now,
    party: { organisationId, mode },
  });
}
