import type { Mode } from "../../../core/roles.ts";
import type { Scope } from "../../scope.ts";
import type { Connection, SqlDatabase } from "../database.ts";
import { lazily } from "../lazily.ts";
import type { SqlReader } from "./sql-reader.ts";
import { startOf } from "./starts.ts";

/**
 * What happened, for pictures: read on from a position, so that each row is read once, and summed by the database. It adds in
 * floating point: the sum of a day may be larger than any amount, and a picture needs no last digit.
 */
const total = (amount: string) => `coalesce(sum(CAST(${amount} AS DOUBLE PRECISION)), 0.0)`;

const DAY_MS = 86_400_000;

const MOVEMENTS = `
  SELECT recorded_at / ${DAY_MS} AS day,
    ${total("CASE WHEN kind = 'hold' THEN held END")} AS held, ${total("paid")} AS paid,
    ${total("CASE WHEN kind = 'settlement' THEN available END")} AS returned, count(*) AS count, max(position) AS last
  FROM (SELECT * FROM postings WHERE account = ?1 AND position > ?2 ORDER BY position LIMIT ?3) AS step
  GROUP BY day ORDER BY day`;

const FAILURES = `
  SELECT s.organisation_id AS organisation, s.mode AS mode, c.evaluated_at / ${DAY_MS} AS day, c.reason_codes AS codes,
    count(*) AS count, max(c.position) AS last
  FROM (SELECT position, warrant, evaluated_at, reason_codes FROM checks WHERE position > ?1 ORDER BY position LIMIT ?2) c
  JOIN warrants w ON w.position = c.warrant JOIN scopes s ON s.position = w.scope
  GROUP BY s.position, day, c.reason_codes ORDER BY s.position, day, c.reason_codes`;

type MovementRow = Record<"held" | "paid" | "returned", number> & Record<"day" | "count" | "last", bigint>;

type FailureRow = Record<"day" | "count" | "last", bigint> & {
  readonly organisation: string;
  readonly mode: Mode;
  readonly codes: string;
};

export function createHistoryReader({ raw }: Connection): SqlReader["history"] {
  const accounts = lazily(() => {
    const statement = raw.prepare<{ position: bigint; asset: string }, [string, string]>(
      "SELECT a.position AS position, a.asset AS asset FROM scopes s JOIN accounts a ON a.scope = s.position WHERE s.organisation_id = ? AND s.mode = ? ORDER BY a.asset",
    );
    return ({ organisationId, mode }: Scope) => statement.all(organisationId, mode);
  });
  const movements = lazily(() => {
    const statement = raw.prepare<MovementRow, [number, number, number]>(MOVEMENTS);
    return (account: number, after: number, limit: number) => statement.all(account, after, limit);
  });
  const failures = lazily(() => {
    const statement = raw.prepare<FailureRow, [number, number]>(FAILURES);
    return (after: number, limit: number) => statement.all(after, limit);
  });
  return {
    postingsSince: lazily(() => starts(raw, "postings", "recorded_at")),
    checksSince: lazily(() => starts(raw, "checks", "evaluated_at")),
    accounts: (scope) => accounts(scope).map(({ position, asset }) => ({ account: Number(position), asset })),
    movements: (account, after, limit) =>
      movements(account, after, limit).map(({ day, count, last, ...sums }) => ({
        ...sums,
        ...{ day: Number(day), count: Number(count), last: Number(last) },
      })),
    failures: (after, limit) =>
      failures(after, limit).map(({ organisation, mode, codes, day, count, last }) => ({
        ...{ organisationId: organisation, mode, day: Number(day), count: Number(count), last: Number(last) },
        codes: JSON.parse(codes) as readonly string[],
      })),
  };
}

/** Rows of several organisations are in the order of their times but for what the clocks of several instances differ. */
function starts(raw: SqlDatabase, table: "postings" | "checks", time: string): (since: number) => number {
  const newest = raw.prepare<{ position: bigint | null }, []>(
    `SELECT max(position) AS position FROM ${table}`,
  );
  const next = raw.prepare<{ time: bigint }, [number]>(
    `SELECT ${time} AS time FROM ${table} WHERE position > ? ORDER BY position LIMIT 1`,
  );
  return (since) => startOf(since, Number(newest.get()?.position ?? 0n), (after) => next.get(after)?.time);
}
