import type { ReservedSQL, SQL } from "bun";
import { type LedgerVersions, newerThan, newest, OLDEST_WRITER } from "../sql/ledger-version.ts";
import type { MigrationWatch } from "../sql/migration-watch.ts";
import { sqlStateOf } from "./client.ts";
import { embeddedPostgresMigrations } from "./migrations.macro.ts" with { type: "macro" };

/** A change of the tables: the name of its file, its statements and their SHA-256. */
export type PostgresMigration = { readonly name: string; readonly sql: string; readonly hash: string };

/** Every change of the tables that this version knows, in order. */
export const postgresMigrations = (): readonly PostgresMigration[] =>
  embeddedPostgresMigrations() as PostgresMigration[];

export type PostgresMigrationOptions = {
  /** The version of this executable. */
  readonly version: string;
  /** What the instance is called where the ledger has none yet. */
  readonly newInstance: () => { readonly id: string; readonly createdAt: number };
  /** Follows the changes of the tables. */
  readonly watch?: Partial<MigrationWatch>;
  /** How long it waits for others, in milliseconds: for an instance that changes the tables too, and for those who use them. */
  readonly waitMsMax?: number;
};

const WAIT_MS_MAX = 60_000;
/** How long the database may take for what is no change. Of one that is gone without a word nothing would ever be heard. */
const ANSWER_MS_MAX = 5_000;
/** How long a change waits for those who use a table. All others wait behind it meanwhile. */
const TABLE_WAIT_MS_MAX = 2_000;

const MAKE_LIST =
  'CREATE TABLE IF NOT EXISTS __holdfast_migrations (name text COLLATE "C" PRIMARY KEY, hash text COLLATE "C" NOT NULL, at int8 NOT NULL)';
/** Two who make a table at once: the second is told that its name, its type, or the row for its name is there. */
const MADE_BY_ANOTHER: readonly unknown[] = ["42P07", "42710", "23505"];
const LOCK_NOT_AVAILABLE = "55P03";
/** Others use what is to be changed, and all changes were undone: a serialisation failure, a deadlock, a lock that was not free in time. */
const IN_THE_WAY: readonly unknown[] = ["40001", "40P01", LOCK_NOT_AVAILABLE];
const isInTheWay = (error: unknown): boolean => IN_THE_WAY.includes(sqlStateOf(error));
/** How long the others go on before the changes are tried again, at random: at least as long as they have waited for one try. */
const PAUSE_MS = { min: TABLE_WAIT_MS_MAX, max: 2 * TABLE_WAIT_MS_MAX };

/**
 * Brings the tables up to date, all changes in one transaction; in an empty database, makes them. Then the ledger has an instance,
 * and keeps the newest version that has opened it and the oldest that may. One instance does this at a time, the others wait.
 *
 * @param sql reads int8 as bigint
 * @throws NewerLedger where the ledger is of a newer version that this one may not write to
 * @throws where others change or use the tables for too long, or they are not those that this version knows; nothing is changed then
 */
export async function migratePostgres(
  sql: SQL,
  options: PostgresMigrationOptions,
  known: readonly PostgresMigration[] = postgresMigrations(),
): Promise<void> {
  const { waitMsMax = WAIT_MS_MAX, watch = {} } = options;
  const endsAt = performance.now() + waitMsMax;
  let isPending = false;
  const onPending = (changes: number) => {
    // It is told once, however often the changes are tried.
    if (!isPending) watch.onPending?.(changes);
    isPending = true;
  };
  for (;;)
    try {
      return await migrateOnce(sql, { ...options, waitMsMax, watch: { ...watch, onPending } }, known);
    } catch (error) {
      if (!isInTheWay(error)) throw error;
      if (performance.now() > endsAt)
        throw new Error(
          `others have used the tables of this database for ${waitMsMax / 1_000} seconds, so they could not be changed; start again once that has ended`,
          { cause: error },
        );
      await Bun.sleep(PAUSE_MS.min + Math.random() * (PAUSE_MS.max - PAUSE_MS.min));
    }
}

async function migrateOnce(
  sql: SQL,
  { version, newInstance, watch, waitMsMax }: Required<PostgresMigrationOptions>,
  known: readonly PostgresMigration[],
): Promise<void> {
  const connection = await sql.reserve();
  try {
    const applied = await answered(connection, waitMsMax + ANSWER_MS_MAX, async () => {
      await makeList(connection);
      await connection`BEGIN ISOLATION LEVEL READ COMMITTED`;
      await connection`SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)`;
      const found = await lockList(connection, known, waitMsMax);
      await refuseNewer(connection, version, found);
      return found;
    });
    await apply(connection, known, applied, watch);
    await answered(connection, ANSWER_MS_MAX, async () => {
      await keepInstance(connection, version, newInstance);
      const { command } = await connection`COMMIT`;
      if (command !== "COMMIT") throw new Error("the changes of the tables were undone");
    });
  } catch (error) {
    await connection`ROLLBACK`.catch(() => {
      // The connection is lost, and its transaction with it.
    });
    throw error;
  } finally {
    connection.release();
  }
}

/** Makes the tables in an empty schema, in the transaction of the caller, who then gives the ledger its instance. */
export async function makeTables(connection: ReservedSQL): Promise<void> {
  await connection.unsafe(MAKE_LIST);
  await apply(connection, postgresMigrations(), new Map(), {});
}

