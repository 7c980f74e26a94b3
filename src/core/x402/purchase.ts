import type { ReasonCode } from "../clauses/reason-codes.ts";
import { type Refusal, refuse } from "../errors.ts";
import type { PolicyDecision } from "../policy.ts";
import type { Mode } from "../roles.ts";
import { DAY_MS, HOUR_MS } from "../time.ts";
import { type SettledState, STATE_OF } from "../warrant.ts";
import type { Pays, Quote } from "./quote.ts";

/**
 * The phases of a purchase (docs/x402, "Buying by x402"), in their order: any of them may be followed by its end. Each phase is on
 * disk before the next begins. None leads back, which a trigger holds: a purchase signs one header, and never another.
 * - `quoting`: the seller is asked for the price; nothing is held.
 * - `held`: the warrant is open, and what will be paid is stored; nothing is signed.
 * - `signed`: the signed header is stored. It may have been sent, so it counts as sent.
 * - `answered`: the answer to the paid request is stored, or that none came; nothing is decided yet.
 * - `ended`: the warrant was settled or escalated, or none was needed. Whether the seller was paid may still be unknown.
 */
export const PHASES = ["quoting", "held", "signed", "answered", "ended"] as const;
export type Phase = (typeof PHASES)[number];
/** In these a purchase may have no warrant: nothing is held yet, or it ended before anything was. */
export const PHASES_WITHOUT_WARRANT = ["quoting", "ended"] as const satisfies readonly Phase[];
/** In these it has its signed header. One that has ended has it too, where it was signed at all. */
export const PHASES_WITH_HEADER = ["signed", "answered"] as const satisfies readonly Phase[];

/**
 * What recovery does with a purchase that a crash cut off. `forget`: nothing was held, so delete it and free its key.
 * `refund`: nothing can have been paid. `escalate`: it may have been paid, so escalate with `payment_unknown`. `settle`:
 * evaluate the stored answer and decide. `nothing`: it has ended.
 */
export type Recovery = "forget" | "refund" | "escalate" | "settle" | "nothing";

/** At `signed` there is no answer. A voucher then pays nobody; an authorization may be used until it expires. */
export const RECOVERY: Readonly<Record<Phase, Readonly<Record<Pays["kind"], Recovery>>>> = {
  quoting: { voucher: "forget", exact: "forget" },
  held: { voucher: "refund", exact: "refund" },
  signed: { voucher: "refund", exact: "escalate" },
  answered: { voucher: "settle", exact: "settle" },
  ended: { voucher: "nothing", exact: "nothing" },
};

/** What is known of the payment on the chain. A voucher moves nothing there, so it is always `unpaid`. */
export const KNOWN = ["paid", "unpaid", "unknown"] as const;
export type Known = (typeof KNOWN)[number];

/** Who said whether the seller was paid: the seller's receipt, the chain, or a person. */
export const WITNESSES = ["receipt", "chain", "person"] as const;

/** How the paid request went. `receipted`: answered, with a valid settlement receipt (see readReceipt). */
export const ATTEMPTS = ["never_connected", "no_answer", "answered", "receipted"] as const;
export type Attempt = (typeof ATTEMPTS)[number];

/**
 * What the chain says of the authorization. `used`: at a confirmed block, on a main network a final one. `open`: neither is
 * certain yet, and it may still be used. `expired`: it was not used at a confirmed block later than its expiry, so it never
 * will be. `away`: the chain does not answer. `none`: there is no endpoint of that chain to ask.
 */
export const FINDINGS = ["used", "open", "expired", "away", "none"] as const;
export type Finding = (typeof FINDINGS)[number];

/**
 * Whether the seller was paid. What the chain says is final, with a settlement receipt or without one. A receipt alone is
 * enough only where no chain can be asked. A failed or missing receipt proves nothing, since the seller still has the
 * authorization.
 */
export function knownOf(kind: Pays["kind"], attempt: Attempt, finding: Finding): Known {
  if (kind === "voucher") return "unpaid";
  if (finding === "used") return "paid";
  if (finding === "expired" || attempt === "never_connected") return "unpaid";
  return attempt === "receipted" && finding === "none" ? "paid" : "unknown";
}

/** The decision on the hold, and a reason code to add to those of the check, or null. */
export type Settlement = { readonly decision: PolicyDecision; readonly reasonCode: ReasonCode | null };

const outcomeOf = (outcome: "refund" | "escalate"): PolicyDecision => ({
  outcome,
  releasedBps: 0,
  bandLabel: null,
});

/**
 * How a purchase is settled (docs/x402, "Money that has moved cannot be called back"). A policy cannot take back what was paid, nor release what was not.
 *
 * @param decision what the policy made of the paid answer; null where none came
 * @param passed whether the answer passed every clause
 */
export function decideSettlement(
  kind: Pays["kind"],
  known: Known,
  decision: PolicyDecision | null,
  passed: boolean,
): Settlement {
  const unreached: Settlement = { decision: outcomeOf("refund"), reasonCode: "source_unreachable" };
  if (kind === "voucher") return decision ? { decision, reasonCode: null } : unreached;
  if (known === "unpaid") {
    if (!decision) return unreached;
    return { decision: outcomeOf("refund"), reasonCode: passed ? "payment_unused" : null };
  }
  if (known === "unknown") return { decision: outcomeOf("escalate"), reasonCode: "payment_unknown" };
  return decision?.outcome === "release"
    ? { decision, reasonCode: null }
    : { decision: outcomeOf("escalate"), reasonCode: "payment_irrevocable" };
}

