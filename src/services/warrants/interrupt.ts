import { isStopped } from "../../core/agent.ts";
import { isRefusal, type Refusal } from "../../core/errors.ts";
import { SYSTEM } from "../../core/roles.ts";
import type { Warrant } from "../../core/warrant.ts";
import type { Decision } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { free } from "../idempotency.ts";
import { moveWarrant, movingNeeds, STOPPING } from "../transition.ts";
import { frozenEscalation } from "./freeze.ts";

/**
 * Limits of the parts of a check: 60 s for the fetch (HOLDFAST_FETCH_SECONDS at most), 20 s until an
 * evaluator is free, 30 s for all clauses. Together they are shorter than the lease, 120 s, after which a
 * check counts as interrupted.
 */
export const CHECK_WAIT_MS_MAX = 20_000;
export const CHECK_RUN_MS_MAX = 30_000;
export const CHECK_LEASE_MS = 120_000;

/**
 * verifying → held, or → frozen where an agent of it was killed. This undoes a check that will never end, and
 * frees its key. A warrant that has moved meanwhile stays as it is.
 */
export function interruptCheck(ctx: Context, begun: Warrant): Promise<boolean | Refusal> {
  const ids = { eventId: ctx.newId("event"), escalationId: ctx.newId("escalation") };
  return ctx.store.execute({
    scope: begun,
    needs: { ...movingNeeds(begun.id), ...STOPPING, heldKey: begun.id },
    decide: (snapshot, now): Decision<boolean> => {
      const { warrant, heldKey } = snapshot;
      if (warrant?.version !== begun.version) return { answer: false };
      const stopped = isStopped(snapshot);
      const moved = moveWarrant(
        snapshot,
        { to: stopped ? "frozen" : "held", by: "system" },
        {
          actor: SYSTEM,
          eventId: ids.eventId,
          now,
          puts: stopped ? frozenEscalation(warrant, ids.escalationId, now) : [],
        },
      );
      if (isRefusal(moved)) return { answer: moved };
      return { answer: true, change: { ...moved.change, deleted: heldKey ? [free(heldKey)] : [] } };
    },
  });
}
