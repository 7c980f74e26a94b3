import type { Database } from "bun:sqlite";
import { deposit, type Legs } from "../../../core/postings.ts";
import { isSettled, STATES } from "../../../core/warrant.ts";
import type { PostingKind } from "../../rows.ts";
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
  yield* auditKindsAndRails(database);
  yield* auditOrphans(database);
  yield* auditCounts(database);
}

type BookRow = Legs & {
  readonly account: bigint;
  readonly posted: bigint;
  readonly kind: "balance" | "hold" | "posting";
};

/**
 * A balance is the sum of its postings, and `held` that of the warrants that are not settled. The sums are made here, in
 * bigint: SQLite's own overflow, or turn into doubles.
 */
function auditBalances(database: Database): Generator<string> {
  const rows = database
    .query<BookRow, []>(
      `SELECT account, 'posting' AS kind, available, held, paid, funding, position AS posted FROM postings
       UNION ALL
       SELECT position, 'balance', available, held, paid, funding, posted FROM accounts
       UNION ALL
       SELECT account, 'hold', 0, amount, 0, 0, 0 FROM warrants WHERE state IN (${quoted(UNSETTLED)})
       ORDER BY 1`,
    )
    .iterate();
  return foldGroups(
    rows,
    ({ account }) => String(account),
    ({ account }) => ({
      name: nameOfAccount(database, account),
      balance: null as BookRow | null,
      posted: { ...NOTHING },
      newest: 0n,
      promised: 0n,
    }),
    (sum, row) => {
      if (row.kind === "balance") sum.balance = row;
      else if (row.kind === "hold") sum.promised += row.held;
      else {
        for (const account of ACCOUNTS) sum.posted[account] += row[account];
        if (row.posted > sum.newest) sum.newest = row.posted;
      }
    },
    function* ({ name, balance, posted, newest, promised }) {
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
        yield* expectSame(`${name}: posted against its newest posting`, balance.posted, newest);
      }
      yield* expectSame(
        `${name}: held against the sum of the unsettled warrants`,
        balance?.held ?? 0n,
        promised,
      );
    },
  );
}

function nameOfAccount(database: Database, account: bigint): string {
  const row = database
    .query<{ organisation_id: string | null; mode: string | null; asset: string }, [bigint]>(
      `SELECT organisation_id, mode, asset FROM accounts LEFT JOIN scopes ON scopes.position = scope
       WHERE accounts.position = ?`,
    )
    .get(account);
  return row ? `the balance of ${row.organisation_id}, ${row.mode}, ${row.asset}` : `account ${account}`;
}

type DepositRow = Legs & {
  readonly deposit: bigint;
  readonly id: string | null;
  readonly kind: "deposit" | "posting";
  readonly account: bigint;
  readonly amount: bigint;
};

/** Every deposit has one posting, which brings its amount. */
function auditDeposits(database: Database): Generator<string> {
  const rows = database
    .query<DepositRow, []>(
      `SELECT position AS deposit, id, 'deposit' AS kind, account, amount,
         0 AS available, 0 AS held, 0 AS paid, 0 AS funding FROM deposits
       UNION ALL
       SELECT cause, NULL, 'posting', account, 0, available, held, paid, funding
       FROM postings WHERE postings.kind = 'deposit'
       ORDER BY 1, 3`,
    )
    .iterate();
  return foldGroups(
    rows,
    (row) => String(row.deposit),
    ({ deposit, id }) => ({
      name: id ?? String(deposit),
      deposit: null as DepositRow | null,
      postings: [] as DepositRow[],
    }),
    (sum, row) => {
      if (row.kind === "deposit") sum.deposit = row;
      // Of a thousand postings two are enough to say that there is more than one.
      else if (sum.postings.length < 2) sum.postings.push(row);
    },
    function* ({ name, deposit: kept, postings }) {
      const [posting] = postings;
      if (!kept) yield `deposit ${name}: has a posting, and is not there`;
      else if (!posting) yield `deposit ${name}: has no posting`;
      else {
        yield* expectSame(`deposit ${name}: its posting's account`, posting.account, kept.account);
        const legs = deposit(kept.amount);
        for (const account of ACCOUNTS) {
          yield* expectSame(`deposit ${name}: its posting's ${account}`, posting[account], legs[account]);
        }
      }
      if (postings.length > 1) yield `deposit ${name}: has more than one posting`;
    },
  );
}

