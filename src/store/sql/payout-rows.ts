import { eq, sql } from "drizzle-orm";
import type { Correction } from "../../core/correction.ts";
import { type Payout, RAILS } from "../../core/payout.ts";
import { NOTHING_PAID } from "../../core/postings.ts";
import type { Put } from "../change.ts";
import type { Tables } from "./database.ts";
import { finding, keyed, mapped, scopedKey } from "./find-by-key.ts";
import { lazily } from "./lazily.ts";
import type { Names } from "./names.ts";
import type { Positions } from "./positions.ts";
import type { PreparedWrite } from "./prepared-write.ts";
import { railMovesOf, railWrites } from "./rail-rows.ts";
import {
  accountOf,
  appendedOf,
  digestOf,
  given,
  ofAccount,
  type RowOf,
  railNameOf,
  withoutDigest,
} from "./rows.ts";
import * as tablesOfPayouts from "./tables/payouts.ts";

/** Payees, payouts and corrections: their rows, and the statements that read and write them. */

const { placeholder } = sql;

type CorrectionRow = RowOf<typeof tablesOfPayouts.corrections>;
type PayoutRow = RowOf<typeof tablesOfPayouts.payouts>;

/** @throws where its deposit does not exist */
export function correctionOf(
  { position: _, account, deposit, ...row }: CorrectionRow,
  names: Names,
): Correction {
  const found = names.find("deposit", BigInt(deposit));
  if (!found) throw new Error(`the deposit of the correction ${row.id} does not exist`);
  return { ...row, ...ofAccount(BigInt(account), names), depositId: found.id };
}

const correctionRowOf = ({ depositId, ...correction }: Correction, positions: Positions) => ({
  ...correction,
  account: accountOf(correction, positions),
  deposit: positions.of("deposit", depositId),
});

/** @throws where its payee does not exist */
export function payoutOf({ position: _, account, payee, rail, ...row }: PayoutRow, names: Names): Payout {
  const found = names.find("payee", BigInt(payee));
  if (!found) throw new Error(`the payee of the payout ${row.id} does not exist`);
  return {
    ...row,
    ...ofAccount(BigInt(account), names),
    payee: found.payee,
    rail: RAILS.find((one) => rail.endsWith(one)) ?? "book",
  };
}

function payoutRowOf({ payee: name, ...payout }: Payout, positions: Positions) {
  const account = accountOf(payout, positions);
  const payee = positions.payee(account, name);
  if (payee === null) throw new Error(`nothing was paid to the payee of the payout ${payout.id}`);
  return { ...payout, account, payee, rail: railNameOf(payout) };
}

/** What is paid out and corrected, and what is owed to payees. */
export function payoutMovesOf(tables: Tables) {
  const { corrections, payees, payouts } = tablesOfPayouts;
  return {
    insertCorrection: () => tables.insert(corrections).values(appendedOf(corrections)),
    decideCorrection: () =>
      tables
        .update(corrections)
        .set({ ...given("status", "decidedBy", "decidedAt"), ...digestOf(corrections) })
        .where(eq(corrections.position, placeholder("position"))),
    insertPayee: () => tables.insert(payees).values(appendedOf(payees)),
    movePayee: () =>
      tables
        .update(payees)
        .set({
          payable: sql`${payees.payable} + ${placeholder("payable")}`,
          submitted: sql`${payees.submitted} + ${placeholder("submitted")}`,
          paidOut: sql`${payees.paidOut} + ${placeholder("paidOut")}`,
        })
        .where(eq(payees.position, placeholder("position"))),
    ...railMovesOf(tables),
    insertPayout: () => tables.insert(payouts).values(appendedOf(payouts)),
    endPayout: () =>
      tables
        .update(payouts)
        .set({ ...given("status", "version", "reference", "reason", "endedAt"), ...digestOf(payouts) })
        .where(eq(payouts.position, placeholder("position"))),
  };
}

type PayoutPut = Extract<
  Put,
  { readonly kind: "correction" | "payout" | "payoutTransaction" | "payoutWait" }
>;

/** Writes payouts, corrections and the accounts of payees. */
export function payoutWrites(
  moves: Readonly<Record<keyof ReturnType<typeof payoutMovesOf>, PreparedWrite>>,
  positions: Positions,
) {
  const { writePayoutTransaction, writePayoutWait } = railWrites(moves, positions);
  function writeCorrection(before: Correction | null, correction: Correction): void {
    const row = correctionRowOf(correction, positions);
    if (before === null) positions.remember("correction", row.id, moves.insertCorrection(row));
    else moves.decideCorrection({ ...row, position: positions.of("correction", row.id) });
  }
  function writePayout(before: Payout | null, payout: Payout): void {
    const row = payoutRowOf(payout, positions);
    if (before === null) positions.remember("payout", row.id, moves.insertPayout(row));
    else moves.endPayout({ ...row, position: positions.of("payout", row.id) });
  }
  return {
    write(put: PayoutPut): void {
      switch (put.kind) {
        case "correction":
          writeCorrection(put.before, put.row);
          break;
        case "payout":
          writePayout(put.before, put.row);
          break;
        case "payoutTransaction":
          writePayoutTransaction(put.before, put.row);
          break;
        case "payoutWait":
          writePayoutWait(put.row);
          break;
      }
    },
    /** A payee's account. The first payment makes it. */
    openPayee(account: number, payee: string): number {
      const known = positions.payee(account, payee);
      if (known !== null) return known;
      const opened = moves.insertPayee({ ...NOTHING_PAID, account, payee });
      positions.rememberPayee(account, payee, opened);
      return opened;
    },
  };
}

export function payoutLookUps(tables: Tables, positions: Positions, names: Names) {
  const { corrections, payees, payouts } = tablesOfPayouts;
  return {
    correction: mapped(
      finding(() =>
        tables.select(withoutDigest(corrections)).from(corrections).where(keyed(corrections.id)).prepare(),
      ),
      (row) => correctionOf(row, names),
    ),
    payout: mapped(
      finding(() => tables.select(withoutDigest(payouts)).from(payouts).where(keyed(payouts.id)).prepare()),
      (row) => payoutOf(row, names),
    ),
    payeeBalance: lazily(() => {
      const { payable, submitted, paidOut, position } = payees;
      const statement = tables
        .select({ payable, submitted, paidOut })
        .from(payees)
        .where(eq(position, placeholder("position")))
        .prepare();
      return (rowKey: string) => {
        const { organisationId, mode, rest } = scopedKey(rowKey);
        const scope = positions.scope(organisationId, mode);
        // An asset has no spaces, and a payee may.
        const account = scope === null ? null : positions.account(scope, rest.slice(0, rest.indexOf(" ")));
        const payee = account === null ? null : positions.payee(account, rest.slice(rest.indexOf(" ") + 1));
        return (payee === null ? null : statement.get({ position: payee })) ?? null;
      };
    }),
  };
}

/** The newest correction of a deposit that was not withdrawn. */
export const CORRECTION_OF_SQL = `SELECT id AS key FROM corrections
       WHERE deposit = (SELECT position FROM deposits WHERE id = ?) AND status <> 'withdrawn'
       ORDER BY position DESC LIMIT 1`;
