import { SQL } from "bun";
import { migratePostgres } from "../../src/store/postgres/migrate.ts";
import { ENGINE } from "./engine.ts";
import { startPostgres } from "./postgres-server.ts";
import { openSyncSql, runBeside, runScript } from "./sync-sql.ts";
import { TEMPORARY } from "./temporary.ts";

/**
 * Databases for tests, each a copy of one whose tables were made once. They are on the server of `TEST_POSTGRES_URL`, or on one that
 * starts with this file and ends with the process. Its files are in memory: no test needs them after a crash of the machine.
 */
const SERVER = ENGINE === "embedded" ? null : await startServer();

let made = 0;

/** The names of databases are of this process alone, since several may share a server. */
async function startServer(): Promise<string> {
  const server = process.env.TEST_POSTGRES_URL ?? (await startPostgres(TEMPORARY)).url();
  runScript(server, `CREATE DATABASE template_${process.pid}`);
  const template = named(server, `template_${process.pid}`);
  const sql = new SQL(template, { max: 1, bigint: true });
  const newInstance = () => ({ id: "ins_none", createdAt: 0 });
  await migratePostgres(sql, { version: "0.1.0", newInstance });
  await sql.close();
  // Each ledger gets an instance of its own.
  runScript(template, "SET session_replication_role = replica; DELETE FROM instances");
  openSyncSql(template).close();
  return server;
}

/** The address of another database of the server. */
function named(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}

const nameOf = (url: string): string => new URL(url).pathname.slice(1);

function atServer(): string {
  if (SERVER === null) throw new Error("these tests run on the embedded engine");
  return SERVER;
}

/**
 * Makes a database and answers its address.
 *
 * @param of the address of the database that it is a copy of, to which nobody is connected; by default it has all tables and no row
 */
export function newDatabase(of = named(atServer(), `template_${process.pid}`)): string {
  made += 1;
  const name = `test_${process.pid}_${made}`;
  // A copy of the files costs half of what one by the log does.
  runScript(atServer(), `CREATE DATABASE ${name} TEMPLATE ${nameOf(of)} STRATEGY file_copy`);
  return named(atServer(), name);
}

/** Deletes a database, whoever is still connected. The server may wait for them, so nobody waits for it. */
export function dropDatabase(url: string): void {
  openSyncSql(url).close();
  runBeside(atServer(), `DROP DATABASE ${nameOf(url)} WITH (FORCE)`);
}
