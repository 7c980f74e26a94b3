import type { Database } from "bun:sqlite";
import {
  type Legs,
  NOTHING_PAID,
  type PayeeBalance,
  POSTING_KINDS,
  payeeLegsOf,
} from "../../../core/postings.ts";
import { totalAfter } from "../../../core/session-limits.ts";
import { createNames, type Names } from "../../sql/names.ts";
import { CHAIN_RAIL_OF_MODE, RAIL_OF_MODE } from "../../sql/tables/ledger.ts";
import { OTHER_CAUSES } from "./belongings.ts";
import { expectSame, inSnapshot } from "./rows.ts";
import { BY_POSITION, type Did } from "./slices.ts";

export const LEGS = ["available", "held", "paid", "funding", "payable", "submitted"] as const;

const POSTINGS_AT_ONCE = 5_000;

type Posting = Legs & {
  readonly position: bigint;
  readonly account: bigint;
  readonly kind: string;
  readonly rail: string;
  /** The spend session of its warrant. */
  readonly session: bigint | null;
  /** The payee's account that it moves; null also where there should be one and is not. */
  readonly payee: bigint | null;
};

type Sums = {
  readonly accounts: Map<bigint, Record<keyof Legs, bigint> & { newest: bigint }>;
  readonly payees: Map<bigint, PayeeBalance>;
  readonly sessions: Map<bigint, { spent: bigint; held: bigint; warrants: bigint }>;
};

/**
 * Checks that balances, the accounts of payees and spend sessions are the sums of their postings, that what is paid of an account
 * is owed, under way or paid out to its payees, and that each posting has a known
 * kind and the rail of its mode. Postings are only ever added, so the sums are made slice by slice. Balances
 * and sessions are read in one snapshot with the last slice. The sums are bigint: in SQLite they would
 * overflow or become doubles.
 */
