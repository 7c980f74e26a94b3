import { Type } from "@sinclair/typebox";
import { canonicalJson, sha256 } from "./canonical.ts";
import { type Check, checkHashOf } from "./check.ts";
import { REASON_CODES } from "./clauses/reason-codes.ts";
import {
  amount,
  anyObject,
  arrayOf,
  hash,
  integer,
  object,
  oneOf,
  orNull,
  score,
  share,
  text,
  time,
  type Wire,
} from "./form.ts";
import { ACTOR_KINDS, type Actor, MODES } from "./roles.ts";
import { isoTime } from "./time.ts";
import {
  type EventType,
  eventOf,
  isSettled,
  STATES,
  type State,
  type Transition,
  type Warrant,
} from "./warrant.ts";

export const actorForm = () => object({ kind: oneOf(ACTOR_KINDS), id: orNull(text) });

/** What a check adds to the payload of the outcome that followed it. */
const checkedForm = () =>
  object({
    check_id: text,
    score,
    reason_codes: arrayOf(oneOf(REASON_CODES)),
    evidence_hash: hash,
    check_hash: hash,
  });

/** What a trace entry hashes, a webhook's body carries and a receipt shows. It stands here, not in `resources`: hashes depend on it. */
export const tracePayloadForm = () =>
  object({
    warrant_id: text,
    mode: oneOf(MODES),
    from: orNull(oneOf(STATES)),
    to: oneOf(STATES),
    version: Type.Integer({ minimum: 1 }),
    actor: actorForm(),
    recorded_at: time,
    amount,
    asset: text,
    payee: text,
    released_bps: share,
    spec_hash: hash,
    agent_id: orNull(text),
    policy_id: orNull(text),
    policy_version: orNull(integer),
    rules_hash: hash,
    schema_hashes: Type.Optional(anyObject<SchemaHashes>("At open: the hash of each named schema.", hash)),
    ...Type.Partial(checkedForm()).properties,
  });

/** The hash of each named schema, by its name. */
type SchemaHashes = Readonly<Record<string, string>>;

/**
 * One entry of a warrant's trace, which is a hash chain (docs/security, "Trace"). Webhooks are sent for the entries that have an
 * `event`.
 */
export type TraceEntry = TraceStep & {
  /** Canonical JSON of the trace payload; webhooks and receipts carry it. */
  readonly payload: string;
  readonly payloadHash: string;
  readonly rulesHash: string;
  readonly previous: string | null;
  readonly event: { readonly id: string; readonly type: EventType } | null;
};

/** The stored part of an entry. All other fields follow from it, the warrant's terms and the check. */
export type TraceStep = {
  readonly warrantId: string;
  /** Counts from 0 in each warrant: its version minus one. */
  readonly sequence: number;
  readonly from: State | null;
  readonly to: State;
  readonly actor: Actor;
  /** Never earlier than the newest record in the ledger, even where the clock was set back. */
  readonly recordedAt: number;
  /** How its payload is written: a key of `ENCODINGS`. */
  readonly encoding: number;
  /** Name → hash of the named schemas; at open only, else null. */
  readonly schemaHashes: Readonly<Record<string, string>> | null;
  /** The check that led to it; null where none did. */
  readonly checkId: string | null;
  /** Null where the move has no event. */
  readonly eventId: string | null;
  readonly entryHash: string;
};

/** The entry hash: SHA-256 of these four fields as canonical JSON (docs/security, "Trace"). */
export const entryHashOf = ({
  warrantId,
  sequence,
  previous,
  payloadHash,
}: Pick<TraceEntry, "warrantId" | "sequence" | "previous" | "payloadHash">): string =>
  // Canonical JSON, written at once, since there is one for every entry. A test compares it with `canonicalJson`. Hashes are hex.
  sha256(
    `{"payload_hash":"${payloadHash}","previous":${previous === null ? "null" : `"${previous}"`},"sequence":${sequence},"warrant_id":${JSON.stringify(warrantId)}}`,
  );

type Payload = Wire<typeof tracePayloadForm>;
/**
 * All fields of a payload. A field that is left out must be said to be undefined, so that none is forgotten.
 */
type Written = {
  readonly [Name in keyof Payload]-?:
    | Payload[Name]
    | (Record<never, never> extends Pick<Payload, Name> ? undefined : never);
};
type StepDetails = Pick<TraceStep, "from" | "actor" | "recordedAt" | "schemaHashes">;

/**
 * How the payload of an entry is written, from the warrant as the move left it. A new form of the payload
 * gets a new number; the old numbers stay, since their entries were hashed in that form.
 */
const ENCODINGS: Readonly<
  Record<number, (warrant: WarrantThen, details: StepDetails, check: Check | null) => string>
> = {
  1(warrant, { from, actor, recordedAt, schemaHashes }, check) {
    const payload: Written = {
      actor: { id: actor.id, kind: actor.kind },
      agent_id: warrant.agentId,
      amount: warrant.amount.toString(),
      asset: warrant.asset,
      check_hash: check ? checkHashOf(check) : undefined,
      check_id: check?.id,
      evidence_hash: check?.evidenceHash,
      from,
      mode: warrant.mode,
      payee: warrant.payee,
      policy_id: warrant.policyId,
      policy_version: warrant.policyVersion,
      reason_codes: check?.reasonCodes,
      recorded_at: isoTime(recordedAt),
      released_bps: warrant.releasedBps,
      rules_hash: warrant.rulesHash,
      schema_hashes: schemaHashes ?? undefined,
      score: check?.score,
      spec_hash: warrant.specHash,
      to: warrant.state,
      version: warrant.version,
      warrant_id: warrant.id,
    };
    // The fields above are in canonical order already. The names of two or more schemas may not be.
    const isInOrder = schemaHashes === null || Object.keys(schemaHashes).length < 2;
    return isInOrder ? JSON.stringify(payload) : canonicalJson(JSON.parse(JSON.stringify(payload)));
  },
};

