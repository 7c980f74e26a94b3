import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import type { Mode } from "../../src/core/roles.ts";
import { until } from "../support/until.ts";
import { openLeft } from "./checks.ts";
import type { Knowledge } from "./knowledge.ts";
import type { KnownMoney } from "./known-money.ts";
import { PAY_TO } from "./market.ts";
import type { Parties } from "./parties.ts";
import type { Program } from "./program.ts";

/** What must be true of money in and out, once everything was done again that was not answered. */

const MODES = ["live", "sandbox"] as const satisfies readonly Mode[];
/** The treasury begins payouts one after the other meanwhile. */
const AGREES_MS = 30_000;

type PayoutRow = {
  readonly id: string;
  readonly mode: Mode;
  readonly payee: string;
  readonly amount: bigint;
  readonly rail: string;
  readonly status: "submitted" | "paid" | "failed";
};

/** Asks a ledger that is served what either engine understands. Its integers are bigint. */
export type Look = <Row>(question: string) => Promise<readonly Row[]>;

/** Looks at the ledger of a folder. */
export const lookIn =
  (folder: string): Look =>
  async <Row>(question: string) => {
    const database = openLeft(folder);
    try {
      return database.query(question).safeIntegers(true).all() as readonly Row[];
    } finally {
      database.close();
    }
  };

/**
 * Every deposit, correction and payout of the admin is in the ledger once, as it was answered last. What nobody was answered is a payout that
 * was submitted by a form, or by a command that was cut off: it is known from now on. Answers how many of those there are.
 */
export async function checkMoney(look: Look, known: KnownMoney): Promise<number> {
  const deposits = await look<{ id: string; amount: bigint }>(
    "SELECT id, amount FROM deposits WHERE reference NOT LIKE 'eip155:%'",
  );
  const acknowledged = [...known.deposits.values()].map(({ id, amount }) => ({ id, amount })).toSorted(byId);
  assert.deepEqual(
    deposits.map((one) => ({ ...one })).toSorted(byId),
    acknowledged,
    "deposits in the ledger, and acknowledged ones",
  );
  const corrections = await look<{ id: string }>("SELECT id FROM corrections");
  assert.deepEqual(
    corrections.map(({ id }) => id).toSorted(),
    [...known.corrections].toSorted(),
    "corrections in the ledger, and acknowledged ones",
  );
  const payouts = (await payoutsIn(look)).filter(({ rail }) => rail.endsWith("book"));
  const unknown = payouts.filter(({ id }) => !known.payouts.has(id));
  for (const payout of unknown) known.learnSubmitted(payout);
  assert.deepEqual(
    payouts.map(({ id, status }) => ({ id, status })).toSorted(byId),
    [...known.payouts.values()].map(({ id, status }) => ({ id, status })).toSorted(byId),
    "payouts in the ledger, and what was answered of them",
  );
  return unknown.length;
}

const byId = (one: { readonly id: string }, other: { readonly id: string }): number =>
  one.id < other.id ? -1 : 1;

const payoutsIn = (look: Look): Promise<readonly PayoutRow[]> =>
  look<PayoutRow>(
    `SELECT payouts.id, mode, payees.payee, amount, rail, status FROM payouts JOIN payees ON payees.position = payouts.payee
       JOIN accounts ON accounts.position = payouts.account JOIN scopes ON scopes.position = accounts.scope`,
  );

/** What is owed to each payee is what was released to it, less what its payouts have under way and paid. */
export async function checkOwed(
  program: Program,
  { organisationId }: Parties,
  look: Look,
  knowledge: Knowledge,
  learnRest: () => Promise<void>,
): Promise<void> {
  for (const mode of MODES) {
    let shown: unknown;
    let expected: unknown;
    await until(
      `what is owed in ${mode} follows from the warrants and the payouts`,
      async () => {
        await learnRest();
        const owed = new Map(knowledge.paid(mode));
        // The wallet has paid it.
        owed.delete(PAY_TO);
        for (const payout of await payoutsIn(look)) {
          if (payout.mode !== mode || payout.status === "failed") continue;
          owed.set(payout.payee, (owed.get(payout.payee) ?? 0n) - payout.amount);
        }
        const own = ["--organisation", organisationId, "--mode", mode, "--limit", "1000"];
        const { data } = await program.command("payouts", "list", ...own);
        shown = Object.fromEntries(data.map((one: Record<string, string>) => [one.payee, one.amount]));
        expected = Object.fromEntries(
          [...owed].filter(([, amount]) => amount !== 0n).map(([payee, amount]) => [payee, `${amount}`]),
        );
        return isDeepStrictEqual(shown, expected);
      },
      AGREES_MS,
    ).catch(() => assert.deepEqual(shown, expected, `what is owed in ${mode}`));
  }
}
