import { endOf } from "../core/api-key.ts";
import { type Refusal, refuse } from "../core/errors.ts";
import { type Access, type Caller, type PersonCaller, refuseAccess } from "../core/roles.ts";
import type { IdempotencyRecord, Needs, Snapshot } from "../store/store.ts";

/** What an Idempotency-Key stands for: the fingerprint is of the method, the path and the canonical body. */
export type Intent = { readonly key: string; readonly fingerprint: string };

/** A caller's credential: `refuseEndedCaller` looks whether it still stands. */
export const credentialOf = (caller: Caller): Needs =>
  caller.kind === "key"
    ? { callerAgentId: caller.agentId, apiKeyId: caller.keyId }
    : {
        callerUserId: caller.userId,
        ...(caller.signInHash !== undefined && { authSessionHash: caller.signInHash }),
      };

/** What every money-moving command of a caller looks at: its key of the request, and its credential. */
export const needsOf = (caller: Caller, intent: Intent): Needs => ({
  idempotencyKey: intent.key,
  ...credentialOf(caller),
});

/**
 * A credential that ended while the request was on its way moves nothing: a revoked or expired key, a sign-in that was
 * ended, a person who was removed or whose role no longer reaches. All of it is at once.
 */
export const refuseEndedCaller = (
  caller: Caller,
  access: Access,
  snapshot: Snapshot,
  now: number,
): Refusal | null =>
  caller.kind === "key"
    ? (refuseEndedKey(snapshot, now) ?? refuseAccess(caller, access))
    : refuseEndedPerson(caller, access, snapshot, now);

function refuseEndedPerson(
  caller: PersonCaller,
  access: Access,
  { callerUser, authSession }: Snapshot,
  now: number,
): Refusal | null {
  const isSignedIn = caller.signInHash === undefined || (authSession !== null && authSession.expiresAt > now);
  return callerUser && isSignedIn
    ? refuseAccess({ ...caller, role: callerUser.role }, access)
    : refuse("not_authenticated", "You were signed out. Sign in again.");
}

/** Whoever calls, as the commit sees them: a person's role may have changed since the request came. */
export const asOfNow = <Who extends Caller>(caller: Who, { callerUser }: Snapshot): Who =>
  callerUser ? { ...caller, role: callerUser.role } : caller;

function refuseEndedKey({ apiKey }: Snapshot, now: number): Refusal | null {
  const end = apiKey ? endOf(apiKey, now) : "revoked";
  return (
    end && refuse("not_authenticated", `The API key ${end === "revoked" ? "was revoked" : "has expired"}.`)
  );
}

/** What a money-moving verb answers. `body` is JSON text, the same to the byte when it is replayed. */
export type Answer = {
  readonly status: number;
  readonly body: string;
  /** The warrant's, for the ETag. */
  readonly version: number;
  readonly replayed: boolean;
  /** Of what `body` is still to be filled with; null where it is whole. */
  readonly contentHash: string | null;
};

/** A resource that is a warrant, or carries one. */
type Versioned = { readonly version?: number; readonly warrant?: { readonly version: number } };

const versionIn = ({ version, warrant }: Versioned): number => warrant?.version ?? version ?? 0;

/** The original answer, where the same request has one. */
export function replayOf(record: IdempotencyRecord | null, intent: Intent): Answer | null {
  if (!record?.outcome || record.fingerprint !== intent.fingerprint) return null;
  return {
    ...record.outcome,
    version: versionIn(JSON.parse(record.outcome.body) as Versioned),
    replayed: true,
  };
}

/** Why the key cannot be used for a new request; null where it is free. */
export function refuseUsedKey(record: IdempotencyRecord | null, intent: Intent): Refusal | null {
  if (!record) return null;
  if (record.fingerprint !== intent.fingerprint) {
    return refuse(
      "idempotency_key_reused",
      "This Idempotency-Key was used with another request. Use a fresh key for a new intent.",
    );
  }
  return record.outcome
    ? null
    : refuse(
        "idempotency_in_flight",
        "The original request of this Idempotency-Key is still running. Retry shortly.",
      );
}

/** The key bound to a request whose check is running, which recovery frees by the warrant; or (null) to a purchase. */
export const bindKey = (intent: Intent, warrantId: string | null, now: number): IdempotencyRecord => ({
  ...intent,
  warrantId,
  outcome: null,
  createdAt: now,
});

/** The answer, and the record of it that is committed with the money. */
export function recordAnswer(
  intent: Intent,
  status: number,
  resource: object,
  now: number,
  contentHash: string | null = null,
): { answer: Answer; idempotency: IdempotencyRecord } {
  const outcome = { status, body: JSON.stringify(resource), contentHash };
  return {
    answer: { ...outcome, version: versionIn(resource), replayed: false },
    idempotency: {
      key: intent.key,
      fingerprint: intent.fingerprint,
      warrantId: null,
      outcome,
      createdAt: now,
    },
  };
}
