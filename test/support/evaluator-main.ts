import { runEvaluatorChild } from "../../src/platform/evaluator-child.ts";

/** The program that tests start evaluator children with, instead of src/main.ts. */
await runEvaluatorChild();
