import { hashJson } from "./canonical.ts";
import type { Clause } from "./clauses/registry.ts";
import { type Refusal, refuse, refuseField } from "./errors.ts";
import { BPS_WHOLE, shareOf } from "./money.ts";
import { hold, type Legs, type PaidBy, settle } from "./postings.ts";
import type { Mode } from "./roles.ts";
import { MINUTE_MS } from "./time.ts";

/** The nine states of a warrant (docs/concepts, "The states of a warrant"). */
export const STATES = [
  "held",
  "verifying",
  "released",
  "partially_released",
  "escalated",
  "refunded",
  "expired",
  "frozen",
  "disputed",
] as const;
export type State = (typeof STATES)[number];

/** A warrant in one of these waits for a person, and has one escalation that is not resolved. */
export const WAITING_STATES = ["escalated", "frozen", "disputed"] as const satisfies readonly State[];

export const SETTLED_STATES = ["released", "partially_released", "refunded", "expired"] as const;
export type SettledState = (typeof SETTLED_STATES)[number];

/** A settled state is final: the warrant has `settled_at` and a receipt. */
export const isSettled = (state: State): state is SettledState =>
  SETTLED_STATES.some((settled) => settled === state);

/**
 * The numbers of the forms in which answers show a warrant. A new form gets a new number. Old numbers stay,
 * since a replay repeats the form of the first answer.
 */
export const WARRANT_ENCODINGS = [1] as const;
export type WarrantEncoding = (typeof WARRANT_ENCODINGS)[number];

export type Spec = { readonly clauses: readonly Clause[] };

/** The agent whose key opened a warrant, or the person who did. */
export type Opener = { readonly kind: "agent" | "user"; readonly id: string };

/** A promise that money is held against. Amounts are in the asset's smallest unit. */
export type Warrant = {
  readonly id: string;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly state: State;
  /** 1 at open, one more at every transition. */
  readonly version: number;
  readonly amount: bigint;
  readonly asset: string;
  readonly releasedBps: number | null;
  readonly payee: string;
  readonly spec: Spec;
  readonly specHash: string;
  readonly agentId: string | null;
  /** Who opened it. Null where an older version did, which did not keep it. */
  readonly openedBy: Opener | null;
  /** The spend session that the hold was charged to. */
  readonly sessionId: string | null;
  readonly verifierId: string | null;
  readonly policyId: string | null;
  readonly policyVersion: number | null;
  readonly rulesHash: string;
  /** The entry hash of the newest trace entry. */
  readonly traceHead: string | null;
  readonly deadline: number;
  /** The time of the first trace entry. `settledAt` is the time of the last one. */
  readonly openedAt: number;
  /** While a check runs: when it began, by the clock. Null in every other state. */
  readonly verifyingSince: number | null;
  /** Where the service interrupted a check: until when another may begin, though the deadline has passed. Else null. */
  readonly graceUntil: number | null;
  readonly settledAt: number | null;
};

/**
 * What a warrant is opened with. All other fields are the same in every new warrant, or follow from these.
 */
export type Terms = Omit<
  Warrant,
  | "state"
  | "version"
  | "releasedBps"
  | "specHash"
  | "traceHead"
  | "verifyingSince"
  | "graceUntil"
  | "settledAt"
>;

/** The terms that the caller gives. The hold adds the others. */
export type GivenTerms = Omit<
  Terms,
  | "id"
  | "organisationId"
  | "mode"
  | "spec"
  | "openedBy"
  | "sessionId"
  | "policyVersion"
  | "rulesHash"
  | "openedAt"
>;

/** The terms that the caller may leave out, and their values then. */
export const NOTHING_CHOSEN = {
  agentId: null,
  verifierId: null,
  policyId: null,
} as const satisfies Partial<GivenTerms>;

/** A new warrant, whose amount is held. */
export const heldWarrant = (terms: Terms): Warrant => ({
  ...terms,
  state: "held",
  version: 1,
  releasedBps: null,
  specHash: hashJson(terms.spec),
  traceHead: null,
  verifyingSince: null,
  graceUntil: null,
  settledAt: null,
});

/** How long a warrant waits for another check, after the service has interrupted one that began in time. */
const GRACE_MS = 10 * MINUTE_MS;
/** Until then at most, however often a check is interrupted. */
const GRACE_PAST_DEADLINE_MS_MAX = 60 * MINUTE_MS;

/** When a held warrant expires: at its deadline, or at the end of its grace. */
const expiresAt = ({ deadline, graceUntil }: Warrant): number => graceUntil ?? deadline;

/** Whether no check may begin any more. At the deadline itself it is too late. */
export const isOverdue = (warrant: Warrant, now: number): boolean => expiresAt(warrant) <= now;

/** The states from which a check may still come. A grace that was given stays in these. */
const AWAITS_CHECK: readonly State[] = ["held", "verifying", "frozen"];

/**
 * The grace of a warrant after a move. A check that ends as held or frozen was interrupted by the service. Where it began in
 * time, the warrant waits for another. The clock of both times is the same, so a wrong one moves no more than it can move the
 * deadline.
 */
function graceAfter(warrant: Warrant, to: State, now: number): number | null {
  const { state: from, deadline, graceUntil, verifyingSince } = warrant;
  if (!AWAITS_CHECK.includes(to)) return null;
  const isInterrupted = from === "verifying" && to !== "verifying";
  if (!isInterrupted || verifyingSince === null || isOverdue(warrant, verifyingSince)) return graceUntil;
  const until = Math.min(now + GRACE_MS, deadline + GRACE_PAST_DEADLINE_MS_MAX);
  return until > expiresAt(warrant) ? until : graceUntil;
}

