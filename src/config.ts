import { createPrivateKey, createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  type AnchorPlan,
  anchorPlanOf,
  parseAnchor,
  parseEndpoint,
  parseGwei,
} from "./core/anchor-settings.ts";
import type { BackupSchedule } from "./core/backup-schedule.ts";
import { CAPSULE_BYTES_MIN } from "./core/capsule.ts";
import { EVIDENCE_BYTES_MAX } from "./core/clauses/limits.ts";
import { isRefusal, type Refusal, refuseField } from "./core/errors.ts";
import { type MailServer, parseMailFrom, parseMailServer } from "./core/mail-settings.ts";
import { parseBotApi, parseBotToken, parseWebhookSecret } from "./core/messaging-settings.ts";
import { type Network, parseNetwork } from "./core/networks.ts";
import { parsePushContact } from "./core/push.ts";
import { type RateLimits, rateLimitsOf } from "./core/rate.ts";
import {
  FILE,
  type Given,
  integer,
  key,
  networks,
  oneLine,
  orFromFiles,
  type Parse,
  PREFIX,
  parseAll,
  parsePassphrase,
  token,
  url,
  type Values,
  yesOrNo,
} from "./core/setting-values.ts";
import { MINUTE_MS, SECOND_MS } from "./core/time.ts";
import { parseTreasury, type TreasuryPlan, treasuryPlanOf } from "./core/treasury.ts";
import { type PrivateKey, parsePrivateKey } from "./core/wallet-key.ts";
import type { LogToWitness, Witness } from "./core/witness.ts";
import { parseLogs, parseWitnesses } from "./core/witness-settings.ts";
import type { AssetRule } from "./core/x402/assets.ts";
import { parseAssets, parseEndpoints } from "./core/x402/settings.ts";
import { type PostgresAddress, parsePostgresAddress, parseReplicas } from "./store/postgres/address.ts";

/** The checked configuration (docs/configuration, "Configuration"). No other module reads the environment. */
export type Config = {
  /** The data folder; it is not looked at where the ledger is in a database. */
  readonly data: string;
  /** Whether the database may be reached over a network without TLS. */
  readonly databasePlaintext: boolean;
  readonly host: string;
  /** 0 stands for any free port. */
  readonly port: number;
  /** Where people and agents reach the service; null means `http://localhost:<port>`. */
  readonly baseUrl: string | null;
  /** Where the links in errors lead; null means the service's own `/docs`. */
  readonly docsUrl: string | null;
  /** Private networks that a deliverable may be fetched from, besides every public one. */
  readonly allowNetworks: readonly string[];
  readonly fetchSeconds: number;
  /** The proxies whose `X-Forwarded-For` is believed. */
  readonly trustProxy: readonly Network[];
  /** How many connections there may be; null means as many as the process has descriptors for, up to a default. */
  readonly connections: number | null;
  readonly rateLimits: RateLimits;
  /** How long an Idempotency-Key is remembered. */
  readonly idempotencyDays: number;
  /** How many bytes of what was bought are kept, of each organisation and mode. */
  readonly contentBytes: number;
  /** For how many days the capsules of checks are kept, and how many bytes of them, of each organisation and mode. */
  readonly capsuleDays: number;
  readonly capsuleBytes: number;
  /** The file of the trusted root of Sigstore; null where no bundle is looked at. */
  readonly sigstoreRoot: string | null;
  /** Private networks that a seller of x402 may be on, besides every public one. */
  readonly x402AllowNetworks: readonly string[];
  /** Tokens that may be paid with, besides the built-in ones. */
  readonly x402Assets: readonly AssetRule[];
  /** URLs of JSON-RPC endpoints by chain id. A URL may hold the provider's key, so no log may show one. */
  readonly evmRpc: ReadonlyMap<number, string>;
  /** How often the log takes new entries and, where it grew, gets a checkpoint. */
  readonly checkpointMs: number;
  /** The logs whose checkpoints this instance cosigns, and the witnesses that cosign its own. */
  readonly witnessFor: readonly LogToWitness[];
  readonly witnesses: readonly Witness[];
  /** Private networks that a witness may be on, besides every public one. */
  readonly witnessAllowNetworks: readonly string[];
  /** How the log is anchored on an EVM chain; null where it is not. */
  readonly anchor: AnchorPlan | null;
  /** How money comes in and goes out on chains. */
  readonly treasury: TreasuryPlan;
  /** How often a statement of solvency is signed; 0 where only a command signs one. */
  readonly solvencyHours: number;
  /** How often a server audits its ledger. */
  readonly auditMs: number;
  /** The folder in which a ledger in a database is copied to be audited; null means the system's for temporary files. */
  readonly auditFolder: string | null;
  /** Nightly backups; null where none are made. */
  readonly backups: BackupSchedule | null;
  /** The address that mail is sent from; null means one at the name of the service. */
  readonly mailFrom: string | null;
  /** Where the bot API of the messaging bot is. */
  readonly messagingUrl: string;
  /** How operators of push services reach whoever runs this; null means by `mailFrom` or the base URL. */
  readonly pushContact: string | null;
  /** What is logged: faults and warnings, or these and a line for each request. */
  readonly log: Log;
};

