import type { Agent } from "../../core/agent.ts";
import { isRefusal, type Refusal } from "../../core/errors.ts";
import type { Escalation } from "../../core/escalation.ts";
import { SYSTEM } from "../../core/roles.ts";
import type { Warrant } from "../../core/warrant.ts";
import type { Context } from "../context.ts";
import { moveWarrant } from "./transition.ts";

/** How many warrants are moved before the writer is left to others: their commit holds up every request. */
const BATCH = 50;
/** How many a run passes over: where so many cannot be moved, no more are tried. */
const LEFT_MAX = 1_000;

/** What a person sees of a frozen warrant: no check, the reason `agent_killed`. */
export const freezeEscalation = (warrant: Warrant, id: string, now: number): Escalation => ({
  id,
  organisationId: warrant.organisationId,
  mode: warrant.mode,
  warrantId: warrant.id,
  checkId: null,
  score: null,
  reasonCodes: ["agent_killed"],
  status: "open",
  decision: null,
  releasedBps: null,
  note: null,
  raisedBy: null,
  resolvedBy: null,
  createdAt: now,
  resolvedAt: null,
});

/**
 * Freezes what a killed agent holds, or thaws what is frozen of one that is active again. In batches, to the end. A warrant that
 * cannot be moved keeps no other from it, but where a thousand cannot.
 *
 * @throws what kept the first one from it, once the others are moved
 */
export async function followAgentStatus(ctx: Context, agent: Agent): Promise<void> {
  if (agent.status === "paused") return;
  const [from, move] =
    agent.status === "killed" ? (["held", freezeWarrant] as const) : (["frozen", thawWarrant] as const);
  const faults: unknown[] = [];
  const left = new Set<string>();
  while (left.size < LEFT_MAX) {
    const found = ctx.store.reader.warrants.ofAgent(agent.id, from, left.size + BATCH);
    const batch = found.filter(({ id }) => !left.has(id)).slice(0, BATCH);
    if (batch.length === 0) break;
    await Promise.all(
      batch.map(async (warrant) => {
        try {
          if ((await move(ctx, warrant)) === true) return;
        } catch (error) {
          faults.push(error);
        }
        // A status changed again meanwhile moves nothing, and the newer change has its own run.
        left.add(warrant.id);
      }),
    );
  }
  if (faults.length > 0) throw faults[0];
}

function freezeWarrant(ctx: Context, warrant: Warrant): Promise<boolean | Refusal> {
  const ids = { eventId: ctx.newId("event"), escalationId: ctx.newId("escalation") };
  const now = ctx.now();
  return ctx.store.execute({
    scope: warrant,
    needs: { warrantId: warrant.id },
    decide: (snapshot) => {
      if (snapshot.agent?.status !== "killed" || snapshot.warrant?.state !== "held") return { answer: false };
      const moved = moveWarrant(
        snapshot,
        { to: "frozen", by: "system" },
        {
          actor: SYSTEM,
          eventId: ids.eventId,
          now,
          rows: [{ kind: "escalation", row: freezeEscalation(warrant, ids.escalationId, now) }],
        },
      );
      return isRefusal(moved) ? { answer: moved } : { answer: true, change: moved.change };
    },
  });
}

function thawWarrant(ctx: Context, warrant: Warrant): Promise<boolean | Refusal> {
  const eventId = ctx.newId("event");
  const now = ctx.now();
  return ctx.store.execute({
    scope: warrant,
    needs: { warrantId: warrant.id },
    decide: (snapshot) => {
      if (snapshot.agent?.status !== "active" || snapshot.warrant?.state !== "frozen")
        return { answer: false };
      const moved = moveWarrant(
        snapshot,
        { to: "held", by: "system" },
        {
          actor: SYSTEM,
          eventId,
          now,
          rows: snapshot.escalation
            ? [{ kind: "escalation", row: { ...snapshot.escalation, status: "resolved", resolvedAt: now } }]
            : [],
        },
      );
      return isRefusal(moved) ? { answer: moved } : { answer: true, change: moved.change };
    },
  });
}
