import assert from "node:assert/strict";
import { until } from "../support/until.ts";
import type { Desk } from "./desk.ts";
import type { Knowledge } from "./knowledge.ts";
import type { Look } from "./money-checks.ts";
import type { Parties } from "./parties.ts";
import type { Program } from "./program.ts";
import {
  addressIn,
  isWallets,
  PAYEES_ON_CHAIN,
  type Seen,
  STRANGER,
  type TreasuryChain,
  transactionOf,
} from "./treasury.ts";

/** What must be true of the treasury and its chain, once everything was done again that was not answered. */

/** A kill may come between what adds up and its credit. The next server credits it once it has the lease of the dead one. */
const CREDITED_MS = 45_000;
/** What is owed is begun each minute, and a later run sees it confirmed. */
const SETTLED_MS = 180_000;
/** What a payout may wait for that the wallet sends: it passes by itself. */
const PASSES: readonly unknown[] = ["next_run", "confirmations", "away"];

/** A ledger whose sandbox has a treasury, who works with it, and what they know. */
type Looked = {
  readonly look: Look;
  readonly program: Program;
  readonly parties: Parties;
  readonly knowledge: Knowledge;
  readonly desk: Desk;
  readonly treasury: TreasuryChain;
};

type Payment = {
  readonly id: string;
  readonly payee: string;
  readonly amount: bigint;
  readonly status: string;
  readonly reference: string | null;
  readonly problem: string | null;
  /** JSON. */
  readonly signings: string;
};

/** The payouts that the wallet has signed. */
const paymentsIn = (look: Look): Promise<readonly Payment[]> =>
  look<Payment>(
    `SELECT payouts.id, payees.payee, payouts.amount, status, payouts.reference, problem, signings FROM payout_transactions
       JOIN payouts ON payouts.position = payout JOIN payees ON payees.position = payouts.payee
       JOIN chain_transactions USING (chain_id, wallet, nonce)`,
  );

const hashesOf = ({ signings }: Payment): readonly string[] =>
  JSON.parse(signings).map(({ hash }: { readonly hash: string }) => hash);

const sum = (amounts: Iterable<bigint>): bigint => [...amounts].reduce((all, one) => all + one, 0n);

/**
 * Nobody got more than was released to them, what is paid is on the chain once, what came in is credited once, and what waits says why.
 *
 * @param before what the chain had before the ledger is looked at
 */
export async function checkTreasury(stage: Looked, before: Seen): Promise<void> {
  const { look, desk, treasury } = stage;
  const payments = await paymentsIn(look);
  checkSent(payments, before, stage);
  checkPaid(payments, treasury.seen());
  for (const { id } of payments) desk.known.learnOnChain(id);
  let rows: readonly Moved[] = [];
  const isCredited = async () => {
    rows = await transfersIn(look);
    return rows.every(isJudged);
  };
  await until("what adds up is credited", isCredited, CREDITED_MS);
  checkCameIn(rows, stage);
  assert.deepEqual(await look(DEPOSITS_OF_NOTHING), [], "deposits on the chain that are not of one transfer");
  await checkReasons(stage);
}

/** What the node was sent, the ledger had before; and the chain has paid each payout once, and nobody more than was released. */
function checkSent(payments: readonly Payment[], { sent, transfers }: Seen, { knowledge }: Looked): void {
  const ofHash = new Map(payments.flatMap((payment) => hashesOf(payment).map((hash) => [hash, payment])));
  assert.deepEqual(
    sent.filter((hash) => !ofHash.has(hash)),
    [],
    "transactions that the node was sent, and that are not in the ledger",
  );
  const released = knowledge.paid("sandbox");
  const gotBy = Map.groupBy(transfers.filter(isWallets), ({ hash }) => ofHash.get(hash)?.payee ?? "");
  for (const [payee, got] of gotBy) {
    const [amount, most] = [sum(got.map((one) => one.amount)), released.get(payee) ?? 0n];
    assert.ok(amount <= most, `${payee} got ${amount} on the chain, and ${most} was released`);
    for (const { hash, to, amount: part } of got) {
      const payment = ofHash.get(hash);
      assert.deepEqual([part, to], [payment?.amount, addressIn(payee)], `the transfer of ${payment?.id}`);
    }
  }
}

