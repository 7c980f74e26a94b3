import { randomBytes } from "node:crypto";
import type { Config, Secrets } from "../config.ts";
import { isRefusal, type Refusal, refuseField } from "../core/errors.ts";
import { logNameOf } from "../core/log.ts";
import type { WebhookEndpoint } from "../core/webhook.ts";
import { KEY_FILES, type KeyFileName, keyFile, readKeyFile } from "../platform/key-files.ts";
import { createTokens, newSigningKey, type Tokens } from "../platform/tokens.ts";
import { createVault, MASTER_KEY_BYTES, type Vault } from "../platform/vault.ts";
import { createWebPush, newPushKey, PUSH_KEY_BYTES, type WebPush } from "../platform/web-push.ts";
import type { Context } from "../services/context.ts";
import { logKeysOf } from "../services/log/anchor.ts";
import { isSigned } from "../services/log/audit.ts";
import { folderOf, refuseUnsetKey } from "./database.ts";

/** What an instance encrypts with (the vault) and signs with (the tokens), and by what push services know it. */
export type Keys = { readonly vault: Vault; readonly tokens: Tokens; readonly webPush: WebPush };

/**
 * The keys of a server: given in its environment, or in the data folder, where the first start makes them.
 * Refused, without making any key, where a key file contains no key, and where the secret of an endpoint
 * cannot be decrypted, since nothing could be sent to it.
 *
 * @param endpoints the enabled endpoints
 */
export function keysOfServer(
  config: Config,
  secrets: Secrets,
  endpoints: readonly WebhookEndpoint[],
): Keys | Refusal {
  const folder = folderOf(config, secrets);
  const made = <Key>(name: KeyFileName, newKey: () => string, keyIn: KeyIn<Key>): Key =>
    folder === null ? missing(folder, name) : keyIn(folder, keyFile(folder, name, newKey));
  try {
    const refused = refuseUnopened(config, secrets, endpoints);
    if (refused) return refused;
    return {
      tokens: tokensOf(folder, secrets) ?? made(KEY_FILES.signing, newSigningKey, tokensIn),
      vault: vaultOf(folder, secrets) ?? made(KEY_FILES.master, newMasterKey, vaultIn),
      webPush: webPushOf(folder, secrets) ?? made(KEY_FILES.push, newPushKey, webPushIn),
    };
  } catch (error) {
    if (isRefusal(error)) return error;
    throw error;
  }
}

/**
 * The keys of a command, each read at its first use. Once a server has run, a command makes no key, since the
 * server may get another one from its environment. Before that, encrypting the first secret makes the master
 * key. Using a missing key throws a refusal.
 */
export function keysOfCommand(config: Config, secrets: Secrets, serverHasRun: boolean): Keys {
  const folder = folderOf(config, secrets);
  const vault = (): Vault => vaultOf(folder, secrets) ?? missing(folder, KEY_FILES.master);
  const firstVault = (): Vault =>
    serverHasRun || folder === null
      ? missing(folder, KEY_FILES.master)
      : vaultIn(folder, keyFile(folder, KEY_FILES.master, newMasterKey));
  const tokens = (): Tokens => tokensOf(folder, secrets) ?? missing(folder, KEY_FILES.signing);
  const webPush = (): WebPush => webPushOf(folder, secrets) ?? missing(folder, KEY_FILES.push);
  return {
    vault: {
      encrypt: (secret, name) => (vaultOf(folder, secrets) ?? firstVault()).encrypt(secret, name),
      decrypt: (encrypted, name) => vault().decrypt(encrypted, name),
      mac: (text, name) => vault().mac(text, name),
    },
    tokens: {
      sign: async (payload, type) => tokens().sign(payload, type),
      signBytes: (message) => tokens().signBytes(message),
      get jwks() {
        return tokens().jwks;
      },
    },
    webPush: {
      get publicKey() {
        return webPush().publicKey;
      },
      encrypt: async (text, browser) => webPush().encrypt(text, browser),
      authorization: async (...about) => webPush().authorization(...about),
    },
  };
}

/** The setting that each key may also come from. */
const SETTINGS = {
  [KEY_FILES.master]: "HOLDFAST_MASTER_KEY",
  [KEY_FILES.signing]: "HOLDFAST_SIGNING_KEY",
  [KEY_FILES.push]: "HOLDFAST_PUSH_KEY",
} as const satisfies Record<KeyFileName, string>;

/** @param folder null where the ledger is in a database */
function missing(folder: string | null, name: KeyFileName): never {
  if (folder === null) throw refuseUnsetKey(SETTINGS[name]);
  throw refuseField(
    SETTINGS[name],
    `there is no ${name} in ${folder}: if the server has this setting, give the command the same; if not, start the server, which makes the file`,
  );
}

const newMasterKey = (): string => randomBytes(MASTER_KEY_BYTES).toString("base64");

type KeyIn<Key> = (folder: string, text: string) => Key;

/** The key of a file in the folder; null where there is none. */
function keyInFile<Key>(folder: string | null, name: KeyFileName, keyIn: KeyIn<Key>): Key | null {
  if (folder === null) return null;
  const text = readKeyFile(folder, name);
  return text === null ? null : keyIn(folder, text);
}

