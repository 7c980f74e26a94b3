import { hashJson } from "./canonical.ts";
import { type Refusal, refuse } from "./errors.ts";
import type { Decision } from "./escalation.ts";
import { parseAddress } from "./networks.ts";
import { DAY_MS, SECOND_MS } from "./time.ts";
import type { User } from "./user.ts";
import type { Warrant } from "./warrant.ts";

/** A person's WebAuthn credential. */
export type Passkey = {
  /** The id that the authenticator gave it, base64url. */
  readonly id: string;
  readonly organisationId: string;
  readonly userId: string;
  readonly name: string;
  /** COSE key, base64url. */
  readonly publicKey: string;
  /** The authenticator's signature counter; 0 where it keeps none. */
  readonly counter: number;
  readonly transports: readonly string[];
  /** False where it was enrolled within 24 h of a password reset (docs/people, "Passkeys"). */
  readonly countsForThreshold: boolean;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
};

/** The user handle: the authenticator stores it with the key, and sends it back at a sign-in. */
export const userHandleOf = ({ id }: Pick<User, "id">): string => Buffer.from(id).toString("base64url");

/** A person's signature over one decision. It is good for one use, within 120 s. */
export type PasskeyApproval = {
  readonly tokenHash: string;
  readonly userId: string;
  readonly passkeyId: string;
  /** The id of the warrant or the correction; of payouts the digest of their batch. */
  readonly subject: string;
  /** The version of the warrant. What is decided only once has the version 1. */
  readonly version: number;
  readonly decision: SignedVerb | Decision;
  readonly releasedBps: number | null;
  /** The WebAuthn assertion as JSON: what was signed can be checked again. */
  readonly assertion: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly usedAt: number | null;
};

/** Where passkeys work, what a passkey signs, and above which amount one is needed (docs/people, "Passkeys" and "The threshold"). */

/** How long a challenge waits for its answer, and how long an approval is good for. */
export const PASSKEY_TTL_MS = 120 * SECOND_MS;

/** EdDSA, ES256 and RS256, by their COSE numbers. */
export const ALGORITHMS = [-8, -7, -257] as const;

/**
 * Where passkeys are used: the host name that they belong to, and the origin of the pages that may ask for
 * them.
 */
export type RelyingParty = { readonly id: string; readonly origin: string };

/** The relying party of a base URL; `passkey_unavailable` where browsers would offer no passkey there. */
export function relyingPartyOf(baseUrl: string): RelyingParty | Refusal {
  const { hostname, origin, protocol } = new URL(baseUrl);
  const isLocal = hostname === "localhost" || hostname.endsWith(".localhost");
  const isAddress = parseAddress(hostname.replace(/^\[|\]$/g, "")) !== null;
  if (!isAddress && (protocol === "https:" || isLocal)) return { id: hostname, origin };
  return refuse(
    "passkey_unavailable",
    `Passkeys need a host name, and https unless it is localhost; this service is ${origin}. Set HOLDFAST_BASE_URL to where people reach it, such as https://holdfast.example.`,
  );
}

/** A passkey that was enrolled within 24 h of a password reset never counts for the threshold. */
export const countsForThreshold = (passwordResetAt: number | null, enrolledAt: number): boolean =>
  passwordResetAt === null || enrolledAt - passwordResetAt >= DAY_MS;

/**
 * Whether the signature counter has risen, or is not kept (then it is always 0). A counter that has not risen
 * shows that the authenticator was copied.
 */
export const counterRose = (before: number, after: number): boolean =>
  after > before || (before === 0 && after === 0);

/** What a person decides with a passkey. A dispute settles nothing, so it needs none. */
export const SETTLEMENTS = ["release", "partial_release", "refund"] as const satisfies readonly Decision[];
export type Settlement = (typeof SETTLEMENTS)[number];

/** What is decided with a passkey about anything else: a correction, and the batch of payouts of one submission. */
export const SIGNED_VERBS = ["approve_correction", "submit_payouts"] as const;
type SignedVerb = (typeof SIGNED_VERBS)[number];

/** One decision of one person; `releasedBps` with a partial release only. */
export type SignedDecision = Pick<
  PasskeyApproval,
  "userId" | "subject" | "version" | "decision" | "releasedBps"
>;

/** A person's approval of a correction that waits. */
export const approvalOfCorrection = (userId: string, correctionId: string): SignedDecision => ({
  ...{ userId, subject: correctionId, version: 1, decision: "approve_correction", releasedBps: null },
});

/** A person's submission of payouts. @param digest of their batch, which has the organisation and the mode in it */
export const submissionOf = (userId: string, digest: string): SignedDecision => ({
  ...{ userId, subject: digest, version: 1, decision: "submit_payouts", releasedBps: null },
});

