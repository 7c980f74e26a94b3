import { createHash } from "node:crypto";
import type { SQL } from "bun";
import { UnsharedFault } from "../../core/errors.ts";
import type { CallerCount, CountsOfOthers } from "../../core/rate.ts";
import { MINUTE_MS, SECOND_MS } from "../../core/time.ts";
import type { AttemptCounter, Attempts, SharedAttempts, SharedMemory } from "../shared-memory.ts";

/** An attempt of which nothing was heard for so long has ended with its instance. */
const UNDER_WAY_MS = MINUTE_MS;
/** What has ended is kept for so long still, in case the clock of the next database is behind. */
const MARGIN_MS = MINUTE_MS;
/** How many rows of each table are deleted at once: more than an instance makes in the minute between. */
const FORGOTTEN_MAX = 10_000;
const ANSWER_MS_MAX = 3 * SECOND_MS;
const TRIES_MAX = 5;
/** Two transactions stood in each other's way, and one of them was undone: serialization_failure, deadlock_detected. */
const IN_THE_WAY: ReadonlySet<unknown> = new Set(["40001", "40P01"]);

type Options = {
  /** A client of the database; `bigint` has to be set. */
  readonly connect: () => SQL;
  /** Another one for each run of an instance. */
  readonly instance: string;
  readonly answerMsMax?: number;
};

/** What instances remember together, in tables of their database (migrations/postgres/0002_shared.sql). */
export function createPostgresSharedMemory(options: Options): SharedMemory & { close(): Promise<void> } {
  const { instance, ...asking } = options;
  const { ask, close } = createAsking(asking);
  return {
    useOnce: (token, ms) =>
      ask(async (sql) => (await sql.unsafe(USE_ONCE, [hashOf(token), ms])).length === 1),
    release: (token) => ask(async (sql) => void (await sql.unsafe(RELEASE, [hashOf(token)]))),
    keep: ({ token, value, owner, most }, ms) =>
      ask(async (sql) => {
        await sql.unsafe(KEEP, [hashOf(token), hashOf(owner), value, ms]);
        await sql.unsafe(KEEP_NEWEST, [hashOf(owner), most]);
      }),
    take: (token) =>
      ask(async (sql) => {
        const [row] = await sql.unsafe(TAKE, [hashOf(token)]);
        return row && row.ms_left > 0n ? { value: row.value, msLeft: Number(row.ms_left) } : null;
      }),
    attempts: attemptsIn(ask),
    exchangeCounts: (window, own) => ask((sql) => exchangeCounts(sql, instance, window, own)),
    forgetEnded: () =>
      ask(async (sql) => {
        for (const text of FORGET) await sql.unsafe(text, [MARGIN_MS, FORGOTTEN_MAX]);
      }),
    close,
  };
}

type Ask = <Answer>(statements: (sql: SQL) => Promise<Answer>) => Promise<Answer>;

