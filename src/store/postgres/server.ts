import { SQL } from "bun";
import { rootCause } from "../../core/errors.ts";
import { connectionOptions, type PostgresAddress } from "./address.ts";
import { sqlStateOf } from "./client.ts";

/** What a server must be before a ledger is kept in it (docs/postgresql, "The server"). */

/** What the check asks of a server. */
export type ServerFacts = {
  /** Such as 150018 for 15.18. */
  readonly version: number;
  readonly encoding: string;
  readonly fsync: string;
  readonly fullPageWrites: string;
  readonly isReplica: boolean;
  readonly readOnly: string;
  /** By its clock, epoch milliseconds. */
  readonly now: number;
};

const VERSION_MIN = 14;
const CLOCKS_APART_MS_MAX = 5_000;

/** Why no ledger is kept in a server; null where nothing is against it. */
export function problemOfServer(facts: ServerFacts, asked: { from: number; to: number }): string | null {
  const major = Math.floor(facts.version / 10_000);
  if (major < VERSION_MIN) return `the server is PostgreSQL ${major}; it must be ${VERSION_MIN} or newer`;
  if (facts.isReplica) return "the server is a replica, which cannot be written: name the primary";
  if (facts.readOnly === "on")
    return "the server takes no writes: turn default_transaction_read_only off for this user and database";
  if (facts.fsync !== "on")
    return "the server runs with fsync=off, and would lose what it has committed: turn it on";
  if (facts.fullPageWrites !== "on")
    return "the server runs with full_page_writes=off, and would lose what it has committed: turn it on";
  if (facts.encoding !== "UTF8")
    return `the database's encoding is ${facts.encoding}: make one with ENCODING 'UTF8' TEMPLATE template0`;
  const apartMs = Math.max(asked.from - facts.now, facts.now - asked.to);
  return apartMs > CLOCKS_APART_MS_MAX
    ? `the clocks of the server and of this machine are ${Math.round(apartMs / 1_000)} s apart, and may be ${CLOCKS_APART_MS_MAX / 1_000}: set them right`
    : null;
}

/** Asks a server what it must be. Answers why no ledger is kept in it; null where nothing is against it. */
async function checkServer(sql: SQL, now: () => number): Promise<string | null> {
  const from = now();
  const [facts] = await sql<readonly [ServerFacts]>`
    SELECT current_setting('server_version_num')::int4 AS version,
      current_setting('server_encoding') AS encoding,
      current_setting('fsync') AS fsync,
      current_setting('full_page_writes') AS "fullPageWrites",
      pg_is_in_recovery() AS "isReplica",
      current_setting('transaction_read_only') AS "readOnly",
      (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`;
  return problemOfServer(facts, { from, to: now() });
}

/** Connects to a server and checks it. Answers why no ledger is kept in it, also where it cannot be reached; else null. */
export async function problemAt(
  address: PostgresAddress,
  version: string,
  now: () => number,
): Promise<string | null> {
  try {
    return await withConnection(connectionOptions(address, version), (sql) => checkServer(sql, now));
  } catch (error) {
    return problemOfConnection(error);
  }
}

/** Which ledger a server has. */
type LedgerFacts = {
  /** Null where it has none. */
  readonly ledger: string | null;
  /** Of the files that a replica copies; null where the user may not know it, or the server has none. */
  readonly system: string | null;
};

const NAME_THE_STANDBY = "name a standby of the server of HOLDFAST_DATABASE, with the same database";

/** Why a server is no replica of another; null where nothing is against it. */
function problemOfFacts(
  replica: LedgerFacts & Pick<ServerFacts, "isReplica" | "readOnly">,
  primary: LedgerFacts,
): string | null {
  if (!replica.isReplica && replica.readOnly !== "on")
    return `the server takes writes, and so is no replica: ${NAME_THE_STANDBY}`;
  const isOfOtherFiles =
    replica.system !== null && primary.system !== null && replica.system !== primary.system;
  if (replica.ledger !== null && replica.ledger !== primary.ledger)
    return `the server has another ledger, ${replica.ledger}, and HOLDFAST_DATABASE has ${primary.ledger}: ${NAME_THE_STANDBY}`;
  if (isOfOtherFiles)
    return `the server does not copy that of HOLDFAST_DATABASE, but has files of its own: ${NAME_THE_STANDBY}`;
  // A new ledger reaches a standby that is late later.
  return replica.ledger === null && (replica.system === null || primary.system === null)
    ? `the database there has no ledger: ${NAME_THE_STANDBY}`
    : null;
}

