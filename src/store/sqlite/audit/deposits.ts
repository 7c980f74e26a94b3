import type { Database } from "bun:sqlite";
import { deposit, type Legs } from "../../../core/postings.ts";
import { LEGS } from "./postings.ts";
import { expectSame, grouped, inSnapshot } from "./rows.ts";
import { BY_POSITION, type Did, inSlice, type Slice, slicesOf } from "./slices.ts";

const DEPOSITS_AT_ONCE = 10_000;

type Deposit = {
  readonly position: bigint;
  readonly id: string;
  readonly account: bigint;
  readonly amount: bigint;
};
type Posting = Legs & { readonly cause: bigint; readonly account: bigint };

/** Checks that every deposit has one posting, with its amount. */
export function* auditDeposits(database: Database, did: Did): Generator<string> {
  for (const slice of slicesOf(database, "deposits", BY_POSITION, DEPOSITS_AT_ONCE, did))
    yield* inSnapshot(database, () => [...auditSlice(database, slice)]);
}

function* auditSlice(database: Database, { after, last }: Slice<bigint>): Generator<string> {
  const postings = grouped(
    database
      .query<Posting, [bigint, bigint]>(
        `SELECT * FROM postings WHERE ${inSlice("cause")} AND kind = 'deposit' ORDER BY cause`,
      )
      .iterate(after, last),
    ({ cause }) => cause,
  );
  const deposits = database.query<Deposit, [bigint, bigint]>(
    `SELECT position, id, account, amount FROM deposits WHERE ${inSlice("position")} ORDER BY position`,
  );
  for (const { position, id, account, amount } of deposits.iterate(after, last)) {
    const [posting, ...more] = postings.get(position) ?? [];
    postings.delete(position);
    if (!posting) {
      yield `deposit ${id}: has no posting`;
      continue;
    }
    yield* expectSame(`deposit ${id}: its posting's account`, posting.account, account);
    const legs = deposit(amount);
    for (const leg of LEGS) yield* expectSame(`deposit ${id}: its posting's ${leg}`, posting[leg], legs[leg]);
    if (more.length > 0) yield `deposit ${id}: has more than one posting`;
  }
  for (const position of postings.keys()) yield `deposit ${position}: has a posting, but does not exist`;
}
