import { expect } from "bun:test";
import { DAY_MS } from "../../src/core/time.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { listPayouts } from "../../src/services/admin/payouts.ts";
import { must } from "../support/stage.ts";
import { EVERY, type Simulated } from "./service.ts";

/**
 * What must hold for a treasury at any time, whatever its chain did (docs/money, "Payouts on a chain"): each transaction of the wallet
 * that a block has pays one payout, of another one each, its payee and amount and nothing else; what was sent without a person is
 * within the limits; and whatever is owed or under way on the rail says why. The returned function reads the service and the chain
 * and expects all this; it is called after every step on the chain.
 */
export function createChainLaws({ ctx, organisationId, treasury, payeeOf }: Simulated): () => Promise<void> {
  if (treasury === null) return async () => {};
  const { chain, plain, limits } = treasury;
  const scope = { organisationId, mode: "sandbox" } as const;
  const addresses = [payeeOf("acme"), payeeOf("acme labs")];
  const isOnChain = ({ payee, asset }: { readonly payee: string; readonly asset: string }) =>
    asset === "USDC" && addresses.includes(payee);
  return async () => {
    const payouts = ctx.reader.payouts
      .list(scope, null, null, EVERY)
      .filter(({ rail }) => rail === "evm")
      .reverse();
    for (const [nonce, { succeeded, transfers, hash }] of chain.receipts().entries()) {
      const { id = "", payee: to, amount } = payouts[nonce] ?? {};
      const of = ctx.reader.rails.transactionOf(id)?.transaction;
      expect([of?.nonce, of?.signings.some((signing) => signing.hash === hash)]).toEqual([nonce, true]);
      if (succeeded) expect(transfers).toMatchObject([{ to, amount }]);
    }
    const sent = payouts.filter(({ id, status }, nonce) => {
      const byPerson = ctx.reader.rails.transactionOf(id)?.of.byPerson;
      expect(byPerson).toBe(plain.sent[nonce]?.byPerson);
      return byPerson === false && status !== "failed";
    });
    for (const { createdAt, amount } of sent) {
      const within = sent.filter((one) => one.createdAt <= createdAt && one.createdAt > createdAt - DAY_MS);
      expect(amount <= limits.payout).toBeTrue();
      expect(within.reduce((sum, one) => sum + one.amount, 0n) <= limits.day).toBeTrue();
    }
    for (const status of ["owed", "submitted"] as const) {
      const asked = { organisation_id: organisationId, mode: "sandbox", status } as const;
      for (const payout of must(await listPayouts(ctx, MACHINE, asked)).data) {
        if (status === "owed") expect(payout.rail).toBe(isOnChain(payout) ? "evm" : "book");
        if (payout.rail === "evm") expect(payout.waits_for).not.toBeNull();
      }
    }
  };
}

/** At the end of a history the chain has paid each payee what the ledger says it did, and nothing is under way. */
export function expectSettled({ ctx, organisationId, treasury }: Simulated): void {
  if (treasury === null) return;
  const { chain, plain } = treasury;
  const paid = new Map<string, bigint>();
  for (const [nonce, { payout }] of plain.sent.entries()) {
    expect(payout.status).not.toBe("submitted");
    const { payee, amount } = payout;
    if (chain.receipts()[nonce]?.succeeded) paid.set(payee, (paid.get(payee) ?? 0n) + amount);
  }
  expect(Object.fromEntries(chain.paid())).toEqual(Object.fromEntries(paid));
  expect(chain.receipts()).toHaveLength(plain.sent.length);
  const deposits = ctx.reader.deposits.list({ organisationId, mode: "sandbox" }, null, EVERY);
  const credited = deposits.filter(({ reference }) => reference?.startsWith("eip155:"));
  const received = chain.received().reduce((sum, { amount }) => sum + amount, 0n);
  const unassigned = [...plain.unassigned.values()].reduce((sum, { amount }) => sum + amount, 0n);
  expect(credited.reduce((sum, { amount }) => sum + amount, 0n) + unassigned).toBe(received);
}
