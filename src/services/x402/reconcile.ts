import { isRefusal, type Refusal } from "../../core/errors.ts";
import type { Escalation } from "../../core/escalation.ts";
import { SYSTEM } from "../../core/roles.ts";
import { decideUnknown, type Finding, type Known, type Purchase } from "../../core/x402/purchase.ts";
import type { Change, Row, Snapshot } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { moveWarrant } from "../warrants/transition.ts";
import { findAuthorization, nextCheckAt } from "./money.ts";

/**
 * Asks the chain about a payment that is not known, and acts on its word; where it says nothing yet, later again. Whether the
 * payment is known now.
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
  const ids = { eventId: ctx.newId("event"), escalationId: ctx.newId("escalation") };
  const now = ctx.now();
  const settled = await ctx.store.execute<boolean>({
    scope: unknown,
    needs: { purchaseId: unknown.id },
    decide: (snapshot) => {
      const change = decideLearnt(snapshot, learnt, ids, now);
      if (isRefusal(change)) return { answer: change };
      return change ? { answer: true, change } : { answer: false };
    },
  });
  return settled === true;
}

function askLater(ctx: Context, unknown: Purchase, finding: Finding): Promise<boolean | Refusal> {
  const now = ctx.now();
  return ctx.store.execute<boolean>({
    scope: unknown,
    needs: { purchaseId: unknown.id },
    decide: ({ purchase }) => {
      if (purchase?.known !== "unknown") return { answer: false };
      const row = {
        ...purchase,
        nextCheckAt: nextCheckAt(purchase, now),
        chainSilentSince: finding === "away" ? (purchase.chainSilentSince ?? now) : null,
      };
      return { answer: true, change: { rows: [{ kind: "purchase", row }] } };
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

/**
 * What follows from what was learnt, in one commit with it. Unpaid: the hold returns, by `system`. Paid: the escalation that
 * waited for the answer is closed, and another says what a person has to do with it, `payment_irrevocable`. Null where the
 * payment is known already.
 */
export function decideLearnt(
  snapshot: Snapshot,
  { known, knownBy, note = null }: Learnt,
  ids: { readonly eventId: string; readonly escalationId: string },
  now: number,
): Change | Refusal | null {
  const { purchase, escalation } = snapshot;
  if (purchase?.phase !== "ended" || purchase.known !== "unknown" || escalation?.status !== "open")
    return null;
  const learnt: Purchase = { ...purchase, known, knownBy, nextCheckAt: null };
  const closed: Escalation = {
    ...escalation,
    status: "resolved",
    decision: known === "unpaid" ? "refund" : null,
    note: note ?? escalation.note,
    resolvedAt: now,
  };
  if (known === "paid") return { rows: rowsOfPaid(learnt, closed, ids.escalationId, now) };
  const moved = moveWarrant(
    snapshot,
    { to: "refunded", by: "system" },
    {
      actor: SYSTEM,
      eventId: ids.eventId,
      now,
      rows: [{ kind: "escalation", row: closed }],
      purchase: learnt,
    },
  );
  return isRefusal(moved) ? moved : moved.change;
}

/** The order matters: a warrant has one escalation that is not resolved. */
const rowsOfPaid = (
  learnt: Purchase,
  closed: Escalation,
  escalationId: string,
  now: number,
): readonly Row[] => [
  { kind: "purchase", row: learnt },
  { kind: "escalation", row: closed },
  {
    kind: "escalation",
    row: {
      ...closed,
      id: escalationId,
      reasonCodes: closed.reasonCodes.map((code) =>
        code === "payment_unknown" ? "payment_irrevocable" : code,
      ),
      status: "open",
      createdAt: now,
      resolvedAt: null,
    },
  },
];
