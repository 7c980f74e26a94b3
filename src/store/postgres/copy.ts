import { Database } from "bun:sqlite";
import type { ReservedSQL, SQL } from "bun";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { firstOf } from "../../core/first-of.ts";
import { type StartProgress, withProgress } from "../../core/progress.ts";
import { auditQuickly } from "../sqlite/audit-threads.ts";
import { hasLedger, ledgerFile } from "../sqlite/ledger-file.ts";
import { publishFile, syncPath } from "../sqlite/new-file.ts";
import { openLedger } from "../sqlite/open.ts";
import { inStaging } from "../sqlite/restore.ts";
import { lockForServer } from "../sqlite/server-lock.ts";
import { auditCopy, copyToFile, inTransaction } from "./audit.ts";
import { sqlStateOf } from "./client.ts";
import { type CopiedRows, copyRows, differencesOf, NOWHERE, type RowSource } from "./copy-rows.ts";
import { rowsOfFile } from "./ledger-file-rows.ts";
import { type Ask, askOn, intoPostgres } from "./ledger-rows.ts";
import { type LedgerTable, ledgerTables } from "./ledger-tables.ts";
import { makeTables, postgresMigrations } from "./migrate.ts";
import { schemaDisagreements } from "./schema.ts";
import { type ReplacedTexts, storableRows, UnstorableText } from "./storable-rows.ts";

/** A ledger that was copied: whose it is, how many rows it has, and the texts that are not as they were. */
export type Copied = {
  readonly instanceId: string;
  readonly rows: number;
  readonly replaced: readonly ReplacedTexts[];
};

export type CopyOptions = {
  /** The version of this executable. */
  readonly version: string;
  readonly startProgress: StartProgress;
};

type OnProgress = (done: number, total: number) => void;

const LOCK_NOT_AVAILABLE = "55P03";

/** How long a copy waits for those who use what it must have alone. */
const WAIT_MS_MAX = 5_000;

/**
 * Copies the ledger of a data folder into an empty database: every row, with its position. Nobody writes to the folder meanwhile.
 *
 * It is one transaction, in which the tables are made, filled, read back and audited. So whatever happens before the end leaves an
 * empty database, and nobody ever sees a part of a ledger. The guards are switched off in it, since they would refuse rows that are not
 * new, such as a warrant that has ended; nobody else writes to tables that are not there for them yet. Keys, CHECKs and foreign keys
 * stay.
 *
 * @throws OutcomeUnknown where the connection is lost with the last statement
 */
export async function copyToPostgres(
  dataFolder: string,
  sql: SQL,
  options: CopyOptions,
): Promise<Copied | Refusal> {
  if (!hasLedger(dataFolder)) return refuseField("--from", `there is no ledger in ${dataFolder}`);
  const lock = lockForServer(dataFolder);
  if (isRefusal(lock)) return lock;
  try {
    const { raw } = openLedger(dataFolder, options.version, () => {
      throw new Error("the ledger has no instance");
    });
    try {
      raw.run(`PRAGMA busy_timeout = ${WAIT_MS_MAX}`);
      // Commands beside the server wait until the copy is made.
      raw.run("BEGIN IMMEDIATE");
      const problems = await withProgress(options.startProgress("checking the ledger"), ({ update }) =>
        auditQuickly(dataFolder, { onProgress: update }),
      );
      if (problems.length > 0) return refuseDisagreeing("the ledger", problems);
      return await intoDatabase(raw, dataFolder, sql, options);
    } finally {
      raw.close();
    }
  } finally {
    lock.release();
  }
}

/** Whether the copy is committed is not known. */
class OutcomeUnknown extends Error {
  constructor(cause: unknown) {
    super(
      "the connection was lost while the copy was committed: the database has the whole ledger, or nothing; copy again, which is refused where it has the ledger",
      { cause },
    );
  }
}

