import { expect } from "bun:test";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { statementOf } from "../../src/services/admin/statements.ts";
import { must } from "../support/stage.ts";
import { EVERY, type Simulated } from "./service.ts";

const sumOf = (amounts: Iterable<bigint>): bigint =>
  Iterator.from(amounts).reduce((sum, one) => sum + one, 0n);

/** The sum of the amounts under each name. */
function sums<Item>(
  items: readonly Item[],
  nameOf: (item: Item) => string,
  amountOf: (item: Item) => bigint,
) {
  const found = new Map<string, bigint>();
  for (const item of items) found.set(nameOf(item), (found.get(nameOf(item)) ?? 0n) + amountOf(item));
  return (name: string): bigint => found.get(name) ?? 0n;
}

const accountOf = ({ asset, payee }: { readonly asset: string; readonly payee: string }): string =>
  `${asset} ${payee}`;
const assetOf = ({ asset }: { readonly asset: string }): string => asset;

/**
 * What must hold for money in and out at any time, computed from the service's rows without the model (docs/money, "What is owed"):
 * of each payee what is payable is what was released to it, less what its payouts have under way and paid; the payees of an asset
 * make up its balance; nothing is negative; what is paid never falls; and all there is came in by deposits, as corrected. The
 * returned function reads the service and expects all this; it is called after every step.
 */
export function createMoneyLaws({ ctx, organisationId, mode }: Simulated): () => void {
  const { reader } = ctx;
  const scope = { organisationId, mode };
  const paidBefore = new Map<string, bigint>();
  return () => {
    const balances = reader.balances.list(scope);
    const payees = reader.payees.list(scope, 0, EVERY);
    const payouts = reader.payouts.list(scope, null, null, EVERY);
    const totals = new Map(reader.payees.totals(scope).map((total) => [total.asset, total]));
    const released = sums(
      reader.warrants.byCreation(scope, {}, {}, EVERY),
      accountOf,
      ({ amount, releasedBps }) => (amount * BigInt(releasedBps ?? 0)) / 10_000n,
    );
    const inPayouts = (status: string) =>
      sums(
        payouts.filter((one) => one.status === status),
        accountOf,
        ({ amount }) => amount,
      );
    const [submitted, paidOut] = [inPayouts("submitted"), inPayouts("paid")];
    for (const { balance, ...name } of payees) {
      const account = accountOf(name);
      expect(balance).toEqual({
        payable: released(account) - submitted(account) - paidOut(account),
        submitted: submitted(account),
        paidOut: paidOut(account),
      });
      for (const part of Object.values(balance)) expect(part >= 0n).toBeTrue();
    }
    const corrections = reader.corrections
      .list(scope, null, EVERY)
      .filter(({ status }) => status === "recorded");
    const corrected = sums(
      corrections,
      assetOf,
      ({ amountAfter, amountBefore }) => amountAfter - amountBefore,
    );
    const deposited = sums(reader.deposits.list(scope, null, EVERY), assetOf, ({ amount }) => amount);
    for (const { asset, balance } of balances) {
      const own = payees.filter((one) => one.asset === asset).map((one) => one.balance);
      expect(sumOf(own.flatMap((one) => Object.values(one)))).toBe(balance.paid);
      expect(sumOf(own.map(({ payable }) => payable))).toBe(totals.get(asset)?.payable ?? 0n);
      expect(sumOf(own.map((one) => one.submitted))).toBe(totals.get(asset)?.submitted ?? 0n);
      expect(sumOf(Object.values(balance))).toBe(deposited(asset) + corrected(asset));
      for (const part of Object.values(balance)) expect(part >= 0n).toBeTrue();
      expect(balance.paid >= (paidBefore.get(asset) ?? 0n)).toBeTrue();
      paidBefore.set(asset, balance.paid);
    }
  };
}

/** The statement of the whole history: every posting once, in order, and at its end the balances. */
export async function expectStatement({ ctx, organisationId, mode, model }: Simulated): Promise<void> {
  const { reader } = ctx;
  const scope = { organisationId, mode };
  const totals = new Map(reader.payees.totals(scope).map(({ asset, ...total }) => [asset, total]));
  const kinds = new Map<string, number>();
  const ends = new Map<string, object>();
  for await (const page of must(await statementOf(ctx, MACHINE, { organisation_id: organisationId, mode }))) {
    for (const line of page) {
      kinds.set(line.kind, (kinds.get(line.kind) ?? 0) + 1);
      ends.set(line.asset, {
        ...{
          available: BigInt(line.available_after),
          held: BigInt(line.held_after),
          paid: BigInt(line.paid_after),
        },
        ...{ payable: BigInt(line.payable_after), submitted: BigInt(line.submitted_after) },
      });
    }
  }
  expect(Object.fromEntries(kinds)).toEqual(Object.fromEntries(model.money.postings));
  const balances = reader.balances.list(scope);
  expect(Object.fromEntries(ends)).toEqual(
    Object.fromEntries(balances.map(({ asset, balance }) => [asset, { ...balance, ...totals.get(asset) }])),
  );
}