/** The encoding of new entries. */
const ENCODING = 1;

export type TraceDetails = {
  readonly actor: Actor;
  readonly recordedAt: number;
  readonly eventId: string;
  /** The hashes of the named schemas, by name. Only the entry of the open has them. */
  readonly schemaHashes?: Readonly<Record<string, string>>;
  /** The check that led to the move. */
  readonly check?: Check;
};

/** The trace entry of a transition, chained to the one before it. */
export function traceOf(
  { from, warrant }: Transition,
  { actor, recordedAt, eventId, schemaHashes, check }: TraceDetails,
): TraceEntry {
  const entry = entryOf(
    warrant,
    {
      ...{ from, actor, recordedAt, eventId, encoding: ENCODING },
      schemaHashes: schemaHashes ?? null,
      checkId: check?.id ?? null,
    },
    warrant.traceHead,
    check ?? null,
  );
  return { ...entry, entryHash: entryHashOf(entry) };
}

/**
 * The entries of a warrant, oldest first, each with its payload written again from its step. Hashes are given
 * as they are stored: only the audit checks them.
 *
 * @throws where a step names a check that is not given, or an encoding that this version does not know
 */
export function entriesOf(
  warrant: Warrant,
  steps: readonly TraceStep[],
  checks: readonly Check[],
): readonly TraceEntry[] {
  return steps.map((step, index) => {
    const check = checks.find(({ id }) => id === step.checkId) ?? null;
    return entryAt(warrant, step, steps[index - 1] ?? null, check);
  });
}

/** One entry, after the step before it. */
export function entryAt(
  warrant: Warrant,
  step: TraceStep,
  before: TraceStep | null,
  check: Check | null,
): TraceEntry {
  if (step.checkId !== (check?.id ?? null)) throw new Error(`there is no check ${step.checkId}`);
  const entry = entryOf(warrantAt(warrant, step), step, before?.entryHash ?? null, check);
  return { ...entry, entryHash: step.entryHash };
}

/** What the entry hash of a step must be. The audit computes it for every entry, so nothing else of the entry is made. */
export const entryHashAt = (
  warrant: Warrant,
  step: TraceStep,
  previous: string | null,
  check: Check | null,
): string =>
  entryHashOf({
    warrantId: warrant.id,
    sequence: step.sequence,
    previous,
    payloadHash: sha256(payloadOf(warrantAt(warrant, step), step, check)),
  });

/** The payload of an entry. `warrant` is the warrant as the move left it. */
function payloadOf(
  warrant: WarrantThen,
  details: StepDetails & Pick<TraceStep, "encoding">,
  check: Check | null,
): string {
  const { encoding } = details;
  const encode = ENCODINGS[encoding];
  if (!encode)
    throw new Error(`the trace of ${warrant.id} is written by encoding ${encoding}, which is unknown`);
  return encode(warrant, details, check);
}

/** An entry without its hash. `warrant` is the warrant as the move left it. */
function entryOf(
  warrant: WarrantThen,
  step: Omit<TraceStep, "warrantId" | "sequence" | "to" | "entryHash">,
  previous: string | null,
  check: Check | null,
): Omit<TraceEntry, "entryHash"> {
  const { from, actor, recordedAt, encoding, schemaHashes, checkId } = step;
  const payload = payloadOf(warrant, step, check);
  const type = eventOf(from, warrant.state);
  return {
    warrantId: warrant.id,
    sequence: warrant.version - 1,
    from,
    to: warrant.state,
    actor,
    recordedAt,
    encoding,
    schemaHashes,
    checkId,
    eventId: type === null ? null : step.eventId,
    payload,
    payloadHash: sha256(payload),
    rulesHash: warrant.rulesHash,
    previous,
    event: type === null || step.eventId === null ? null : { id: step.eventId, type },
  };
}

/** A warrant at one of its versions. Three fields are missing, since only the newest version has them. */
export type WarrantThen = Omit<Warrant, "traceHead" | "verifyingSince" | "graceUntil">;

/** The warrant as an entry of its trace left it. */
export function warrantAt(
  warrant: Warrant,
  { sequence, to, recordedAt }: Pick<TraceStep, "sequence" | "to" | "recordedAt">,
): WarrantThen {
  // Each field is named, since spreading them takes a microsecond, and the audit does this for every entry.
  return {
    id: warrant.id,
    organisationId: warrant.organisationId,
    mode: warrant.mode,
    state: to,
    version: sequence + 1,
    amount: warrant.amount,
    asset: warrant.asset,
    releasedBps: to === "released" || to === "partially_released" ? warrant.releasedBps : null,
    payee: warrant.payee,
    spec: warrant.spec,
    specHash: warrant.specHash,
    agentId: warrant.agentId,
    openedBy: warrant.openedBy,
    sessionId: warrant.sessionId,
    verifierId: warrant.verifierId,
    policyId: warrant.policyId,
    policyVersion: warrant.policyVersion,
    rulesHash: warrant.rulesHash,
    deadline: warrant.deadline,
    openedAt: warrant.openedAt,
    settledAt: isSettled(to) ? recordedAt : null,
  };
}
