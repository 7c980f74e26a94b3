import type { ReasonCode } from "../../core/clauses/reason-codes.ts";
import { type Refusal, refuse } from "../../core/errors.ts";
import type { Warrant } from "../../core/warrant.ts";
import type { Purchase } from "../../core/x402/purchase.ts";
import { paymentResource } from "../../resources/purchase.ts";
import type { Put } from "../../store/change.ts";
import type { IdempotencyKey } from "../../store/rows.ts";
import type { Decision } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { type Answer, finish } from "../idempotency.ts";

/** What a purchase came to, for who waits for it and for every replay. */
export type Result = { readonly passed: boolean; readonly reasonCodes: readonly ReasonCode[] };

/**
 * Recovery has ended or forgotten the purchase that a request was working on. The request does nothing more: a second step
 * could pay twice. Sent again with the same key it gets the recorded answer; where nothing was held it begins anew.
 */
export const ENDED_MEANWHILE: Refusal = refuse(
  "idempotency_in_flight",
  "The purchase was cut off, and recovery has ended it meanwhile. Retry with the same Idempotency-Key to see what came of it.",
);

/**
 * Records what a purchase came to under its key, in the commit that ends it.
 *
 * @param heldKey the key that the purchase has held since its first commit
 * @param warrant null where nothing had to be paid
 * @throws where the purchase holds no key, which no commit leaves so
 */
export function finishPurchase(
  heldKey: IdempotencyKey | null,
  ended: Purchase,
  warrant: Warrant | null,
  { passed, reasonCodes }: Result,
  puts: readonly Put[],
): Required<Decision<Answer>> {
  if (!heldKey) throw new Error(`the key of the purchase ${ended.id} is not in flight`);
  const resource = paymentResource(ended, warrant, passed, reasonCodes);
  return finish(heldKey, 200, resource, puts, ended.responseHash);
}

/** An answer with its `body` filled in. */
export type PaymentAnswer = Answer & {
  /** How `body` says bytes that are no UTF-8; null where it is text. */
  readonly bodyEncoding: "base64" | null;
};

const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const EMPTY_BODY = '""}';

/** Fills in what was bought, the same to the byte at every replay. */
export async function withBody(ctx: Context, answer: Answer): Promise<PaymentAnswer> {
  const { contentHash } = answer;
  if (contentHash === null) return { ...answer, bodyEncoding: null };
  const bytes = await ctx.store.read((reader) => reader.contents.get(contentHash));
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
