import { writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { Script } from "node:vm";
import { documentOf } from "../core/clauses/document.ts";
import { evaluateClause, loadDocumentPackages } from "../core/clauses/evaluate.ts";
import type { ReachedEvidence } from "../core/clauses/evidence.ts";
import type { ClauseCode } from "../core/clauses/reason-codes.ts";
import type { Clause } from "../core/clauses/registry.ts";
import { type JsonSchema, parseSchema, type Schemas } from "../core/clauses/schema.ts";
import { isRefusal, type Refusal } from "../core/errors.ts";
import type { SigstoreIdentity } from "../core/source-key.ts";
import { liveAsLongAsParent } from "./child-life.ts";
import { type BundleQuestion, createSigstoreVerifier, type SigstoreVerifier } from "./sigstore.ts";

/**
 * What the parent asks, one request at a time: to evaluate clauses over one body, whether a schema can be saved, or who has signed a
 * Sigstore bundle.
 */
export type ChildRequest =
  | {
      readonly ask: "evaluate";
      readonly clauses: readonly Clause[];
      readonly evidence: ReachedEvidence;
      readonly schemas: Schemas;
      readonly now: number;
    }
  | { readonly ask: "schema"; readonly schema: unknown }
  | { readonly ask: "bundle"; readonly root: string; readonly question: BundleQuestion };

/** What the child answers. After `begun`, each answer must come within the time limit of a clause. */
export type ChildAnswer =
  | { readonly say: "ready" }
  | { readonly say: "begun" }
  | { readonly say: "clause"; readonly code: ClauseCode | null; readonly observed: unknown }
  | { readonly say: "schema"; readonly outcome: { readonly schema: JsonSchema } | Refusal }
  | { readonly say: "bundle"; readonly signer: SigstoreIdentity | null };

/** Ends a child whose parent has ended. A living parent kills a slow child much earlier. */
const ORPHAN_TIMEOUT_MS = 15_000;
const PRIORITY_LOWERED = 10;

declare global {
  var holdfastTask: (() => void) | undefined;
}

/**
 * The hidden command of an evaluator: evaluates what its parent sends, until the parent ends. It has no secrets and no
 * environment, and writes nothing; its parent may kill it at any moment. Never resolves.
 */
export function runEvaluatorChild(): Promise<never> {
  try {
    setPriority(PRIORITY_LOWERED);
  } catch {
    // Some systems forbid it. The time limits hold without it.
  }
  try {
    // When the system has no memory left, it ends this process before any other.
    writeFileSync("/proc/self/oom_score_adj", "1000");
  } catch {
    // Only Linux has it.
  }
  const task = new Script("holdfastTask()");
  const runBounded = (work: () => void): void => {
    globalThis.holdfastTask = work;
    task.runInThisContext({ timeout: ORPHAN_TIMEOUT_MS });
  };
  loadDocumentPackages();
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

let latest: { readonly root: string; readonly verifier: SigstoreVerifier } | null = null;

/** Made once: a child is asked with the root of its parent alone. */
function verifierOf(root: string): SigstoreVerifier {
  if (latest?.root !== root) latest = { root, verifier: createSigstoreVerifier(root) };
  return latest.verifier;
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
  if (request.ask === "bundle") {
    // The root is the operator's, so only the bundle counts towards the time.
    const verifier = verifierOf(request.root);
    say({ say: "begun" });
    runBounded(() => say({ say: "bundle", signer: verifier.signerOf(request.question) }));
    return;
  }
  const { clauses, evidence, schemas, now } = request;
  // Reading the body depends only on its length, so it does not count towards the time of the first clause.
  runBounded(() => documentOf(evidence.body));
  say({ say: "begun" });
  for (const clause of clauses) {
    runBounded(() => {
      const result = evaluateClause(clause, evidence, schemas, now);
      say({ say: "clause", code: result.reason_code, observed: result.observed });
    });
  }
}
