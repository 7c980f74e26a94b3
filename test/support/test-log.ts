import { formatCheckpoint } from "../../src/core/checkpoint.ts";
import { consistencyProof, type Hash, leafHash, nodeHash, rootOf } from "../../src/core/merkle.ts";
import { formatSignedNote, formatVerifierKey, type NoteKey, signText } from "../../src/core/signed-note.ts";
import { formatAddCheckpoint } from "../../src/core/witness.ts";
import { noteSignerOf } from "../../src/platform/note-keys.ts";

/** A log in memory, that signs whatever a test wants. */
export type TestLog = {
  readonly origin: string;
  readonly key: NoteKey;
  /** The key as settings name it. */
  readonly verifierKey: string;
  /** The signed checkpoint of the first leaves, with further lines of text where given. */
  note(size: number, ...extensions: string[]): Promise<string>;
  root(size: number): Hash;
  proof(from: number, to: number): readonly Hash[];
  /** A request that offers the checkpoint of a size to a witness that stands at another. */
  offer(from: number, to: number): Promise<string>;
};

/** @param leaves the data of its leaves; another list is another log, or a fork of this one */
export function createTestLog(origin: string, leaves: readonly string[], seed = 1): TestLog {
  const { key, sign } = noteSignerOf(origin, "ed25519", new Uint8Array(32).fill(seed));
  const read = (level: number, index: number): Hash =>
    level === 0
      ? leafHash(Buffer.from(leaves[index]!))
      : nodeHash(read(level - 1, 2 * index), read(level - 1, 2 * index + 1));
  const proof = (from: number, to: number) => consistencyProof({ from, to }, read);
  const note = async (size: number, ...extensions: string[]) => {
    const text = formatCheckpoint({ origin, size, root: rootOf(size, read), extensions });
    return formatSignedNote({ text, lines: [await signText(text, key, sign)] });
  };
  return {
    ...{ origin, key, note, proof },
    root: (size) => rootOf(size, read),
    verifierKey: formatVerifierKey(key),
    offer: async (from, to) => formatAddCheckpoint(from, proof(from, to), await note(to)),
  };
}

/** Leaves that differ from the one at `forkAt` on. */
export const leavesForkedAt = (forkAt: number, size: number, fork: string): readonly string[] =>
  Array.from({ length: size }, (_, index) => (index < forkAt ? `leaf ${index}` : `${fork} ${index}`));
