import { agentAfter, sessionAfter, type Verdict } from "../../core/agent.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { giveBack } from "../../core/session.ts";
import { type TraceDetails, traceOf } from "../../core/trace.ts";
import { decide, type Move, type Transition, type Warrant } from "../../core/warrant.ts";
import type { Change, Row, Snapshot } from "../../store/store.ts";

/** Everything that a transition writes, but for what is particular to the verb. */
export function changeOf(
  { from, warrant, legs }: Transition,
  before: Warrant | null,
  details: TraceDetails,
): Change {
  return {
    warrant: { before, after: warrant },
    trace: traceOf({ from, warrant, legs }, details),
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
  const change = changeOf(transition, before, details);
  const returned = transition.legs?.available ?? 0n;
  return {
    warrant: transition.warrant,
    change: {
      ...change,
      rows: [...countersAfter(snapshot, returned, details.verdict ?? "neither"), ...(details.rows ?? [])],
    },
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
