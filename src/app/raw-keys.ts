import { randomBytes } from "node:crypto";
import { isRefusal, type Refusal, refuseField } from "../core/errors.ts";
import { parseKey } from "../core/setting-values.ts";
import { keyFile, readKeyFile, type UnsavedKeyFileName } from "../platform/key-files.ts";
import { refuseUnsetKey } from "./database.ts";

/** Keys of 32 bytes that no backup holds: given in the environment, or in a file of the data folder. */

export const RAW_KEY_BYTES = 32;

export type RawKey = {
  readonly file: UnsavedKeyFileName;
  readonly setting: `HOLDFAST_${string}`;
  /** What the environment gives; null where it gives none. */
  readonly given: Uint8Array | null;
};

/**
 * The key of a server: its first start makes the file. Refused where the file holds none.
 *
 * @param folder null where the ledger is in a database
 */
export function rawKeyOfServer(
  folder: string | null,
  { file, setting, given }: RawKey,
): Uint8Array | Refusal {
  if (given) return given;
  return folder === null ? refuseUnsetKey(setting) : rawKeyIn(folder, file, keyFile(folder, file, newKey));
}

/**
 * The key for a command. Once a server has run, a command makes no key, as with the other keys: that server may have another one
 * from its environment.
 */
export function rawKeyOfCommand(
  folder: string | null,
  { file, setting, given }: RawKey,
  serverHasRun: boolean,
): Uint8Array | Refusal {
  if (given) return given;
  if (folder === null) return refuseUnsetKey(setting);
  const text = serverHasRun ? readKeyFile(folder, file) : keyFile(folder, file, newKey);
  return text === null
    ? refuseField(
        setting,
        `there is no ${file} in ${folder}: if the server has this setting, give the command the same; if not, start the server, which makes the file`,
      )
    : rawKeyIn(folder, file, text);
}

const newKey = (): string => randomBytes(RAW_KEY_BYTES).toString("base64");

/** The key that a file's text holds. */
export const rawKeyIn = (folder: string, file: UnsavedKeyFileName, text: string): Uint8Array | Refusal =>
  parseKey(text) ??
  refuseField(
    "HOLDFAST_DATA",
    `${file} in ${folder} is not a key: it must be ${RAW_KEY_BYTES} bytes in base64`,
  );

/** Throws the refusal of a key that is missing. */
export function orThrow<Key>(key: Key | Refusal): Key {
  if (isRefusal(key)) throw key;
  return key;
}
