import type { Config, Secrets } from "../config.ts";
import { type Refusal, refuseField } from "../core/errors.ts";
import { logWarning } from "../platform/log.ts";
import { isPlaintext, type PostgresAddress } from "../store/postgres/address.ts";
import { docsUrlOf } from "./urls.ts";

/** Where the ledger is, and what follows from it where that is a database (docs/postgresql, "PostgreSQL"). */

/** The folder that the ledger and its keys are in; null where the ledger is in a database, which has no folder at all. */
export const folderOf = ({ data }: Config, { database }: Secrets): string | null => (database ? null : data);

/** The setting that names replicas. */
export const REPLICAS = "HOLDFAST_DATABASE_REPLICAS";

/** A setting and the program that makes its key, where no folder has it. */
const KEYS = [
  ["masterKey", "HOLDFAST_MASTER_KEY", "openssl rand -base64 32"],
  ["signingKey", "HOLDFAST_SIGNING_KEY", "openssl genpkey -algorithm ed25519"],
  ["pushKey", "HOLDFAST_PUSH_KEY", "openssl rand -base64 32"],
  ["witnessKey", "HOLDFAST_WITNESS_KEY", "openssl rand -base64 32"],
] as const satisfies readonly (readonly [keyof Secrets, string, string])[];

/** The refusal of a key that has no file to be in. It is never made: two instances would make two. */
export function refuseUnsetKey(setting: string): Refusal {
  const [, , command] = KEYS.find(([, name]) => name === setting) ?? [];
  return refuseField(
    setting,
    `is not set, and with HOLDFAST_DATABASE no key comes from a folder: make one with \`${command}\`, and give every instance the same`,
  );
}

/** A folder that is named for this one command, and would not be looked at. */
export const refuseDataFlag = (data: string | undefined, { database }: Secrets): Refusal | null =>
  data === undefined || database === null
    ? null
    : refuseField("--data", "the ledger is in a database (HOLDFAST_DATABASE): leave the option out");

/** Refuses what does not fit the database that the ledger is in; null where it fits, or where the ledger is in the data folder. */
export function refuseDatabase(config: Config, secrets: Secrets): Refusal | null {
  const named = databasesOf(secrets);
  const plain = config.databasePlaintext ? undefined : named.find(({ address }) => isPlaintext(address));
  return plain === undefined
    ? null
    : refuseField(
        plain.setting,
        `sslmode=disable would send everything to ${plain.address.host} in the clear, the password too: leave it out, or set HOLDFAST_DATABASE_PLAINTEXT to true where nobody else can read that network`,
      );
}

type Named = { readonly setting: string; readonly address: PostgresAddress };

/** The servers that are named, each with the setting that names it. */
const databasesOf = ({ database, databaseReplicas }: Secrets): readonly Named[] => [
  ...(database === null ? [] : [{ setting: "HOLDFAST_DATABASE", address: database }]),
  ...databaseReplicas.map((address) => ({ setting: REPLICAS, address })),
];

/** The same for a server: it needs every key, and makes no backups. */
export function refuseDatabaseOfServer(config: Config, secrets: Secrets): Refusal | null {
  if (secrets.database === null) return null;
  const unset = KEYS.find(([key]) => secrets[key] === null);
  if (unset) return refuseUnsetKey(unset[1]);
  // No address of a page: this server does not start, so it would not serve it.
  if (config.backups)
    return refuseField(
      "HOLDFAST_BACKUP_FOLDER",
      `leave it out: ${BY_POSTGRES}. A server's page /docs/postgresql says how`,
    );
  return refuseDatabase(config, secrets);
}

const BY_POSTGRES = "the backups of a ledger in a database are made by PostgreSQL's own programs";

export const refuseBackups = (config: Config): Refusal =>
  refuseField("HOLDFAST_DATABASE", `${BY_POSTGRES}: see ${docsUrlOf(config)}/postgresql`);

/** Warns of a server where what is sent to its database can be read on its way. */
export function warnOfPlaintext(secrets: Secrets): void {
  for (const { setting, address } of databasesOf(secrets))
    if (isPlaintext(address))
      logWarning(
        `what is sent to the database is not encrypted: whoever reads that network reads the ledger and the password. Leave sslmode=disable out of ${setting}`,
        { host: address.host },
      );
}
