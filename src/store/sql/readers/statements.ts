import { type Legs, NO_LEGS, type PostingKind } from "../../../core/postings.ts";
import type { Connection } from "../database.ts";
import { lazily } from "../lazily.ts";
import type { SqlReader } from "./sql-reader.ts";
import { startOf } from "./starts.ts";

/** The postings of an account, step by step, in the order of positions. */

const STEP = "account = ?1 AND position > ?2 AND position <= ?3 ORDER BY position LIMIT ?4";

const LEGS = Object.keys(NO_LEGS);

/** Sums are differences of balances, so they fit. */
const SUMS = `
  SELECT ${LEGS.map((leg) => `CAST(coalesce(sum(${leg}), 0) AS BIGINT) AS ${leg}`).join(", ")}, max(position) AS last
  FROM (SELECT * FROM postings WHERE ${STEP}) AS step`;

const PAGE = `
  SELECT step.position, kind, recorded_at, available, held, paid, funding, step.payable, step.submitted,
    coalesce(warrants.id, deposits.id, corrections.id, payouts.id) AS cause, coalesce(warrants.payee, payees.payee) AS payee
  FROM (SELECT * FROM postings WHERE ${STEP}) AS step
    LEFT JOIN warrants ON kind IN ('hold', 'settlement') AND warrants.position = cause
    LEFT JOIN deposits ON kind = 'deposit' AND deposits.position = cause
    LEFT JOIN corrections ON kind = 'correction' AND corrections.position = cause
    LEFT JOIN payouts ON kind IN ('payout_submitted', 'payout_paid', 'payout_failed') AND payouts.position = cause
    LEFT JOIN payees ON payees.position = payouts.payee
  ORDER BY step.position`;

const NEWEST = "SELECT max(position) AS position FROM postings WHERE account = ?1";
const NEXT =
  "SELECT recorded_at AS time FROM postings WHERE account = ?1 AND position > ?2 ORDER BY position LIMIT 1";

type Step = [account: number, after: number, until: number, limit: number];
type Row = Legs & {
  readonly position: bigint;
  readonly kind: PostingKind;
  readonly recorded_at: bigint;
  readonly cause: string;
  readonly payee: string | null;
};

export function createStatementsReader({ raw }: Connection): SqlReader["statements"] {
  const sums = lazily(() => {
    const statement = raw.prepare<Legs & { readonly last: bigint | null }, Step>(SUMS);
    return (...step: Step) => statement.get(...step);
  });
  const page = lazily(() => {
    const statement = raw.prepare<Row, Step>(PAGE);
    return (...step: Step) => statement.all(...step);
  });
  const since = lazily(() => {
    const newest = raw.prepare<{ readonly position: bigint | null }, [number]>(NEWEST);
    const next = raw.prepare<{ readonly time: bigint }, [number, number]>(NEXT);
    return (account: number, time: number) =>
      startOf(time, Number(newest.get(account)?.position ?? 0n), (after) => next.get(account, after)?.time);
  });
  return {
    since,
    sums(...step) {
      const found = sums(...step);
      if (!found) throw new Error("a sum has a row");
      const { last, ...legs } = found;
      return { legs, last: last === null ? null : Number(last) };
    },
    postings: (...step) =>
      page(...step).map(({ position, kind, recorded_at: recordedAt, cause, payee, ...legs }) => ({
        ...{ position: Number(position), kind, recordedAt: Number(recordedAt), causeId: cause, payee, legs },
      })),
  };
}