/** Asks the database, and gives up in time. Statements that were undone for another's sake are run again. */
function createAsking({ connect, answerMsMax = ANSWER_MS_MAX }: Omit<Options, "instance">): {
  readonly ask: Ask;
  close(): Promise<void>;
} {
  let current = connect();

  async function inTime<Answer>(statements: (sql: SQL) => Promise<Answer>): Promise<Answer> {
    const sql = current;
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      late.reject(new Error(`the database did not answer within ${answerMsMax} ms`));
      // Where packets are lost nothing else ends a statement, and the next one would wait behind it.
      if (sql === current) current = connect();
      void sql.close({ timeout: 0 }).catch(() => {});
    }, answerMsMax);
    try {
      return await Promise.race([statements(sql), late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    async ask(statements) {
      for (let tries = 1; ; tries++) {
        try {
          return await inTime(statements);
        } catch (error) {
          if (tries === TRIES_MAX || !IN_THE_WAY.has((error as { readonly errno?: unknown }).errno))
            throw new UnsharedFault("the database did not keep what all instances have to know", {
              cause: error,
            });
        }
      }
    },
    close: () => current.close({ timeout: 0 }),
  };
}

const hashOf = (text: string): Buffer => createHash("sha256").update(text).digest();

/** A table of one row: the database's time. */
const CLOCK = "(SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8 AS now_ms) AS clock";

const USE_ONCE = `
  INSERT INTO used_tokens AS known (token_hash, ends_at)
  SELECT $1::bytea, now_ms + $2::int8 FROM ${CLOCK}
  ON CONFLICT (token_hash) DO UPDATE SET ends_at = excluded.ends_at
    WHERE known.ends_at <= excluded.ends_at - $2::int8
  RETURNING 1 AS used`;
const RELEASE = "DELETE FROM used_tokens WHERE token_hash = $1::bytea";
const KEEP = `
  INSERT INTO kept_values (token_hash, owner_hash, value, ends_at)
  SELECT $1::bytea, $2::bytea, $3::text, now_ms + $4::int8 FROM ${CLOCK}`;
const KEEP_NEWEST = `
  DELETE FROM kept_values WHERE token_hash = ANY(ARRAY(
    SELECT token_hash FROM kept_values WHERE owner_hash = $1::bytea
    ORDER BY ends_at DESC, token_hash OFFSET $2::int8))`;
const TAKE = `
  DELETE FROM kept_values USING ${CLOCK} WHERE token_hash = $1::bytea
  RETURNING value, ends_at - now_ms AS ms_left`;

const attemptsIn = (ask: Ask): SharedAttempts => ({
  read: (keys) =>
    ask(async (sql) => attemptsOf(keys, await sql.unsafe(READ_ATTEMPTS, [hashesOf(sql, keys)]))),
  begin: (counters) =>
    ask(async (sql) =>
      attemptsOf(
        counters.map(({ key }) => key),
        await count(sql, counters, 1, 0),
      ),
    ),
  end: (counters, failed) =>
    ask(async (sql) => {
      if (failed) await count(sql, counters, -1, 1);
      else
        await sql.unsafe(END_WELL, [
          hashesOf(
            sql,
            counters.map(({ key }) => key),
          ),
        ]);
    }),
  forgive: (key) => ask(async (sql) => void (await sql.unsafe(FORGIVE, [hashOf(key)]))),
});

const hashesOf = (sql: SQL, keys: readonly string[]) => sql.array(keys.map(hashOf), "BYTEA");

type AttemptRow = {
  readonly key_hash: Uint8Array;
  readonly failures: bigint;
  readonly under_way: bigint;
  readonly ends_in: bigint;
};

function attemptsOf(keys: readonly string[], rows: readonly AttemptRow[]): Attempts {
  const known = new Map(rows.map((row) => [Buffer.from(row.key_hash).toString("hex"), row]));
  return new Map(
    keys.flatMap((key) => {
      const row = known.get(hashOf(key).toString("hex"));
      if (!row) return [];
      const { failures, under_way: underWay, ends_in: endsIn } = row;
      return [[key, { failures: Number(failures), underWay: Number(underWay), endsInMs: Number(endsIn) }]];
    }),
  );
}

const READ_ATTEMPTS = `
  SELECT key_hash, failures, ends_at - now_ms AS ends_in,
    CASE WHEN under_way_until > now_ms THEN under_way ELSE 0 END AS under_way
  FROM attempts, ${CLOCK} WHERE key_hash = ANY($1::bytea[]) AND ends_at > now_ms`;

/** Adds to counters. */
const count = (
  sql: SQL,
  counters: readonly AttemptCounter[],
  underWay: 1 | -1,
  failures: 0 | 1,
): Promise<AttemptRow[]> =>
  sql.unsafe(COUNT, [
    hashesOf(
      sql,
      counters.map(({ key }) => key),
    ),
    sql.array(
      counters.map(({ windowMs }) => windowMs),
      "BIGINT",
    ),
    underWay,
    failures,
  ]);

/** The rows are locked in the order of their hashes, so that no two of these wait for each other. */
const COUNT = `
  INSERT INTO attempts AS known (key_hash, failures, under_way, under_way_until, ends_at)
  SELECT key_hash, $4::int8, greatest(0, $3::int8), now_ms + ${UNDER_WAY_MS}, now_ms + window_ms
  FROM unnest($1::bytea[], $2::int8[]) AS asked (key_hash, window_ms), ${CLOCK} ORDER BY key_hash
  ON CONFLICT (key_hash) DO UPDATE SET
    failures = $4::int8 +
      CASE WHEN known.ends_at > excluded.under_way_until - ${UNDER_WAY_MS} THEN known.failures ELSE 0 END,
    under_way = greatest(0, $3::int8 + CASE
      WHEN known.under_way_until > excluded.under_way_until - ${UNDER_WAY_MS} THEN known.under_way ELSE 0 END),
    under_way_until = excluded.under_way_until,
    ends_at = CASE
      WHEN known.ends_at > excluded.under_way_until - ${UNDER_WAY_MS}
        AND (known.failures > 0 OR known.under_way_until > excluded.under_way_until - ${UNDER_WAY_MS})
      THEN known.ends_at ELSE excluded.ends_at END
  RETURNING key_hash, failures, under_way, ends_at - (under_way_until - ${UNDER_WAY_MS}) AS ends_in`;

/** A counter in which nothing counts any more ends, so that its next attempt begins a window. */
const END_WELL = `
  UPDATE attempts SET
    under_way = greatest(0, under_way - 1),
    ends_at = CASE WHEN failures = 0 AND under_way <= 1 THEN least(ends_at, now_ms) ELSE ends_at END
  FROM ${CLOCK}, (
    SELECT key_hash AS held FROM attempts WHERE key_hash = ANY($1::bytea[]) ORDER BY key_hash FOR UPDATE
  ) AS locked
  WHERE key_hash = held`;
const FORGIVE = `
  UPDATE attempts SET
    failures = 0, ends_at = CASE WHEN under_way = 0 THEN least(ends_at, now_ms) ELSE ends_at END
  FROM ${CLOCK} WHERE key_hash = $1::bytea`;

async function exchangeCounts(
  sql: SQL,
  instance: string,
  window: number,
  own: readonly CallerCount[],
): Promise<CountsOfOthers> {
  const told = [{ caller: ITSELF, used: 0 }, ...own];
  await sql.unsafe(TELL, [
    window,
    instance,
    sql.array(
      told.map(({ caller }) => caller),
      "TEXT",
    ),
    sql.array(
      told.map(({ used }) => used),
      "BIGINT",
    ),
  ]);
  const [rows, [counted]] = await Promise.all([
    sql.unsafe(HEAR, [window, instance]).execute(),
    sql.unsafe(COUNT_INSTANCES, [window]).execute(),
  ]);
  return {
    used: new Map(rows.map(({ caller, used }: { caller: string; used: bigint }) => [caller, Number(used)])),
    instances: Number(counted.instances),
  };
}

/** In the place of a caller: the instance is there. */
const ITSELF = "";

/** Each instance writes rows of its own, so none waits for another. */
const TELL = `
  INSERT INTO rate_counts AS known (window_number, instance, caller, used)
  SELECT $1::int8, $2::text, caller, used FROM unnest($3::text[], $4::int8[]) AS told (caller, used)
  ON CONFLICT (window_number, caller, instance) DO UPDATE SET used = excluded.used
    WHERE known.used <> excluded.used`;
const HEAR = `
  SELECT caller, sum(used)::int8 AS used FROM rate_counts
  WHERE window_number = $1::int8 AND instance <> $2::text AND caller <> '${ITSELF}' GROUP BY caller`;
/** At the beginning of a window the others may not have told anything yet, so those of the last one count too. */
const COUNT_INSTANCES = `
  SELECT count(DISTINCT instance) AS instances FROM rate_counts
  WHERE window_number = ANY(ARRAY[$1::int8 - 1, $1::int8]) AND caller = '${ITSELF}'`;

/** Where it has ended is asked outside too: a row that was renewed while it was waited for stays. */
const forgetRows = (table: string, key: string, hasEnded: string): string => `
  DELETE FROM ${table} USING ${CLOCK} WHERE ${hasEnded} AND ${key} = ANY(ARRAY(
    SELECT ${key} FROM ${table}, ${CLOCK} WHERE ${hasEnded} ORDER BY ends_at LIMIT $2::int8))`;
const FORGET = [
  forgetRows("used_tokens", "token_hash", "ends_at <= now_ms - $1::int8"),
  forgetRows("kept_values", "token_hash", "ends_at <= now_ms - $1::int8"),
  forgetRows("attempts", "key_hash", "ends_at <= now_ms - $1::int8 AND under_way_until <= now_ms - $1::int8"),
  `DELETE FROM rate_counts WHERE (window_number, caller, instance) IN (
    SELECT window_number, caller, instance FROM rate_counts, ${CLOCK}
    WHERE window_number < (now_ms - $1::int8) / ${MINUTE_MS} - 1 ORDER BY window_number LIMIT $2::int8)`,
];
