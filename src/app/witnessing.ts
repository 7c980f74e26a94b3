import type { Config, Secrets } from "../config.ts";
import type { Refusal } from "../core/errors.ts";
import { WITNESS_KEY_FILE } from "../core/instance.ts";
import { SECOND_MS } from "../core/time.ts";
import { type Witness, witnessNameOf } from "../core/witness.ts";
import type { Job } from "../jobs/scheduler.ts";
import { witnessJob } from "../jobs/witnesses.ts";
import type { OwnListeners } from "../platform/addresses.ts";
import { logError, logInfo, logWarning } from "../platform/log.ts";
import type { Figures } from "../platform/metrics.ts";
import { type NoteSigner, noteSignerOf, verifyEd25519 } from "../platform/note-keys.ts";
import { steadyNow } from "../platform/steady-clock.ts";
import { createWitnessClient } from "../platform/witness-client.ts";
import type { Context, Witnessing } from "../services/context.ts";
import { isCosigned, type Offered } from "../services/witness/offer.ts";
import { ownLogOf } from "../services/witness/own-log.ts";
import type { Store } from "../store/store.ts";
import { folderOf } from "./database.ts";
import { heldJob } from "./held-job.ts";
import { orThrow, type RawKey, rawKeyOfCommand, rawKeyOfServer } from "./raw-keys.ts";

/** The key that cosigns, and what else witnesses need (docs/witnesses, "Being a witness"). */

const ASK_TIMEOUT_MS = 10 * SECOND_MS;

/** The 32 bytes of the key that cosigns. Throws a refusal where it is missing. */
export type WitnessSeed = () => Uint8Array;

const witnessKeyFrom = ({ witnessKey }: Secrets): RawKey => ({
  file: WITNESS_KEY_FILE,
  setting: "HOLDFAST_WITNESS_KEY",
  given: witnessKey,
});

/** The key of a server: its first start makes it. Refused where the file holds none. */
export const witnessKeyOfServer = (config: Config, secrets: Secrets): Uint8Array | Refusal =>
  rawKeyOfServer(folderOf(config, secrets), witnessKeyFrom(secrets));

/** The key for a command, read at its first use. */
export const witnessSeedOfCommand =
  (config: Config, secrets: Secrets, serverHasRun: boolean): WitnessSeed =>
  () =>
    orThrow(rawKeyOfCommand(folderOf(config, secrets), witnessKeyFrom(secrets), serverHasRun));

export function witnessingWith(
  config: Config,
  store: Store,
  seed: WitnessSeed,
  ownListeners: OwnListeners,
): Witnessing {
  let made: NoteSigner | null = null;
  return {
    logs: config.witnessFor,
    witnesses: config.witnesses,
    async signer() {
      if (made) return made;
      const { id } = await store.read((reader) => reader.instance.get());
      made = noteSignerOf(witnessNameOf(id), "cosignature", seed());
      return made;
    },
    verify: verifyEd25519,
    ask: createWitnessClient({
      allowNetworks: config.witnessAllowNetworks,
      timeoutMs: ASK_TIMEOUT_MS,
      ownListeners,
    }),
  };
}

const NOT_THIS_LOG = {
  parted:
    "a witness has signed another log under this name: this one was rewritten, or restored from a backup; `holdfast audit --witness` says where they part",
  behind:
    "a witness has signed more of this log than there is: it was cut, or restored from a backup; `holdfast audit --witness` says where they part",
} as const;

/** Logs once when a witness's answer has changed. */
function onChange({ key, url }: Witness, offered: Offered): void {
  const about = { witness: key.name, url };
  if (offered.outcome === "cosigned") logInfo("a witness signs again", about);
  else if (offered.outcome === "away") logWarning("a witness does not sign", { ...about, why: offered.why });
  else logError(NOT_THIS_LOG[offered.outcome], offered.outcome, { ...about, size: offered.size });
}

/** Of a witness that another instance asks. */
const NO_FAILURES = { away: 0, behind: 0, parted: 0 } as const;

/** Offers the log's checkpoints to the witnesses that are configured, and counts what came of it. */
export function witnessJobs(ctx: Context) {
  const offered = ctx.witness.witnesses.map((witness) => {
    const name = `witness ${witness.key.name}`;
    const job = heldJob(ctx, name, (at) =>
      witnessJob(at, witness, { log: () => ownLogOf(at), monotonicNow: steadyNow, onChange }),
    );
    return { witness, name, job };
  });
  const jobs = offered.map(
    ({ name, job: { begin } }): Job => ({ name, doneBy: "one", everyMs: 2 * SECOND_MS, begin }),
  );
  return {
    jobs,
    /** @param reading the context of a request that holds a snapshot: it must not wait for another one */
    async figures(reading: Context = ctx): Promise<Figures["witnesses"]> {
      const newest = await reading.store.read(({ log }) => log.newestCheckpoint());
      return Promise.all(
        offered.map(async ({ witness, job }) => ({
          witness: witness.key.name,
          hasSigned: newest && (await isCosigned(reading, witness, newest)),
          failures: job.held()?.failures() ?? NO_FAILURES,
        })),
      );
    },
  };
}
