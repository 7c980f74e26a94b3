import { formatCheckpoint } from "../../core/checkpoint.ts";
import { isRefusal, type Refusal, refuseField } from "../../core/errors.ts";
import { type Hash, sameHash } from "../../core/merkle.ts";
import { type NoteKey, parseSignatureLines, verifyNote } from "../../core/signed-note.ts";
import { checkSourceUrl } from "../../core/source-url.ts";
import { parseWitnessedNote } from "../../core/witness.ts";
import type { Context } from "../context.ts";
import { offerCheckpoint } from "./offer.ts";
import { type OwnLog, ownLogOf } from "./own-log.ts";

/** What a witness says of this log, beside the log as it is now. */
export type WitnessAudit = {
  readonly witness: string;
  readonly url: string;
  /** The size at which the witness stands; null where it does not say. */
  readonly size: number | null;
  /** The largest size at which both are known to be the same. */
  readonly agrees_to: number;
  /** What is wrong, in words; null where nothing is. */
  readonly problem: string | null;
};

/** A witness that is asked. Without its key only what this log itself has signed is believed. */
type Asked = { readonly name: string; readonly url: string; readonly key: NoteKey | null };

function askedOf({ witness: { witnesses } }: Context, named: string): Asked | Refusal {
  const wanted = named.replace(/\/+$/, "");
  const known = witnesses.find(({ key, url }) => key.name === wanted || url === wanted);
  if (known) return { ...known, name: known.key.name };
  if (checkSourceUrl(wanted) === null) return { name: "without a known key", url: wanted, key: null };
  const names = witnesses.map(({ key }) => key.name).join(", ");
  return refuseField(
    "--witness",
    `must be a URL, or the name of a witness in HOLDFAST_WITNESSES, which has ${names || "none"}`,
  );
}

/**
 * Compares this log with what a witness has signed of it.
 *
 * @param named the name of a configured witness, or a URL
 */
export async function auditByWitness(ctx: Context, named: string): Promise<WitnessAudit | Refusal> {
  const witness = askedOf(ctx, named);
  if (isRefusal(witness)) return witness;
  const log = await ownLogOf(ctx);
  // Before it is asked, since it may sign more meanwhile.
  const kept = await agreementBelow(ctx, log, witness, Number.MAX_SAFE_INTEGER);
  const stands = await standingOf(ctx, log, witness);
  const about = { witness: witness.name, url: witness.url };
  if ("away" in stands) {
    const problem = `the witness ${witness.name} (${witness.url}) does not say what it has signed: ${stands.away}`;
    return { ...about, size: null, agrees_to: 0, problem };
  }
  const { size } = stands;
  const agreesTo = stands.agrees ? size : await agreementBelow(ctx, log, witness, size);
  const problem =
    kept > stands.stood
      ? fallBackOf(witness, stands, kept)
      : stands.agrees
        ? null
        : problemOf(witness, size, agreesTo, await log.size());
  return { ...about, size, agrees_to: agreesTo, problem };
}

/** The witness, not this log, is what went wrong: it would sign a fork of what it has forgotten. */
const fallBackOf = ({ name, url }: Asked, { stood, agrees }: Stands, kept: number): string =>
  `the witness ${name} (${url}) ${agrees ? "stood" : "has signed another log"} at ${stood} leaves, but its signature of this log at ${kept} leaves is kept here: it has forgotten what it signed, as after a restore, so its signatures prove nothing until it has a new key`;

function problemOf({ name, url }: Asked, size: number, agreesTo: number, ownSize: number): string {
  const known =
    agreesTo === 0
      ? "of no earlier size is its signature kept here"
      : `at ${agreesTo} leaves, of which its signature is kept here, both were the same`;
  const what =
    ownSize < size
      ? `has signed this log at ${size} leaves, and it has only ${ownSize} here: it was cut, or restored from a backup`
      : `has signed another log at ${size} leaves: this one was rewritten`;
  return `the witness ${name} (${url}) ${what}; ${known}, so they part between the leaves ${agreesTo} and ${size}`;
}

type Stands = {
  readonly size: number;
  /** The size that the witness had signed before it was asked: an offer makes it sign a larger one. */
  readonly stood: number;
  readonly agrees: boolean;
};
type Standing = Stands | { readonly away: string };

/** Where the witness stands. A Holdfast shows the note that it signed; of any other it is found out by an offer. */
async function standingOf(ctx: Context, log: OwnLog, witness: Asked): Promise<Standing> {
  const { ask, verify } = ctx.witness;
  const answer = await ask(`${witness.url}/checkpoint?origin=${encodeURIComponent(log.origin)}`);
  if ("failed" in answer) return { away: answer.failed };
  const shown = answer.status === 200 ? parseWitnessedNote(answer.text, log.origin) : null;
  if (!shown) return standingByOffer(ctx, log, witness);
  const verified = await verifyNote(shown.note, witness.key ? [witness.key] : log.keys, verify);
  if (!verified || verified.length === 0)
    return { away: `what it shows is not signed by ${witness.key ? "its key" : "a key of this log"}` };
  const { size, root } = shown.checkpoint;
  const agrees = size <= (await log.size()) && sameHash(root, await log.root(size));
  return { size, stood: size, agrees };
}

/** An offer of the newest checkpoint, which a witness that agrees signs. */
async function standingByOffer(ctx: Context, log: OwnLog, { key, url }: Asked): Promise<Standing> {
  if (key === null)
    return { away: "it shows no checkpoint; name it in HOLDFAST_WITNESSES, and it is asked otherwise" };
  const newest = await log.newest();
  if (newest === null) return { away: "there is no checkpoint yet to ask with" };
  const offered = await offerCheckpoint(ctx, log, { key, url }, newest, 0);
  switch (offered.outcome) {
    case "cosigned":
      return { size: newest.size, stood: offered.from, agrees: true };
    case "away":
      return { away: offered.why };
    default:
      return { size: offered.size, stood: offered.size, agrees: false };
  }
}

/** How many signatures are read at once. */
const PAGE = 100;

/**
 * The largest size below this one at which the witness signed the log as it is now; 0 where there is none. A signature cannot be
 * forged by whoever rewrites the ledger, and where a tree agrees at a size, it agrees at every smaller one.
 */
async function agreementBelow(ctx: Context, log: OwnLog, { key }: Asked, below: number): Promise<number> {
  if (key === null) return 0;
  const { name } = key;
  for (let from = below; ; ) {
    const page = await ctx.store.read(({ cosignatures }) => cosignatures.below(name, from, PAGE));
    const last = page.at(-1);
    if (!last) return 0;
    from = last.size;
    // What the witness signed with a former key of the same name says nothing here.
    const ofKey = page.filter(({ line }) => parseSignatureLines(line)?.some(({ id }) => id === key.id));
    // Only where the smallest agrees can a larger one of the page.
    const smallest = ofKey.at(-1);
    if (smallest === undefined || !(await isAsSigned(ctx, log, key, smallest))) continue;
    for (const kept of ofKey) if (await isAsSigned(ctx, log, key, kept)) return kept.size;
  }
}

async function isAsSigned(
  ctx: Context,
  log: OwnLog,
  key: NoteKey,
  { size, line }: { readonly size: number; readonly line: string },
): Promise<boolean> {
  const lines = parseSignatureLines(line);
  if (!lines || size > (await log.size())) return false;
  const root: Hash = await log.root(size);
  const text = formatCheckpoint({ origin: log.origin, size, root, extensions: [] });
  const verified = await verifyNote({ text, lines }, [key], ctx.witness.verify);
  return verified !== null && verified.length > 0;
}