export function* auditPostings(database: Database, did: Did, atOnce = POSTINGS_AT_ONCE): Generator<string> {
  const names = createNames(database);
  const sums: Sums = { accounts: new Map(), payees: new Map(), sessions: new Map() };
  const next = database.query<Posting, [bigint, number]>(
    `SELECT postings.position, postings.account, kind, postings.rail, available, held, paid, funding,
       postings.payable, postings.submitted, session, coalesce(payouts.payee, payees.position) AS payee
     FROM postings
       LEFT JOIN warrants ON kind NOT IN (${OTHER_CAUSES}) AND warrants.position = cause
       LEFT JOIN payees ON paid <> 0 AND payees.account = postings.account AND payees.payee = warrants.payee
       LEFT JOIN payouts ON kind IN ('payout_submitted', 'payout_paid', 'payout_failed') AND payouts.position = cause
     WHERE postings.position > ? ORDER BY postings.position LIMIT ?`,
  );
  for (let after = BY_POSITION.below, isLast = false; !isLast; ) {
    // Nothing is worked out while the snapshot is held: meanwhile the write-ahead log could not be cut.
    const slice = inSnapshot(database, () => {
      const postings = next.all(after, atOnce);
      return postings.length < atOnce
        ? {
            postings,
            compared: {
              accounts: readAccounts(database),
              payees: readPayees(database),
              sessions: readSessions(database),
            },
          }
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
    yield* comparePayees(names, slice.compared.payees, sums.payees);
    yield* compareOwed(slice.compared);
    yield* compareSessions(slice.compared.sessions, sums.sessions);
  }
}

/** Checks a posting's kind, rail and payee. The triggers check them only at the insert. */
function* auditPosting(names: Names, posting: Posting): Generator<string> {
  const { position, account, kind, rail, payee } = posting;
  if (!POSTING_KINDS.some((known) => known === kind)) yield `posting ${position}: its kind is ${kind}`;
  const scope = names.find("account", account)?.scope;
  const mode = scope === undefined ? null : (names.find("scope", scope)?.mode ?? null);
  const isOfPayout = kind.startsWith("payout_");
  if (mode === null || (rail !== RAIL_OF_MODE[mode] && !(isOfPayout && rail === CHAIN_RAIL_OF_MODE[mode])))
    yield `posting ${position}: its rail is ${rail}, and its account's mode is ${mode}`;
  if (payee === null && (posting.paid !== 0n || posting.payable !== 0n || posting.submitted !== 0n))
    yield `posting ${position}: its payee has no account`;
}

function addTo({ accounts, payees, sessions }: Sums, posting: Posting): void {
  let account = accounts.get(posting.account);
  if (account === undefined) {
    account = { available: 0n, held: 0n, paid: 0n, funding: 0n, payable: 0n, submitted: 0n, newest: 0n };
    accounts.set(posting.account, account);
  }
  for (const leg of LEGS) account[leg] += posting[leg];
  account.newest = posting.position;
  if (posting.payee !== null) {
    const before = payees.get(posting.payee) ?? NOTHING_PAID;
    const legs = payeeLegsOf(posting);
    payees.set(posting.payee, {
      payable: before.payable + legs.payable,
      submitted: before.submitted + legs.submitted,
      paidOut: before.paidOut + legs.paidOut,
    });
  }
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

type Payee = PayeeBalance & { readonly position: bigint; readonly account: bigint };

/** Of each payee its position, account, payable, submitted and paid out. A million of them are 40 MB so, and as rows ten times as much. */
type Payees = BigInt64Array;
const PAYEE_COLUMNS = 5;

/** What is no integer, which the check of the file says, is taken for one. */
function readPayees(database: Database): Payees {
  const count = database.query<{ count: bigint }, []>("SELECT count(*) AS count FROM payees").get()?.count;
  const payees = new BigInt64Array(Number(count) * PAYEE_COLUMNS);
  const rows = database.query<Payee, []>(
    `SELECT position, CAST(account AS INTEGER) AS account, CAST(payable AS INTEGER) AS payable,
       CAST(submitted AS INTEGER) AS submitted, CAST(paid_out AS INTEGER) AS paidOut FROM payees ORDER BY position`,
  );
  let at = 0;
  for (const { position, account, payable, submitted, paidOut } of rows.iterate()) {
    payees.set([position, account, payable, submitted, paidOut], at);
    at += PAYEE_COLUMNS;
  }
  return payees;
}

function* eachOf(payees: Payees): Generator<Payee> {
  for (let at = 0; at < payees.length; at += PAYEE_COLUMNS) {
    const [position = 0n, account = 0n, payable = 0n, submitted = 0n, paidOut = 0n] = payees.subarray(at);
    yield { position, account, payable, submitted, paidOut };
  }
}

const PARTS = ["payable", "submitted", "paidOut"] as const;

function* comparePayees(names: Names, payees: Payees, sums: Sums["payees"]): Generator<string> {
  for (const payee of eachOf(payees)) {
    const sum = sums.get(payee.position) ?? NOTHING_PAID;
    if (PARTS.every((part) => payee[part] === sum[part])) continue;
    const name = JSON.stringify(names.find("payee", payee.position)?.payee);
    const what = `payee ${payee.position} of account ${payee.account} (${name})`;
    for (const part of PARTS)
      yield* expectSame(`${what}: ${part} against its postings`, payee[part], sum[part]);
  }
}

/** Checks that what an account has paid is owed to its payees, under way or paid out, to the unit. */
function* compareOwed({
  accounts,
  payees,
}: {
  readonly accounts: readonly Account[];
  readonly payees: Payees;
}): Generator<string> {
  const sums = new Map<bigint, { -readonly [Part in keyof PayeeBalance]: bigint }>();
  for (const { account, ...payee } of eachOf(payees)) {
    const sum = sums.get(account) ?? { ...NOTHING_PAID };
    for (const part of PARTS) sum[part] += payee[part];
    sums.set(account, sum);
  }
  for (const { position, organisation_id, mode, asset, ...account } of accounts) {
    const sum = sums.get(position) ?? NOTHING_PAID;
    sums.delete(position);
    const legs = payeeLegsOf(account);
    const name = `the balance of ${organisation_id}, ${mode}, ${asset}`;
    for (const part of PARTS) yield* expectSame(`${name}: ${part} against its payees`, legs[part], sum[part]);
  }
  for (const account of sums.keys())
    yield `account ${account}: does not exist, though there are payees of it`;
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
