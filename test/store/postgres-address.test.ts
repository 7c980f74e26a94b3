import { describe, expect, test } from "bun:test";
import { SQL } from "bun";
import {
  connectionOptions,
  isPlaintext,
  type PostgresAddress,
  parsePostgresAddress,
} from "../../src/store/postgres/address.ts";

const PASSWORD = "s3cret";
const VERIFIED: PostgresAddress = {
  ...{ host: "db.example", port: 5432, user: "holdfast", password: PASSWORD, database: "ledger" },
  tls: { authorities: null },
};
const PLAIN = { ...VERIFIED, tls: null };
const SOCKET = { ...PLAIN, host: "/var/run/postgresql" };

describe("an address", () => {
  test.each<[string, PostgresAddress]>([
    ["postgres://holdfast:s3cret@db.example/ledger", VERIFIED],
    ["postgresql://holdfast:s3cret@db.example:5432/ledger?sslmode=verify-full", VERIFIED],
    ["postgres://holdfast:s3cret@db.example:6432/ledger", { ...VERIFIED, port: 6432 }],
    [
      "postgres://holdfast:s3cret@db.example/ledger?sslrootcert=/etc/ca.pem",
      { ...VERIFIED, tls: { authorities: "/etc/ca.pem" } },
    ],
    ["postgres://holdfast@db.example/ledger", { ...VERIFIED, password: "" }],
    ["postgres://holdfast:a%40b,c%2F@db.example/ledger", { ...VERIFIED, password: "a@b,c/" }],
    ["postgres://holdfast:s3cret@db.example/my%20ledger", { ...VERIFIED, database: "my ledger" }],
    ["postgres://holdfast:s3cret@localhost/ledger", { ...VERIFIED, host: "localhost" }],
    ["postgres://holdfast:s3cret@[::1]/ledger?sslmode=disable", { ...PLAIN, host: "::1" }],
    ["postgres://holdfast:s3cret@db.example/ledger?sslmode=disable", PLAIN],
    ["postgres://holdfast:s3cret@%2Fvar%2Frun%2Fpostgresql/ledger", SOCKET],
    ["postgres://holdfast:s3cret@%2Fvar%2Frun%2Fpostgresql/ledger?sslmode=disable", SOCKET],
  ])("%s is read", (text, address) => {
    expect(parsePostgresAddress(text)).toEqual(address);
  });

  const FORM = "must be postgres://USER:PASSWORD@HOST:5432/DATABASE, each part with % escapes";
  test.each([
    ["mysql://holdfast:s3cret@db.example/ledger", FORM],
    ["./ledger.db", FORM],
    ["holdfast:s3cret@db.example/ledger", FORM],
    ["postgres://holdfast:s3cret@db.example:port/ledger", FORM],
    ["postgres://holdfast:s3cret#@db.example/ledger", FORM],
    ["postgres://holdfast:s3cret%zz@db.example/ledger", FORM],
    ["postgres://holdfast:s3cret%00@db.example/ledger", FORM],
    ["postgres://a@holdfast:1?s3cret@db.example/ledger", FORM],
    ["postgres:///ledger?host=/var/run/postgresql", FORM],
    ["postgres://holdfast:s3cret@db.example/ledger/more", FORM],
    ["postgres://holdfast:s3cret@db.example/ledger#more", FORM],
    ["postgres://holdfast:s3cret@one.example,two.example/ledger", "must name one host"],
    ["postgres://holdfast:s3cret@one.example:1,two.example:2/ledger?sslmode=disable", "must name one host"],
    ["postgres://db.example/ledger", "must name a user"],
    ["postgres://holdfast:s3cret@db.example", "must name a database"],
    ["postgres://holdfast:s3cret@db.example/", "must name a database"],
    [
      "postgres://holdfast:s3cret@db.example/ledger?application_name=x",
      "the parameter application_name is not known; known are sslmode and sslrootcert",
    ],
    ["postgres://holdfast:s3cret@db.example/ledger?options=-c%20fsync%3Doff", "the parameter options"],
    [
      "postgres://holdfast:s3cret@db.example/ledger?sslmode=disable&sslmode=verify-full",
      "names sslmode twice",
    ],
    ...["allow", "prefer", "require", "no-verify", "verify-ca"].map((mode): [string, string] => [
      `postgres://holdfast:s3cret@db.example/ledger?sslmode=${mode}`,
      `sslmode=${mode} does not verify that the server is db.example: leave sslmode out, which is verify-full`,
    ]),
    [
      "postgres://holdfast:s3cret@db.example/ledger?sslmode=off",
      "sslmode must be verify-full, or disable for a server on this machine",
    ],
    ["postgres://holdfast:s3cret@db.example/ledger?sslrootcert=", "sslrootcert must be the path of a file"],
    [
      "postgres://holdfast:s3cret@localhost/ledger?sslmode=disable&sslrootcert=/etc/ca.pem",
      "sslrootcert is for TLS: leave it out",
    ],
    [
      "postgres://holdfast:s3cret@%2Frun/ledger?sslmode=verify-full",
      "a unix socket has no TLS: leave sslmode out",
    ],
  ])("%s is refused, and its password is not repeated", (text, problem) => {
    const refused = parsePostgresAddress(text);
    expect("problem" in refused && refused.problem).toStartWith(problem);
    expect(JSON.stringify(refused)).not.toContain(PASSWORD);
  });

  test.each<[string, boolean]>([
    ["localhost", false],
    ["127.0.0.2", false],
    ["::1", false],
    ["/var/run/postgresql", false],
    ["db.example", true],
    ["10.0.0.1", true],
    ["localhost.example", true],
  ])("of %s without TLS can be read on its way: %p", (host, isReadable) => {
    expect(isPlaintext({ ...PLAIN, host })).toBe(isReadable);
    expect(isPlaintext({ ...VERIFIED, host })).toBe(false);
  });
});

