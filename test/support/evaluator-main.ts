import { runEvaluatorChild } from "../../src/platform/evaluator-child.ts";

/** What tests start children with, in the place of `main.ts evaluator`. */
await runEvaluatorChild();
