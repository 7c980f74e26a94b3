import type { ReasonCode } from "../clauses/reason-codes.ts";
import { type Refusal, refuse } from "../errors.ts";
import type { PolicyDecision } from "../policy.ts";
import type { Mode } from "../roles.ts";
import { DAY_MS, HOUR_MS } from "../time.ts";
import { type SettledState, STATE_OF } from "../warrant.ts";
import type { Pays, Quote } from "./quote.ts";

/**
 * A purchase's way (decisions.md, x402). Each phase is on disk before the next begins.
 * - `quoting`: the first request; nothing is held.
 * - `held`: the warrant is open and the intent is kept; nothing is signed.
 * - `signed`: the header is kept. It may have been sent: signed counts as sent.
 * - `answered`: the paid answer is kept, or that none came; nothing is decided yet.
 * - `ended`: the warrant has left the purchase. What became of the money may still be unknown.
 */
export const PHASES = ["quoting", "held", "signed", "answered", "ended"] as const;
export type Phase = (typeof PHASES)[number];

/** Only the identical header is ever sent again, so no phase leads back. */
export const NEXT_PHASES: Readonly<Record<Phase, readonly Phase[]>> = {
  quoting: ["held", "ended"],
  held: ["signed", "ended"],
  signed: ["answered", "ended"],
  answered: ["ended"],
  ended: [],
};

/**
 * What recovery does with a purchase that a crash cut off. `forget`: nothing was held, and its key is free. `refund`: nothing
 * can have been paid. `escalate`: with `payment_unknown`. `settle`: evaluate the kept answer and decide. `nothing`: it is over.
 */
export type Recovery = "forget" | "refund" | "escalate" | "settle" | "nothing";

/** A voucher that was signed has no answer and pays nobody; an authorization that was signed may be used until it expires. */
export const RECOVERY: Readonly<Record<Phase, Readonly<Record<Pays["kind"], Recovery>>>> = {
  quoting: { voucher: "forget", exact: "forget" },
  held: { voucher: "refund", exact: "refund" },
  signed: { voucher: "refund", exact: "escalate" },
  answered: { voucher: "settle", exact: "settle" },
  ended: { voucher: "nothing", exact: "nothing" },
};

/** What is known of money outside the books. A voucher moves none, so it is `unpaid` for good. */
export const KNOWN = ["paid", "unpaid", "unknown"] as const;
export type Known = (typeof KNOWN)[number];

/** What says so. */
export const WITNESSES = ["receipt", "chain", "person"] as const;

/** How the paid request went. `receipted`: answered, with a settlement receipt that holds (see readReceipt). */
export const ATTEMPTS = ["never_connected", "no_answer", "answered", "receipted"] as const;
export type Attempt = (typeof ATTEMPTS)[number];

/**
 * What the chain says of the authorization. `unused`: so far, but it has not expired at a confirmed block. `expired`: unused at a
 * confirmed block later than its expiry, so for good. `away`: the chain does not answer. `none`: there is none to ask.
 */
export const FINDINGS = ["used", "unused", "expired", "away", "none"] as const;
export type Finding = (typeof FINDINGS)[number];

/**
 * What is known. The chain's word is final where it has one. A receipt alone is enough only where no chain can be asked; a
 * failed or missing one proves nothing, since the seller still has the authorization.
 */
export function knownOf(kind: Pays["kind"], attempt: Attempt, finding: Finding): Known {
  if (kind === "voucher") return "unpaid";
  if (finding === "used") return "paid";
  if (finding === "expired" || attempt === "never_connected") return "unpaid";
  return attempt === "receipted" && finding === "none" ? "paid" : "unknown";
}

/** What becomes of the hold, and the reason code that is added to the check's, or null. */
export type Settlement = { readonly decision: PolicyDecision; readonly reasonCode: ReasonCode | null };

const outcomeOf = (outcome: "refund" | "escalate"): PolicyDecision => ({
  outcome,
  releasedBps: 0,
  bandLabel: null,
});

