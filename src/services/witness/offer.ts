import { parseTreeSize } from "../../core/checkpoint.ts";
import {
  formatSignatureLine,
  parseSignatureLines,
  type SignatureLine,
  verifyNote,
} from "../../core/signed-note.ts";
import { checkpointIn, formatAddCheckpoint, type Witness } from "../../core/witness.ts";
import type { Context } from "../context.ts";
import type { OwnLog } from "./own-log.ts";

/**
 * What came of an offer: the witness's signature, and the size at which it stood before; or that it has signed another log under this name (`parted`, somewhere before
 * the size that it gives) or a longer one (`behind`); or that it did not answer as a witness does.
 */
export type Offered =
  | { readonly outcome: "cosigned"; readonly line: SignatureLine; readonly from: number }
  | { readonly outcome: "parted" | "behind"; readonly size: number }
  | { readonly outcome: "away"; readonly why: string };

type Checkpoint = { readonly size: number; readonly note: string };

/** A witness may say twice that it stands elsewhere: once we did not know, once another process was faster. */
const ATTEMPTS_MAX = 3;

/**
 * Offers a checkpoint to a witness, with the proof from the size at which the witness stands (C2SP, tlog-witness). It keeps
 * nothing.
 *
 * @param believed the size at which the witness stands, as far as is known
 */
export async function offerCheckpoint(
  ctx: Context,
  log: OwnLog,
  { key, url }: Witness,
  { size, note }: Checkpoint,
  believed: number,
): Promise<Offered> {
  let stands = believed;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    if (stands > size) return { outcome: "behind", size: stands };
    const proof = await log.consistencyProof(stands, size);
    const answer = await ctx.witness.ask(`${url}/add-checkpoint`, formatAddCheckpoint(stands, proof, note));
    if ("failed" in answer) return { outcome: "away", why: answer.failed };
    const { status, text } = answer;
    if (status === 200) return cosignedBy(ctx, key, note, text, stands);
    if (status === 422) return { outcome: "parted", size: stands };
    const said = status === 409 ? parseTreeSize(text.replace(/\n$/, "")) : null;
    if (said === null) return { outcome: "away", why: `answers ${status}` };
    // It stands where we believed, so it is the tree that differs.
    if (said === stands) return { outcome: "parted", size: stands };
    stands = said;
  }
  return { outcome: "away", why: "stands at another size each time" };
}

/** The witness's own signature among the lines that it answered. Lines of others are passed over. */
async function cosignedBy(
  { witness }: Context,
  key: Witness["key"],
  note: string,
  answered: string,
  from: number,
): Promise<Offered> {
  const lines = parseSignatureLines(answered);
  const { text } = checkpointIn(note).note;
  const [found] = (lines && (await verifyNote({ text, lines }, [key], witness.verify))) ?? [];
  return found
    ? { outcome: "cosigned", line: found.line, from }
    : { outcome: "away", why: "answers without a signature of its key" };
}

/** Whether a signature of the witness on this very checkpoint is kept. */
export async function isCosigned(
  { store, witness: { verify } }: Context,
  { key }: Witness,
  { size, note }: Checkpoint,
): Promise<boolean> {
  const kept = await store.read((reader) => reader.cosignatures.of(size));
  const line = kept.find(({ witness }) => witness === key.name)?.line;
  const lines = line === undefined ? null : parseSignatureLines(line);
  const { text } = checkpointIn(note).note;
  const verified = lines && (await verifyNote({ text, lines }, [key], verify));
  return verified?.length === 1;
}

/** Keeps a witness's signature on the checkpoint of a size. */
export async function keepCosignature(
  { store }: Context,
  witness: string,
  size: number,
  line: SignatureLine,
): Promise<void> {
  await store.execute({
    scope: null,
    needs: { cosignature: { size, witness } },
    decide({ cosignature: before }) {
      const row = { size, witness, line: formatSignatureLine(line) };
      return { answer: null, change: { put: [{ kind: "cosignature", before, row }] } };
    },
  });
}
