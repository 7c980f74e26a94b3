import { storableText } from "../core/storable-text.ts";
import type { AttemptResult } from "../core/webhook.ts";
import { createAddressRules, type OwnListeners } from "./addresses.ts";
import { failureCode, readStart, requestSafely, type SafeRequestOptions } from "./safe-request.ts";

export type WebhookSenderOptions = {
  /** CIDRs that the operator allows besides the public addresses. */
  readonly allowNetworks: readonly string[];
  /** The time limit for the name look-up, the connection and the start of the response together. */
  readonly timeoutMs: number;
  readonly ownListeners?: OwnListeners;
} & Omit<SafeRequestOptions, "rules">;

export type WebhookRequest<Body = string> = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body;
};

/** Sends one attempt. It never throws: where no response came, the result says why. A redirect is not followed. */
export type WebhookSender = { send(request: WebhookRequest<string | Uint8Array>): Promise<AttemptResult> };

const RESPONSE_BYTES_MAX = 1_024;

/** The safe sender of webhooks (docs/webhooks, "Webhooks"). Throws on a malformed CIDR. */
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
        const start = await readStart(response, controller.signal, RESPONSE_BYTES_MAX);
        // Decoded as a stream, which leaves out a character that is cut in two at the end. Only the status decides.
        answer = {
          code: response.status,
          responseStart: storableText(new TextDecoder().decode(start, { stream: true })),
        };
      } catch (error) {
        answer = { code: null, responseStart: failureCode(error, controller.signal) };
      } finally {
        clearTimeout(timer);
        // The rest of the response is not read.
        controller.abort();
      }
      return { ...answer, durationMs: Math.round(performance.now() - startedAt) };
    },
  };
}
