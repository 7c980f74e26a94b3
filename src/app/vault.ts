import { randomBytes } from "node:crypto";
import type { Config, Secrets } from "../config.ts";
import { KEY_FILES, keyFile } from "../platform/key-files.ts";
import { createVault, MASTER_KEY_BYTES, type Vault } from "../platform/vault.ts";

/** The vault of the folder: its key is given, or made on first use. Throws where the key's file has none. */
export function openVault({ data }: Config, { masterKey }: Secrets): Vault {
  if (masterKey) return createVault(masterKey);
  const made = () => randomBytes(MASTER_KEY_BYTES).toString("base64");
  const key = Buffer.from(keyFile(data, KEY_FILES.master, made), "base64");
  if (key.length !== MASTER_KEY_BYTES) throw new Error(`${KEY_FILES.master} in ${data} is not a key`);
  return createVault(key);
}

/** A vault that is opened when it is first needed: a command that seals nothing makes no key. */
export function vaultWhenNeeded(config: Config, secrets: Secrets): Vault {
  let vault: Vault | null = null;
  const opened = (): Vault => {
    vault ??= openVault(config, secrets);
    return vault;
  };
  return {
    seal: (secret, name) => opened().seal(secret, name),
    open: (sealed, name) => opened().open(sealed, name),
  };
}
