import type { ReplayFlags } from "../cli/tools.ts";
import { readConfig } from "../config.ts";
import { isRefusal, type Refusal } from "../core/errors.ts";
import { createEvaluator } from "../platform/evaluator.ts";
import { holdsItsDigest, signerAmong } from "../platform/source-signature.ts";
import { type CheckReplay, replayCheck } from "../services/checks/replay.ts";
import { CHECK_RUN_MS_MAX, CHECK_WAIT_MS_MAX } from "../services/warrants/interrupt.ts";
import { CLAUSE_TIMEOUT_MS, EVALUATOR_COMMAND } from "./context.ts";
import { sigstoreRootOf, verifyingBundles } from "./sigstore.ts";

/** Makes a check again, in an evaluator as a server has it, and without a ledger. */
export async function replayAlone(
  file: unknown,
  { sigstoreRoot }: ReplayFlags,
): Promise<CheckReplay | Refusal> {
  const config = readConfig({ SIGSTORE_ROOT: sigstoreRoot });
  if (isRefusal(config)) return config;
  const trusted = sigstoreRootOf(config);
  if (isRefusal(trusted)) return trusted;
  const evaluator = createEvaluator({
    command: EVALUATOR_COMMAND,
    clauseTimeoutMs: CLAUSE_TIMEOUT_MS,
    runTimeoutMs: CHECK_RUN_MS_MAX,
    waitTimeoutMs: CHECK_WAIT_MS_MAX,
    size: 0,
  });
  try {
    const { sigstoreRoot: root } = trusted;
    const sigstore = root === null ? null : verifyingBundles(evaluator, root);
    const { evaluate } = evaluator;
    return await replayCheck({ evaluate, holdsItsDigest, signerAmong, sigstore }, file);
  } finally {
    evaluator.close();
  }
}