/** What is hashed into the challenge; kept with the assertion, so that what was signed can be checked again. */
export function statementOf({ userId, subject, decision, ...signed }: SignedDecision, nonce: string) {
  switch (decision) {
    case "approve_correction":
      return { type: "holdfast.correction", user_id: userId, correction_id: subject, nonce } as const;
    case "submit_payouts":
      return { type: "holdfast.payouts", user_id: userId, batch: subject, nonce } as const;
    default: {
      const { version, releasedBps: released_bps } = signed;
      const decided = { user_id: userId, warrant_id: subject, version, decision, released_bps };
      return { type: "holdfast.decision", ...decided, nonce } as const;
    }
  }
}
export type Statement = ReturnType<typeof statementOf>;

/** SHA-256 over the statement's canonical JSON, base64url: the WebAuthn challenge. */
export const challengeOf = (statement: Statement): string =>
  Buffer.from(hashJson(statement), "hex").toString("base64url");

export type Priced = Pick<Warrant, "amount" | "asset">;

/** Whether the threshold asks for a passkey. It is in units of USDC, so an amount in any other asset counts as above it. */
export const isAboveThreshold = (threshold: bigint | null, { amount, asset }: Priced): boolean =>
  threshold !== null && (asset !== "USDC" || amount > threshold);

/** Whether the amount is the threshold or more. A person without a passkey cannot decide about such an amount. */
export const reachesThreshold = (threshold: bigint | null, { amount, asset }: Priced): boolean =>
  threshold !== null && (asset !== "USDC" || amount >= threshold);

/**
 * Why a warrant may not be opened under the threshold; null where it may.
 *
 * @param hasPasskey whether anybody in the organisation has a passkey that counts
 */
export function refuseOpenAbove(
  threshold: bigint | null,
  priced: Priced,
  hasPasskey: boolean,
): Refusal | null {
  if (!isAboveThreshold(threshold, priced)) return null;
  if (priced.asset !== "USDC") {
    return refuse(
      "passkey_unavailable",
      `The organisation's passkey threshold is in USDC; it does not allow ${priced.asset}.`,
    );
  }
  return hasPasskey
    ? null
    : refuse(
        "passkey_unavailable",
        `The amount ${priced.amount} is above the passkey threshold ${threshold}, and nobody in the organisation has a passkey that counts for it.`,
      );
}

/** A purchase pays at once and cannot wait for a signature, so above the threshold it is refused. */
export const refusePayAbove = (threshold: bigint | null, priced: Priced): Refusal | null =>
  isAboveThreshold(threshold, priced)
    ? refuse(
        "passkey_required",
        `The seller asks ${priced.amount} ${priced.asset}, above the passkey threshold of ${threshold} USDC; a person must sign for that much.`,
      )
    : null;

/**
 * What a person shows for a decision: the approval that the sent token names, and the ids of the person's
 * passkeys that count for the threshold.
 */
export type Approved = {
  readonly approval: PasskeyApproval | null;
  readonly passkeyIds: readonly string[];
};

/** What a refusal calls that which is decided, and how it is signed. */
function wordsOf(decision: SignedDecision["decision"]): { readonly noun: string; readonly how: string } {
  switch (decision) {
    case "approve_correction":
      return { noun: "correction", how: "Approve it in the console, with your passkey." };
    case "submit_payouts":
      return {
        noun: "sum of these payouts",
        how: "Submit them in the console, with your passkey. What you pay by your own means the operator of the machine may submit too, with holdfast payouts submit.",
      };
    default:
      return {
        noun: "warrant",
        how: "Sign this decision by POST /auth/passkey/challenge and /auth/passkey/assertion, and send the token as Service-Passkey.",
      };
  }
}

/**
 * Why a person's decision lacks a passkey's signature; null where it has one.
 *
 * @param why why it needs one, as what is said of it: "is above …"
 */
export function refuseUnsigned(
  why: string,
  decided: SignedDecision,
  { approval, passkeyIds }: Approved,
  now: number,
): Refusal | null {
  const { noun, how } = wordsOf(decided.decision);
  const needed = `The ${noun} ${why}`;
  if (passkeyIds.length === 0) {
    return refuse(
      "passkey_unavailable",
      `${needed}, and you have no passkey that counts for it. Register one at /account.`,
    );
  }
  const problem = problemOf(decided, approval, passkeyIds, now);
  return problem === null ? null : refuse("passkey_required", `${needed}: ${problem}. ${how}`);
}

function problemOf(
  decided: SignedDecision,
  approval: PasskeyApproval | null,
  passkeyIds: readonly string[],
  now: number,
): string | null {
  if (!approval || approval.userId !== decided.userId) return "it needs a fresh signature by your passkey";
  if (approval.usedAt !== null) return "this signature was used already";
  if (approval.expiresAt <= now) return "this signature has expired";
  const { noun } = wordsOf(decided.decision);
  if (approval.subject !== decided.subject) return `this signature is for another ${noun}`;
  if (approval.version !== decided.version) return `this signature is for another version of the ${noun}`;
  if (approval.decision !== decided.decision) return "this signature is for another decision";
  if (approval.releasedBps !== decided.releasedBps) return "this signature is for another share";
  return passkeyIds.includes(approval.passkeyId) ? null : "the passkey of this signature was removed";
}
