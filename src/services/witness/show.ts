import { formatVerifierKey } from "../../core/signed-note.ts";
import { isoTime } from "../../core/time.ts";
import { checkpointIn, WITNESS_PATH } from "../../core/witness.ts";
import type { Context } from "../context.ts";
import { ownLogOf } from "./own-log.ts";

/** What others need of this instance: as a witness, and as a log to witness. */
export async function showWitness(ctx: Context) {
  const { key } = await ctx.witness.signer();
  const log = await ownLogOf(ctx);
  const logs = await ctx.store.read((reader) => reader.witnessedLogs.list());
  return {
    object: "witness",
    /** For `HOLDFAST_WITNESSES` of whoever wants to be witnessed by this instance. */
    witness: `${formatVerifierKey(key)}=${ctx.baseUrl}${WITNESS_PATH}`,
    /** For `HOLDFAST_WITNESS_FOR` of whoever witnesses this instance. */
    log: log.keys.map(formatVerifierKey),
    witnessed: logs.map(({ origin, note, cosignedAt }) => ({
      origin,
      size: checkpointIn(note).checkpoint.size,
      cosigned_at: isoTime(cosignedAt),
    })),
  } as const;
}