/**
 * How a purchase is settled (decisions.md, x402). A policy cannot take back what was paid, nor release what was not.
 *
 * @param decision what the policy made of the paid answer; null where none came
 */
export function decideSettlement(
  kind: Pays["kind"],
  known: Known,
  decision: PolicyDecision | null,
): Settlement {
  const unreached: Settlement = { decision: outcomeOf("refund"), reasonCode: "source_unreachable" };
  if (kind === "voucher") return decision ? { decision, reasonCode: null } : unreached;
  if (known === "unpaid") return decision ? { decision: outcomeOf("refund"), reasonCode: null } : unreached;
  if (known === "unknown") return { decision: outcomeOf("escalate"), reasonCode: "payment_unknown" };
  return decision?.outcome === "release"
    ? { decision, reasonCode: null }
    : { decision: outcomeOf("escalate"), reasonCode: "payment_irrevocable" };
}

/**
 * What the job does with an escalated purchase whose payment is not known. `refund`: by `system`. `irrevocable`: the payment
 * is known to be paid, and a person releases. `wait`: ask again later, or until a person attests.
 */
export function decideUnknown(finding: Finding): "refund" | "irrevocable" | "wait" {
  if (finding === "used") return "irrevocable";
  return finding === "expired" ? "refund" : "wait";
}

/** Expiry is by the time of the chain's blocks, which lags behind ours after an outage; and our clock may be fast. */
const EXPIRY_MARGIN_MS = HOUR_MS;
/** A chain that is asked in vain for so long is given up. */
const CHAIN_AWAY_MS = DAY_MS;

/**
 * Whether a person may say what became of a payment that is not known (decisions.md, x402), and from when on, epoch
 * milliseconds. Where no chain is asked: an hour after the authorization's expiry. Where one is: once it has been
 * asked in vain for a day, which counts from that expiry at the earliest, and is still asked. A chain that nobody asked has not
 * failed to answer.
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
  // The next question is due where no server has asked lately.
  const isStillAsked = nextCheckAt !== null && nextCheckAt > now;
  return { isOpen: now >= from && isStillAsked, from };
}

/**
 * Null where the payment allows a warrant's settlement or dispute, else `illegal_transition`: while it is not known nothing is
 * legal, what was paid can only be released, and what was not only be refunded. It holds from the signature on, for the sweep too.
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

/** A purchase as it is kept: the intent, what was signed, and what is known (decisions.md, x402). Times in epoch milliseconds. */
export type Purchase = {
  readonly id: string;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly agentId: string | null;
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly maxAmount: bigint;
  readonly phase: Phase;
  /** Null while it is asked for. */
  readonly quote: Quote | null;
  readonly warrantId: string | null;
  /** The wallet that signs; null for a voucher. */
  readonly payer: string | null;
  /** Of the one authorization, 32 bytes in hex. */
  readonly nonce: string | null;
  /** When the authorization expires. */
  readonly validBefore: number | null;
  /** What was signed, as it is sent; never another. */
  readonly header: PaymentHeader | null;
  readonly attempt: Attempt | null;
  readonly known: Known | null;
  readonly knownBy: (typeof WITNESSES)[number] | null;
  /** The transaction that the seller's receipt names. */
  readonly transaction: string | null;
  /** Of the paid answer; null where none came. */
  readonly responseStatus: number | null;
  /** SHA-256 of its body, which is kept under it as long as the answer is replayed. */
  readonly responseHash: string | null;
  /** Its `Last-Modified`. */
  readonly responseLastModifiedAt: number | null;
  readonly createdAt: number;
  readonly answeredAt: number | null;
  readonly endedAt: number | null;
  /** When the chain is asked again; null where nothing is open. */
  readonly nextCheckAt: number | null;
  /** Since when it is asked about the payment in vain; null where it was not asked, or answered last. */
  readonly chainSilentSince: number | null;
};

/** The header that a payment travels in. */
export type PaymentHeader = { readonly name: string; readonly value: string };