const LOGS = ["faults", "requests"] as const;
export type Log = (typeof LOGS)[number];

/** The secrets, apart from the configuration, so that no log or page shows one by mistake. */
export type Secrets = {
  /** The database that the ledger is in, with its password; null where it is in the data folder. */
  readonly database: PostgresAddress | null;
  /** Replicas of that database, which reads may go to. */
  readonly databaseReplicas: readonly PostgresAddress[];
  /** 32 bytes; null means the one in the data folder. */
  readonly masterKey: Uint8Array | null;
  /** The same, of the key that authenticates backups. */
  readonly backupKey: Uint8Array | null;
  /** The same, of the key that cosigns. */
  readonly witnessKey: Uint8Array | null;
  /** What backups are encrypted to; null where they are not encrypted. */
  readonly backupPassphrase: string | null;
  /** The secret of `POST /internal/jobs/webhooks`; null closes the route. */
  readonly workerSecret: string | null;
  /** The bearer token of `/metrics`; null closes it. */
  readonly metricsToken: string | null;
  /** In PEM: the Ed25519 key that signs, then the keys that it replaced; null means those in the data folder. */
  readonly signingKey: string | null;
  /** The wallets' private keys as `0x` and 64 hex digits, in lower case; null where a mode has no wallet. */
  readonly x402SandboxKey: PrivateKey | null;
  readonly x402LiveKey: PrivateKey | null;
  /** The same, of the wallet that pays for anchors on a chain; null where there is none. */
  readonly anchorKey: PrivateKey | null;
  /** The same, of the wallets that hold the money; null where a mode has none. */
  readonly treasurySandboxKey: PrivateKey | null;
  readonly treasuryLiveKey: PrivateKey | null;
  /** 32 bytes: the private key by which push services know this instance; null means the one in the data folder. */
  readonly pushKey: Uint8Array | null;
  /** The mail server, with its password; null where no mail is sent. */
  readonly smtp: MailServer | null;
  /** The token of the messaging bot; null where there is no bot. It is a part of every URL of the bot API, so no log may show one. */
  readonly messagingToken: string | null;
  /** The secret of the messaging webhook; null closes it. */
  readonly messagingSecret: string | null;
};

/** No secret is set. */
export const NO_SECRETS: Secrets = {
  ...{ database: null, databaseReplicas: [] },
  ...{ masterKey: null, backupKey: null, witnessKey: null, signingKey: null, pushKey: null },
  ...{ backupPassphrase: null, workerSecret: null, metricsToken: null },
  ...{ x402SandboxKey: null, x402LiveKey: null, anchorKey: null },
  ...{ treasurySandboxKey: null, treasuryLiveKey: null },
  ...{ smtp: null, messagingToken: null, messagingSecret: null },
};

const text: Parse<string> = (given) => given;

const log: Parse<Log> = (given) =>
  LOGS.find((log) => log === given) ?? { problem: `must be ${LOGS.join(" or ")}` };

const RATE = integer(1, 100_000_000);