/** What the chain says for certain of a payment; null where it is to be asked again. */
export function saidOf(finding: Finding): Exclude<Known, "unknown"> | null {
  if (finding === "used") return "paid";
  return finding === "expired" ? "unpaid" : null;
}

/**
 * Whether the chain is still asked: the payment is unknown, or only a person has said what became of it, and the chain may
 * come back.
 */
export const isToBeAsked = ({ known, knownBy, chainSaid }: Purchase): boolean =>
  known === "unknown" || (knownBy === "person" && chainSaid === null);

/** Whether the chain contradicts what a person has said of the payment. It moves nothing: what is known stays known. */
export const isContradicted = ({ known, chainSaid }: Purchase): boolean =>
  chainSaid !== null && chainSaid !== known;

/** Whether that is still a disagreement: once an administrator has acknowledged it, it alarms nobody any more. */
export const isOpenContradiction = (purchase: Purchase): boolean =>
  isContradicted(purchase) && purchase.acknowledgedAt === null;

/**
 * How much later than the expiry a person may attest where no chain is asked. The authorization expires by
 * the time of the chain's blocks, which may be behind our clock: the chain had an outage, or our clock is
 * fast.
 */
const EXPIRY_MARGIN_MS = HOUR_MS;
/** After so long without the chain's answer, a person may attest. */
const CHAIN_AWAY_MS = DAY_MS;

/**
 * Whether a person may say now whether an unknown payment was made, and from when on, in epoch milliseconds
 * (docs/x402, "Who says whether it was paid"). Where no chain is asked: an hour after the authorization has expired. Where a
 * chain is asked: a day after its last answer, or a day after the expiry if that is later. A server must also
 * still be asking it, since a chain that is not asked cannot answer.
 *
 * @param isAsked whether there is an endpoint of the chain
 */
export function decideAttestation(
  {
    validBefore,
    chainSilentSince,
    nextCheckAt,
  }: Pick<Purchase, "chainSilentSince" | "nextCheckAt"> & { readonly validBefore: number },
  isAsked: boolean,
  now: number,
): { readonly isOpen: boolean; readonly from: number } {
  if (!isAsked) {
    const from = validBefore + EXPIRY_MARGIN_MS;
    return { isOpen: now >= from, from };
  }
  const from = Math.max(validBefore, chainSilentSince ?? now) + CHAIN_AWAY_MS;
  // An overdue question shows that no server is asking the chain any more.
  const isStillAsked = nextCheckAt !== null && nextCheckAt > now;
  return { isOpen: now >= from && isStillAsked, from };
}

/**
 * Null where the payment allows the settlement or the dispute of its warrant, else `illegal_transition`.
 * While the payment is unknown, nothing is allowed. If it was made, only a release is allowed; if it was not,
 * only a refund. The rule holds from the signature on, also for the deadline sweep.
 */
export function refuseMove(kind: Pays["kind"], known: Known, to: SettledState | "disputed"): Refusal | null {
  if (kind === "voucher") return null;
  if (known === "unknown") {
    return refuse(
      "illegal_transition",
      "It is not known yet whether the seller was paid; the chain decides.",
    );
  }
  if (known === "paid") {
    return to === STATE_OF.release
      ? null
      : refuse("illegal_transition", "The seller was paid on the chain; the warrant can only be released.");
  }
  return to === STATE_OF.refund
    ? null
    : refuse("illegal_transition", "The seller was not paid on the chain; the warrant can only be refunded.");
}

/** A purchase: what was ordered, what was signed, and what is known of the payment. Times are in epoch milliseconds. */
export type Purchase = {
  readonly id: string;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly agentId: string | null;
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly maxAmount: bigint;
  readonly phase: Phase;
  /** Null until the seller has named the price. */
  readonly quote: Quote | null;
  readonly warrantId: string | null;
  /** The wallet that signs; null for a voucher. */
  readonly payer: string | null;
  /** The nonce of the purchase's only authorization: 32 bytes in hex. */
  readonly nonce: string | null;
  /** When the authorization expires. */
  readonly validBefore: number | null;
  /** The signed header. A purchase never sends another one. */
  readonly header: PaymentHeader | null;
  readonly attempt: Attempt | null;
  readonly known: Known | null;
  /** Who said whether the seller was paid. */
  readonly knownBy: (typeof WITNESSES)[number] | null;
  /** What the chain said after a person had; null where it has not, or no person was asked. */
  readonly chainSaid: Exclude<Known, "unknown"> | null;
  /** When an administrator acknowledged that the chain contradicts the person; null where nobody has. */
  readonly acknowledgedAt: number | null;
  /** The transaction that the seller's receipt names. */
  readonly transaction: string | null;
  /** Status of the answer to the paid request; null where no answer came. */
  readonly responseStatus: number | null;
  /**
   * SHA-256 of that answer's body. The body is stored under this hash for as long as the answer is replayed.
   */
  readonly responseHash: string | null;
  /**
   * How many bytes it counts for in the stored content of its organisation and mode: at first what it has reserved,
   * then the length of its body. 0 where no body is stored, or no longer.
   */
  readonly contentBytes: number;
  /** `Last-Modified` of that answer. */
  readonly responseLastModifiedAt: number | null;
  readonly createdAt: number;
  readonly answeredAt: number | null;
  readonly endedAt: number | null;
  /** When the chain is asked again; null where there is nothing to ask. */
  readonly nextCheckAt: number | null;
  /** Since when the chain was asked without an answer; null where it was not asked, or answered the last time. */
  readonly chainSilentSince: number | null;
};

/** The header that a payment travels in. */
export type PaymentHeader = { readonly name: string; readonly value: string };