async function intoDatabase(
  raw: Database,
  dataFolder: string,
  sql: SQL,
  { startProgress }: CopyOptions,
): Promise<Copied | Refusal> {
  const connection = await sql.reserve();
  try {
    const ask = askOn(connection);
    return await inTransaction(ask, "BEGIN", async () => {
      await ask(`SET LOCAL lock_timeout = ${WAIT_MS_MAX}`);
      const occupied = await refuseOccupiedDatabase(ask);
      if (occupied) return occupied;
      await makeTables(connection);
      const rows = storableRows(rowsOfFile(raw));
      const written = await withProgress(startProgress("copying the ledger"), ({ update }) =>
        fill(ask, rows.source, update),
      );
      const { problems, copied } = await withProgress(startProgress("checking the copy"), ({ update }) =>
        auditCopy(dataFolder, update, (file, copying) => copyToFile(ask, file, copying)),
      );
      const found = [...problems, ...(copied ? differencesOf(written, copied) : [])];
      if (found.length > 0) return refuseDisagreeing("the copy", found);
      const instanceId = await instanceIn(ask);
      await commit(connection);
      return { instanceId: instanceId ?? "", rows: written.rows, replaced: rows.replaced() };
    });
  } catch (error) {
    if (error instanceof UnstorableText) return refuseField("--from", error.message);
    throw error;
  } finally {
    connection.release();
  }
}

async function commit(connection: ReservedSQL): Promise<void> {
  try {
    const { command } = await connection`COMMIT`;
    if (command === "COMMIT") return;
  } catch (error) {
    throw new OutcomeUnknown(error);
  }
  throw new Error("the copy was undone");
}

/** Fills tables that were made in this transaction. */
async function fill(ask: Ask, source: RowSource, onProgress: OnProgress): Promise<CopiedRows> {
  const tables = ledgerTables();
  for (const { name } of tables) await ask(`ALTER TABLE "${name}" DISABLE TRIGGER USER`);
  const written = await copyRows(tables, source, intoPostgres(ask), onProgress);
  await ask(NEWEST_TIMES);
  await ask(positionsAbove(tables));
  for (const { name } of tables) {
    await ask(`ALTER TABLE "${name}" ENABLE TRIGGER USER`);
    // Else the first server would choose its plans as for empty tables.
    await ask(`ANALYZE "${name}"`);
  }
  return written;
}

/** The time in the newest record of each scope: what is recorded next is not before it. */
const NEWEST_TIMES = `
  WITH times AS (
    SELECT warrants.scope AS scope, max(trace.recorded_at) AS at
    FROM trace JOIN warrants ON warrants.position = trace.warrant GROUP BY warrants.scope
    UNION ALL
    SELECT accounts.scope, max(postings.recorded_at)
    FROM postings JOIN accounts ON accounts.position = postings.account GROUP BY accounts.scope
    UNION ALL
    SELECT scopes.position, max(audit_entries.recorded_at)
    FROM audit_entries JOIN scopes ON scopes.organisation_id = audit_entries.organisation_id GROUP BY scopes.position
  )
  UPDATE scopes SET recorded_at = newest.at
  FROM (SELECT scope, max(at) AS at FROM times GROUP BY scope) AS newest WHERE newest.scope = scopes.position`;

/** The sequence gives the first number of a block that is above the number of every row. */
const positionsAbove = (tables: readonly LedgerTable[]): string => {
  const largest = tables.map(({ name, key }) => `(SELECT max("${key}") FROM "${name}")`);
  return `SELECT setval('positions', (coalesce(greatest(${largest.join(", ")}), 0) / 1024 + 1) * 1024)`;
};

/** What is in the schema, but for what an extension brings. */
const THERE = `
  SELECT relname::text FROM pg_class
  WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'e')
  ORDER BY relname = 'instances' DESC, relname LIMIT 1`;

async function refuseOccupiedDatabase(ask: Ask): Promise<Refusal | null> {
  const [[schema] = []] = await ask("SELECT current_schema()::text");
  if (schema === null) return refuseField("--to", "the database has no schema that its role may use");
  const [[found] = []] = await ask(THERE);
  return found === undefined
    ? null
    : refuseField(
        "--to",
        `the database is not empty (the table ${found} is there), and nothing is overwritten; choose an empty one`,
      );
}

async function instanceIn(ask: Ask): Promise<string | null> {
  const [[id] = []] = (await ask("SELECT id FROM instances")) as string[][];
  return id ?? null;
}

/**
 * Copies a ledger in PostgreSQL into an empty or missing data folder: every row, with its position. Nobody writes to the database
 * meanwhile.
 *
 * The file is made beside its place, read back and audited, and moved when it is complete.
 */
