import { BPS_WHOLE } from "../money.ts";
import { isLegalMove, isSettled, type Mover } from "../warrant.ts";
import type { Entry, Receipt } from "./form.ts";
import { type HashJson, same, shown } from "./say.ts";

/** What is wrong with the trace: that its entries are a chain of legal moves, and end as the warrant says. */
export function* problemsOfTrace(receipt: Receipt, hashOf: HashJson): Generator<string> {
  const { trace } = receipt;
  if (trace.length === 0) yield "the trace has no entry";
  for (const [index, entry] of trace.entries()) {
    const before = trace[index - 1] ?? null;
    yield* problemsOfHashes(receipt.warrant.id, { entry, index, before }, hashOf);
    yield* problemsOfCopies(entry, index);
    yield* problemsOfTerms(receipt, entry, index);
    yield* problemsOfMove(entry, index, before);
  }
  yield* problemsOfEnds(receipt);
}

type Place = { readonly entry: Entry; readonly index: number; readonly before: Entry | null };

function* problemsOfHashes(
  warrantId: string,
  { entry: { payload, payload_hash, entry_hash }, index, before }: Place,
  hashOf: HashJson,
): Generator<string> {
  const at = `trace[${index}]`;
  if (hashOf(payload) !== payload_hash) yield `${at}.payload does not have the hash ${at}.payload_hash`;
  const previous = before?.entry_hash ?? null;
  if (hashOf({ warrant_id: warrantId, sequence: index, previous, payload_hash }) !== entry_hash)
    yield `${at}.entry_hash is not the hash of entry ${index} of the warrant after the entry before it`;
}

/** What an entry says beside its payload must be what the payload says. */
function* problemsOfCopies(entry: Entry, index: number): Generator<string> {
  const { payload } = entry;
  for (const name of ["to", "from", "actor", "recorded_at", "rules_hash"])
    if (!same(entry[name], payload[name]))
      yield `trace[${index}].${name} is ${shown(entry[name])}, but its payload says ${shown(payload[name])}`;
  if (entry.sequence !== index)
    yield `trace[${index}].sequence is ${shown(entry.sequence)}: an entry is missing or out of order`;
  if (payload.version !== index + 1)
    yield `trace[${index}].payload.version is ${shown(payload.version)}, not ${index + 1}`;
}

/** The terms never change, and they are what the receipt says. */
function* problemsOfTerms({ mode, warrant, trace }: Receipt, { payload }: Entry, index: number) {
  const { id, amount, asset, payee, spec_hash, policy_version, rules_hash } = warrant;
  const terms = { amount, asset, payee, spec_hash, policy_version, rules_hash };
  const at = `trace[${index}].payload`;
  if (payload.mode !== mode) yield `mode is ${shown(mode)}, but ${at} says ${shown(payload.mode)}`;
  if (payload.warrant_id !== id)
    yield `warrant.id is ${shown(id)}, but ${at} says ${shown(payload.warrant_id)}`;
  for (const [name, value] of Object.entries(terms))
    if (payload[name] !== value)
      yield `warrant.${name} is ${shown(value)}, but ${at} says ${shown(payload[name])}`;
  for (const name of ["agent_id", "policy_id"])
    if (payload[name] !== trace[0]?.payload[name]) yield `${at}.${name} is not that of the first entry`;
}

const MOVERS: Readonly<Record<string, readonly Mover[]>> = {
  agent: ["caller"],
  user: ["caller", "operator", "second"],
  system: ["system"],
};

function* problemsOfMove({ payload }: Entry, index: number, before: Entry | null): Generator<string> {
  const { from, to, actor, recorded_at, released_bps } = payload;
  const at = `trace[${index}]`;
  const came = before?.payload.to ?? null;
  if (from !== came) yield `${at} begins at ${shown(from)}, but the entry before it ended at ${shown(came)}`;
  const movers = Object.hasOwn(MOVERS, actor.kind) ? (MOVERS[actor.kind] ?? []) : [];
  const isLegal =
    from === null
      ? to === "held" && actor.kind !== "system"
      : movers.some((mover) => isLegalMove(from, to, mover));
  if (!isLegal || movers.length === 0)
    yield `${at} says that a warrant went from ${shown(from)} to ${shown(to)} by ${shown(actor.kind)}, which no warrant does`;
  if ((actor.kind === "system") !== (actor.id === null))
    yield `${at}.actor.id is ${shown(actor.id)}, which a ${shown(actor.kind)} does not have`;
  if (before && recorded_at < before.payload.recorded_at)
    yield `${at} is recorded before the entry that it follows`;
  if (!isShareOf(to, released_bps))
    yield `${at}.payload.released_bps is ${shown(released_bps)}, which does not go with ${shown(to)}`;
}

/** A release pays all of the amount, a partial one some of it, and all else nothing. */
function isShareOf(to: string, bps: number | null): boolean {
  if (to === "released") return bps === BPS_WHOLE;
  return to === "partially_released" ? bps !== null && bps < BPS_WHOLE : bps === null;
}

/** The warrant is as its first and its last entry left it. */
function* problemsOfEnds({ warrant, trace }: Receipt): Generator<string> {
  const [first, last] = [trace[0]?.payload, trace.at(-1)?.payload];
  if (!first || !last) return;
  const ends = [
    ["state", last.to],
    ["released_bps", last.released_bps],
    ["opened_at", first.recorded_at],
    ["settled_at", last.recorded_at],
  ] as const;
  for (const [name, value] of ends)
    if (warrant[name] !== value)
      yield `warrant.${name} is ${shown(warrant[name])}, but its trace says ${shown(value)}`;
  if (!isSettled(warrant.state)) yield `warrant.state is ${shown(warrant.state)}, which is not settled`;
}
