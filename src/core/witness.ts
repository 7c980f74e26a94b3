import { type Checkpoint, parseCheckpoint, parseTreeSize } from "./checkpoint.ts";
import { EMPTY_ROOT, HASH_BYTES, verifyConsistency } from "./merkle.ts";
import {
  fromBase64,
  NOTE_LENGTH_MAX,
  type NoteKey,
  parseSignedNote,
  type SignedNote,
  toBase64,
} from "./signed-note.ts";

/**
 * Witnesses (C2SP, tlog-witness): a witness signs a log's checkpoint again where it continues the last one that it signed, so
 * that a log which was rewritten gets no more signatures.
 */

/** Where witnesses are asked, below a base URL. */
export const WITNESS_PATH = "/.well-known/holdfast/witness";

/** With the log's own signature this makes 16, the most that everybody reads (C2SP, signed-note, "Format"). */
export const WITNESSES_MAX = 15;

/** A log that this instance witnesses. */
export type LogToWitness = {
  readonly origin: string;
  /** Each of them may sign its checkpoints. */
  readonly keys: readonly NoteKey[];
};

/** A witness that cosigns the checkpoints of this instance. */
export type Witness = {
  readonly key: NoteKey;
  /** Where it is asked: `/add-checkpoint` comes after it. */
  readonly url: string;
};

/** How far a witness has seen a log: its last checkpoint that it cosigned. */
export type WitnessedLog = {
  readonly origin: string;
  /** The checkpoint, signed by the log alone. */
  readonly note: string;
  /** Epoch milliseconds. */
  readonly cosignedAt: number;
};

/** A witness's signature on a checkpoint of this instance's log. */
export type Cosignature = {
  /** The size of the checkpoint. */
  readonly size: number;
  /** The key name of the witness. */
  readonly witness: string;
  /** The signature line, with its newline. It was verified before it was kept. */
  readonly line: string;
};

export const cosignatureKey = ({ size, witness }: Pick<Cosignature, "size" | "witness">): string =>
  `${size} ${witness}`;

/** The key name of an instance as a witness. Its log has another name, since the keys differ too. */
export const witnessNameOf = (instanceId: string): string => `holdfast/${instanceId}/witness`;

/** What a log asks of a witness. */
export type AddCheckpoint = {
  /** The size at which the witness stands, as the log believes. */
  readonly oldSize: number;
  readonly proof: readonly Uint8Array[];
  readonly note: SignedNote;
  readonly checkpoint: Checkpoint;
};

/** Trees have fewer leaves than 2 ** 63. */
const PROOF_LINES_MAX = 63;
/** `old`, a size, and lines of 32 bytes in base64. */
const HEAD_LENGTH_MAX = 32 + PROOF_LINES_MAX * 45;
export const ADD_CHECKPOINT_BYTES_MAX = NOTE_LENGTH_MAX + HEAD_LENGTH_MAX;

/** What a request's body asks, or the problem with it, in words that follow "body". */
export function parseAddCheckpoint(body: string): AddCheckpoint | { readonly problem: string } {
  const end = body.indexOf("\n\n");
  const [first = "", ...lines] = end === -1 ? [] : body.slice(0, end).split("\n");
  const oldSize = first.startsWith("old ") ? parseTreeSize(first.slice("old ".length)) : null;
  if (oldSize === null) {
    return {
      problem: "must be a line such as old 20852014, a consistency proof, an empty line, and a checkpoint",
    };
  }
  if (lines.length > PROOF_LINES_MAX)
    return { problem: `must have at most ${PROOF_LINES_MAX} lines of proof` };
  const proof = lines.map(fromBase64).filter((hash) => hash?.length === HASH_BYTES) as Uint8Array[];
  if (proof.length < lines.length)
    return { problem: "must have 32 bytes in base64 in each line of the proof" };
  const signed = parseSignedCheckpoint(body.slice(end + 2));
  if (!signed) return { problem: "must end with a checkpoint, which is a signed note" };
  const { note, checkpoint } = signed;
  if (oldSize > checkpoint.size) {
    return { problem: `must have an old size of at most that of the checkpoint, ${checkpoint.size}` };
  }
  return { oldSize, proof, note, checkpoint };
}

export const formatAddCheckpoint = (oldSize: number, proof: readonly Uint8Array[], note: string): string =>
  [`old ${oldSize}`, ...proof.map((hash) => toBase64(hash)), "", note].join("\n");

/** What a witness finds of an offered checkpoint: whether it continues the one that it knows. */
export type Judgement = "continues" | "same" | "other_size" | "other_root" | "unproved";

/** @param known the last checkpoint that was cosigned; null where there is none */
export function judgeCheckpoint(known: Checkpoint | null, offered: AddCheckpoint): Judgement {
  const { oldSize: from, proof, checkpoint } = offered;
  const { size, root } = known ?? { size: 0, root: EMPTY_ROOT };
  if (from !== size) return "other_size";
  const isProved = verifyConsistency({
    ...{ from, to: checkpoint.size, proof },
    fromRoot: root,
    toRoot: checkpoint.root,
  });
  if (!isProved) return from === checkpoint.size && proof.length === 0 ? "other_root" : "unproved";
  return from === checkpoint.size ? "same" : "continues";
}

type SignedCheckpoint = { readonly note: SignedNote; readonly checkpoint: Checkpoint };

/** The checkpoint that a signed note is of; null for every other text. */
function parseSignedCheckpoint(text: string): SignedCheckpoint | null {
  const note = parseSignedNote(text);
  const checkpoint = note && parseCheckpoint(note.text);
  return note && checkpoint ? { note, checkpoint } : null;
}

/** The checkpoint of a log that a witness shows; null where it shows something else. */
export function parseWitnessedNote(text: string, origin: string): SignedCheckpoint | null {
  const signed = parseSignedCheckpoint(text);
  return signed?.checkpoint.origin === origin ? signed : null;
}

/** The checkpoint in a note that was stored. Throws where there is none. */
export function checkpointIn(text: string): SignedCheckpoint {
  const signed = parseSignedCheckpoint(text);
  if (!signed) throw new Error("a stored note is no checkpoint");
  return signed;
}
