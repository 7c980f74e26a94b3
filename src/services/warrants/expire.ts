import { isRefusal, type Refusal } from "../../core/errors.ts";
import { SYSTEM } from "../../core/roles.ts";
import { isOverdue, type Warrant } from "../../core/warrant.ts";
import type { Change } from "../../store/change.ts";
import type { Context } from "../context.ts";
import { type Moving, moveWarrant, movingNeeds } from "../transition.ts";

/** held → expired, where the deadline has passed and no grace is left: the hold returns, and a failure of the agent is counted. */
export function decideExpiry(snapshot: Moving, eventId: string, now: number): Change | null {
  if (!snapshot.warrant || !isOverdue(snapshot.warrant, now)) return null;
  const moved = moveWarrant(
    snapshot,
    { to: "expired", by: "system" },
    { actor: SYSTEM, eventId, now, verdict: "failed" },
  );
  return isRefusal(moved) ? null : moved.change;
}

/**
 * Expires a warrant if it is still held and overdue, and answers whether it did. Of an expiry and a
 * decision at the same time, the first commit counts.
 */
export function expireWarrant(ctx: Context, warrant: Warrant): Promise<boolean | Refusal> {
  const eventId = ctx.newId("event");
  return ctx.store.execute({
    scope: warrant,
    needs: movingNeeds(warrant.id),
    decide: (snapshot, now) => {
      const change = decideExpiry(snapshot, eventId, now);
      return change ? { answer: true, change } : { answer: false };
    },
  });
}
