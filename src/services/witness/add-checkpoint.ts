import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import {
  cosign,
  formatSignatureLine,
  formatSignedNote,
  type NoteKey,
  verifyNote,
} from "../../core/signed-note.ts";
import { SECOND_MS } from "../../core/time.ts";
import {
  type AddCheckpoint,
  checkpointIn,
  judgeCheckpoint,
  parseAddCheckpoint,
  type WitnessedLog,
} from "../../core/witness.ts";
import type { Context } from "../context.ts";
import { awaitsAcknowledgement, isLostKey } from "../instance.ts";

/** The size that this witness has signed, where the log assumed another one; `unproved` where the proof is wrong. */
type NotAdded = { readonly stands: number } | "unproved";

/** What a witness answers: its signature lines, or why there are none. */
export type Added = { readonly lines: string } | NotAdded;

/** A checkpoint that is offered again so soon is answered as before, and nothing is written. */
const SAME_FOR_MS = 60 * SECOND_MS;

/** A clock that is corrected in small steps may be behind the ledger by less than this. */
const BEHIND_ALLOWED_MS = 5 * SECOND_MS;

/**
 * Cosigns a log's checkpoint where it continues the last one that was cosigned (C2SP, tlog-witness, "add-checkpoint"). What was
 * cosigned is on disk before anybody gets the signature, and of two requests at once the second finds what the first has left.
 *
 * @param body the request's body
 */
export async function addCheckpoint(ctx: Context, body: string): Promise<Added | Refusal> {
  const { witness } = ctx;
  const asked = parseAddCheckpoint(body);
  if ("problem" in asked) return refuseField("body", asked.problem);
  const { origin } = asked.checkpoint;
  const log = witness.logs.find((known) => known.origin === origin);
  if (!log) return refuse("log_not_found", "This witness does not witness a log of this origin.");
  const verified = await verifyNote(asked.note, log.keys, witness.verify);
  if (!verified || verified.length === 0) {
    return refuse("checkpoint_not_signed", `The checkpoint is not signed by a known key of ${origin}.`);
  }
  // One line of each key is kept: of others nobody says whose they are, and more would make the note too long to be read.
  const lines = log.keys.flatMap((key) => verified.find((one) => one.key === key)?.line ?? []);
  if (ctx.store.lastRecordedAt() - ctx.now() > BEHIND_ALLOWED_MS) return CLOCK_IS_BEHIND;
  const { key } = await witness.signer();
  const kept = await keep(ctx, key, asked, formatSignedNote({ text: asked.note.text, lines }));
  return isRefusal(kept) || kept === "unproved" || "stands" in kept
    ? kept
    : { lines: await cosignatureOf(ctx, kept) };
}

type Kept = WitnessedLog | NotAdded;

/** Puts the checkpoint in place of the last one, where it continues that. */
function keep({ store }: Context, key: NoteKey, asked: AddCheckpoint, note: string): Promise<Kept | Refusal> {
  const { origin } = asked.checkpoint;
  return store.execute({
    scope: null,
    needs: { witnessedLog: origin },
    decide({ instance, witnessedLog: before, recordedAt }): {
      answer: Kept | Refusal;
      change?: { put: [{ kind: "witnessedLog"; before: WitnessedLog | null; row: WitnessedLog }] };
    } {
      if (awaitsAcknowledgement(instance)) return { answer: MAY_HAVE_FORGOTTEN };
      if (isLostKey(instance, key)) return { answer: KEY_IS_LOST };
      const known = before && checkpointIn(before.note);
      const judgement = judgeCheckpoint(known?.checkpoint ?? null, asked);
      switch (judgement) {
        case "other_size":
        case "other_root":
          return { answer: { stands: known?.checkpoint.size ?? 0 } };
        case "unproved":
          return { answer: "unproved" };
        case "same":
          // The lines after the root may differ, and they are signed too.
          if (before && known?.note.text === asked.note.text && recordedAt - before.cosignedAt < SAME_FOR_MS)
            return { answer: before };
      }
      const row = { origin, note, cosignedAt: recordedAt };
      return { answer: row, change: { put: [{ kind: "witnessedLog", before, row }] } };
    },
  });
}

/** A witness that forgot a checkpoint would sign another one in its place. */
const MAY_HAVE_FORGOTTEN = refuse(
  "restore_unacknowledged",
  "The witness was restored from a backup, which may have forgotten checkpoints. It signs again when its operator has run `holdfast restore acknowledge`.",
);

/** A time never goes back in the ledger, so a clock that once was ahead would sign times of the future. */
const CLOCK_IS_BEHIND = refuse(
  "internal_error",
  "The witness's clock is behind its ledger, so a cosignature would have a time that has not come yet. It signs again once the clock is right and has passed the ledger's last commit.",
);

const KEY_IS_LOST = refuse(
  "restore_unacknowledged",
  "The witness was restored from a backup, and has the key that it had before, of whose signatures it may have forgotten some. It signs again when its operator has given it a new key.",
);

/** The signature line of this witness on what it has kept. It is the same whenever it is asked for. */
export async function cosignatureOf(
  { witness }: Context,
  { note, cosignedAt }: WitnessedLog,
): Promise<string> {
  const { key, sign } = await witness.signer();
  const { text } = checkpointIn(note).note;
  return formatSignatureLine(await cosign(text, key, Math.floor(cosignedAt / SECOND_MS), sign));
}
