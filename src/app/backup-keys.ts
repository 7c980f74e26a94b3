import { randomBytes } from "node:crypto";
import { type Config, parseKey, parsePassphrase, type Secrets } from "../config.ts";
import { isRefusal, type Refusal, refuseField } from "../core/errors.ts";
import { BACKUP_KEY_FILE } from "../core/instance.ts";
import { keyFile, readKeyFile } from "../platform/key-files.ts";

/** The key that authenticates backups: given in the environment, or in the data folder (README, "Back up"). */

const SETTING = "HOLDFAST_BACKUP_KEY";
const KEY_BYTES = 32;

/** Makes sure that a server has the key: its first start makes it. Refused where the file holds none. */
export function ensureBackupKey({ data }: Config, { backupKey }: Secrets): Refusal | null {
  const key = backupKey ?? keyIn(data, keyFile(data, BACKUP_KEY_FILE, newKey));
  return isRefusal(key) ? key : null;
}

/**
 * The key for a backup that a command makes. Once a server has run, a command makes no key, as with the other keys: that server
 * may have another one from its environment.
 */
export function backupKeyOfCommand(
  { data }: Config,
  { backupKey }: Secrets,
  serverHasRun: boolean,
): Uint8Array | Refusal {
  if (backupKey) return backupKey;
  const text = serverHasRun ? readKeyFile(data, BACKUP_KEY_FILE) : keyFile(data, BACKUP_KEY_FILE, newKey);
  return text === null
    ? refuseField(
        SETTING,
        `there is no ${BACKUP_KEY_FILE} in ${data}: if the server has this setting, give the command the same; if not, start the server, which makes the file`,
      )
    : keyIn(data, text);
}

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
      : refuseField("--key", `must be a file such as ${BACKUP_KEY_FILE}, with ${KEY_BYTES} bytes in base64`);
  }
  const keys: Uint8Array[] = backupKey ? [backupKey] : [];
  for (const folder of folders) {
    const text = readKeyFile(folder, BACKUP_KEY_FILE);
    const key = text === null ? null : keyIn(folder, text);
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

const newKey = (): string => randomBytes(KEY_BYTES).toString("base64");

const keyIn = (folder: string, text: string): Uint8Array | Refusal =>
  parseKey(text) ??
  refuseField(
    "HOLDFAST_DATA",
    `${BACKUP_KEY_FILE} in ${folder} is not a key: it must be ${KEY_BYTES} bytes in base64`,
  );
