import type { AttemptResult } from "../core/webhook.ts";
import { createAddressRules, type OwnListeners } from "./addresses.ts";
import { RequestFailure, requestSafely, type SafeRequestOptions, untilAborted } from "./safe-request.ts";

export type WebhookSenderOptions = {
  /** CIDRs that the operator allows besides the public addresses. */
  readonly allowNetworks: readonly string[];
  /** The time limit for the name look-up, the connection and the start of the response together. */
  readonly timeoutMs: number;
  readonly ownListeners?: OwnListeners;
} & Omit<SafeRequestOptions, "rules">;

export type WebhookRequest = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/** Sends one attempt. It never throws: where no response came, the result says why. A redirect is not followed. */
export type WebhookSender = { send(request: WebhookRequest): Promise<AttemptResult> };

const RESPONSE_BYTES_MAX = 1_024;

/** The safe sender of webhooks (README, "Webhooks"). Throws on a malformed CIDR. */
export function createWebhookSender(options: WebhookSenderOptions): WebhookSender {
  const safe = { ...options, rules: createAddressRules(options.allowNetworks, options.ownListeners) };
  return {
    async send({ url, headers, body }) {
      const startedAt = performance.now();
      const controller = new AbortController();
      const timer = setTimeout(() => controller.abort(), options.timeoutMs);
      let answer: Pick<AttemptResult, "code" | "responseStart">;
      try {
        const response = await requestSafely(safe, {
          url: new URL(url),
          method: "POST",
          headers: { ...headers, "user-agent": "Holdfast/0.1", "accept-encoding": "identity" },
          body,
          signal: controller.signal,
        });
        answer = { code: response.status, responseStart: await readStart(response, controller.signal) };
      } catch (error) {
        answer = { code: null, responseStart: codeOf(error, controller.signal) };
      } finally {
        clearTimeout(timer);
        // The rest of the response is not read.
        controller.abort();
      }
      return { ...answer, durationMs: Math.round(performance.now() - startedAt) };
    },
  };
}

function codeOf(error: unknown, signal: AbortSignal): string {
  if (error instanceof RequestFailure) return error.code;
  return signal.aborted ? "source_timeout" : "source_unreachable";
}

/** The first kilobyte as text, or as much of it as comes in time. Only the status decides whether the attempt succeeded. */
async function readStart(response: Response, signal: AbortSignal): Promise<string> {
  const reader = response.body?.getReader();
  let start = Buffer.alloc(0);
  try {
    while (reader && start.length < RESPONSE_BYTES_MAX) {
      const { done, value } = await untilAborted(reader.read(), signal);
      if (done) break;
      start = Buffer.concat([start, value]);
    }
  } catch {
    // The response was cut off. What has come so far is enough.
  }
  // Decoded as a stream, which leaves out a character that is cut in two at the end.
  return new TextDecoder().decode(start.subarray(0, RESPONSE_BYTES_MAX), { stream: true });
}
