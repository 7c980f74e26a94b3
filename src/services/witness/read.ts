import { type Refusal, refuse } from "../../core/errors.ts";
import type { Context } from "../context.ts";
import { cosignatureOf } from "./add-checkpoint.ts";

/** The last checkpoint of a log that this witness cosigned, as a note with the log's signature and the witness's own. */
export async function readWitnessed(ctx: Context, origin: string): Promise<string | Refusal> {
  const log = await ctx.store.read((reader) => reader.witnessedLogs.get(origin));
  return log
    ? log.note + (await cosignatureOf(ctx, log))
    : refuse("log_not_found", "This witness has cosigned no checkpoint of this origin.");
}
