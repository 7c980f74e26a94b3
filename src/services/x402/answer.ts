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

/** An answer, and what goes into its `body`, which ends the JSON. */
export type PaymentAnswer = Answer & {
  /** What the seller answered; null where it is not kept any more, or where there was nothing. Then `body` stays empty. */
  readonly content: Content | null;
  /** Whether `body` is empty because the bytes are not kept any more. */
  readonly isGone: boolean;
};

/** Bytes that are read only once there is memory for them. */
export type Content = {
  readonly length: number;
  /** Null where they have been deleted meanwhile. */
  read(): Promise<Uint8Array | null>;
};

/** @param bytes what the seller has just answered; null where it answered nothing */
export const withContent = (answer: Answer, bytes: Uint8Array | null): PaymentAnswer =>
  filled(answer, bytes && { length: bytes.length, read: async () => bytes });

/** A replay, with its content where that is kept. */
export async function replayWithContent({ store }: Context, replay: Answer): Promise<PaymentAnswer> {
  const { contentHash: hash } = replay;
  const length = hash === null ? null : await store.read((reader) => reader.contents.length(hash));
  if (hash === null || length === null) return filled(replay, null);
  return filled(replay, { length, read: () => store.read((reader) => reader.contents.get(hash)) });
}

function filled(answer: Answer, content: Content | null): PaymentAnswer {
  const isExpected = answer.contentHash !== null;
  return { ...answer, content: isExpected ? content : null, isGone: isExpected && content === null };
}