/** The triggers that say which kinds and rails there are see a posting only when it is made. */
function* auditKindsAndRails(database: Database): Generator<string> {
  const kinds = database.query<{ position: bigint; kind: string }, []>(
    `SELECT position, kind FROM postings WHERE kind NOT IN (${quoted(Object.keys(POSTING_KINDS))})`,
  );
  for (const { position, kind } of kinds.iterate()) yield `posting ${position}: its kind is ${kind}`;
  const rails = database.query<{ position: bigint; rail: string; mode: string | null }, []>(
    `SELECT postings.position, rail, mode FROM postings LEFT JOIN accounts ON accounts.position = account
       LEFT JOIN scopes ON scopes.position = scope
     WHERE rail IS NOT mode || '_book'`,
  );
  for (const { position, rail, mode } of rails.iterate())
    yield `posting ${position}: its rail is ${rail}, and its account's mode is ${mode}`;
}

const POSTING_KINDS = { deposit: true, hold: true, settlement: true } as const satisfies Record<
  PostingKind,
  true
>;

const IN_A_SCOPE = ["accounts", "idempotency_keys", "warrant_counts"];

const WARRANTS_IN = [
  ["postings", "SELECT DISTINCT cause AS warrant FROM postings WHERE kind <> 'deposit'"],
  ["trace", "SELECT DISTINCT warrant FROM trace"],
  ["checks", "SELECT DISTINCT warrant FROM checks"],
] as const;

/** Rows without a foreign key: the hot path saves the look-up, and a trigger or the code stands in for it. */
function* auditOrphans(database: Database): Generator<string> {
  for (const table of IN_A_SCOPE) {
    const strays = database.query<{ scope: bigint }, []>(
      `SELECT DISTINCT scope FROM ${table} WHERE scope NOT IN (SELECT position FROM scopes)`,
    );
    for (const { scope } of strays.iterate())
      yield `the scope at position ${scope}: has rows in ${table}, and is not there`;
  }
  for (const [table, positions] of WARRANTS_IN) {
    const orphans = database.query<{ warrant: bigint }, []>(
      `SELECT warrant FROM (${positions}) AS named
       WHERE NOT EXISTS (SELECT 1 FROM warrants WHERE warrants.position = named.warrant)`,
    );
    for (const { warrant } of orphans.iterate()) {
      yield `the warrant at position ${warrant}: has rows in ${table}, and is not there`;
    }
  }
}

type CountRow = {
  readonly organisation_id: string | null;
  readonly mode: string | null;
  readonly agent: bigint;
  readonly agent_id: string | null;
  readonly state: string;
  readonly kept: bigint;
  readonly found: bigint;
};

/** The counts of warrants by state and agent are those of the warrants. */
function* auditCounts(database: Database): Generator<string> {
  const rows = database.query<CountRow, []>(
    `SELECT scopes.organisation_id, scopes.mode, agent, agents.id AS agent_id, state, kept, found FROM (
       SELECT scope, agent, state, sum(kept) AS kept, sum(found) AS found FROM (
         SELECT scope, agent, state, count AS kept, 0 AS found FROM warrant_counts
         UNION ALL
         SELECT scope, coalesce(agent, 0), state, 0, 1 FROM warrants
       ) GROUP BY 1, 2, 3 HAVING sum(kept) <> sum(found)
     ) LEFT JOIN scopes ON scopes.position = scope LEFT JOIN agents ON agents.position = agent`,
  );
  for (const row of rows.iterate()) {
    const whose = `${row.organisation_id}, ${row.mode}, ${row.agent_id ?? (row.agent === 0n ? "no agent" : `the agent at position ${row.agent}`)}`;
    yield `warrant counts of ${whose}: ${row.kept} are counted as ${row.state}, and there are ${row.found}`;
  }
}
