import { setPriority } from "node:os";
import { Script } from "node:vm";
import { documentOf } from "../core/clauses/document.ts";
import { evaluateClause } from "../core/clauses/evaluate.ts";
import type { ReachedEvidence } from "../core/clauses/evidence.ts";
import type { ClauseCode } from "../core/clauses/reason-codes.ts";
import type { Clause } from "../core/clauses/registry.ts";
import { type JsonSchema, parseSchema, type Schemas } from "../core/clauses/schema.ts";
import { isRefusal, type Refusal } from "../core/errors.ts";
import { liveAsLongAsParent } from "./child-life.ts";

/** What the parent asks: clauses over one body, or whether a schema can be saved. One at a time. */
export type ChildRequest =
  | {
      readonly ask: "evaluate";
      readonly clauses: readonly Clause[];
      readonly evidence: ReachedEvidence;
      readonly schemas: Schemas;
      readonly now: number;
    }
  | { readonly ask: "schema"; readonly schema: unknown };

/** What the child says. After `begun` each answer has to come within the clause's time. */
export type ChildAnswer =
  | { readonly say: "ready" }
  | { readonly say: "begun" }
  | { readonly say: "clause"; readonly code: ClauseCode | null; readonly observed: unknown }
  | { readonly say: "schema"; readonly outcome: { readonly schema: JsonSchema } | Refusal };

/** The parent kills a slow child far sooner: this ends one whose parent is gone. */
const ORPHAN_TIMEOUT_MS = 5_000;
const PRIORITY_LOWERED = 10;

declare global {
  var holdfastTask: (() => void) | undefined;
}

/**
 * The hidden `evaluator` command: evaluates what its parent sends, until the parent goes. It has no secrets, no
 * environment and nothing to write; its parent may kill it at any moment. Resolves never.
 */
export function runEvaluatorChild(): Promise<never> {
  try {
    setPriority(PRIORITY_LOWERED);
  } catch {
    // Some systems forbid it; the time limits hold all the same.
  }
  const task = new Script("holdfastTask()");
  const runBounded = (work: () => void): void => {
    globalThis.holdfastTask = work;
    task.runInThisContext({ timeout: ORPHAN_TIMEOUT_MS });
  };
  liveAsLongAsParent();
  process.on("message", (request: ChildRequest) => {
    try {
      answer(request, runBounded);
    } catch {
      process.exit(1);
    }
  });
  say({ say: "ready" });
  return new Promise(() => {});
}

function say(answer: ChildAnswer): void {
  process.send?.(answer);
}

function answer(request: ChildRequest, runBounded: (work: () => void) => void): void {
  if (request.ask === "schema") {
    say({ say: "begun" });
    runBounded(() => {
      const outcome = parseSchema(request.schema);
      say({ say: "schema", outcome: isRefusal(outcome) ? outcome : { schema: outcome.schema } });
    });
    return;
  }
  const { clauses, evidence, schemas, now } = request;
  // Read before the first clause's time begins: that takes as long as the body is, and no longer.
  runBounded(() => documentOf(evidence.body));
  say({ say: "begun" });
  for (const clause of clauses) {
    runBounded(() => {
      const result = evaluateClause(clause, evidence, schemas, now);
      say({ say: "clause", code: result.reason_code, observed: result.observed });
    });
  }
}
