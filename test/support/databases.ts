import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { ENGINE } from "./engine.ts";
import { startPostgres } from "./postgres-server.ts";
import { openSyncSql, runBeside, runScript } from "./sync-sql.ts";
import { TEMPORARY } from "./temporary.ts";

/**
 * Databases for tests, each a copy of one whose tables were made once. They are on the server of `TEST_POSTGRES_URL`, or on one that
 * starts with this file and ends with the process. Its files are in memory: no test needs them after a crash of the machine.
 */
const SERVER = await addressOfServer();

async function addressOfServer(): Promise<string | null> {
  if (ENGINE === "embedded") return null;
  return process.env.TEST_POSTGRES_URL ?? (await startPostgres(TEMPORARY)).url();
}

const MIGRATIONS = resolve(import.meta.dir, "../../migrations/postgres");

/** The names are of this process alone, since several may share a server. */
const TEMPLATE = `template_${process.pid}`;
let made = 0;

function atServer(): string {
  if (SERVER === null) throw new Error("these tests run on the embedded engine");
  return SERVER;
}

const addressOf = (database: string): string => {
  const url = new URL(atServer());
  url.pathname = `/${database}`;
  return url.href;
};

/** Makes a database that has all tables and no row, and answers its address. */
export function newDatabase(): string {
  if (made === 0) makeTemplate();
  made += 1;
  const name = `test_${process.pid}_${made}`;
  // A copy of the files costs half of what one by the log does.
  runScript(atServer(), `CREATE DATABASE ${name} TEMPLATE ${TEMPLATE} STRATEGY file_copy`);
  return addressOf(name);
}

function makeTemplate(): void {
  runScript(atServer(), `CREATE DATABASE ${TEMPLATE}`);
  const url = addressOf(TEMPLATE);
  for (const name of readdirSync(MIGRATIONS)
    .filter((file) => file.endsWith(".sql"))
    .sort())
    runScript(url, readFileSync(join(MIGRATIONS, name), "utf8"));
  openSyncSql(url).close();
}

/** Deletes a database, whoever is still connected. The server may wait for them, so nobody waits for it. */
export function dropDatabase(url: string): void {
  openSyncSql(url).close();
  runBeside(atServer(), `DROP DATABASE ${new URL(url).pathname.slice(1)} WITH (FORCE)`);
}
