import { type Refusal, refuse } from "../core/errors.ts";
import type { Access, Caller, ChatCaller } from "../core/roles.ts";
import { warrantAt } from "../core/trace.ts";
import type { Warrant } from "../core/warrant.ts";
import { WARRANT_ENCODERS, WARRANT_ENCODING, warrantResource } from "../resources/warrant.ts";
import type { Deletion, Put } from "../store/change.ts";
import type { Complete, From, Needs, Snapshot } from "../store/needs.ts";
import type { IdempotencyKey, RecordedOutcome } from "../store/rows.ts";
import type { Decision, ScopedCommand, Store } from "../store/store.ts";
import { type CredentialNeeds, callerNow, credentialOf } from "./caller-now.ts";

/** The Idempotency-Key of a request, and the SHA-256 of whose it is, its method, path and canonical body. */
export type Idempotency = { readonly key: string; readonly fingerprint: string };

/** The answer of a verb that moves money. `body` is JSON text; a replay repeats it byte for byte. */
export type Answer = {
  readonly status: number;
  readonly body: string;
  /** The warrant's version, for the ETag. */
  readonly version: number;
  readonly replayed: boolean;
  /** SHA-256 of the content that is still to be filled into `body`; null where `body` is complete. */
  readonly contentHash: string | null;
};

export type KeyedNeeds = CredentialNeeds & {
  readonly idempotencyKey: string;
  readonly replayedWarrant: From<"idempotencyKey">;
  readonly replayedStep: From<"idempotencyKey">;
};

const OF_KEY: From<"idempotencyKey"> = { from: "idempotencyKey" };

/** A key that no request has used yet. */
export type NewKey = Omit<IdempotencyKey, "holder" | "outcome">;

/** What a command with an Idempotency-Key decides from, besides its snapshot. */
type Keyed<Who extends Caller | ChatCaller> = {
  readonly now: number;
  /** The caller, with the role that they have now. */
  readonly caller: Who;
  /** The request's unused key. The command claims it or records the answer under it. */
  readonly key: NewKey;
};

/** A command that moves money for a caller. */
export type KeyedCommand<N extends Needs, Who extends Caller | ChatCaller, Next> = {
  readonly caller: Who;
  readonly access: Access;
  readonly idempotency: Idempotency;
  readonly needs: N & Complete<N, N & KeyedNeeds>;
  /**
   * The checks of the body that need the ledger. A replay comes before them, a used key after them. Null
   * where the body was checked completely before the command.
   */
  readonly refuseBody: ((snapshot: Snapshot<N & KeyedNeeds>, now: number) => Refusal | null) | null;
  readonly decide: (snapshot: Snapshot<N & KeyedNeeds>, keyed: Keyed<Who>) => Decision<Answer | Next>;
};

/**
 * Runs a command under the Idempotency-Key of its request. The first of these that applies gives the answer:
 * the caller's credential has ended · the request was answered before (a replay) · the body is wrong · the
 * key is in flight, or was used by another request · the disk is too full for the mode · the command decides.
 */
export function executeKeyed<N extends Needs, Who extends Caller | ChatCaller, Next = never>(
  store: Store,
  { caller, access, idempotency, needs, refuseBody, decide }: KeyedCommand<N, Who, Next>,
): Promise<Answer | Next | Refusal> {
  const keyedNeeds: KeyedNeeds = {
    ...credentialOf(caller),
    idempotencyKey: idempotency.key,
    replayedWarrant: OF_KEY,
    replayedStep: OF_KEY,
  };
  const hasSpace = store.hasSpace(caller.mode);
  const command: ScopedCommand<N & KeyedNeeds, Answer | Next> = {
    scope: caller,
    // Each part is complete, but the compiler cannot tell that of both together: N is not known here.
    needs: { ...needs, ...keyedNeeds } satisfies N & KeyedNeeds as ScopedCommand<
      N & KeyedNeeds,
      unknown
    >["needs"],
    decide(snapshot, now) {
      const credential: Snapshot<KeyedNeeds> = snapshot;
      const present = callerNow(caller, access, credential, now);
      if ("refused" in present) return { answer: present };
      const bound = credential.idempotencyKey;
      const replay = replayOf(credential, idempotency);
      if (replay) return { answer: replay };
      const refused = refuseBody?.(snapshot, now) ?? refuseUsedKey(bound, idempotency);
      if (refused) return { answer: refused };
      if (!hasSpace) return { answer: NO_SPACE };
      const { organisationId, mode } = caller;
      return decide(snapshot, {
        now,
        caller: present,
        // Not the clock's time: a key that was made while the clock was behind would be forgotten too early.
        key: { ...idempotency, organisationId, mode, createdAt: credential.recordedAt },
      });
    },
  };
  return store.execute(command);
}

