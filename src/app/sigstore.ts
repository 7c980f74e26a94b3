import { readFileSync } from "node:fs";
import type { Config } from "../config.ts";
import { type Refusal, refuseField } from "../core/errors.ts";
import { createSigstoreVerifier, type SigstoreVerifier } from "../platform/sigstore.ts";

/** What verifies Sigstore bundles; null where the operator names no trusted root. Refused where its file holds none. */
export function sigstoreWith({ sigstoreRoot }: Config): SigstoreVerifier | null | Refusal {
  if (sigstoreRoot === null) return null;
  try {
    return createSigstoreVerifier(readFileSync(sigstoreRoot, "utf8"));
  } catch (error) {
    const { message } = error as Error;
    return refuseField(
      "HOLDFAST_SIGSTORE_ROOT",
      `must be the file of a trusted root of Sigstore (${message})`,
    );
  }
}