describe("Bun's client", () => {
  /** What the client makes of an address: what it would connect to, and how. */
  const clientOf = (address: PostgresAddress) =>
    new SQL(connectionOptions(address, "1.2.3")).options as unknown as Record<string, unknown>;
  const VERIFY_FULL = 4;

  test("verifies the server by its name, with the authorities that are named", () => {
    expect(clientOf({ ...VERIFIED, tls: { authorities: "/etc/ca.pem" } })).toMatchObject({
      ...{ hostname: "db.example", port: 5432, username: "holdfast", database: "ledger" },
      ...{ sslMode: VERIFY_FULL, bigint: true, connectionTimeout: 2_000 },
      tls: { caFile: "/etc/ca.pem", serverName: "db.example", rejectUnauthorized: true },
    });
    expect(clientOf({ ...VERIFIED, host: "::1" })).toMatchObject({ hostname: "::1", sslMode: VERIFY_FULL });
    expect(clientOf(PLAIN)).toMatchObject({ sslMode: 0, hostname: "db.example" });
    expect(clientOf(SOCKET)).toMatchObject({ path: "/var/run/postgresql/.s.PGSQL.5432" });
  });

  test("tells the server all that the engine relies on", () => {
    expect(String(clientOf(VERIFIED).query).split("\0")).toEqual([
      ...["application_name", "holdfast/1.2.3", "synchronous_commit", "on"],
      ...["default_transaction_isolation", "read committed", "lock_timeout", "2000"],
      ...["statement_timeout", "15000", "idle_in_transaction_session_timeout", "5000"],
      ...["client_connection_check_interval", "5000", "jit", "off"],
      ...["enable_seqscan", "off", "enable_hashjoin", "off", "enable_mergejoin", "off"],
      ...["plan_cache_mode", "force_generic_plan"],
      ...["max_parallel_workers_per_gather", "0", ""],
    ]);
  });

  test("hears no variable of the environment", () => {
    const others = { PGDATABASE: "other", PGHOST: "other.example", PGUSER: "other", PGPORT: "1" };
    const variables = { ...others, DATABASE_URL: "postgres://o:p@other.example/other?sslmode=disable" };
    const before = JSON.stringify(clientOf(VERIFIED));
    Object.assign(process.env, variables);
    try {
      expect(JSON.stringify(clientOf(VERIFIED))).toBe(before);
    } finally {
      for (const name of Object.keys(variables)) delete process.env[name];
    }
  });
});