/** The vault of the key that is given or in the folder; null where there is none. */
function vaultOf(folder: string | null, { masterKey }: Secrets): Vault | null {
  if (masterKey) return createVault(masterKey);
  return keyInFile(folder, KEY_FILES.master, vaultIn);
}

function vaultIn(data: string, text: string): Vault {
  const key = Buffer.from(text, "base64");
  if (key.length === MASTER_KEY_BYTES) return createVault(key);
  throw refuseField(
    "HOLDFAST_DATA",
    `${KEY_FILES.master} in ${data} is not a key: it must be ${MASTER_KEY_BYTES} bytes in base64`,
  );
}

/** The tokens of the signing key that is given or in the folder; null where there is none. */
function tokensOf(folder: string | null, { signingKey }: Secrets): Tokens | null {
  if (signingKey) return createTokens(signingKey);
  return keyInFile(folder, KEY_FILES.signing, tokensIn);
}

function tokensIn(data: string, text: string): Tokens {
  try {
    return createTokens(text);
  } catch (error) {
    throw refuseField("HOLDFAST_DATA", `${KEY_FILES.signing} in ${data}: ${(error as Error).message}`);
  }
}

/** The web push of the key that is given or in the folder; null where there is none. */
function webPushOf(folder: string | null, { pushKey }: Secrets): WebPush | null {
  if (pushKey) return webPushBy(pushKey, SETTINGS[KEY_FILES.push], "is no private key of P-256");
  return keyInFile(folder, KEY_FILES.push, webPushIn);
}

const webPushIn = (data: string, text: string): WebPush =>
  webPushBy(
    Buffer.from(text, "base64"),
    "HOLDFAST_DATA",
    `${KEY_FILES.push} in ${data} is not a key: it must be a private key of P-256, ${PUSH_KEY_BYTES} bytes in base64`,
  );

function webPushBy(key: Uint8Array, setting: string, problem: string): WebPush {
  try {
    return createWebPush(key);
  } catch {
    // The cause is not passed on: its message may hold a part of the key.
    throw refuseField(setting, problem);
  }
}

/**
 * Refuses a signing key of which the log's newest checkpoint knows nothing: neither that key nor one that it replaced signed it. Null
 * where one did, or where there is no checkpoint.
 */
export async function refuseOtherSigner({ store, tokens, witness }: Context): Promise<Refusal | null> {
  const { id, newest } = await store.read(async ({ instance, log }) => ({
    id: (await instance.get()).id,
    newest: await log.newestCheckpoint(),
  }));
  if (newest === null || (await isSigned(newest.note, logKeysOf(logNameOf(id), tokens), witness.verify)))
    return null;
  return refuseField(
    SETTINGS[KEY_FILES.signing],
    [
      `is not the key that signed checkpoint ${newest.number} of this ledger's log, and does not name it:`,
      "what was signed before would no longer verify. Set it to what it was; or, to replace that key, put the new one",
      "before it in the same PEM, where of the old one the public key is enough",
    ].join(" "),
  );
}

/** How many endpoints a message names. */
const NAMED_MAX = 5;

/**
 * Refuses a master key that is missing or does not decrypt the secrets of these endpoints; null where all of
 * them can be decrypted. Throws a refusal where the key file contains no key.
 *
 * @param endpoints the enabled endpoints
 */
export function refuseUnopened(
  config: Config,
  secrets: Secrets,
  endpoints: readonly WebhookEndpoint[],
): Refusal | null {
  const folder = folderOf(config, secrets);
  const vault = vaultOf(folder, secrets);
  const unopened = endpoints.filter((endpoint) => !decrypts(vault, endpoint)).map(({ id }) => id);
  if (unopened.length === 0) return null;
  const other = "is not the key that these webhook secrets were encrypted with";
  if (folder === null && vault === null) return refuseUnsetKey(SETTINGS[KEY_FILES.master]);
  const inFolder = vault
    ? `${KEY_FILES.master} in ${folder} ${other}`
    : `there is no ${KEY_FILES.master} in ${folder}`;
  const named = unopened.slice(0, NAMED_MAX).join(", ");
  const more = unopened.length > NAMED_MAX ? ` and ${unopened.length - NAMED_MAX} more` : "";
  return refuseField(
    SETTINGS[KEY_FILES.master],
    [
      `${secrets.masterKey ? other : `is not set, and ${inFolder}`}: nothing could be sent to ${named}${more}.`,
      `${folder === null ? "Set" : `Put the old ${KEY_FILES.master} back, or set`} ${SETTINGS[KEY_FILES.master]} to what it was.`,
      "If it is lost, run `holdfast webhooks disable` on each of these endpoints, start the server, and create them anew",
    ].join(" "),
  );
}

function decrypts(vault: Vault | null, { id, encryptedSecret }: WebhookEndpoint): boolean {
  try {
    vault?.decrypt(encryptedSecret, id);
    return vault !== null;
  } catch {
    return false;
  }
}
