import type { Config, Secrets } from "../config.ts";
import type { Refusal } from "../core/errors.ts";
import { WITNESS_KEY_FILE } from "../core/instance.ts";
import { SECOND_MS } from "../core/time.ts";
import { witnessNameOf } from "../core/witness.ts";
import type { OwnListeners } from "../platform/addresses.ts";
import { type NoteSigner, noteSignerOf, verifyEd25519 } from "../platform/note-keys.ts";
import { createWitnessClient } from "../platform/witness-client.ts";
import type { Witnessing } from "../services/context.ts";
import type { Store } from "../store/store.ts";
import { orThrow, type RawKey, rawKeyOfCommand, rawKeyOfServer } from "./raw-keys.ts";

/** The key that cosigns, and what else witnesses need (README, "Witnesses"). */

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
  rawKeyOfServer(config, witnessKeyFrom(secrets));

/** The key for a command, read at its first use. */
export const witnessSeedOfCommand =
  (config: Config, secrets: Secrets, serverHasRun: boolean): WitnessSeed =>
  () =>
    orThrow(rawKeyOfCommand(config, witnessKeyFrom(secrets), serverHasRun));

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
