import { agentAfter, sessionAfter, type Verdict } from "../../core/agent.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { giveBack } from "../../core/session.ts";
import { type TraceDetails, traceOf } from "../../core/trace.ts";
import { decide, type Move, type Transition, type Warrant } from "../../core/warrant.ts";
import { deliveriesOf } from "../../core/webhook.ts";
import type { Change, Row, Snapshot } from "../../store/store.ts";

/** Everything that a transition writes: `rows` are what is particular to the verb, the deliveries of its event join them. */
export function changeOf(
  { from, warrant, legs }: Transition,
  { warrant: before, webhooks }: Pick<Snapshot, "warrant" | "webhooks">,
  details: TraceDetails,
  rows: readonly Row[],
): Change {
  const trace = traceOf({ from, warrant, legs }, details);
  const deliveries = deliveriesOf(webhooks, trace);
  return {
    warrant: { before, after: warrant },
    trace,
    rows: [...rows, ...deliveries.map((row) => ({ kind: "delivery" as const, row }))],
    ...(legs && {
      posting: {
        legs,
        asset: warrant.asset,
        warrantId: warrant.id,
        depositId: null,
        payee: legs.paid > 0n ? warrant.payee : null,
        recordedAt: warrant.movedAt,
      },
    }),
  };
}

/** The agent and the session after a warrant of theirs moved: failures counted, and what was returned given back. */
function countersAfter(snapshot: Snapshot, returned: bigint, verdict: Verdict): readonly Row[] {
  const rows: Row[] = [];
  if (snapshot.agent && verdict !== "neither") {
    rows.push({ kind: "agent", row: agentAfter(snapshot.agent, verdict) });
  }
  if (snapshot.session && (verdict !== "neither" || returned > 0n)) {
    rows.push({ kind: "spendSession", row: sessionAfter(giveBack(snapshot.session, returned), verdict) });
  }
  return rows;
}

export type Moved = { readonly warrant: Warrant; readonly change: Change };

/**
 * Moves the snapshot's warrant: the state machine's answer as a Change, with its trace entry, its posting, and the counters
 * of its agent and session. `rows` are what the verb adds, such as a check.
 */
export function moveWarrant(
  snapshot: Snapshot,
  move: Move,
  details: TraceDetails & {
    readonly now: number;
    readonly verdict?: Verdict;
    readonly rows?: readonly Row[];
  },
): Moved | Refusal {
  const before = snapshot.warrant;
  if (!before) return warrantNotFound();
  const transition = decide(before, move, details.now);
  if (isRefusal(transition)) return transition;
  const returned = transition.legs?.available ?? 0n;
  const counters = countersAfter(snapshot, returned, details.verdict ?? "neither");
  return {
    warrant: transition.warrant,
    change: changeOf(transition, snapshot, details, [...counters, ...(details.rows ?? [])]),
  };
}

export const warrantNotFound = (): Refusal => refuse("warrant_not_found", "There is no such warrant.");

/** Optimistic concurrency: `If-Match` names the version that the caller has seen. */
export const refuseOtherVersion = (warrant: Warrant, ifMatch: number | null): Refusal | null =>
  ifMatch === null || ifMatch === warrant.version
    ? null
    : refuse(
        "version_conflict",
        `The warrant is at version ${warrant.version}, not ${ifMatch}. Read it again and retry.`,
      );
