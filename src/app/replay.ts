import type { Refusal } from "../core/errors.ts";
import { createEvaluator } from "../platform/evaluator.ts";
import { holdsItsDigest, signerAmong } from "../platform/source-signature.ts";
import { type CheckReplay, replayCheck } from "../services/checks/replay.ts";
import { CHECK_RUN_MS_MAX, CHECK_WAIT_MS_MAX } from "../services/warrants/interrupt.ts";
import { CLAUSE_TIMEOUT_MS, EVALUATOR_COMMAND } from "./context.ts";

/** Makes a check again, in an evaluator as a server has it, and without a ledger. */
export async function replayAlone(file: unknown): Promise<CheckReplay | Refusal> {
  const evaluator = createEvaluator({
    command: EVALUATOR_COMMAND,
    clauseTimeoutMs: CLAUSE_TIMEOUT_MS,
    runTimeoutMs: CHECK_RUN_MS_MAX,
    waitTimeoutMs: CHECK_WAIT_MS_MAX,
    size: 0,
  });
  try {
    return await replayCheck({ evaluate: evaluator.evaluate, holdsItsDigest, signerAmong }, file);
  } finally {
    evaluator.close();
  }
}