const SETTINGS = {
  DATA: text,
  DATABASE_PLAINTEXT: yesOrNo,
  HOST: text,
  PORT: integer(0, 65_535),
  BASE_URL: url,
  DOCS_URL: url,
  ALLOW_NETWORKS: networks,
  FETCH_SECONDS: integer(1, 60),
  TRUST_PROXY: networks,
  CONNECTIONS: integer(8, 1_000_000),
  RATE_READ: RATE,
  RATE_WRITE: RATE,
  RATE_BENCH: RATE,
  IDEMPOTENCY_DAYS: integer(1, 3_650),
  CONTENT_BYTES: integer(EVIDENCE_BYTES_MAX, Number.MAX_SAFE_INTEGER),
  CAPSULE_DAYS: integer(1, 3_650),
  CAPSULE_BYTES: integer(CAPSULE_BYTES_MIN, Number.MAX_SAFE_INTEGER),
  SIGSTORE_ROOT: text,
  X402_ALLOW_NETWORKS: networks,
  X402_ASSETS: parseAssets,
  EVM_RPC: parseEndpoints,
  CHECKPOINT_MS: integer(10, 60 * MINUTE_MS),
  WITNESS_FOR: parseLogs,
  WITNESSES: parseWitnesses,
  WITNESS_ALLOW_NETWORKS: networks,
  ANCHOR: parseAnchor,
  ANCHOR_RPC: parseEndpoint,
  // Nodes keep the state of the last 128 blocks, where the wallet's nonce is read.
  ANCHOR_CONFIRMATIONS: integer(1, 100),
  ANCHOR_MINUTES: integer(1, 10_080),
  ANCHOR_FEE_MAX: parseGwei,
  TREASURY_SANDBOX: parseTreasury("sandbox"),
  TREASURY_LIVE: parseTreasury("live"),
  TREASURY_CONFIRMATIONS: integer(1, 100),
  TREASURY_FEE_MAX: parseGwei,
  PAYOUT_MINUTES: integer(1, 10_080),
  SOLVENCY_HOURS: integer(0, 8_760),
  AUDIT_MINUTES: integer(1, 10_080),
  AUDIT_FOLDER: text,
  BACKUP_FOLDER: text,
  BACKUP_KEEP: integer(1, 10_000),
  BACKUP_HOUR: integer(0, 23),
  MAIL_FROM: parseMailFrom,
  MESSAGING_URL: parseBotApi,
  PUSH_CONTACT: parsePushContact,
  LOG: log,
} satisfies Record<string, Parse<unknown>>;

/** Settings that are secrets. Each may also come from a file: its path is in the variable of the same name with `_FILE`. */
const SECRETS = {
  DATABASE: oneLine(parsePostgresAddress),
  DATABASE_REPLICAS: oneLine(parseReplicas),
  MASTER_KEY: key,
  BACKUP_KEY: key,
  WITNESS_KEY: key,
  BACKUP_PASSPHRASE: parsePassphrase,
  WORKER_SECRET: token,
  METRICS_TOKEN: token,
  SIGNING_KEY: (text) =>
    isSigningKey(text)
      ? text
      : { problem: "must be an Ed25519 key in PEM, as `openssl genpkey -algorithm ed25519` makes it" },
  X402_SANDBOX_KEY: parsePrivateKey,
  X402_LIVE_KEY: parsePrivateKey,
  ANCHOR_KEY: parsePrivateKey,
  TREASURY_SANDBOX_KEY: parsePrivateKey,
  TREASURY_LIVE_KEY: parsePrivateKey,
  PUSH_KEY: key,
  SMTP_URL: oneLine(parseMailServer),
  MESSAGING_TOKEN: parseBotToken,
  MESSAGING_SECRET: parseWebhookSecret,
} satisfies Record<string, Parse<unknown>>;

/** The first key must be private. The keys that it replaced may follow; of these the public key is enough. */
function isSigningKey(text: string): boolean {
  const blocks = text.split(/(?=-----BEGIN )/);
  try {
    const keys = blocks.map((block) => createPublicKey(block));
    return createPrivateKey(blocks[0] ?? "") && keys.every((key) => key.asymmetricKeyType === "ed25519");
  } catch {
    return false;
  }
}

const KNOWN = [...Object.keys(SETTINGS), ...Object.keys(SECRETS).flatMap((name) => [name, name + FILE])];

/**
 * The configuration from flags and environment. Flags win, and an empty value counts as not set. An unknown `HOLDFAST_…`
 * variable or a bad value is refused, and the message names it.
 */
export function readConfig(flags: Given, environment: Given = process.env): Config | Refusal {
  const variables = Object.entries(environment).filter(([name]) => name.startsWith(PREFIX));
  const unknown = variables.find(([name]) => !KNOWN.includes(name.slice(PREFIX.length)));
  if (unknown) {
    return refuseField(
      unknown[0],
      `is not a setting; known are ${KNOWN.map((known) => PREFIX + known).join(", ")}`,
    );
  }
  const set = parseAll(SETTINGS, environment);
  if (isRefusal(set)) return set;
  const given = parseAll(
    SETTINGS,
    Object.fromEntries(Object.entries(flags).map(([flag, to]) => [PREFIX + flag, to])),
  );
  if (isRefusal(given)) return given;
  const values = { ...set, ...given };
  const anchor = anchorPlanOf(values);
  return isRefusal(anchor) ? anchor : configOf(values, anchor);
}

