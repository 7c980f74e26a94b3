import { isRefusal, type Refusal } from "../../core/errors.ts";
import type { Escalation } from "../../core/escalation.ts";
import { SYSTEM } from "../../core/roles.ts";
import { decideUnknown, type Finding, type Known, type Purchase } from "../../core/x402/purchase.ts";
import type { Snapshot } from "../../store/needs.ts";
import type { Decision } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { buyingNeeds, type Moved, moveBought, OF_WARRANT } from "../transition.ts";
import { findAuthorization, nextCheckAt } from "./money.ts";

/**
 * Asks the chain about a payment that is not known, and acts on its word. Where it says nothing yet, it is asked again later.
 *
 * @returns whether this found it out; false also where somebody else was quicker
 */
export async function reconcilePurchase(ctx: Context, purchase: Purchase): Promise<boolean> {
  const finding = await findAuthorization(ctx, purchase, "confirmed");
  const next = decideUnknown(finding);
  if (next === "refund") return settleUnknown(ctx, purchase, { known: "unpaid", knownBy: "chain" });
  if (next === "irrevocable") return settleUnknown(ctx, purchase, { known: "paid", knownBy: "chain" });
  await askLater(ctx, purchase, finding);
  return false;
}

async function settleUnknown(ctx: Context, unknown: Purchase, learnt: Learnt): Promise<boolean> {
  const ids = newLearningIds(ctx);
  const settled = await ctx.store.execute({
    scope: unknown,
    needs: learningNeeds(unknown.id),
    decide(snapshot, now): Decision<boolean> {
      const moved = decideLearnt(snapshot, learnt, ids, now);
      if (isRefusal(moved)) return { answer: moved };
      return moved ? { answer: true, change: moved.change } : { answer: false };
    },
  });
  return settled === true;
}

/** Puts the next question off. What somebody has learnt since the purchase was read stays. */
function askLater(ctx: Context, unknown: Purchase, finding: Finding): Promise<boolean | Refusal> {
  return ctx.store.execute({
    scope: unknown,
    needs: { purchase: unknown.id },
    decide({ purchase }, now): Decision<boolean> {
      if (purchase?.known !== "unknown") return { answer: false };
      const row: Purchase = {
        ...purchase,
        nextCheckAt: nextCheckAt(purchase, now),
        chainSilentSince: finding === "away" ? (purchase.chainSilentSince ?? now) : null,
      };
      return { answer: true, change: { put: [{ kind: "purchase", before: purchase, row }] } };
    },
  });
}

/** What the chain, or a person, says of a payment that was not known. */
export type Learnt = {
  readonly known: Exclude<Known, "unknown">;
  readonly knownBy: "chain" | "person";
  /** A person's words. */
  readonly note?: string | null;
};

/** What learning of a payment needs. */
export const learningNeeds = (purchaseId: string) => ({
  ...buyingNeeds(purchaseId),
  warrantEscalation: OF_WARRANT,
});
type Learning = Snapshot<ReturnType<typeof learningNeeds>>;

/** Ids that learning may need; drawn before it is decided. */
export const newLearningIds = (ctx: Context) => ({
  eventId: ctx.newId("event"),
  escalationId: ctx.newId("escalation"),
});

/** The purchase and its warrant with what was learnt. */
type LearntMove = Moved & { readonly purchase: Purchase };

/**
 * What follows from what was learnt, in one commit with it. Unpaid: the hold returns, by `system`. Paid: the escalation that
 * waited for the answer is closed, and another says what a person has to do with it, `payment_irrevocable`. Null where the
 * payment is known already.
 */
export function decideLearnt(
  snapshot: Learning,
  { known, knownBy, note = null }: Learnt,
  ids: ReturnType<typeof newLearningIds>,
  now: number,
): LearntMove | Refusal | null {
  const { purchase: before, warrant, warrantEscalation: escalation } = snapshot;
  if (before?.phase !== "ended" || before.known !== "unknown" || !warrant || escalation?.status !== "open")
    return null;
  const purchase: Purchase = { ...before, known, knownBy, nextCheckAt: null };
  const closed: Escalation = {
    ...escalation,
    status: "resolved",
    decision: known === "unpaid" ? "refund" : null,
    note: note ?? escalation.note,
    resolvedAt: now,
  };
  if (known === "paid") {
    return {
      purchase,
      warrant,
      change: {
        // The order matters: a warrant has one escalation that is not resolved.
        put: [
          { kind: "purchase", before, row: purchase },
          { kind: "escalation", before: escalation, row: closed },
          { kind: "escalation", before: null, row: irrevocableAfter(closed, ids.escalationId, now) },
        ],
      },
    };
  }
  const moved = moveBought(
    snapshot,
    purchase,
    { to: "refunded", by: "system" },
    {
      actor: SYSTEM,
      eventId: ids.eventId,
      now,
      puts: [{ kind: "escalation", before: escalation, row: closed }],
    },
  );
  return isRefusal(moved) ? moved : { ...moved, purchase };
}

/** What a person has to do once the payment is known to be paid: only a release is left. */
const irrevocableAfter = (closed: Escalation, id: string, now: number): Escalation => ({
  ...closed,
  id,
  reasonCodes: closed.reasonCodes.map((code) => (code === "payment_unknown" ? "payment_irrevocable" : code)),
  status: "open",
  createdAt: now,
  resolvedAt: null,
});