export async function copyFromPostgres(
  sql: SQL,
  dataFolder: string,
  { startProgress }: CopyOptions,
): Promise<Copied | Refusal> {
  return inStaging(dataFolder, async (staging) => {
    const staged = ledgerFile(staging);
    const read = await withProgress(startProgress("copying the ledger"), ({ update }) =>
      fromDatabase(sql, staged, update),
    );
    if (isRefusal(read)) return read;
    const problems = await withProgress(startProgress("checking the copy"), async ({ update }) => [
      ...(await auditQuickly(staging, { onProgress: update })),
      ...differencesOf(read.copied, await rowsThere(staged)),
    ]);
    if (problems.length > 0) return refuseDisagreeing("the copy", problems);
    syncPath(staged);
    if (!publishFile(staged, ledgerFile(dataFolder)))
      return refuseField("--to", `${ledgerFile(dataFolder)} was made meanwhile`);
    return { instanceId: read.instanceId, rows: read.copied.rows, replaced: [] };
  });
}

async function rowsThere(file: string): Promise<CopiedRows> {
  const raw = new Database(file, { readonly: true, safeIntegers: true });
  try {
    return await copyRows(ledgerTables(), rowsOfFile(raw), NOWHERE);
  } finally {
    raw.close();
  }
}

async function fromDatabase(
  sql: SQL,
  file: string,
  onProgress: OnProgress,
): Promise<{ readonly instanceId: string; readonly copied: CopiedRows } | Refusal> {
  const connection = await sql.reserve();
  try {
    const ask = askOn(connection);
    const refused = await refuseOtherTables(ask);
    if (refused) return refused;
    return await inTransaction(ask, "BEGIN ISOLATION LEVEL REPEATABLE READ", async () => {
      const running = await standStill(ask);
      if (running) return running;
      const instanceId = await instanceIn(ask);
      if (instanceId === null) return refuseField("--from", "the database has no ledger");
      const problems = await schemaDisagreements(connection);
      if (problems.length > 0) return refuseDisagreeing("the ledger", problems);
      const copied = await copyToFile(ask, file, onProgress);
      return typeof copied === "string" ? refuseDisagreeing("the ledger", [copied]) : { instanceId, copied };
    });
  } finally {
    connection.release();
  }
}

/** Refuses a database without a ledger, and one of another version. */
async function refuseOtherTables(ask: Ask): Promise<Refusal | null> {
  const [[isThere] = []] = await ask("SELECT to_regclass('__holdfast_migrations') IS NOT NULL");
  if (isThere !== true) return refuseField("--from", "the database has no ledger");
  const applied = (await ask("SELECT hash FROM __holdfast_migrations")) as string[][];
  const known = postgresMigrations().map(({ hash }) => hash);
  if (applied.some(([hash = ""]) => !known.includes(hash)))
    return refuseField(
      "--from",
      "its tables had changes that this version does not know; copy with the version that serves it",
    );
  return applied.length === known.length
    ? null
    : refuseField(
        "--from",
        "its tables are those of an older version; start a server of this version on it once",
      );
}

/**
 * Keeps everybody from writing to the ledger until the end of the transaction, and servers from starting on it. What the transaction
 * sees begins with the first statement after it that reads.
 */
async function standStill(ask: Ask): Promise<Refusal | null> {
  const tables = [...ledgerTables().map(({ name }) => name), "instances_running"];
  await ask(`SET LOCAL lock_timeout = ${WAIT_MS_MAX}`);
  try {
    await ask(`LOCK TABLE ${tables.map((name) => `"${name}"`).join(", ")} IN SHARE MODE`);
  } catch (error) {
    if (sqlStateOf(error) !== LOCK_NOT_AVAILABLE) throw error;
    return refuseField("--from", "somebody writes to the database; stop that first");
  }
  const [[running] = []] = await ask("SELECT id FROM instances_running WHERE seen_until > clock_timestamp()");
  return running === undefined
    ? null
    : refuseField("--from", `a server runs on the database (${running}); stop it first`);
}

const refuseDisagreeing = (what: string, problems: readonly string[]): Refusal =>
  refuse("audit_disagrees", `The audit of ${what} disagrees: ${firstOf(problems)}. Nothing was copied.`);
