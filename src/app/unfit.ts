import type { Config, Secrets } from "../config.ts";
import { type Refusal, refuseField } from "../core/errors.ts";
import { SECOND_MS } from "../core/time.ts";
import { logError } from "../platform/log.ts";
import { declareRestore } from "../services/admin/backup.ts";
import type { Unfit } from "../store/postgres/ledger-watch.ts";
import { NewerLedger } from "../store/sql/ledger-version.ts";
import { docsUrlOf } from "./urls.ts";

/** What an instance does that must not go on with its ledger. */

/** A database that has just been recovered may not be there yet. */
const TRIES_MAX = 30;

/**
 * What is done, and said, before it stops: where a newer version serves the ledger, nothing. A ledger that became an older one is declared
 * (docs/postgresql, "After a recovery").
 *
 * @param restoredAt when the ledger was last restored, as far as this instance knows; epoch milliseconds
 * @returns why this instance must not go on
 */
export async function stopUnfit(
  config: Config,
  secrets: Secrets,
  why: Unfit,
  restoredAt: number | null,
): Promise<Refusal> {
  logError("this instance stops", why.message);
  return why instanceof NewerLedger
    ? refuseField("HOLDFAST_DATABASE", why.message)
    : declareOlder(config, secrets, why, restoredAt);
}

/**
 * Marks the ledger as restored, so that no live money moves, also by an instance that is started anew and remembers nothing. Somebody who
 * has declared it since this instance began knows of it.
 */
async function declareOlder(
  config: Config,
  secrets: Secrets,
  { message }: Unfit,
  restoredAt: number | null,
): Promise<Refusal> {
  const refused = (more: string) =>
    refuseField("HOLDFAST_DATABASE", `${message}. ${more}: see ${docsUrlOf(config)}/postgresql`);
  const { openForCommands } = await import("./ledger.ts");
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    try {
      const { ctx, close } = await openForCommands(config, secrets);
      try {
        const instance = await ctx.store.read((reader) => reader.instance.get());
        if ((instance.restoredAt ?? 0) <= (restoredAt ?? 0)) await declareRestore(ctx);
        return refused("It is marked as restored now, and no live money moves");
      } finally {
        await close();
      }
    } catch (error) {
      logError("the ledger cannot be marked as restored", error);
      await Bun.sleep(SECOND_MS);
    }
  }
  return refused(
    "It could not be marked as restored: run `holdfast restore declare` before any server starts",
  );
}
