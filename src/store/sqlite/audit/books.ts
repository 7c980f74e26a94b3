import type { Database } from "bun:sqlite";
import { deposit, type Legs } from "../../../core/postings.ts";
import { isSettled, STATES } from "../../../core/warrant.ts";
import { expectSame, foldGroups } from "./rows.ts";

const ACCOUNTS = ["available", "held", "paid", "funding"] as const;
const NOTHING: Legs = { available: 0n, held: 0n, paid: 0n, funding: 0n };
const UNSETTLED = STATES.filter((state) => !isSettled(state));
/** For `IN (…)`; the values are the code's own. */
const quoted = (values: readonly string[]) => values.map((value) => `'${value}'`).join(", ");

/** Money: balances, postings, holds and deposits agree; nothing is posted for what does not exist; counts are right. */
export function* auditBooks(database: Database): Generator<string> {
  yield* auditBalances(database);
  yield* auditDeposits(database);
  yield* auditOrphans(database);
  yield* auditCounts(database);
}

type BookRow = Legs & {
  readonly organisation_id: string;
  readonly mode: string;
  readonly asset: string;
  readonly kind: "balance" | "hold" | "posting";
};

/**
 * A balance is the sum of its postings, and `held` that of the warrants that are not settled. The sums are made here, in
 * bigint: SQLite's own overflow, or turn into doubles.
 */
function auditBalances(database: Database): Generator<string> {
  const rows = database
    .query<BookRow, []>(
      `SELECT organisation_id, mode, asset, 'posting' AS kind, available, held, paid, funding FROM postings
       UNION ALL
       SELECT organisation_id, mode, asset, 'balance', available, held, paid, funding FROM balances
       UNION ALL
       SELECT organisation_id, mode, asset, 'hold', 0, amount, 0, 0 FROM warrants WHERE state IN (${quoted(UNSETTLED)})
       ORDER BY 1, 2, 3`,
    )
    .iterate();
  const named = (row: BookRow) => `the balance of ${row.organisation_id}, ${row.mode}, ${row.asset}`;
  return foldGroups(
    rows,
    named,
    (row) => ({
      name: named(row),
      balance: null as Legs | null,
      posted: { ...NOTHING },
      promised: 0n,
    }),
    (sum, row) => {
      if (row.kind === "balance") sum.balance = row;
      else if (row.kind === "hold") sum.promised += row.held;
      else for (const account of ACCOUNTS) sum.posted[account] += row[account];
    },
    function* ({ name, balance, posted, promised }) {
      if (!balance) {
        yield `${name}: is not there, though there are postings or warrants`;
      } else {
        for (const account of ACCOUNTS) {
          yield* expectSame(
            `${name}: ${account} against the sum of its postings`,
            balance[account],
            posted[account],
          );
        }
      }
      yield* expectSame(
        `${name}: held against the sum of the unsettled warrants`,
        balance?.held ?? 0n,
        promised,
      );
    },
  );
}

type DepositRow = Legs & {
  readonly deposit_id: string;
  readonly kind: "deposit" | "posting";
  readonly world: string;
  readonly amount: bigint;
};

/** Every deposit has one posting, which brings its amount. */
function auditDeposits(database: Database): Generator<string> {
  const rows = database
    .query<DepositRow, []>(
      `SELECT id AS deposit_id, 'deposit' AS kind, organisation_id || ', ' || mode || ', ' || asset AS world, amount,
         0 AS available, 0 AS held, 0 AS paid, 0 AS funding FROM deposits
       UNION ALL
       SELECT deposit_id, 'posting', organisation_id || ', ' || mode || ', ' || asset, 0, available, held, paid, funding
       FROM postings WHERE deposit_id IS NOT NULL
       ORDER BY 1, 2`,
    )
    .iterate();
  return foldGroups(
    rows,
    (row) => row.deposit_id,
    (row) => ({ id: row.deposit_id, deposit: null as DepositRow | null, postings: [] as DepositRow[] }),
    (sum, row) => {
      if (row.kind === "deposit") sum.deposit = row;
      // Of a thousand postings two are enough to say that there is more than one.
      else if (sum.postings.length < 2) sum.postings.push(row);
    },
    function* ({ id, deposit: kept, postings }) {
      const [posting] = postings;
      if (!kept) yield `deposit ${id}: has a posting, and is not there`;
      else if (!posting) yield `deposit ${id}: has no posting`;
      else {
        yield* expectSame(
          `deposit ${id}: its posting's organisation, mode, asset`,
          posting.world,
          kept.world,
        );
        const legs = deposit(kept.amount);
        for (const account of ACCOUNTS) {
          yield* expectSame(`deposit ${id}: its posting's ${account}`, posting[account], legs[account]);
        }
      }
      if (postings.length > 1) yield `deposit ${id}: has more than one posting`;
    },
  );
}

/** Rows without a foreign key: the hot path saves the look-up, and a trigger or the code stands in for it. */
function* auditOrphans(database: Database): Generator<string> {
  for (const table of ["postings", "trace"]) {
    const orphans = database.query<{ warrant_id: string }, []>(
      `SELECT DISTINCT warrant_id FROM ${table} WHERE warrant_id IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM warrants WHERE warrants.id = ${table}.warrant_id)`,
    );
    for (const { warrant_id: id } of orphans.iterate()) {
      yield `warrant ${id}: has rows in ${table}, and is not there`;
    }
  }
}

type CountRow = {
  readonly organisation_id: string;
  readonly mode: string;
  readonly agent_id: string;
  readonly state: string;
  readonly kept: bigint;
  readonly found: bigint;
};

/** The counts of warrants per state and agent are those of the warrants. */
function* auditCounts(database: Database): Generator<string> {
  const rows = database.query<CountRow, []>(
    `SELECT organisation_id, mode, agent_id, state, sum(kept) AS kept, sum(found) AS found FROM (
       SELECT organisation_id, mode, agent_id, state, count AS kept, 0 AS found FROM warrant_counts
       UNION ALL
       SELECT organisation_id, mode, coalesce(agent_id, ''), state, 0, 1 FROM warrants
     ) GROUP BY 1, 2, 3, 4 HAVING sum(kept) <> sum(found)`,
  );
  for (const row of rows.iterate()) {
    const whose = `${row.organisation_id}, ${row.mode}, ${row.agent_id || "no agent"}`;
    yield `warrant counts of ${whose}: ${row.kept} are counted as ${row.state}, and there are ${row.found}`;
  }
}
