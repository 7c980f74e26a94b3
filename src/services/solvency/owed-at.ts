import { addOwed, NOTHING_OWED, type Owed, subtractOwed } from "../../core/solvency/owed.ts";
import type { Reader } from "../../store/reader.ts";
import type { AccountOwed } from "../../store/solvency-reader.ts";

/** What an account owes now, and what it owed at a posting. */
export type AccountThen = AccountOwed & {
  readonly owedThen: Owed;
  /** What of it has been submitted to payees since. */
  readonly submittedSince: bigint;
};

/** What all accounts owed at a posting, and by how much the payees' accounts have moved since, by their positions. */
export type OwedThenByAccount = {
  readonly accounts: ReadonlyMap<number, AccountThen>;
  readonly payeesSince: ReadonlyMap<number, Owed>;
};

/** How many rows are read at once: a few milliseconds. */
export const ROWS = 500;
/** Lets the other work of the process have its turn: called after a few milliseconds of work each time. */
export const pause = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * What each account owed at a posting: what it owes now, less what the postings since have moved. So it takes as long as there are
 * accounts, and postings since. All reads are from one snapshot.
 *
 * @param positionOf the position of the posting, by account
 */
export async function owedAt(
  { solvency }: Reader,
  positionOf: (account: AccountOwed) => number,
): Promise<OwedThenByAccount> {
  const accounts = new Map<number, AccountThen>();
  let first = Number.MAX_SAFE_INTEGER;
  for await (const account of stepwise((...step) => solvency.accounts(...step))) {
    accounts.set(account.position, { ...account, owedThen: account.owed, submittedSince: 0n });
    first = Math.min(first, positionOf(account));
  }
  const payeesSince = new Map<number, Owed>();
  if (accounts.size === 0) return { accounts, payeesSince };
  const postings = stepwise((...step) => solvency.postings(...step), first);
  for await (const { position, account: at, payee, owed } of postings) {
    const account = accounts.get(at);
    if (!account) throw new Error(`the posting ${position} is of no account`);
    if (position <= positionOf(account)) continue;
    const submitted = owed.submitted > 0n ? owed.submitted : 0n;
    accounts.set(at, {
      ...account,
      owedThen: subtractOwed(account.owedThen, owed),
      submittedSince: account.submittedSince + submitted,
    });
    if (payee !== null) payeesSince.set(payee, addOwed(payeesSince.get(payee) ?? NOTHING_OWED, owed));
  }
  return { accounts, payeesSince };
}

/** The rows of a read, step by step, with pauses between the steps. */
export async function* stepwise<Row extends { readonly position: number }>(
  read: (after: number, limit: number) => Promise<readonly Row[]>,
  from = 0,
): AsyncGenerator<Row> {
  for (let after = from; ; ) {
    const rows = await read(after, ROWS);
    yield* rows;
    const last = rows.at(-1);
    if (!last) return;
    after = last.position;
    await pause();
  }
}