/** Ends the connection where the work on it takes longer. */
async function answered<Result>(
  connection: ReservedSQL,
  msMax: number,
  work: () => Promise<Result>,
): Promise<Result> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new Error(`the database has not answered within ${msMax / 1_000} seconds`));
    void Promise.resolve(connection.close({ timeout: 0 })).catch(() => {});
  }, msMax);
  try {
    return await Promise.race([work(), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

async function makeList(connection: ReservedSQL): Promise<void> {
  const [found] = await connection`SELECT to_regclass('__holdfast_migrations') IS NOT NULL AS is_there`;
  // Who may not make tables starts where they are made.
  if (found.is_there) return;
  try {
    await connection.unsafe(MAKE_LIST);
  } catch (error) {
    if (!MADE_BY_ANOTHER.includes(sqlStateOf(error))) throw error;
  }
}

/** The hashes of what is applied, by name. */
type Applied = ReadonlyMap<string, string>;

/**
 * Locks the row of the first change until the transaction ends. In a new ledger that row is made: whoever makes it too waits for the
 * end of this transaction, and finds it then.
 */
async function lockList(
  connection: ReservedSQL,
  [first]: readonly PostgresMigration[],
  waitMsMax: number,
): Promise<Applied> {
  if (first === undefined) throw new Error("there are no changes of the tables to know");
  await setLockTimeout(connection, waitMsMax);
  try {
    const made = await connection`INSERT INTO __holdfast_migrations (name, hash, at)
      VALUES (${first.name}, ${first.hash}, (extract(epoch FROM clock_timestamp()) * 1000)::int8) ON CONFLICT DO NOTHING`;
    if (made.count === 1) return new Map();
    await connection`SELECT 1 FROM __holdfast_migrations WHERE name = ${first.name} FOR UPDATE`;
  } catch (error) {
    if (sqlStateOf(error) !== LOCK_NOT_AVAILABLE) throw error;
    throw new Error(
      `another instance is changing the tables of this database, and has not ended within ${waitMsMax / 1_000} seconds; start again once it has`,
      { cause: error },
    );
  }
  const rows: { name: string; hash: string }[] =
    await connection`SELECT name, hash FROM __holdfast_migrations`;
  return new Map(rows.map(({ name, hash }) => [name, hash]));
}

async function refuseNewer(connection: ReservedSQL, version: string, applied: Applied): Promise<void> {
  const ledger = applied.size === 0 ? null : await versionsOf(connection);
  const newer = ledger && newerThan(version, ledger);
  if (newer) throw newer;
}

async function apply(
  connection: ReservedSQL,
  known: readonly PostgresMigration[],
  applied: Applied,
  watch: Partial<MigrationWatch>,
): Promise<void> {
  for (const { name, hash } of known)
    if (applied.has(name) && applied.get(name) !== hash)
      throw new Error(
        `the change ${name} of the tables of this database was another than the one that is known`,
      );
  const pending = known.filter(({ name }) => !applied.has(name));
  if (pending.length === 0) return;
  // A new ledger is not brought up to date.
  const { onPending = () => {}, onProgress = () => {} } = applied.size > 0 ? watch : {};
  onPending(pending.length);
  await setLockTimeout(connection, TABLE_WAIT_MS_MAX);
  // A batch locks rows of these before it uses other tables (`locks.ts`). Those under way end first, so that none of them waits for a
  // table that is being changed while the change waits for the batch.
  if (applied.size > 0) await connection.unsafe("LOCK TABLE locks, scopes, organisations IN EXCLUSIVE MODE");
  for (const [index, { name, sql, hash }] of pending.entries()) {
    try {
      await connection.unsafe(sql).simple();
    } catch (error) {
      if (isInTheWay(error)) throw error;
      throw new Error(`the change ${name} of the tables failed: ${(error as Error).message}`, {
        cause: error,
      });
    }
    await connection`INSERT INTO __holdfast_migrations (name, hash, at)
      VALUES (${name}, ${hash}, (extract(epoch FROM clock_timestamp()) * 1000)::int8) ON CONFLICT DO NOTHING`;
    onProgress({ of: "changes", done: index + 1, total: pending.length });
  }
  // They may have changed rows that instances of the version before keep (`kept-rows.ts`).
  if (applied.size > 0) await connection`UPDATE scopes SET revision = revision + 1`;
}

/** A ledger has one instance from the beginning, so that no command has to ask whether it is there. */
async function keepInstance(
  connection: ReservedSQL,
  version: string,
  newInstance: PostgresMigrationOptions["newInstance"],
): Promise<void> {
  const ledger = await versionsOf(connection);
  if (ledger === null) {
    const { id, createdAt } = newInstance();
    await connection`INSERT INTO instances (id, chain_ids, version, oldest_writer, created_at, rowid)
      VALUES (${id}, '[]', ${version}, ${OLDEST_WRITER}, ${createdAt}::int8, nextval('positions'))`;
    return;
  }
  const next = {
    version: newest(version, ledger.version),
    oldest: newest(OLDEST_WRITER, ledger.oldest_writer),
  };
  if (next.version !== ledger.version || next.oldest !== ledger.oldest_writer)
    await connection`UPDATE instances SET version = ${next.version}, oldest_writer = ${next.oldest}`;
}

async function versionsOf(connection: ReservedSQL): Promise<LedgerVersions | null> {
  const [row]: LedgerVersions[] = await connection`SELECT version, oldest_writer FROM instances`;
  return row ?? null;
}

const setLockTimeout = async (connection: ReservedSQL, ms: number): Promise<void> => {
  await connection`SELECT set_config('lock_timeout', ${`${ms}`}, true)`;
};
