import type { Database } from "bun:sqlite";
import { type Correction, differenceOf } from "../../../core/correction.ts";
import {
  correct,
  endPayout,
  failPayout,
  type Legs,
  type PostingKind,
  submitPayout,
} from "../../../core/postings.ts";
import { CHAIN_RAIL_OF_MODE, RAIL_OF_MODE } from "../../sql/tables/ledger.ts";
import type { StoredPosting } from "./belongings.ts";
import { LEGS } from "./postings.ts";
import { expectSame, grouped, inSnapshot } from "./rows.ts";
import { BY_POSITION, type Did, inSlice, type Slice, slicesOf } from "./slices.ts";

const ROWS_AT_ONCE = 5_000;

/** Checks that every payout and every recorded correction has its postings, and no others. */
export function* auditPayouts(database: Database, did: Did): Generator<string> {
  for (const slice of slicesOf(database, "payouts", BY_POSITION, ROWS_AT_ONCE, did))
    yield* inSnapshot(database, () => [...auditPayoutSlice(database, slice)]);
  for (const slice of slicesOf(database, "corrections", BY_POSITION, ROWS_AT_ONCE, did))
    yield* inSnapshot(database, () => [...auditCorrectionSlice(database, slice)]);
}

const postingsOf = (database: Database, kinds: readonly PostingKind[], { after, last }: Slice<bigint>) =>
  grouped(
    database
      .query<StoredPosting, [bigint, bigint]>(
        `SELECT cause, account, kind, rail, available, held, paid, funding, payable, submitted, recorded_at FROM postings
         WHERE ${inSlice("cause")} AND kind IN (${kinds.map((kind) => `'${kind}'`).join(", ")}) ORDER BY position`,
      )
      .iterate(after, last),
    ({ cause }) => cause,
  );

type Payout = {
  readonly position: bigint;
  readonly id: string;
  readonly account: bigint;
  readonly payee_account: bigint | null;
  readonly amount: bigint;
  readonly rail: string;
  readonly mode: keyof typeof RAIL_OF_MODE | null;
  readonly status: string;
  readonly version: bigint;
  /** Null until it was paid, and kept where the payment came back. */
  readonly reference: string | null;
  readonly created_at: bigint;
  readonly ended_at: bigint | null;
};

/** The rail that it says, where that is one of its mode. */
const railOf = ({ mode, rail }: Payout): string | null =>
  mode !== null && rail === CHAIN_RAIL_OF_MODE[mode] ? rail : mode && RAIL_OF_MODE[mode];

type Expected = readonly (readonly [kind: PostingKind, legs: Legs])[];

/** The postings of a payout that was submitted, and then paid, or failed, or paid and failed. */
function expectedOf({ amount, status, reference }: Payout): Expected {
  const wasPaid = reference !== null;
  return [
    ["payout_submitted", submitPayout(amount)],
    ...(wasPaid ? ([["payout_paid", endPayout(amount)]] as const) : []),
    ...(status === "failed" ? ([["payout_failed", failPayout(amount, wasPaid)]] as const) : []),
  ];
}

const PAYOUT_KINDS = ["payout_submitted", "payout_paid", "payout_failed"] as const;

function* auditPayoutSlice(database: Database, slice: Slice<bigint>): Generator<string> {
  const postings = postingsOf(database, PAYOUT_KINDS, slice);
  const payouts = database.query<Payout, [bigint, bigint]>(
    `SELECT payouts.position, payouts.id, payouts.account, payees.account AS payee_account, amount, rail, mode, status, version,
       reference, created_at, ended_at
     FROM payouts LEFT JOIN payees ON payees.position = payouts.payee
       LEFT JOIN accounts ON accounts.position = payouts.account LEFT JOIN scopes ON scopes.position = accounts.scope
     WHERE ${inSlice("payouts.position")} ORDER BY payouts.position`,
  );
  for (const payout of payouts.iterate(slice.after, slice.last)) {
    const what = `payout ${payout.id}`;
    const expected = expectedOf(payout);
    yield* expectSame(`${what}: its payee's account`, payout.payee_account, payout.account);
    yield* expectSame(`${what}: rail`, payout.rail, railOf(payout));
    yield* expectSame(`${what}: version`, payout.version, BigInt(expected.length));
    const own = postings.get(payout.position) ?? [];
    yield* auditOwn(what, payout.account, expected, own, payout.rail);
    yield* auditTimes(what, payout, own);
    postings.delete(payout.position);
  }
  for (const position of postings.keys()) yield `payout ${position}: has a posting, but does not exist`;
}

/** A payout is recorded together with its first posting, and its end with the last. */
function* auditTimes(
  what: string,
  { created_at: created, ended_at: ended }: Payout,
  postings: readonly StoredPosting[],
): Generator<string> {
  const [first, last] = [postings[0], postings.at(-1)];
  if (first) yield* expectSame(`${what}: created_at`, created, first.recorded_at);
  if (last && ended !== null) yield* expectSame(`${what}: ended_at`, ended, last.recorded_at);
}

type StoredCorrection = {
  readonly position: bigint;
  readonly id: string;
  readonly account: bigint;
  readonly deposit: bigint;
  readonly deposit_account: bigint | null;
  /** What its deposit counted for before. */
  readonly counted: bigint | null;
  readonly amountBefore: bigint;
  readonly amountAfter: bigint;
  readonly status: Correction["status"];
};

function* auditCorrectionSlice(database: Database, slice: Slice<bigint>): Generator<string> {
  const postings = postingsOf(database, ["correction"], slice);
  // What waits, or was withdrawn, counted from what was recorded when it was proposed: that may have changed since.
  const corrections = database.query<StoredCorrection, [bigint, bigint]>(
    `SELECT one.position, one.id, one.account, deposit, deposits.account AS deposit_account, amount_before AS amountBefore,
       amount_after AS amountAfter, status,
       coalesce(
         (SELECT amount_after FROM corrections AS earlier WHERE earlier.deposit = one.deposit AND status = 'recorded'
            AND earlier.position < one.position ORDER BY earlier.position DESC LIMIT 1),
         deposits.amount) AS counted
     FROM corrections AS one LEFT JOIN deposits ON deposits.position = deposit
     WHERE ${inSlice("one.position")} ORDER BY one.position`,
  );
  for (const correction of corrections.iterate(slice.after, slice.last)) {
    const what = `correction ${correction.id}`;
    const expected: Expected =
      correction.status === "recorded" ? [["correction", correct(differenceOf(correction))]] : [];
    yield* expectSame(`${what}: its deposit's account`, correction.deposit_account, correction.account);
    yield* expectSame(`${what}: amount_before`, correction.amountBefore, correction.counted);
    yield* auditOwn(what, correction.account, expected, postings.get(correction.position) ?? []);
    postings.delete(correction.position);
  }
  for (const position of postings.keys()) yield `correction ${position}: has a posting, but does not exist`;
}

function* auditOwn(
  what: string,
  account: bigint,
  expected: Expected,
  found: readonly StoredPosting[],
  rail: string | null = null,
): Generator<string> {
  yield* expectSame(`${what}: the number of its postings`, found.length, expected.length);
  for (const [index, [kind, legs]] of expected.entries()) {
    const posting = found[index];
    if (!posting) continue;
    const which = `${what}: its posting ${kind}`;
    yield* expectSame(`${which}: kind`, posting.kind, kind);
    yield* expectSame(`${which}: account`, posting.account, account);
    if (rail !== null) yield* expectSame(`${which}: rail`, posting.rail, rail);
    for (const leg of LEGS) yield* expectSame(`${which}: ${leg}`, posting[leg], legs[leg]);
  }
}