/** What is called paid is in confirmed blocks once, and nothing has failed. */
function checkPaid(payments: readonly Payment[], { transfers, confirmed }: Seen): void {
  for (const payment of payments) {
    const { id, status, reference, problem } = payment;
    assert.deepEqual([status === "failed", problem], [false, null], `${id} failed, or needs a person`);
    const found = transfers.filter(({ hash }) => hashesOf(payment).includes(hash));
    assert.ok(found.length <= 1, `${id} was paid ${found.length} times`);
    const inBlock = found.filter(({ block }) => block <= confirmed).map(({ hash }) => transactionOf(hash));
    if (status === "paid") assert.deepEqual(inBlock, [reference], `where ${id} was paid`);
  }
}

type Moved = {
  readonly id: string;
  readonly hash: string;
  readonly ordinal: bigint;
  readonly status: string;
  readonly amount: bigint;
  /** Of its deposit; null where it has none. */
  readonly credited: bigint | null;
  readonly reference: string | null;
  readonly block: bigint | null;
  /** The blocks after the first and up to the second are looked at, and add up. */
  readonly first: bigint;
  readonly until: bigint;
};

/** The transfers that the ledger knows. */
const transfersIn = (look: Look): Promise<readonly Moved[]> =>
  look<Moved>(
    `SELECT chain_transfers.id, hash, ordinal, status, chain_transfers.amount, block, deposits.amount AS credited, reference,
       first_block AS first, reconciled_block AS until
     FROM chain_transfers JOIN treasury_watches ON treasury_watches.id = watch LEFT JOIN deposits ON deposits.id = deposit`,
  );

const isInWindow = ({ block, first, until: last }: Moved): boolean =>
  block !== null && first < block && block <= last;

const isJudged = (transfer: Moved): boolean => transfer.status !== "found" || !isInWindow(transfer);

/** The ledger knows what the chain has up to where it has looked, and each transfer of a registered sender is one deposit. */
function checkCameIn(rows: readonly Moved[], { treasury, desk: { known } }: Looked): void {
  const [{ first, until: last } = { first: 0n, until: 0n }] = rows;
  const { transfers, confirmed } = treasury.seen();
  assert.ok(last <= confirmed, `the ledger has looked at block ${last}, and ${confirmed} is confirmed`);
  const idOf = new Map(rows.map(({ id, hash, ordinal }) => [`${hash}/${ordinal}`, id]));
  const statusOf = (key: string, from: string): string => {
    if (from !== STRANGER) return "credited";
    return known.assigned.has(idOf.get(key) ?? "") ? "credited" : "unassigned";
  };
  const expected = transfers
    .filter(({ block }) => first < block && block <= last)
    .map((one) => {
      const { hash, from, amount } = one;
      const key = `${hash}/${transfers.filter((other) => other.hash === hash).indexOf(one)}`;
      return { key, status: isWallets(one) ? "sent" : statusOf(key, from), amount };
    });
  const found = rows
    .filter(isInWindow)
    .map(({ hash, ordinal, status, amount }) => ({ key: `${hash}/${ordinal}`, status, amount }));
  assert.deepEqual(
    found.toSorted(byKey),
    expected.toSorted(byKey),
    "transfers in the ledger, and on the chain",
  );
  const credited = rows.filter(({ status }) => status === "credited");
  for (const { hash, ordinal, amount, credited: as, reference } of credited)
    assert.deepEqual(
      [as, reference],
      [amount, `${transactionOf(hash)}/${ordinal}`],
      "a deposit of a transfer",
    );
  for (const { id, status } of rows) if (status === "unassigned") known.learnUnassigned(id);
}

const byKey = (one: { readonly key: string }, other: { readonly key: string }): number =>
  one.key < other.key ? -1 : 1;

const DEPOSITS_ON_CHAIN = "SELECT id, amount FROM deposits WHERE reference LIKE 'eip155:%'";
/** One question, since more is credited all the time. */
const DEPOSITS_OF_NOTHING = `SELECT deposits.id, count(chain_transfers.id) AS transfers FROM deposits
  LEFT JOIN chain_transfers ON deposit = deposits.id AND chain_transfers.status = 'credited'
  WHERE reference LIKE 'eip155:%' GROUP BY deposits.id HAVING count(chain_transfers.id) <> 1`;

/** What the chain has credited by now counts among the funds. */
export async function learnCredited({ look, desk: { known } }: Pick<Looked, "look" | "desk">): Promise<void> {
  for (const deposit of await look<{ id: string; amount: bigint }>(DEPOSITS_ON_CHAIN))
    known.learnCredited("sandbox", deposit);
}

