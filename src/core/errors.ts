/** The closed list of refusals (docs/errors, "Errors"). A code is stable, since callers branch on it. Its status fixes its type. */

const TYPES = {
  400: "invalid_request",
  401: "unauthenticated",
  402: "insufficient_funds",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  429: "rate_limited",
  500: "api_error",
  503: "unavailable",
} as const;

type Status = keyof typeof TYPES;
export type ErrorType = (typeof TYPES)[Status] | "invalid_state";

/** Every code, its HTTP status, and its cause in words for the documentation. */
export const ERRORS = {
  validation_failed: [400, "A field, header or parameter failed its rule; the message names its path."],
  deadline_in_past: [400, "The deadline is not in the future."],
  idempotency_key_required: [400, "A money-moving POST came without an Idempotency-Key."],
  policy_no_bands: [400, "The policy's bands are empty or missing."],
  policy_no_floor_band: [400, "No band of the policy has minScore 0."],
  policy_band_out_of_range: [400, "A band's minScore is outside 0 to 1."],
  policy_band_bps_required: [400, "A partial_release band lacks a releasedBps strictly between 0 and 10000."],
  upstream_unreachable: [400, "The first request to the seller failed; nothing is held."],
  x402_challenge_invalid: [400, "The seller's 402 has no price that can be read."],
  x402_scheme_unsupported: [400, "Nothing that the seller accepts can be paid in this mode."],
  not_authenticated: [401, "No credentials, or credentials that are not valid."],
  invalid_worker_secret: [401, "The X-Service-Worker header is absent or wrong."],
  messaging_webhook_unauthenticated: [401, "The secret of the messaging webhook is absent or wrong."],
  insufficient_funds: [402, "The available balance does not cover the hold."],
  insufficient_role: [403, "The person's role is below what the route needs."],
  second_factor_required: [
    403,
    "The organisation asks this person for a passkey, and the sign-in has proved none.",
  ],
  user_session_required: [403, "An API key attempted what only a signed-in person may do."],
  kill_switch_active: [403, "The organisation has stopped new warrants; open ones go on."],
  agent_not_active: [403, "The agent is paused or killed."],
  agent_key_mismatch: [403, "The API key belongs to another agent."],
  agent_id_required: [403, "This agent must be named in agent_id."],
  policy_not_allowed: [403, "The API key may not name this policy."],
  policy_max_amount_exceeded: [403, "The amount is above the policy's maxAmount."],
  session_ceiling_exceeded: [403, "The amount would go over the spend session's ceiling."],
  session_limit_exceeded: [
    403,
    "A list or a sum of the spend session forbids it; the message names the field, and when it would pass.",
  ],
  session_warrant_limit_reached: [403, "The spend session has opened all the warrants that it may."],
  session_failure_budget_spent: [403, "Consecutive failures exhausted the spend session's budget."],
  session_expired: [403, "The spend session has expired."],
  session_revoked: [403, "The spend session was revoked."],
  x402_quote_above_max: [403, "The seller asks more than max_amount."],
  content_quota_exceeded: [
    403,
    "What was bought already takes the space that there is for it; nothing is held.",
  ],
  worker_secret_unset: [403, "No worker secret is configured: the route is closed."],
  messaging_webhook_unset: [403, "No secret of the messaging webhook is configured: it is closed."],
  restore_unacknowledged: [
    403,
    "The service was restored from a backup, and its operator has not acknowledged that yet; the sandbox is open.",
  ],
  passkey_unavailable: [
    403,
    "A passkey is needed; nobody has one that counts, or none can be used at this address.",
  ],
  passkey_required: [403, "Above the passkey threshold money moves with a fresh signature by a passkey."],
  second_person_required: [
    403,
    "A dispute or a large correction is decided by a second person, not by the person who raised it.",
  ],
  checkpoint_not_signed: [403, "No known key of the log has signed the checkpoint."],
  route_not_found: [404, "No such route, or not with this method."],
  warrant_not_found: [404, "No such warrant, or not yours."],
  agent_not_found: [404, "No such agent, or not yours."],
  policy_not_found: [404, "No such policy, or not yours."],
  verifier_not_found: [404, "No such verifier, or not yours."],
  escalation_not_found: [404, "No such escalation, or not yours."],
  organisation_not_found: [404, "No such organisation."],
  api_key_not_found: [404, "No such API key."],
  session_not_found: [404, "No such spend session."],
  source_key_not_found: [404, "No such source key."],
  check_not_found: [404, "No such check."],
  capsule_not_found: [404, "No capsule of that check is kept."],
  purchase_not_found: [404, "No such purchase."],
  webhook_not_found: [404, "No such webhook endpoint."],
  delivery_not_found: [404, "No such webhook delivery."],
  deposit_not_found: [404, "No such deposit."],
  deposit_sender_not_found: [404, "No such sender of deposits."],
  transfer_not_found: [404, "No such transfer to a treasury."],
  correction_not_found: [404, "No such correction."],
  payout_not_found: [404, "No such payout."],
  statement_not_found: [404, "No such statement of solvency, or it says that nothing is owed there."],
  user_not_found: [404, "No such person, or not in your organisation."],
  sign_in_not_found: [404, "No such sign-in, or it has ended."],
  passkey_not_found: [404, "No such passkey, or not yours."],
  log_not_found: [404, "No log of this origin is witnessed here."],
  illegal_transition: [409, "The move is not legal from the current state."],
  version_conflict: [409, "Someone else moved it first; read it again and retry."],
  api_key_not_active: [409, "The API key was revoked, has expired or is already being replaced."],
  last_owner: [409, "The organisation's last owner must stay an owner."],
  already_exists: [409, "What should be created exists already: a name, an e-mail address or a passkey."],
  deposit_reference_used: [409, "Another amount was recorded as this deposit."],
  idempotency_key_reused: [409, "The Idempotency-Key was used with another request."],
  idempotency_in_flight: [409, "The original request of this Idempotency-Key is still running."],
  idempotency_conflict: [409, "Another request claimed the Idempotency-Key at the same time."],
  rate_limit_exceeded: [429, "Too many requests; Retry-After says in how many seconds to retry."],
  audit_disagrees: [500, "The audit of a backup or a copy disagrees: its ledger contradicts itself."],
  internal_error: [500, "An unexpected fault of the service."],
  instance_lost: [
    503,
    "This instance has lost the database; the same request to another one, or later, is answered.",
  ],
} as const satisfies Record<string, readonly [Status, string]>;

