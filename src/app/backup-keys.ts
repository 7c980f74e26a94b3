import type { Config, Secrets } from "../config.ts";
import { isRefusal, type Refusal, refuseField } from "../core/errors.ts";
import { BACKUP_KEY_FILE } from "../core/instance.ts";
import { parseKey, parsePassphrase } from "../core/setting-values.ts";
import { readKeyFile } from "../platform/key-files.ts";
import { RAW_KEY_BYTES, type RawKey, rawKeyIn, rawKeyOfCommand, rawKeyOfServer } from "./raw-keys.ts";

/** The key that authenticates backups (docs/operating, "Backups"). */

const backupKeyFrom = ({ backupKey }: Secrets): RawKey => ({
  file: BACKUP_KEY_FILE,
  setting: "HOLDFAST_BACKUP_KEY",
  given: backupKey,
});

/** Makes sure that a server has the key: its first start makes it. Refused where the file holds none. */
export function ensureBackupKey({ data }: Config, secrets: Secrets): Refusal | null {
  const key = rawKeyOfServer(data, backupKeyFrom(secrets));
  return isRefusal(key) ? key : null;
}

/** The key for a backup that a command makes. */
export const backupKeyOfCommand = (
  { data }: Config,
  secrets: Secrets,
  serverHasRun: boolean,
): Uint8Array | Refusal => rawKeyOfCommand(data, backupKeyFrom(secrets), serverHasRun);

/**
 * The keys that a restore may verify a backup with: the one that is given, else that of the environment and those of the data
 * folders.
 *
 * @param given the text of the key's file, where one is named
 * @param folders the folder to restore into, and the one that the environment names
 */
export function backupKeysOfRestore(
  given: string | null,
  { backupKey }: Secrets,
  folders: readonly string[],
): readonly Uint8Array[] | Refusal {
  if (given !== null) {
    const key = parseKey(given.trim());
    return key
      ? [key]
      : refuseField(
          "--key",
          `must be a file such as ${BACKUP_KEY_FILE}, with ${RAW_KEY_BYTES} bytes in base64`,
        );
  }
  const keys: Uint8Array[] = backupKey ? [backupKey] : [];
  for (const folder of folders) {
    const text = readKeyFile(folder, BACKUP_KEY_FILE);
    const key = text === null ? null : rawKeyIn(folder, BACKUP_KEY_FILE, text);
    if (isRefusal(key)) return key;
    if (key) keys.push(key);
  }
  return keys;
}

/** The passphrase that is given, else that of the environment; null where there is none. */
export function passphraseOf(given: string | null, { backupPassphrase }: Secrets): string | null | Refusal {
  const parsed = given === null ? backupPassphrase : parsePassphrase(given);
  return typeof parsed === "object" && parsed !== null
    ? refuseField("--passphrase-file", parsed.problem)
    : parsed;
}
