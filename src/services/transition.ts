import { agentAfter, sessionAfter, type Verdict } from "../core/agent.ts";
import { isRefusal, type Refusal, refuse } from "../core/errors.ts";
import { giveBack } from "../core/session.ts";
import { type TraceDetails, traceOf } from "../core/trace.ts";
import {
  decide,
  isSettled,
  type Move,
  type State,
  type Transition,
  type Warrant,
  warrantNotFound,
} from "../core/warrant.ts";
import { deliveriesOf, type WebhookEndpoint } from "../core/webhook.ts";
import { type Purchase, refuseMove } from "../core/x402/purchase.ts";
import type { Change, Put } from "../store/change.ts";
import type { From, Snapshot } from "../store/needs.ts";
import { refuseUnacknowledged } from "./instance.ts";

/** How a command names its warrant: by its id, or as the warrant of an escalation or purchase. */
type WarrantAsk = string | From<"escalationOrWarrant"> | From<"purchase">;

export const OF_WARRANT: From<"warrant"> = { from: "warrant" };
export const OF_PURCHASE: From<"purchase"> = { from: "purchase" };

/** The need of the kill rule (`isStopped`), besides the agent that every move of a warrant has. */
export const STOPPING = { warrantOpener: OF_WARRANT } as const;

/** The needs of the counters and the events of a move. */
const TOUCHED = { warrantAgent: OF_WARRANT, warrantSession: OF_WARRANT, webhooks: true } as const;

/** The needs of a warrant's move besides the warrant. The purchase is among them, since an unfinished one forbids the move. */
export const MOVING = { warrantPurchase: OF_WARRANT, ...TOUCHED } as const;

export const movingNeeds = <Ask extends WarrantAsk>(warrant: Ask) => ({ warrant, ...MOVING });
export type MovingNeeds = ReturnType<typeof movingNeeds<string>>;
export type Moving = Snapshot<MovingNeeds>;

/** The needs of a move that a purchase makes with its own warrant. */
export const buyingNeeds = (purchaseId: string) => ({
  purchase: purchaseId,
  warrant: OF_PURCHASE,
  ...TOUCHED,
});
export type BuyingNeeds = ReturnType<typeof buyingNeeds>;
export type BuyingSnapshot = Snapshot<BuyingNeeds>;

type Details = Omit<TraceDetails, "recordedAt">;

/**
 * Everything that a transition writes: the rows that every move has, the deliveries of its event, and `puts`,
 * the rows that only this verb has.
 */
export function changeOf(
  { from, warrant, legs }: Transition,
  before: Warrant | null,
  { recordedAt, webhooks }: { readonly recordedAt: number; readonly webhooks: readonly WebhookEndpoint[] },
  now: number,
  details: Details,
  puts: readonly Put[],
): Moved {
  const entry = traceOf({ from, warrant, legs }, { ...details, recordedAt });
  const after = { ...warrant, traceHead: entry.entryHash };
  const put: Put[] = [
    { kind: "warrant", before, row: after },
    { kind: "trace", row: entry },
    ...puts,
    ...deliveriesOf(webhooks, entry, now).map((row) => ({ kind: "delivery" as const, before: null, row })),
  ];
  if (legs) {
    const { organisationId, mode, asset, id: causeId } = warrant;
    const kind = before === null ? "hold" : "settlement";
    const payee = legs.paid > 0n ? warrant.payee : null;
    put.push({
      kind: "posting",
      row: { organisationId, mode, asset, legs, kind, causeId, payee, recordedAt },
    });
  }
  return { warrant: after, change: { put } };
}

/**
 * The agent and the session of a warrant after its move: a failure is counted, and the session's ceiling
 * regains what returned.
 */
function countersAfter(
  { warrantAgent: agent, warrantSession: session }: Snapshot<typeof TOUCHED & { readonly warrant: string }>,
  returned: bigint,
  verdict: Verdict,
): readonly Put[] {
  const puts: Put[] = [];
  if (agent && verdict !== "neither") {
    puts.push({ kind: "agent", before: agent, row: agentAfter(agent, verdict) });
  }
  if (session && (verdict !== "neither" || returned > 0n)) {
    const row = sessionAfter(giveBack(session, returned), verdict);
    puts.push({ kind: "spendSession", before: session, row });
  }
  return puts;
}

/** A move deletes nothing. */
export type Moved = { readonly warrant: Warrant; readonly change: Pick<Change, "put"> };

/** The details of a move, besides the new state. */
export type MoveDetails = Details & {
  readonly now: number;
  readonly verdict?: Verdict;
  /** What else the verb writes, such as a check. */
  readonly puts?: readonly Put[];
};

/**
 * Null where the warrant has no purchase, or its purchase allows the move. An unfinished purchase forbids
 * every move but its own: no sweep, kill, check or person can interfere. After it has ended, the state of its
 * payment decides.
 */
function refuseByPurchase(purchase: Purchase | null, to: State): Refusal | null {
  if (!purchase?.quote) return null;
  if (purchase.phase !== "ended") {
    return refuse(
      "illegal_transition",
      `The purchase ${purchase.id} of this warrant is under way; it ends by itself.`,
    );
  }
  return refuseByPayment(purchase, to);
}

/** The payee of an x402 `exact` purchase was paid by the wallet: the ledger owes it nothing more. */
const paidFor = (move: Move, purchase: Purchase | null): Move => ({
  ...move,
  paidBy: purchase?.quote?.pays.kind === "exact" ? "wallet" : "ledger",
});

const refuseByPayment = ({ quote, known }: Purchase, to: State): Refusal | null =>
  quote && (isSettled(to) || to === "disputed") ? refuseMove(quote.pays.kind, known ?? "unknown", to) : null;

/**
 * Moves the snapshot's warrant. The change has its trace entry, its posting, and the counters of its agent
 * and session.
 */
export const moveWarrant = (snapshot: Moving, move: Move, details: MoveDetails): Moved | Refusal =>
  moved(snapshot, paidFor(move, snapshot.warrantPurchase), details, (to) =>
    refuseByPurchase(snapshot.warrantPurchase, to),
  );

/**
 * Moves the warrant of the snapshot's purchase, as a step of this purchase. The state of its payment must
 * allow the move.
 *
 * @param after the purchase after the move
 */
export const moveBought = (
  snapshot: BuyingSnapshot,
  after: Purchase,
  move: Move,
  { puts = [], ...details }: MoveDetails,
): Moved | Refusal =>
  moved(
    snapshot,
    paidFor(move, after),
    { ...details, puts: [...puts, { kind: "purchase", before: snapshot.purchase, row: after }] },
    (to) => refuseByPayment(after, to),
  );

function moved(
  snapshot: Snapshot<typeof TOUCHED & { readonly warrant: string }>,
  move: Move,
  { now, verdict = "neither", puts = [], ...details }: MoveDetails,
  refusePurchase: (to: State) => Refusal | null,
): Moved | Refusal {
  const before = snapshot.warrant;
  if (!before) return warrantNotFound();
  const transition = decide(before, move, { now, recordedAt: snapshot.recordedAt });
  if (isRefusal(transition)) return transition;
  const refused =
    refusePurchase(move.to) ??
    (transition.legs ? refuseUnacknowledged(snapshot.instance, before.mode) : null);
  if (refused) return refused;
  const counters = countersAfter(snapshot, transition.legs?.available ?? 0n, verdict);
  return changeOf(transition, before, snapshot, now, details, [...counters, ...puts]);
}
