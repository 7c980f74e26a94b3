import { isRefusal, type Refusal } from "../../core/errors.ts";
import { logNameOf } from "../../core/log.ts";
import { type NoteKey, parseSignedNote, type Verify, verifyNote } from "../../core/signed-note.ts";
import type { Context } from "../context.ts";
import { logKeysOf } from "./anchor.ts";

const CHECKPOINTS_AT_ONCE = 1_000;

/** The checkpoints of the log that none of the instance's keys has signed, one message each. Rotated keys count. */
export async function auditSignatures(ctx: Context): Promise<readonly string[]> {
  const problems: string[] = [];
  let known: readonly NoteKey[] | null = null;
  for (let after = 0; ; ) {
    const { id, checkpoints } = await ctx.store.read(async ({ instance, log }) => ({
      id: (await instance.get()).id,
      checkpoints: await log.checkpointsAfter(after, CHECKPOINTS_AT_ONCE),
    }));
    const last = checkpoints.at(-1);
    if (!last) return problems;
    // A ledger without checkpoints needs no keys.
    const keys: readonly NoteKey[] | Refusal = known ?? keysOrRefusal(logNameOf(id), ctx);
    if (isRefusal(keys)) return [`the log: its signatures cannot be verified: ${keys.message}`];
    known = keys;
    for (const { number, note } of checkpoints)
      if (!(await isSigned(note, keys, ctx.witness.verify)))
        problems.push(`checkpoint ${number}: no key of this instance signed it`);
    after = last.number;
  }
}

/** A command throws a refusal where its keys are missing. The rest of the audit is then worth having all the same. */
function keysOrRefusal(name: string, { tokens }: Context): readonly NoteKey[] | Refusal {
  try {
    return logKeysOf(name, tokens);
  } catch (error) {
    if (isRefusal(error)) return error;
    throw error;
  }
}

/** Signed by a key, and by no other key wrongly. */
async function isSigned(note: string, keys: readonly NoteKey[], verify: Verify): Promise<boolean> {
  const parsed = parseSignedNote(note);
  const verified = parsed && (await verifyNote(parsed, keys, verify));
  return verified !== null && verified.length > 0;
}