type Shown = {
  readonly payee: string;
  readonly rail: string;
  readonly waits_for: { readonly code: string } | null;
};

/** Nothing stops the treasury, and whatever is owed or under way in its mode says what it waits for. */
async function checkReasons({ program, parties: { organisationId } }: Looked): Promise<void> {
  const listed = async (...args: readonly string[]) => (await program.command(...args)).data;
  const [treasury] = await listed("treasuries", "list");
  const { waits_for: keeps, stopped, gone } = treasury;
  assert.ok(keeps === null || PASSES.includes(keeps.code), `payouts on the chain wait: ${keeps?.message}`);
  assert.deepEqual({ stopped, gone }, { stopped: null, gone: 0 }, "deposits on the chain");
  const own = ["--organisation", organisationId, "--mode", "sandbox", "--limit", "1000"];
  for (const status of ["owed", "submitted"]) {
    const payouts: readonly Shown[] = await listed("payouts", "list", ...own, "--status", status);
    const without = payouts.filter(({ rail, waits_for: why }) => {
      if (rail === "evm") return !PASSES.includes(why?.code);
      return status === "owed" && why === null;
    });
    assert.deepEqual(without, [], `what is ${status} without a reason, or for one that does not pass`);
  }
}

/** Waits until all is paid and credited: then the chain and the ledger agree to the unit. */
export async function checkSettled(stage: Looked): Promise<void> {
  const { look, treasury, knowledge } = stage;
  const unpaid = async () =>
    (
      await look<{ payee: string; payable: bigint; submitted: bigint }>(
        `SELECT payees.payee, payees.payable, payees.submitted FROM payees JOIN accounts ON accounts.position = account
           JOIN scopes ON scopes.position = scope WHERE mode = 'sandbox' AND payees.payable + payees.submitted > 0`,
      )
    ).filter(({ payee }) => PAYEES_ON_CHAIN.includes(payee));
  const inLedger = async () => {
    const [watch] = await look<{ opening: bigint }>("SELECT opening FROM treasury_watches");
    const received = (await transfersIn(look)).filter(
      ({ status, block }) => status !== "sent" && block !== null,
    );
    const paid = (await paymentsIn(look)).filter(({ status }) => status === "paid");
    return (
      (watch?.opening ?? 0n) +
      sum(received.map(({ amount }) => amount)) -
      sum(paid.map(({ amount }) => amount))
    );
  };
  const isSettled = async () => (await unpaid()).length === 0 && (await inLedger()) === treasury.balance();
  await until("all is paid", isSettled, SETTLED_MS).catch(async () => {
    assert.deepEqual(await unpaid(), [], "what was not paid on the chain in the end");
    assert.equal(await inLedger(), treasury.balance(), "what the treasury has");
  });
  await checkTreasury(stage, treasury.seen());
  const got = new Map<string, bigint>();
  for (const { to, amount } of treasury.seen().transfers.filter(isWallets))
    got.set(to, (got.get(to) ?? 0n) + amount);
  for (const [payee, amount] of knowledge.paid("sandbox"))
    if (PAYEES_ON_CHAIN.includes(payee))
      assert.equal(
        got.get(addressIn(payee)),
        amount,
        `what ${payee} got on the chain, and what was released`,
      );
}

/** The lines of the tally. */
export const TREASURY_TALLY = [
  ...["payouts paid on the chain", "of them signed again", "deposits on the chain"],
  ...["reorganisations of the chain", "questions to the chain that were held"],
  "transactions that the chain said nothing of",
] as const;

/** What the treasury came to, for the tally. */
export async function countTreasury(
  { look, treasury }: Pick<Looked, "look" | "treasury">,
  count: (name: string, by: number) => void,
): Promise<void> {
  const payments = await paymentsIn(look);
  count("payouts paid on the chain", payments.filter(({ status }) => status === "paid").length);
  count("of them signed again", payments.filter((payment) => hashesOf(payment).length > 1).length);
  count(
    "deposits on the chain",
    (await transfersIn(look)).filter(({ status }) => status === "credited").length,
  );
  const { takenOut, held, silent } = treasury.count();
  count("reorganisations of the chain", takenOut);
  count("questions to the chain that were held", held);
  count("transactions that the chain said nothing of", silent);
}
