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

/** The result of a purchase, for the first answer and for every replay. */
export type Result = { readonly passed: boolean; readonly reasonCodes: readonly ReasonCode[] };

/**
 * Refuses a request whose purchase recovery has ended or forgotten meanwhile. The request does nothing more,
 * since a second step could pay twice. Sent again with the same key, it gets the recorded answer, or begins
 * anew where nothing was held.
 */
export const ENDED_MEANWHILE: Refusal = refuse(
  "idempotency_in_flight",
  "The purchase was cut off, and recovery has ended it meanwhile. Retry with the same Idempotency-Key to see what came of it.",
);

/**
 * Records the result of a purchase under its key, in the commit that ends the purchase.
 *
 * @param heldKey the key that the purchase has held since its first commit
 * @param warrant null where nothing had to be paid
 * @throws where the purchase holds no key, which would be a fault
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
  return finish(heldKey, 200, { resource, contentHash: ended.responseHash }, puts);
}

/** An answer with its `body` filled in. */
export type PaymentAnswer = Answer & {
  /** The encoding of bytes that are not UTF-8; null where `body` is text. */
  readonly bodyEncoding: "base64" | null;
  /** Whether `body` is empty because the bytes are not kept any more. */
  readonly bodyGone: boolean;
};

const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const EMPTY_BODY = '""}';

/**
 * Fills the seller's answer into ours, byte for byte the same at every replay for as long as it is kept.
 *
 * @param bytes null where they are not kept any more
 */
export function withBody(answer: Answer, bytes: Uint8Array | null): PaymentAnswer {
  if (answer.contentHash === null) return { ...answer, bodyEncoding: null, bodyGone: false };
  if (bytes === null) return { ...answer, bodyEncoding: null, bodyGone: true };
  if (!answer.body.endsWith(EMPTY_BODY)) throw new Error("an answer without a place for its body");
  const text = textOf(bytes);
  const body = JSON.stringify(text ?? Buffer.from(bytes).toString("base64"));
  return {
    ...answer,
    body: `${answer.body.slice(0, -EMPTY_BODY.length)}${body}}`,
    bodyEncoding: text === null ? "base64" : null,
    bodyGone: false,
  };
}

/** A replay, with its body where that is kept. */
export async function replayWithBody(ctx: Context, replay: Answer): Promise<PaymentAnswer> {
  const { contentHash } = replay;
  const bytes =
    contentHash === null ? null : await ctx.store.read((reader) => reader.contents.get(contentHash));
  return withBody(replay, bytes);
}

function textOf(bytes: Uint8Array): string | null {
  try {
    return UTF_8.decode(bytes);
  } catch {
    return null;
  }
}
