import type { ReasonCode } from "../../core/clauses/reason-codes.ts";
import type { Warrant } from "../../core/warrant.ts";
import type { Purchase } from "../../core/x402/purchase.ts";
import type { IdempotencyRecord } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { type Answer, recordAnswer } from "../intent.ts";
import { paymentResource } from "./resources.ts";

/** What a purchase came to, for who waits for it and for every replay. */
export type Result = { readonly passed: boolean; readonly reasonCodes: readonly ReasonCode[] };

/** The answer, and the record of it that is committed with what ends the purchase. Its key was bound with the first commit. */
export function recordPayment(
  bound: IdempotencyRecord | null,
  purchase: Purchase,
  warrant: Warrant | null,
  { passed, reasonCodes }: Result,
  now: number,
): { answer: Answer; idempotency: IdempotencyRecord } {
  if (!bound || bound.outcome) throw new Error(`the key of the purchase ${purchase.id} is not in flight`);
  const resource = paymentResource(purchase, warrant, passed, reasonCodes);
  return recordAnswer(bound, 200, resource, now, purchase.responseHash);
}

/** An answer with its `body` filled in. */
export type PaymentAnswer = Answer & {
  /** How `body` says bytes that are no UTF-8; null where it is text. */
  readonly bodyEncoding: "base64" | null;
};

const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const EMPTY_BODY = '""}';

/** Fills in what was bought, the same to the byte at every replay. */
export function withBody(ctx: Context, answer: Answer): PaymentAnswer {
  if (answer.contentHash === null) return { ...answer, bodyEncoding: null };
  const bytes = ctx.store.reader.contents.get(answer.contentHash);
  if (!bytes || !answer.body.endsWith(EMPTY_BODY)) throw new Error("an answer whose content is missing");
  const text = textOf(bytes);
  const body = JSON.stringify(text ?? Buffer.from(bytes).toString("base64"));
  return {
    ...answer,
    body: `${answer.body.slice(0, -EMPTY_BODY.length)}${body}}`,
    bodyEncoding: text === null ? "base64" : null,
  };
}

function textOf(bytes: Uint8Array): string | null {
  try {
    return UTF_8.decode(bytes);
  } catch {
    return null;
  }
}