/** The secrets of the environment, or of the files that it names. No message repeats one. */
export function readSecrets(
  environment: Given = process.env,
  readFile: (path: string) => string = (path) => readFileSync(path, "utf8"),
): Secrets | Refusal {
  const given = orFromFiles(Object.keys(SECRETS), environment, readFile);
  if (isRefusal(given)) return given;
  const values = parseAll(SECRETS, given);
  if (isRefusal(values)) return values;
  if (values.DATABASE_REPLICAS && !values.DATABASE)
    return refuseField(
      "HOLDFAST_DATABASE_REPLICAS",
      "names replicas of the database of HOLDFAST_DATABASE, which is not set: set that too, or leave this out",
    );
  return {
    ...{ database: values.DATABASE ?? null, databaseReplicas: values.DATABASE_REPLICAS ?? [] },
    masterKey: values.MASTER_KEY ?? null,
    backupKey: values.BACKUP_KEY ?? null,
    witnessKey: values.WITNESS_KEY ?? null,
    backupPassphrase: values.BACKUP_PASSPHRASE ?? null,
    workerSecret: values.WORKER_SECRET ?? null,
    signingKey: values.SIGNING_KEY ?? null,
    x402SandboxKey: values.X402_SANDBOX_KEY ?? null,
    x402LiveKey: values.X402_LIVE_KEY ?? null,
    anchorKey: values.ANCHOR_KEY ?? null,
    treasurySandboxKey: values.TREASURY_SANDBOX_KEY ?? null,
    treasuryLiveKey: values.TREASURY_LIVE_KEY ?? null,
    pushKey: values.PUSH_KEY ?? null,
    smtp: values.SMTP_URL ?? null,
    messagingToken: values.MESSAGING_TOKEN ?? null,
    messagingSecret: values.MESSAGING_SECRET ?? null,
    metricsToken: values.METRICS_TOKEN ?? null,
  };
}

/** Whether the terminal can clear a line, as `TERM` says. */
export const clearsLines = ({ TERM }: Given = process.env): boolean => TERM !== undefined && TERM !== "dumb";

const configOf = (values: Values<typeof SETTINGS>, anchor: AnchorPlan | null): Config => ({
  ...{ data: values.DATA ?? "./data", databasePlaintext: values.DATABASE_PLAINTEXT ?? false },
  ...{ host: values.HOST ?? "127.0.0.1", port: values.PORT ?? 8080 },
  ...{ baseUrl: values.BASE_URL ?? null, docsUrl: values.DOCS_URL ?? null },
  allowNetworks: values.ALLOW_NETWORKS ?? [],
  fetchSeconds: values.FETCH_SECONDS ?? 10,
  trustProxy: (values.TRUST_PROXY ?? []).map(parseNetwork).filter((network) => network !== null),
  connections: values.CONNECTIONS ?? null,
  rateLimits: rateLimitsOf(values.RATE_READ, values.RATE_WRITE, values.RATE_BENCH),
  idempotencyDays: values.IDEMPOTENCY_DAYS ?? 30,
  contentBytes: values.CONTENT_BYTES ?? 1024 ** 3,
  ...{ capsuleDays: values.CAPSULE_DAYS ?? 90, capsuleBytes: values.CAPSULE_BYTES ?? 1024 ** 3 },
  sigstoreRoot: values.SIGSTORE_ROOT ?? null,
  ...{ x402AllowNetworks: values.X402_ALLOW_NETWORKS ?? [], x402Assets: values.X402_ASSETS ?? [] },
  evmRpc: values.EVM_RPC ?? new Map(),
  ...{ witnessFor: values.WITNESS_FOR ?? [], witnesses: values.WITNESSES ?? [] },
  witnessAllowNetworks: values.WITNESS_ALLOW_NETWORKS ?? [],
  ...{ checkpointMs: values.CHECKPOINT_MS ?? 10 * SECOND_MS, log: values.LOG ?? "faults" },
  ...{ treasury: treasuryPlanOf(values), solvencyHours: values.SOLVENCY_HOURS ?? 0 },
  ...{ auditMs: (values.AUDIT_MINUTES ?? 60) * MINUTE_MS, auditFolder: values.AUDIT_FOLDER ?? null },
  messagingUrl: values.MESSAGING_URL ?? "https://api.telegram.org",
  ...{ anchor, mailFrom: values.MAIL_FROM ?? null, pushContact: values.PUSH_CONTACT ?? null },
  backups:
    values.BACKUP_FOLDER === undefined
      ? null
      : { folder: values.BACKUP_FOLDER, keep: values.BACKUP_KEEP ?? 7, hour: values.BACKUP_HOUR ?? 3 },
});

/** No setting is given. */
export const DEFAULTS: Config = configOf({}, null);