/**
 * Who moves a warrant. `caller`: a key or an operator who opens or verifies. `operator`: a person's own decision.
 * `second`: a person from admin up who did not raise the dispute. `system`: the policy, the sweep, recovery.
 */
export type Mover = "caller" | "operator" | "second" | "system";

type Moves = Readonly<Partial<Record<State, readonly Mover[]>>>;

const PERSON_DECIDES = (mover: Mover): Moves => ({
  released: [mover],
  partially_released: [mover],
  refunded: [mover],
});

/** Every legal move: from → to → by whom (docs/concepts, "The legal moves"). Any other move is `illegal_transition`. */
const TRANSITIONS: Readonly<Record<State, Moves>> = {
  held: {
    verifying: ["caller"],
    expired: ["system"],
    frozen: ["system"],
    released: ["operator"],
    partially_released: ["operator"],
    refunded: ["operator", "system"],
  },
  verifying: {
    released: ["system"],
    partially_released: ["system"],
    escalated: ["system"],
    refunded: ["system"],
    held: ["system"],
    frozen: ["system"],
  },
  frozen: { held: ["system"], ...PERSON_DECIDES("operator") },
  escalated: { ...PERSON_DECIDES("operator"), disputed: ["operator"], refunded: ["operator", "system"] },
  disputed: PERSON_DECIDES("second"),
  released: {},
  partially_released: {},
  refunded: {},
  expired: {},
};

/** The state that each decision of a policy or a person leads to. */
export const STATE_OF = {
  release: "released",
  partial_release: "partially_released",
  refund: "refunded",
  escalate: "escalated",
  dispute: "disputed",
} as const satisfies Readonly<Record<string, State>>;

export type Move = {
  readonly to: State;
  readonly by: Mover;
  /** The share of a partial release, an integer strictly between 0 and 10000. */
  readonly releasedBps?: number;
  /** Who pays the payee (default: the ledger). */
  readonly paidBy?: PaidBy;
};

/** When a warrant moves; epoch milliseconds. */
export type MoveTime = {
  /** The clock's time: how long a check has run is judged by it. */
  readonly now: number;
  /** The time that records carry: the clock's, or the last commit's where the clock is behind it. */
  readonly recordedAt: number;
};

/** A warrant after a move, and the posting's legs where money moved. */
export type Transition = {
  readonly from: State | null;
  readonly warrant: Warrant;
  readonly legs: Legs | null;
};

export const isLegalMove = (from: State, to: State, by: Mover): boolean =>
  TRANSITIONS[from][to]?.includes(by) ?? false;

/** The share that a settled state pays, in basis points. */
function paidBps(to: SettledState, releasedBps: number | undefined): number {
  if (to === "released") return BPS_WHOLE;
  if (to !== "partially_released") return 0;
  if (releasedBps === undefined || !(releasedBps > 0 && releasedBps < BPS_WHOLE)) {
    throw new Error("a partial release needs a share between 0 and 10000");
  }
  return releasedBps;
}

/**
 * The state machine: the warrant after a move, or why the move is refused. A share that comes to zero units is refused
 * with `validation_failed`.
 */
export function decide(warrant: Warrant, move: Move, { now, recordedAt }: MoveTime): Transition | Refusal {
  const { state: from } = warrant;
  if (!isLegalMove(from, move.to, move.by)) {
    return refuse(
      "illegal_transition",
      `A warrant that is ${from} cannot become ${move.to} by this request.`,
    );
  }
  const moved = {
    ...warrant,
    state: move.to,
    version: warrant.version + 1,
    verifyingSince: move.to === "verifying" ? now : null,
    graceUntil: graceAfter(warrant, move.to, now),
  };
  if (!isSettled(move.to)) return { from, warrant: moved, legs: null };
  const bps = paidBps(move.to, move.releasedBps);
  if (bps > 0 && shareOf(warrant.amount, bps) === 0n) {
    return refuseField(
      "released_bps",
      `${bps} basis points of ${warrant.amount} come to nothing; choose a larger share or refund`,
    );
  }
  return {
    from,
    warrant: { ...moved, releasedBps: bps === 0 ? null : bps, settledAt: recordedAt },
    legs: settle(warrant.amount, bps, move.paidBy),
  };
}

/** The first transition: (none) → held. */
export const openingOf = (warrant: Warrant): Transition => ({
  from: null,
  warrant,
  legs: hold(warrant.amount),
});

/** The event of a move; null where none fires (docs/events, "Events"). */
export function eventOf(from: State | null, to: State): EventType | null {
  if (from === null) return "warrant.opened";
  if (to === "verifying" || to === "released" || to === "partially_released") return `warrant.${to}`;
  return to === "refunded" || to === "expired" ? "warrant.refunded" : null;
}

export const EVENT_TYPES = [
  "warrant.opened",
  "warrant.verifying",
  "warrant.released",
  "warrant.partially_released",
  "warrant.refunded",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

export const warrantNotFound = (): Refusal => refuse("warrant_not_found", "There is no such warrant.");

/** Optimistic concurrency: `If-Match` names the version that the caller has seen. */
export const refuseOtherVersion = (warrant: Warrant, ifMatch: number | null): Refusal | null =>
  ifMatch === null || ifMatch === warrant.version
    ? null
    : refuse(
        "version_conflict",
        `The warrant is at version ${warrant.version}, not ${ifMatch}. Read it again and retry.`,
      );