async function ledgerFactsOf(sql: SQL): Promise<LedgerFacts> {
  const [{ there }] = await sql`SELECT to_regclass('instances') IS NOT NULL AS there`;
  const [instance] = there ? await sql`SELECT id FROM instances` : [];
  // Servers that only speak the protocol have no such function, and a user may be kept from it.
  const [found] = await sql`SELECT system_identifier::text AS id FROM pg_control_system()`.catch((error) => {
    if (sqlStateOf(error) === null) throw error;
    return [];
  });
  return { ledger: instance?.id ?? null, system: found?.id ?? null };
}

/** Why reads may not go to a server; null where nothing is against it, or it cannot be asked now. */
export async function problemOfReplica(
  replica: PostgresAddress,
  primary: PostgresAddress,
  version: string,
): Promise<string | null> {
  const ofPrimary = await withConnection(connectionOptions(primary, version), ledgerFactsOf);
  try {
    return await withConnection(connectionOptions(replica, version), async (sql) => {
      const [facts] = await sql<readonly [Pick<ServerFacts, "isReplica" | "readOnly">]>`
        SELECT pg_is_in_recovery() AS "isReplica", current_setting('transaction_read_only') AS "readOnly"`;
      return problemOfFacts({ ...facts, ...(await ledgerFactsOf(sql)) }, ofPrimary);
    });
  } catch (error) {
    return sqlStateOf(error) === "42501"
      ? "the user may not read the ledger there: name one that may read all its tables, as the role pg_read_all_data does"
      : problemOfSettings(error);
  }
}

/** How long a connection that is made for one question may take. The client alone would wait for ever for an answer that is lost. */
const ANSWER_MS = 5_000;

/** Works on a connection of its own, which is closed afterwards, or where the work takes too long: it fails then. */
async function withConnection<Result>(
  options: SQL.PostgresOrMySQLOptions,
  work: (sql: SQL) => Promise<Result>,
): Promise<Result> {
  const sql = new SQL({ ...options, max: 1 });
  const timer = setTimeout(() => void sql.close({ timeout: 0 }), ANSWER_MS);
  try {
    return await work(sql);
  } finally {
    clearTimeout(timer);
    await sql.close({ timeout: 0 });
  }
}

/** What a failure to open the ledger there says of the setting; null where it is no failure of the server's. */
export function problemOfOpening(error: unknown): string | null {
  const cause = rootCause(error) as {
    readonly code?: unknown;
    readonly errno?: unknown;
    readonly message: string;
  };
  if (!String(cause.code).startsWith("ERR_POSTGRES_")) return null;
  return cause.errno === "42501"
    ? `the user may neither make the tables nor change them for this version: run any command once with the address of their owner (${cause.message})`
    : problemOfConnection(cause);
}

/** What a failure to connect, or of a connection, says of the setting. No message holds a password. */
export function problemOfConnection(error: unknown): string {
  const { errno, message } = error as { errno?: unknown; message: string };
  const other = errno === undefined ? "the server cannot be reached" : "the server refuses the connection";
  return problemOfSettings(error) ?? `${other} (${message})`;
}

/** The same where another setting would be right; null where the server may answer later. */
function problemOfSettings(error: unknown): string | null {
  const { code = "", errno, message } = error as { code?: string; errno?: unknown; message: string };
  const more = `(${message})`;
  // A server that is too old does not know all settings that it is told.
  if (errno === "42704")
    return `the server must be PostgreSQL ${VERSION_MIN} or newer, without a proxy that keeps its settings from it ${more}`;
  if (errno === "28P01" || errno === "28000") return `the server refuses the user or the password ${more}`;
  if (errno === "3D000") return `there is no such database; make it with createdb ${more}`;
  if (code === "ERR_INVALID_ARG_TYPE" || code === "ERR_BORINGSSL")
    return `sslrootcert must be a file of certificates in PEM that can be read ${more}`;
  if (code === "ERR_POSTGRES_TLS_NOT_AVAILABLE") return `the server has no TLS; turn ssl on there ${more}`;
  if (/CERT|SELF_SIGNED|ISSUER|CRL/.test(code))
    return `the server's certificate cannot be verified; name its authority with sslrootcert, and the server as its certificate does ${more}`;
  return null;
}