const NO_SPACE: Refusal = refuse(
  "internal_error",
  "The service's disk is nearly full, and what space is left is kept for live warrants. Retry with the same Idempotency-Key once its operator has made space.",
);

/** A resource that is a warrant, or carries one. */
type Versioned = { readonly version?: number; readonly warrant?: { readonly version: number } };

const versionIn = ({ version, warrant }: Versioned): number => warrant?.version ?? version ?? 0;

/** The original answer, where the same request has one. */
function replayOf(
  { idempotencyKey: bound, replayedWarrant, replayedStep }: Snapshot<KeyedNeeds>,
  { fingerprint }: Idempotency,
): Answer | null {
  if (!bound?.outcome || bound.fingerprint !== fingerprint) return null;
  const { outcome } = bound;
  if (outcome.kind === "body") {
    const { status, body, contentHash } = outcome;
    return { status, body, contentHash, version: versionIn(JSON.parse(body) as Versioned), replayed: true };
  }
  const { status, version, encoding } = outcome;
  const encode = WARRANT_ENCODERS[encoding];
  if (!replayedWarrant || !replayedStep || !encode)
    throw new Error(`the answer of the key ${JSON.stringify(bound.key)} cannot be written again`);
  const body = JSON.stringify(encode(warrantAt(replayedWarrant, replayedStep)));
  return { status, body, contentHash: null, version, replayed: true };
}

/** Why the key cannot be used for a new request; null where it is free. */
function refuseUsedKey(bound: IdempotencyKey | null, { fingerprint }: Idempotency): Refusal | null {
  if (!bound) return null;
  return bound.fingerprint === fingerprint
    ? refuse(
        "idempotency_in_flight",
        "The original request of this Idempotency-Key is still running. Retry shortly.",
      )
    : refuse(
        "idempotency_key_reused",
        "This Idempotency-Key was used with another request. Use a fresh key for another request.",
      );
}

/** Claims an unused key for a warrant or a purchase, which later records the answer under it or frees it. */
export const claim = (key: NewKey, holder: string): Put => ({
  kind: "idempotencyKey",
  before: null,
  row: { ...key, holder, outcome: null },
});

/** An unused key, or a key in flight. */
type UnfinishedKey = NewKey | IdempotencyKey;

/**
 * What is answered: a warrant as it is after the move, or another resource. A warrant's text is not stored, since a
 * replay can write it again. `contentHash` is the hash of the content that fills the resource's `body` field.
 */
type Answered =
  | { readonly warrant: Warrant }
  | { readonly resource: object; readonly contentHash: string | null };

/**
 * Records the answer under its key, in the commit that moves the money. An unused key is claimed and finished
 * at once.
 *
 * @param puts what else the command writes
 * @throws where the key has an outcome already
 */
export function finish(
  key: UnfinishedKey,
  status: number,
  answered: Answered,
  puts: readonly Put[],
): Required<Decision<Answer>> {
  const before = "outcome" in key ? key : null;
  if (before?.outcome) throw new Error(`the key ${JSON.stringify(key.key)} has an outcome already`);
  const { answer, outcome } = writtenAs(status, answered);
  const put: Put = { kind: "idempotencyKey", before, row: { ...key, holder: null, outcome } };
  return { answer, change: { put: [...puts, put] } };
}

/** The answer, and what is recorded of it. */
function writtenAs(
  status: number,
  answered: Answered,
): { readonly answer: Answer; readonly outcome: RecordedOutcome } {
  if ("warrant" in answered) {
    const { id: warrantId, version } = answered.warrant;
    const body = JSON.stringify(warrantResource(answered.warrant));
    return {
      answer: { status, body, contentHash: null, version, replayed: false },
      outcome: { kind: "warrant", status, warrantId, version, encoding: WARRANT_ENCODING },
    };
  }
  const { resource, contentHash } = answered;
  const body = JSON.stringify(resource);
  return {
    answer: { status, body, contentHash, version: versionIn(resource), replayed: false },
    outcome: { kind: "body", status, body, contentHash },
  };
}

/** Frees a key in flight: nothing came of its request, and the same request may be sent again. */
export const free = (key: IdempotencyKey): Deletion => ({ kind: "idempotencyKey", row: key });
