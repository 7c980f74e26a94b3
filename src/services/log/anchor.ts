import { sha256Bytes } from "../../core/canonical.ts";
import { formatCheckpoint } from "../../core/checkpoint.ts";
import { type LogCheckpoint, logNameOf, type SignedCheckpoint } from "../../core/log.ts";
import { verifyConsistency } from "../../core/merkle.ts";
import { formatSignedNote, type NoteKey, noteKey, signText } from "../../core/signed-note.ts";
import { checkpointIn } from "../../core/witness.ts";
import type { Tokens } from "../../platform/tokens.ts";
import type { Reader } from "../../store/reader.ts";
import type { Context } from "../context.ts";

/** How many entries one commit appends. Requests wait for that long at most. */
const STEP = 500;
/** The steps of one run. The next run appends what is left. */
const STEPS_MAX = 500;

/**
 * Appends the entries of the trace that the log does not have yet, and signs a checkpoint where the log has grown since the last
 * one. Any number of processes may do so at any time.
 *
 * @returns how many entries were appended
 * @throws where the stored log does not continue the last checkpoint; nothing is signed then
 */
export async function anchor(ctx: Context): Promise<number> {
  let appended = 0;
  for (let step = 0; step < STEPS_MAX; step++) {
    const entries = await ctx.store.extendLog(STEP);
    appended += entries;
    if (entries < STEP) break;
    await new Promise(setImmediate);
  }
  await signCheckpoint(ctx);
  return appended;
}

type Tree = Pick<SignedCheckpoint, "size" | "root">;

async function signCheckpoint(ctx: Context): Promise<void> {
  const grown = await ctx.store.read(async ({ instance, log }) => {
    const size = await log.size();
    const newest = await log.newestCheckpoint();
    if (size === (newest?.size ?? 0)) return null;
    const root = await log.root(size);
    if (newest !== null && !(await continues(log, newest, { size, root })))
      throw new Error(
        `the stored log does not continue its checkpoint ${newest.number} of ${newest.size} leaves: it was changed, so nothing is signed; holdfast audit names what disagrees`,
      );
    return { size, root, instanceId: (await instance.get()).id };
  });
  if (grown === null) return;
  const { size, root, instanceId } = grown;
  const name = logNameOf(instanceId);
  const text = formatCheckpoint({ origin: name, size, root, extensions: [] });
  await ctx.store.keepCheckpoint({ size, root, note: await signedNoteOf(ctx.tokens, name, text) });
}

/** A text as the instance signs it under the name of its log. */
export async function signedNoteOf(tokens: Tokens, name: string, text: string): Promise<string> {
  const [key] = logKeysOf(name, tokens);
  if (!key) throw new Error("there is no key to sign the log with");
  return formatSignedNote({ text, lines: [await signText(text, key, tokens.signBytes)] });
}

/**
 * Whether the log as it is stored begins with the tree that was signed last. Two checkpoints that contradict each other would prove
 * to everybody that this instance rewrote its log.
 */
async function continues(log: Reader["log"], signed: LogCheckpoint, { size, root }: Tree): Promise<boolean> {
  const { size: from, root: fromRoot } = checkpointIn(signed.note).checkpoint;
  if (from > size) return false;
  const proof = await log.consistencyProof(from, size);
  return verifyConsistency({ from, to: size, fromRoot, toRoot: root, proof });
}

/** The keys of the log's checkpoints: the instance's signing key under the log's name, and those that it replaced. */
export const logKeysOf = (name: string, { jwks }: Pick<Tokens, "jwks">): readonly NoteKey[] =>
  jwks.keys.map(({ x }) =>
    noteKey(name, "ed25519", Uint8Array.fromBase64(x, { alphabet: "base64url" }), sha256Bytes),
  );
