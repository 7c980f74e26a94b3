import { readFileSync } from "node:fs";
import type { Config } from "../config.ts";
import { isRefusal, type Refusal, refuseField } from "../core/errors.ts";
import type { Evaluator } from "../platform/evaluator.ts";
import type { Fetcher } from "../platform/fetcher.ts";
import { logWarning } from "../platform/log.ts";
import { createSigstoreVerifier } from "../platform/sigstore.ts";
import type { Context, VerifyingBundles } from "../services/context.ts";

/** The text of the operator's trusted root of Sigstore; null where there is none. Refused where its file holds none. */
export function sigstoreRootOf({ sigstoreRoot }: Config): { readonly sigstoreRoot: string | null } | Refusal {
  if (sigstoreRoot === null) return { sigstoreRoot };
  try {
    const root = readFileSync(sigstoreRoot, "utf8");
    createSigstoreVerifier(root);
    return { sigstoreRoot: root };
  } catch (error) {
    const { message } = error as Error;
    return refuseField(
      "HOLDFAST_SIGSTORE_ROOT",
      `must be the file of a trusted root of Sigstore (${message})`,
    );
  }
}

/** Verifies bundles in the evaluators. Where these are busy a bundle counts as none: no check waits for one, or fails. */
export const verifyingBundles = (
  { verifyBundle }: Pick<Evaluator, "verifyBundle">,
  root: string,
): VerifyingBundles => ({
  async signerOf(question, party) {
    try {
      return await verifyBundle(root, question, party);
    } catch (error) {
      logWarning("a Sigstore bundle was not verified", {
        why: isRefusal(error) ? error.refused : String(error),
      });
      return null;
    }
  },
});

/** What a server verifies bundles with, and fetches them; null without a root. */
export const sigstoreWith = (
  root: string | null,
  evaluator: Evaluator,
  { fetchBeside }: Fetcher,
): Context["sigstore"] => (root === null ? null : { ...verifyingBundles(evaluator, root), fetchBeside });
