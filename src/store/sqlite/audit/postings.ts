import type { Database } from "bun:sqlite";
import type { Legs } from "../../../core/postings.ts";
import { totalAfter } from "../../../core/session-limits.ts";
import { POSTING_KINDS } from "../../rows.ts";
import { createNames, type Names } from "../names.ts";
import { RAIL_OF_MODE } from "../tables/ledger.ts";
import { expectSame, inSnapshot } from "./rows.ts";
import { BY_POSITION, type Did } from "./slices.ts";

export const LEGS = ["available", "held", "paid", "funding"] as const;

const POSTINGS_AT_ONCE = 5_000;

type Posting = Legs & {
  readonly position: bigint;
  readonly account: bigint;
  readonly kind: string;
  readonly rail: string;
  /** The spend session of its warrant. */
  readonly session: bigint | null;
};

type Sums = {
  readonly accounts: Map<bigint, Record<keyof Legs, bigint> & { newest: bigint }>;
  readonly sessions: Map<bigint, { spent: bigint; held: bigint; warrants: bigint }>;
};

/**
 * Checks that balances and spend sessions are the sums of their postings, and that each posting has a known
 * kind and the rail of its mode. Postings are only ever added, so the sums are made slice by slice. Balances
 * and sessions are read in one snapshot with the last slice. The sums are bigint: in SQLite they would
 * overflow or become doubles.
 */
export function* auditPostings(database: Database, did: Did, atOnce = POSTINGS_AT_ONCE): Generator<string> {
  const names = createNames(database);
  const sums: Sums = { accounts: new Map(), sessions: new Map() };
  const next = database.query<Posting, [bigint, number]>(
    `SELECT postings.position, postings.account, kind, rail, available, held, paid, funding, session
     FROM postings LEFT JOIN warrants ON kind <> 'deposit' AND warrants.position = cause
     WHERE postings.position > ? ORDER BY postings.position LIMIT ?`,
  );
  for (let after = BY_POSITION.below, isLast = false; !isLast; ) {
    // Nothing is worked out while the snapshot is held: meanwhile the write-ahead log could not be cut.
    const slice = inSnapshot(database, () => {
      const postings = next.all(after, atOnce);
      return postings.length < atOnce
        ? { postings, compared: { accounts: readAccounts(database), sessions: readSessions(database) } }
        : { postings, compared: null };
    });
    for (const posting of slice.postings) {
      yield* auditPosting(names, posting);
      addTo(sums, posting);
      after = posting.position;
    }
    did(slice.postings.length);
    isLast = slice.compared !== null;
    if (slice.compared === null) continue;
    yield* compareAccounts(slice.compared.accounts, sums.accounts);
    yield* compareSessions(slice.compared.sessions, sums.sessions);
  }
}

/** Checks a posting's kind and rail. The triggers check them only at the insert. */
function* auditPosting(names: Names, { position, account, kind, rail }: Posting): Generator<string> {
  if (!POSTING_KINDS.some((known) => known === kind)) yield `posting ${position}: its kind is ${kind}`;
  const scope = names.find("account", account)?.scope;
  const mode = scope === undefined ? null : (names.find("scope", scope)?.mode ?? null);
  if (mode === null || rail !== RAIL_OF_MODE[mode])
    yield `posting ${position}: its rail is ${rail}, and its account's mode is ${mode}`;
}

function addTo({ accounts, sessions }: Sums, posting: Posting): void {
  let account = accounts.get(posting.account);
  if (account === undefined) {
    account = { available: 0n, held: 0n, paid: 0n, funding: 0n, newest: 0n };
    accounts.set(posting.account, account);
  }
  for (const leg of LEGS) account[leg] += posting[leg];
  account.newest = posting.position;
  if (posting.session === null) return;
  let session = sessions.get(posting.session);
  if (session === undefined) {
    session = { spent: 0n, held: 0n, warrants: 0n };
    sessions.set(posting.session, session);
  }
  session.spent += posting.held + posting.paid;
  if (posting.kind !== "hold") return;
  session.warrants++;
  session.held = totalAfter(session.held, posting.held);
}

type Account = Legs & {
  readonly position: bigint;
  readonly posted: bigint;
  readonly organisation_id: string | null;
  readonly mode: string | null;
  readonly asset: string;
};

const readAccounts = (database: Database): readonly Account[] =>
  database
    .query<Account, []>(
      `SELECT accounts.*, organisation_id, mode FROM accounts LEFT JOIN scopes ON scopes.position = scope
       ORDER BY accounts.position`,
    )
    .all();

function* compareAccounts(accounts: readonly Account[], sums: Sums["accounts"]): Generator<string> {
  for (const account of accounts) {
    const name = `the balance of ${account.organisation_id}, ${account.mode}, ${account.asset}`;
    const sum = sums.get(account.position);
    sums.delete(account.position);
    for (const leg of LEGS)
      yield* expectSame(`${name}: ${leg} against the sum of its postings`, account[leg], sum?.[leg] ?? 0n);
    yield* expectSame(`${name}: posted against its newest posting`, account.posted, sum?.newest ?? 0n);
  }
  for (const account of sums.keys()) yield `account ${account}: is not there, though there are postings`;
}

type Session = {
  readonly position: bigint;
  readonly id: string;
  readonly amount_spent: bigint;
  readonly warrant_count: bigint;
  /** Null where the session has no windows. */
  readonly amount_held: bigint | null;
  /** The newest of its running totals. */
  readonly newest_total: bigint | null;
};

const readSessions = (database: Database): readonly Session[] =>
  database
    .query<Session, []>(
      `SELECT position, id, amount_spent, warrant_count,
         CASE WHEN hourly_max IS NOT NULL OR daily_max IS NOT NULL THEN amount_held END AS amount_held,
         (SELECT total FROM session_totals WHERE session = position ORDER BY held_at DESC LIMIT 1) AS newest_total
       FROM spend_sessions ORDER BY position`,
    )
    .all();

/**
 * Checks `amount_spent`, what is held or paid under a session, `warrant_count`, the warrants that were opened
 * under it, and what its windows are reckoned from.
 */
function* compareSessions(sessions: readonly Session[], sums: Sums["sessions"]): Generator<string> {
  for (const session of sessions) {
    const { spent, held, warrants } = sums.get(session.position) ?? { spent: 0n, held: 0n, warrants: 0n };
    const what = `session ${session.id}`;
    yield* expectSame(`${what}: amount_spent against its warrants`, session.amount_spent, spent);
    yield* expectSame(`${what}: warrant_count against its warrants`, session.warrant_count, warrants);
    if (session.amount_held === null) continue;
    yield* expectSame(`${what}: amount_held against its warrants`, session.amount_held, held);
    yield* expectSame(`${what}: its newest running total`, session.newest_total ?? 0n, held);
  }
}
