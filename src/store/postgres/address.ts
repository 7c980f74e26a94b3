import type { SQL } from "bun";
import { isLoopback, type Parse } from "../../core/setting-values.ts";

/** The address of a database on a PostgreSQL server (docs/postgresql, "Connect"). */
export type PostgresAddress = {
  /** A name or an address without brackets, or the folder of a unix socket, which begins with `/`. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** Empty where there is none. */
  readonly password: string;
  readonly database: string;
  /** TLS, by which the server's certificate and name are verified; null where nothing is encrypted. */
  readonly tls: {
    /** The file of the authorities that are trusted, in PEM; null for those of the system. */
    readonly authorities: string | null;
  } | null;
};

const FORM = "postgres://USER:PASSWORD@HOST:5432/DATABASE";
const NOT_AN_ADDRESS = {
  problem: `must be ${FORM}, each part with % escapes, such as %40 for @; the host of a unix socket is its folder, such as %2Fvar%2Frun%2Fpostgresql`,
};
const SEVERAL_HOSTS = /^postgres(?:ql)?:\/\/(?:[^/?#]*@)?[^/?#@]*,[^/?#@]*(?:[/?#]|$)/;
const PARAMETERS = ["sslmode", "sslrootcert"];
/** They encrypt without verifying who the server is, or, `verify-ca`, whether it is the one that was named. */
const UNVERIFIED = ["allow", "prefer", "require", "no-verify", "verify-ca"];

/** No problem repeats the text: it may hold a password. */
export const parsePostgresAddress: Parse<PostgresAddress> = (text) => {
  if (SEVERAL_HOSTS.test(text)) return { problem: "must name one host" };
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !["postgres:", "postgresql:"].includes(url.protocol) || url.hash !== "")
    return NOT_AN_ADDRESS;
  // A name with other characters comes from a password that has no escapes.
  if (![...url.searchParams.keys()].every((name) => /^\w+$/.test(name))) return NOT_AN_ADDRESS;
  const parts = partsOf(url);
  if (parts === null || parts.host === "") return NOT_AN_ADDRESS;
  if (parts.user === "") return { problem: `must name a user, as in ${FORM}` };
  if (parts.database === "") return { problem: `must name a database, as in ${FORM}` };
  const tls = tlsOf(parts.host, url.searchParams);
  return tls !== null && "problem" in tls ? tls : { ...parts, tls };
};

/** More than anybody runs. */
const ADDRESSES_MAX = 16;

/** Addresses with commas between. A comma in a password has its escape, `%2C`. */
export const parseReplicas: Parse<readonly PostgresAddress[]> = (text) => {
  const addresses: PostgresAddress[] = [];
  const texts = text.split(",").map((one) => one.trim());
  if (texts.length > ADDRESSES_MAX) return { problem: `must be ${ADDRESSES_MAX} addresses at most` };
  for (const [at, one] of texts.entries()) {
    const address = parsePostgresAddress(one);
    if ("problem" in address)
      return {
        problem: `${address.problem} (address ${at + 1} of ${texts.length}; commas are between addresses, and %2C in one)`,
      };
    if (addresses.some((other) => nameOfDatabase(other) === nameOfDatabase(address)))
      return { problem: `names ${nameOfDatabase(address)} twice` };
    addresses.push(address);
  }
  return addresses;
};

/** The parts of the address, without escapes; null where an escape is wrong, or stands for a control character. */
function partsOf({ hostname, port, username, password, pathname }: URL): Omit<PostgresAddress, "tls"> | null {
  const database = pathname.replace(/^\//, "");
  if (database.includes("/")) return null;
  const parts = decoded([hostname, username, password, database]);
  if (parts === null) return null;
  const [host = "", user = "", secret = "", name = ""] = parts;
  return {
    host: host.replace(/^\[(.*)\]$/, "$1"),
    port: port === "" ? 5432 : Number(port),
    ...{ user, password: secret, database: name },
  };
}

function decoded(parts: readonly string[]): readonly string[] | null {
  try {
    const texts = parts.map(decodeURIComponent);
    return texts.some((text) => /\p{Cc}/u.test(text)) ? null : texts;
  } catch {
    return null;
  }
}

function tlsOf(host: string, parameters: URLSearchParams): PostgresAddress["tls"] | { problem: string } {
  const names = [...parameters.keys()];
  const unknown = names.find((name) => !PARAMETERS.includes(name));
  if (unknown !== undefined)
    return { problem: `the parameter ${unknown} is not known; known are ${PARAMETERS.join(" and ")}` };
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) return { problem: `names ${twice} twice` };
  const authorities = parameters.get("sslrootcert");
  if (authorities === "") return { problem: "sslrootcert must be the path of a file" };
  const mode = parameters.get("sslmode");
  const isSocket = host.startsWith("/");
  if (isSocket || mode === "disable") {
    if (mode !== null && mode !== "disable")
      return { problem: "a unix socket has no TLS: leave sslmode out" };
    return authorities === null ? null : { problem: "sslrootcert is for TLS: leave it out" };
  }
  if (mode === null || mode === "verify-full") return { authorities };
  return {
    problem: UNVERIFIED.includes(mode)
      ? `sslmode=${mode} does not verify that the server is ${host}: leave sslmode out, which is verify-full`
      : "sslmode must be verify-full, or disable for a server on this machine",
  };
}

/** Whether all that is sent there can be read on its way: over a network, and without TLS. */
export const isPlaintext = ({ host, tls }: PostgresAddress): boolean =>
  tls === null && !host.startsWith("/") && !isLoopback(host);

/** The name of a database in messages: it has neither the user nor the password. */
export const nameOfDatabase = ({ host, port, database }: PostgresAddress): string =>
  `${database} at ${host.includes(":") ? `[${host}]` : host}:${port}`;

/** How long anything may take on a server, in milliseconds. */
const CONNECT_S = 2;
const LOCK_MS = 2_000;
const STATEMENT_MS = 15_000;
/** An instance that stands still must not keep its locks, nor the server look for one that is gone. */
const IDLE_IN_TRANSACTION_MS = 5_000;
const CONNECTION_CHECK_MS = 5_000;

/**
 * The options of every connection of Bun's client. Everything is named, so that neither a variable such as `PGPASSWORD` nor the
 * server's defaults have a say in it.
 *
 * @param version the executable's
 * @param statementMs how long a statement may take; 0 for as long as it needs
 */
export function connectionOptions(
  { host, port, user, password, database, tls }: PostgresAddress,
  version: string,
  statementMs = STATEMENT_MS,
): SQL.PostgresOrMySQLOptions {
  return {
    adapter: "postgres",
    // The mode is taken from a URL alone, and DATABASE_URL would be read where there is none.
    url: `postgres://localhost/?sslmode=${tls === null ? "disable" : "verify-full"}`,
    ...(host.startsWith("/") ? { path: host } : { hostname: host }),
    port,
    username: user,
    // An empty text would be replaced by PGPASSWORD.
    password: () => password,
    database,
    // NODE_TLS_REJECT_UNAUTHORIZED=0 would be heard where this did not say otherwise.
    ...(tls && {
      tls: { rejectUnauthorized: true, ...(tls.authorities !== null && { caFile: tls.authorities }) },
    }),
    bigint: true,
    connectionTimeout: CONNECT_S,
    connection: {
      application_name: `holdfast/${version}`,
      synchronous_commit: "on",
      default_transaction_isolation: "read committed",
      lock_timeout: LOCK_MS,
      statement_timeout: statementMs,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
      client_connection_check_interval: CONNECTION_CHECK_MS,
      // Statements are short: to compile one, or to divide it among processes, takes longer than to run it.
      jit: "off",
      enable_seqscan: "off",
      enable_hashjoin: "off",
      enable_mergejoin: "off",
      plan_cache_mode: "force_generic_plan",
      max_parallel_workers_per_gather: 0,
    },
  };
}
