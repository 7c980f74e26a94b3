import { type Evaluation, reachedEvidence, unreachedEvidence } from "../core/clauses/evidence.ts";
import { parseClauses } from "../core/clauses/registry.ts";
import type { Schemas } from "../core/clauses/schema.ts";
import { isRefusal, type Refusal, refuseField } from "../core/errors.ts";
import type { Wire } from "../core/form.ts";
import type { Party } from "../core/places.ts";
import { parseTime } from "../core/time.ts";
import { type benchBody, checkResultResource, suppliedValuesOf } from "../resources/bench.ts";
import { benchSchemas } from "../resources/bench-schemas.ts";
import { type Context, refusedBusy } from "./context.ts";

/** The body of `POST /bench/run`: clauses, and a description of a deliverable, so that nothing is fetched. */
export type BenchInput = Wire<typeof benchBody>;

const RAW_BYTES_MAX = 128 * 1024;

/** Evaluates clauses against a described deliverable. The ledger is neither read nor written. */
export async function runBench(ctx: Context, input: BenchInput, address: string) {
  const party = { organisationId: address, mode: "sandbox" } as const;
  const evaluation = await evaluateOnBench(ctx, input, { schemas: benchSchemas, party });
  return isRefusal(evaluation) ? evaluation : checkResultResource(evaluation);
}

/** @param by whose run it is, and the schemas that its clauses may name */
export async function evaluateOnBench(
  ctx: Context,
  input: BenchInput,
  by: { readonly schemas: Schemas; readonly party: Party },
): Promise<Evaluation | Refusal> {
  const clauses = parseClauses(input.clauses, "clauses");
  if (isRefusal(clauses)) return clauses;
  const { deliverable } = input;
  const body = new TextEncoder().encode(deliverable.raw ?? "");
  if (body.length > RAW_BYTES_MAX) return refuseField("deliverable.raw", "must be at most 128 kB");
  const generatedAt = optionalTime(deliverable.generated_at, "deliverable.generated_at");
  if (isRefusal(generatedAt)) return generatedAt;
  const now = optionalTime(input.now, "now");
  if (isRefusal(now)) return now;
  const supplied = suppliedValuesOf(input);
  return ctx
    .evaluateBench({
      ...by,
      clauses,
      evidence: deliverable.reached
        ? reachedEvidence({ ...supplied, status: deliverable.status ?? null, body, generatedAt })
        : unreachedEvidence("source_unreachable", supplied),
      now: now ?? ctx.now(),
    })
    .catch(refusedBusy);
}

function optionalTime(text: string | undefined, path: string): number | null | Refusal {
  if (text === undefined) return null;
  return (
    parseTime(text) ?? refuseField(path, "must be an ISO 8601 time with a zone, such as 2030-01-31T12:00:00Z")
  );
}
