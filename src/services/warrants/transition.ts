import { agentAfter, sessionAfter, type Verdict } from "../../core/agent.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { giveBack } from "../../core/session.ts";
import { type TraceDetails, traceOf } from "../../core/trace.ts";
import {
  decide,
  isSettled,
  type Move,
  type State,
  type Transition,
  type Warrant,
} from "../../core/warrant.ts";
import { deliveriesOf } from "../../core/webhook.ts";
import { type Purchase, refuseMove } from "../../core/x402/purchase.ts";
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
 * Null where the warrant's purchase allows the move, if it was opened for one. While the purchase is under way only itself moves the
 * warrant: no sweep, kill, check or person comes between. When it has ended, what is known of the payment decides.
 */
function refuseByPurchase(purchase: Purchase | null, to: State): Refusal | null {
  if (!purchase?.quote) return null;
  if (purchase.phase !== "ended") {
    return refuse(
      "illegal_transition",
      `The purchase ${purchase.id} of this warrant is under way; it ends by itself.`,
    );
  }
  return refuseSettlement(purchase, to);
}

const refuseSettlement = ({ quote, known }: Purchase, to: State): Refusal | null =>
  quote && (isSettled(to) || to === "disputed") ? refuseMove(quote.pays.kind, known ?? "unknown", to) : null;

/**
 * Moves the snapshot's warrant: the state machine's answer as a Change, with its trace entry, its posting, and the counters
 * of its agent and session. `rows` are what the verb adds, such as a check. `purchase` is the warrant's purchase as it is after
 * the move, where the move is the purchase's own: what is known by then must allow it.
 */
export function moveWarrant(
  snapshot: Snapshot,
  move: Move,
  details: TraceDetails & {
    readonly now: number;
    readonly verdict?: Verdict;
    readonly rows?: readonly Row[];
    readonly purchase?: Purchase;
  },
): Moved | Refusal {
  const before = snapshot.warrant;
  if (!before) return warrantNotFound();
  const transition = decide(before, move, details.now);
  if (isRefusal(transition)) return transition;
  const { purchase, rows = [] } = details;
  const refused = purchase
    ? refuseSettlement(purchase, move.to)
    : refuseByPurchase(snapshot.purchase, move.to);
  if (refused) return refused;
  const returned = transition.legs?.available ?? 0n;
  const counters = countersAfter(snapshot, returned, details.verdict ?? "neither");
  return {
    warrant: transition.warrant,
    change: changeOf(transition, snapshot, details, [
      ...counters,
      ...rows,
      ...(purchase ? [{ kind: "purchase" as const, row: purchase }] : []),
    ]),
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
