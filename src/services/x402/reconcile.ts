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
 * Asks the chain about an unknown payment, and settles by its answer. Where the answer is not final yet, the
 * chain is asked again later.
 *
 * @returns whether this call settled it; false also where somebody else did so first
 */
export async function reconcilePurchase(ctx: Context, purchase: Purchase): Promise<boolean> {
  const finding = await findAuthorization(ctx, purchase, "confirmed");
  const next = decideUnknown(finding);
  if (next !== "wait") {
    const known = next === "refund" ? "unpaid" : "paid";
    if (await settleUnknown(ctx, purchase, { known, knownBy: "chain" })) return true;
  }
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

/**
 * Postpones the next question to the chain. Where the payment has become known meanwhile, nothing changes.
 */
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

/** What the chain or a person has said about an unknown payment. */
export type Learnt = {
  readonly known: Exclude<Known, "unknown">;
  readonly knownBy: "chain" | "person";
  /** The person's note. */
  readonly note?: string | null;
};

/** The needs of `decideLearnt`. */
export const learningNeeds = (purchaseId: string) => ({
  ...buyingNeeds(purchaseId),
  warrantEscalation: OF_WARRANT,
});
type Learning = Snapshot<ReturnType<typeof learningNeeds>>;

/** The ids that `decideLearnt` may need. They are drawn first, since deciding is pure. */
export const newLearningIds = (ctx: Context) => ({
  eventId: ctx.newId("event"),
  escalationId: ctx.newId("escalation"),
});

/** The purchase and its warrant, once the payment is known. */
type LearntMove = Moved & { readonly purchase: Purchase };

/**
 * Records whether an unknown payment was made, and what follows, in one commit. Not made: the hold returns,
 * by `system`. Made: the open escalation is closed, and a new one (`payment_irrevocable`) asks a person to
 * release the hold. Null where the payment is known already.
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
        // The old escalation is closed first, since a warrant may have only one that is not resolved.
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

/** The new escalation for a payment that was made. A person can only release the hold. */
const irrevocableAfter = (closed: Escalation, id: string, now: number): Escalation => ({
  ...closed,
  id,
  reasonCodes: closed.reasonCodes.map((code) => (code === "payment_unknown" ? "payment_irrevocable" : code)),
  status: "open",
  createdAt: now,
  resolvedAt: null,
});
