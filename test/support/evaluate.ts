import { evaluateClause } from "../../src/core/clauses/evaluate.ts";
import {
  type Evaluation,
  type Evidence,
  evidenceHashOf,
  summarise,
} from "../../src/core/clauses/evidence.ts";
import type { Clause } from "../../src/core/clauses/registry.ts";
import type { Schemas } from "../../src/core/clauses/schema.ts";

/** What the evaluator finds, without its processes: every clause against the evidence, also after one has failed. */
export function evaluate(
  clauses: readonly Clause[],
  evidence: Evidence,
  schemas: Schemas,
  now: number,
): Evaluation {
  const details = clauses.map((clause) => evaluateClause(clause, evidence, schemas, now));
  return summarise(details, evidenceHashOf(evidence), now);
}
