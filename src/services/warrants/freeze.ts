import { type Agent, isFreed, isStopped } from "../../core/agent.ts";
import { isRefusal, type Refusal } from "../../core/errors.ts";
import { SYSTEM } from "../../core/roles.ts";
import { isOverdue, type Warrant } from "../../core/warrant.ts";
import type { Put } from "../../store/change.ts";
import type { Decision } from "../../store/store.ts";
import { openEscalation } from "../checks/outcome.ts";
import type { Context } from "../context.ts";
import { raised } from "../raise-escalation.ts";
import { moveWarrant, movingNeeds, OF_WARRANT, STOPPING } from "../transition.ts";

/** How many warrants move together. Requests wait for their commit, so it must be short. */
const BATCH = 50;
/** After this many warrants that could not be moved, a run tries no more. */
const LEFT_MAX = 1_000;

/** What raises the escalation of a frozen warrant: without a check, for the reason `agent_killed`. */
export const frozenEscalation = (warrant: Warrant, id: string, now: number): readonly Put[] =>
  raised(openEscalation(warrant, id, { checkId: null, score: null, reasonCodes: ["agent_killed"] }, now));

/**
 * Freezes the held warrants of a killed agent, or thaws the frozen warrants of an active one, in batches
 * until all are done: those that name it, and those that its key opened. A warrant that cannot be moved does not
 * stop the others, unless a thousand cannot. A frozen warrant that is overdue stays frozen until a person
 * decides: nobody failed meanwhile.
 *
 * @throws the first fault, after the others were moved
 */
export async function followAgentStatus(ctx: Context, agent: Agent): Promise<void> {
  if (agent.status === "paused") return;
  const [from, move, expiresAfter] =
    agent.status === "killed"
      ? (["held", freezeWarrant, () => -1] as const)
      : (["frozen", thawWarrant, ctx.now] as const);
  const faults: unknown[] = [];
  const left = new Set<string>();
  while (left.size < LEFT_MAX) {
    const found = await ctx.store.read((reader) =>
      reader.warrants.ofAgent(agent.id, from, expiresAfter(), left.size + BATCH),
    );
    const batch = found.filter(({ id }) => !left.has(id)).slice(0, BATCH);
    if (batch.length === 0) break;
    await Promise.all(
      batch.map(async (warrant) => {
        try {
          if ((await move(ctx, warrant)) === true) return;
        } catch (error) {
          faults.push(error);
        }
        // Where the agent's status has changed again meanwhile, nothing moves here: the newer change has its
        // own run.
        left.add(warrant.id);
      }),
    );
  }
  if (faults.length > 0) throw faults[0];
}

function freezeWarrant(ctx: Context, found: Warrant): Promise<boolean | Refusal> {
  const ids = { eventId: ctx.newId("event"), escalationId: ctx.newId("escalation") };
  return ctx.store.execute({
    scope: found,
    needs: { ...movingNeeds(found.id), ...STOPPING },
    decide: (snapshot, now): Decision<boolean> => {
      const { warrant } = snapshot;
      if (!isStopped(snapshot) || warrant?.state !== "held") return { answer: false };
      const moved = moveWarrant(
        snapshot,
        { to: "frozen", by: "system" },
        {
          actor: SYSTEM,
          eventId: ids.eventId,
          now,
          puts: frozenEscalation(warrant, ids.escalationId, now),
        },
      );
      return isRefusal(moved) ? { answer: moved } : { answer: true, change: moved.change };
    },
  });
}

function thawWarrant(ctx: Context, found: Warrant): Promise<boolean | Refusal> {
  const eventId = ctx.newId("event");
  return ctx.store.execute({
    scope: found,
    needs: { ...movingNeeds(found.id), ...STOPPING, warrantEscalation: OF_WARRANT },
    decide: (snapshot, now): Decision<boolean> => {
      const { warrant, warrantEscalation: escalation } = snapshot;
      if (!isFreed(snapshot) || warrant?.state !== "frozen") return { answer: false };
      if (isOverdue(warrant, now)) return { answer: false };
      const closed = escalation && { ...escalation, status: "resolved" as const, resolvedAt: now };
      const moved = moveWarrant(
        snapshot,
        { to: "held", by: "system" },
        {
          actor: SYSTEM,
          eventId,
          now,
          puts: closed ? [{ kind: "escalation", before: escalation, row: closed }] : [],
        },
      );
      return isRefusal(moved) ? { answer: moved } : { answer: true, change: moved.change };
    },
  });
}