export type ErrorCode = keyof typeof ERRORS;

/** A refusal is a value: nothing moved. `message` is for people and carries no secret. */
export type Refusal = { readonly refused: ErrorCode; readonly message: string };

/** A message may repeat what was sent, so it is cut where it is longer. */
const MESSAGE_LENGTH_MAX = 1_000;

export const refuse = (refused: ErrorCode, message: string): Refusal => ({
  refused,
  message: message.length > MESSAGE_LENGTH_MAX ? `${message.slice(0, MESSAGE_LENGTH_MAX)}…` : message,
});

/** A refusal of one field: the message starts with its path, such as `spec.clauses.0.schema`. */
export const refuseField = (path: string, problem: string): Refusal =>
  refuse("validation_failed", `${path}: ${problem}`);

export const isRefusal = (value: unknown): value is Refusal =>
  typeof value === "object" && value !== null && "refused" in value;

export const statusOf = (code: ErrorCode): Status => ERRORS[code][0];

/** The envelope's `type`. Of the 409s only an illegal move is `invalid_state` (docs/errors, "Errors"). */
export const typeOf = (code: ErrorCode): ErrorType =>
  code === "illegal_transition" ? "invalid_state" : TYPES[statusOf(code)];

/** A fault that was undone: everything is as before the request, so it may be sent again with the same key. */
export class UndoneFault extends Error {}

/** Other work of the database was in the way of a read for too long. */
export class ContendedFault extends Error {}

/** The database did not keep, within its time, what all instances that share it have to know. It may have kept it. */
export class UnsharedFault extends Error {}

const UNSHARED = refuse(
  "rate_limit_exceeded",
  "What all instances have to know of this cannot be kept now, so nothing was done. Try again in a second.",
);

/** The refusal of what cannot be decided without the other instances. Any other error is thrown again. */
export function refusedUnshared(error: unknown): Refusal {
  if (error instanceof UnsharedFault) return UNSHARED;
  throw error;
}

/** The innermost cause of an error. The errors around it may quote a whole SQL statement with its values, also with hashes. */
export function rootCause(error: unknown): unknown {
  let root = error;
  while (root instanceof Error && root.cause instanceof Error) root = root.cause;
  return root;
}

/** The message of an error's innermost cause. */
export function rootMessage(error: unknown): string {
  const root = rootCause(error);
  return root instanceof Error ? root.message : String(root);
}
