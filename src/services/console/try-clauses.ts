import type { Evaluation } from "../../core/clauses/evidence.ts";
import { type Clause, parseClauses, refuseJsonPath, schemaNamesOf } from "../../core/clauses/registry.ts";
import type { Schemas } from "../../core/clauses/schema.ts";
import { isRefusal, type Refusal, refuseField } from "../../core/errors.ts";
import { BUILT_IN_RULES, decideOutcome, type Policy, type PolicyDecision } from "../../core/policy.ts";
import { ACCESS, type Caller, type PersonCaller, refuseAccess } from "../../core/roles.ts";
import { checkSourceUrl } from "../../core/source-url.ts";
import { benchSchemas } from "../../resources/bench-schemas.ts";
import { isBuiltIn } from "../built-in-schemas.ts";
import { schemasOf } from "../checks/evaluate.ts";
import { type Context, refusedBusy } from "../context.ts";
import { inPlace, TOO_MANY_CHECKS } from "../in-place.ts";
import { type BenchInput, evaluateOnBench } from "../run-bench.ts";

/** The bench for people: clauses on what a URL answers now, or on a body that they paste. Nothing is held or recorded. */

/** What a try has found. */
export type Tried = {
  readonly evaluation: Evaluation;
  /** What the URL answered; null where a body was pasted. */
  readonly answer: {
    readonly status: number | null;
    readonly bytes: number;
    readonly durationMs: number;
  } | null;
  /** What the organisation's policy would make of it, and which that is; null where the built-in rules decide. */
  readonly decision: PolicyDecision;
  readonly policy: Policy | null;
};

/**
 * The schemas that these clauses name: the organisation's own, and those that are built in where it has none of that name, as for
 * a warrant.
 */
const schemasFor = (ctx: Context, caller: Caller, clauses: readonly Clause[]): Promise<Schemas> =>
  ctx.store.read(async (reader) => {
    const builtIn = schemaNamesOf(clauses).filter(isBuiltIn);
    const own = await schemasOf(reader, caller.organisationId, clauses);
    return { ...Object.fromEntries(builtIn.map((name) => [name, benchSchemas[name]])), ...own } as Schemas;
  });

/** On a body that somebody pastes: as `POST /bench/run`, with the organisation's schemas. */
export async function tryOnBody(
  ctx: Context,
  caller: PersonCaller,
  input: BenchInput,
): Promise<Tried | Refusal> {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const clauses = parseClauses(input.clauses, "clauses");
  if (isRefusal(clauses)) return clauses;
  const schemas = await schemasFor(ctx, caller, clauses);
  const party = { organisationId: caller.organisationId, mode: caller.mode };
  const evaluation = await evaluateOnBench(ctx, input, { schemas, party });
  return isRefusal(evaluation) ? evaluation : decided(ctx, caller, evaluation, null);
}

/**
 * On what a URL answers now, as a check would see it. It takes a place among the checks, and the same roles may do it: the
 * instance fetches what it is told to.
 *
 * @param gone aborts where the browser leaves
 */
export async function tryOnUrl(
  ctx: Context,
  caller: PersonCaller,
  { clauses: given, url }: { readonly clauses: unknown; readonly url: string },
  gone: AbortSignal,
): Promise<Tried | Refusal> {
  const refused = refuseAccess(caller, ACCESS.verifyWarrant);
  if (refused) return refused;
  const clauses = parseClauses(given, "clauses");
  if (isRefusal(clauses)) return clauses;
  for (const [at, clause] of clauses.entries()) {
    const unsupported = refuseJsonPath(clause, `clauses.${at}`);
    if (unsupported) return unsupported;
  }
  const problem = checkSourceUrl(url);
  if (problem !== null) return refuseField("url", problem);
  return inPlace(ctx, caller, gone, (hasPlace) =>
    hasPlace ? fetchAndTry(ctx, caller, clauses, url) : Promise.resolve(TOO_MANY_CHECKS),
  );
}

async function fetchAndTry(
  ctx: Context,
  caller: PersonCaller,
  clauses: readonly Clause[],
  url: string,
): Promise<Tried | Refusal> {
  const { organisationId, mode } = caller;
  const owner = { party: organisationId, live: mode === "live" };
  const schemas = await schemasFor(ctx, caller, clauses);
  try {
    const { evidence, status, bytes, durationMs } = await ctx.fetchEvidence(url, owner, () => true);
    const evaluation = await ctx.evaluate({
      ...{ clauses, evidence, schemas, now: ctx.now() },
      party: { organisationId, mode },
    });
    return decided(ctx, caller, evaluation, { status, bytes, durationMs });
  } catch (error) {
    return refusedBusy(error);
  }
}

async function decided(
  ctx: Context,
  { organisationId }: Caller,
  evaluation: Evaluation,
  answer: Tried["answer"],
): Promise<Tried> {
  const policy = await ctx.store.read((reader) => reader.policies.ofOrganisation(organisationId));
  const { score, reasonCodes } = evaluation;
  const decision = decideOutcome(policy?.rules ?? BUILT_IN_RULES, score, reasonCodes);
  return { evaluation, answer, decision, policy };
}
