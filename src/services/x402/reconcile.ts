import { isRefusal, type Refusal } from "../../core/errors.ts";
import type { Escalation } from "../../core/escalation.ts";
import { SYSTEM } from "../../core/roles.ts";
import {
  type Finding,
  isContradicted,
  isToBeAsked,
  type Known,
  type Purchase,
  saidOf,
} from "../../core/x402/purchase.ts";
import type { Snapshot } from "../../store/needs.ts";
import type { Decision } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { raised } from "../raise-escalation.ts";
import { buyingNeeds, type Moved, moveBought, OF_WARRANT } from "../transition.ts";
import { findAuthorization, nextCheckAt } from "./money.ts";

/**
 * What asking the chain has changed. `settled`: an unknown payment is known now. `contradicted`: the chain says
 * otherwise than the person who attested the payment. `nothing`: it is asked again later, agrees with the person,
 * or somebody else was first.
 */
export type Reconciled = "settled" | "contradicted" | "nothing";

/**
 * Asks the chain about a payment. An unknown one is settled by its answer; beside what a person has attested, the
 * answer is kept. Where it is not final yet, the chain is asked again later.
 */
export async function reconcilePurchase(ctx: Context, purchase: Purchase): Promise<Reconciled> {
  const finding = await findAuthorization(ctx, purchase);
  const said = saidOf(finding);
  if (said !== null && purchase.known !== "unknown")
    return (await keepSaid(ctx, purchase, said)) === true ? "contradicted" : "nothing";
  if (said !== null && (await settleUnknown(ctx, purchase, { known: said, knownBy: "chain" })))
    return "settled";
  await askLater(ctx, purchase, finding);
  return "nothing";
}

/**
 * Keeps what the chain says of a payment that a person has attested. Nothing moves.
 *
 * @returns whether the chain contradicts the person
 */
function keepSaid(
  ctx: Context,
  attested: Purchase,
  chainSaid: Exclude<Known, "unknown">,
): Promise<boolean | Refusal> {
  return ctx.store.execute({
    scope: attested,
    needs: { purchase: attested.id },
    decide({ purchase }): Decision<boolean> {
      if (!purchase || !isToBeAsked(purchase)) return { answer: false };
      const row: Purchase = { ...purchase, chainSaid, nextCheckAt: null, chainSilentSince: null };
      return {
        answer: isContradicted(row),
        change: { put: [{ kind: "purchase", before: purchase, row }] },
      };
    },
  });
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
 * Postpones the next question to the chain. Where the chain has answered meanwhile, nothing changes.
 */
function askLater(ctx: Context, asked: Purchase, finding: Finding): Promise<boolean | Refusal> {
  return ctx.store.execute({
    scope: asked,
    needs: { purchase: asked.id },
    decide({ purchase }, now): Decision<boolean> {
      if (!purchase || !isToBeAsked(purchase)) return { answer: false };
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
  // What a person says is still compared with the chain, once it answers.
  const next = knownBy === "person" ? nextCheckAt(before, now) : null;
  const purchase: Purchase = { ...before, known, knownBy, nextCheckAt: next };
  const closed: Escalation = {
    ...escalation,
    status: "resolved",
    decision: known === "unpaid" ? "refund" : null,
    reasonCodes: known === "unpaid" ? unusedCodes(escalation.reasonCodes) : escalation.reasonCodes,
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
          ...raised(irrevocableAfter(closed, ids.escalationId, now)),
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

/** Why the hold returned: a clean pass that nobody took money for is `payment_unused`. */
const unusedCodes = (codes: Escalation["reasonCodes"]): Escalation["reasonCodes"] =>
  codes.every((code) => code === "payment_unknown") ? ["payment_unused"] : codes;

/** The new escalation for a payment that was made. A person can only release the hold. */
const irrevocableAfter = (closed: Escalation, id: string, now: number): Escalation => ({
  ...closed,
  id,
  reasonCodes: closed.reasonCodes.map((code) => (code === "payment_unknown" ? "payment_irrevocable" : code)),
  status: "open",
  createdAt: now,
  resolvedAt: null,
});
