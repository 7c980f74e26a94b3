import { createAddressRules, type OwnListeners } from "./addresses.ts";
import { failureCode, readStart, requestSafely, type SafeRequestOptions } from "./safe-request.ts";

export type WitnessClientOptions = {
  /** CIDRs that the operator allows besides the public addresses. */
  readonly allowNetworks: readonly string[];
  /** The time limit for a request and its answer together. */
  readonly timeoutMs: number;
  readonly ownListeners?: OwnListeners;
} & Omit<SafeRequestOptions, "rules">;

/** What a witness answered, its body cut where it is too long for any answer of a witness; or why there is no answer. */
export type WitnessAnswer =
  | { readonly status: number; readonly text: string }
  | { readonly failed: ReturnType<typeof failureCode> };

/** Asks a witness. It never throws, and follows no redirect. */
export type AskWitness = (url: string, body?: string) => Promise<WitnessAnswer>;

/** A checkpoint with 16 signatures of the largest kind, and more. */
const ANSWER_BYTES_MAX = 160 * 1024;

/**
 * The client of witnesses. The operator names their URLs, so a name that leads elsewhere is the risk: only public addresses are
 * asked, and those in the networks that are allowed for witnesses.
 */
export function createWitnessClient(options: WitnessClientOptions): AskWitness {
  const safe = { ...options, rules: createAddressRules(options.allowNetworks, options.ownListeners) };
  return async (url, body) => {
    const controller = new AbortController();
    const { signal } = controller;
    const timer = setTimeout(() => controller.abort(), options.timeoutMs);
    try {
      const headers = { "user-agent": "Holdfast/0.1", "accept-encoding": "identity" };
      const asked = { url: new URL(url), headers, signal };
      const response = await requestSafely(
        safe,
        body === undefined ? asked : { ...asked, method: "POST", body },
      );
      const start = await readStart(response, signal, ANSWER_BYTES_MAX);
      return { status: response.status, text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(start) };
    } catch (error) {
      return { failed: failureCode(error, signal) };
    } finally {
      clearTimeout(timer);
      controller.abort();
    }
  };
}
