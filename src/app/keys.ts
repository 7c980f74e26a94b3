import { randomBytes } from "node:crypto";
import type { Config, Secrets } from "../config.ts";
import { isRefusal, type Refusal, refuseField } from "../core/errors.ts";
import type { WebhookEndpoint } from "../core/webhook.ts";
import { KEY_FILES, type KeyFileName, keyFile, readKeyFile } from "../platform/key-files.ts";
import { createTokens, newSigningKey, type Tokens } from "../platform/tokens.ts";
import { createVault, MASTER_KEY_BYTES, type Vault } from "../platform/vault.ts";
import { createWebPush, newPushKey, PUSH_KEY_BYTES, type WebPush } from "../platform/web-push.ts";

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
  const { data } = config;
  try {
    const refused = refuseUnopened(config, secrets, endpoints);
    if (refused) return refused;
    return {
      tokens: tokensOf(config, secrets) ?? tokensIn(data, keyFile(data, KEY_FILES.signing, newSigningKey)),
      vault: vaultOf(config, secrets) ?? vaultIn(data, keyFile(data, KEY_FILES.master, newMasterKey)),
      webPush: webPushOf(config, secrets) ?? webPushIn(data, keyFile(data, KEY_FILES.push, newPushKey)),
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
  const { data } = config;
  const vault = (): Vault => vaultOf(config, secrets) ?? missing(config, KEY_FILES.master);
  const firstVault = (): Vault =>
    serverHasRun
      ? missing(config, KEY_FILES.master)
      : vaultIn(data, keyFile(data, KEY_FILES.master, newMasterKey));
  const tokens = (): Tokens => tokensOf(config, secrets) ?? missing(config, KEY_FILES.signing);
  const webPush = (): WebPush => webPushOf(config, secrets) ?? missing(config, KEY_FILES.push);
  return {
    vault: {
      encrypt: (secret, name) => (vaultOf(config, secrets) ?? firstVault()).encrypt(secret, name),
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

function missing({ data }: Config, name: KeyFileName): never {
  throw refuseField(
    SETTINGS[name],
    `there is no ${name} in ${data}: if the server has this setting, give the command the same; if not, start the server, which makes the file`,
  );
}

const newMasterKey = (): string => randomBytes(MASTER_KEY_BYTES).toString("base64");

/** The vault of the key that is given or in the folder; null where there is none. */
function vaultOf({ data }: Config, { masterKey }: Secrets): Vault | null {
  if (masterKey) return createVault(masterKey);
  const text = readKeyFile(data, KEY_FILES.master);
  return text === null ? null : vaultIn(data, text);
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
function tokensOf({ data }: Config, { signingKey }: Secrets): Tokens | null {
  if (signingKey) return createTokens(signingKey);
  const text = readKeyFile(data, KEY_FILES.signing);
  return text === null ? null : tokensIn(data, text);
}

function tokensIn(data: string, text: string): Tokens {
  try {
    return createTokens(text);
  } catch (error) {
    throw refuseField("HOLDFAST_DATA", `${KEY_FILES.signing} in ${data}: ${(error as Error).message}`);
  }
}

/** The web push of the key that is given or in the folder; null where there is none. */
function webPushOf({ data }: Config, { pushKey }: Secrets): WebPush | null {
  if (pushKey) return webPushBy(pushKey, SETTINGS[KEY_FILES.push], "is no private key of P-256");
  const text = readKeyFile(data, KEY_FILES.push);
  return text === null ? null : webPushIn(data, text);
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
  const { data } = config;
  const vault = vaultOf(config, secrets);
  const unopened = endpoints.filter((endpoint) => !decrypts(vault, endpoint)).map(({ id }) => id);
  if (unopened.length === 0) return null;
  const other = "is not the key that these webhook secrets were encrypted with";
  const inFolder = vault
    ? `${KEY_FILES.master} in ${data} ${other}`
    : `there is no ${KEY_FILES.master} in ${data}`;
  const named = unopened.slice(0, NAMED_MAX).join(", ");
  const more = unopened.length > NAMED_MAX ? ` and ${unopened.length - NAMED_MAX} more` : "";
  return refuseField(
    SETTINGS[KEY_FILES.master],
    [
      `${secrets.masterKey ? other : `is not set, and ${inFolder}`}: nothing could be sent to ${named}${more}.`,
      `Put the old ${KEY_FILES.master} back, or set ${SETTINGS[KEY_FILES.master]} to what it was.`,
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
