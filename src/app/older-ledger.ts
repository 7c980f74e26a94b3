import type { Config, Secrets } from "../config.ts";
import { type Refusal, refuseField } from "../core/errors.ts";
import { SECOND_MS } from "../core/time.ts";
import { logError } from "../platform/log.ts";
import { declareRestore } from "../services/admin/backup.ts";
import { docsUrlOf } from "./urls.ts";

/** What an instance does whose database was brought back to an earlier time (docs/postgresql, "After a recovery"). */

/** A database that has just been recovered may not be there yet. */
const TRIES_MAX = 30;

const FOUND = "the database was brought back to an earlier time: it lacks what was committed to it";

/**
 * Marks the ledger as restored, so that no live money moves, also by an instance that is started anew and remembers nothing. Somebody who
 * has declared it since this instance began knows of it.
 *
 * @param restoredAt when the ledger was last restored, as far as this instance knows; epoch milliseconds
 * @returns why this instance must not go on
 */
export async function declareOlder(
  config: Config,
  secrets: Secrets,
  restoredAt: number | null,
): Promise<Refusal> {
  logError("this instance stops", FOUND);
  const { openForCommands } = await import("./ledger.ts");
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    try {
      const { ctx, close } = await openForCommands(config, secrets);
      try {
        const instance = await ctx.store.read((reader) => reader.instance.get());
        if ((instance.restoredAt ?? 0) <= (restoredAt ?? 0)) await declareRestore(ctx);
        return refuseOlder(config, "It is marked as restored now, and no live money moves");
      } finally {
        await close();
      }
    } catch (error) {
      logError("the ledger cannot be marked as restored", error);
      await Bun.sleep(SECOND_MS);
    }
  }
  return refuseOlder(
    config,
    "It could not be marked as restored: run `holdfast restore declare` before any server starts",
  );
}

const refuseOlder = (config: Config, more: string): Refusal =>
  refuseField("HOLDFAST_DATABASE", `${FOUND}. ${more}: see ${docsUrlOf(config)}/postgresql`);
