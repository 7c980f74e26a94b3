import { afterEach, beforeEach, expect, test } from "bun:test";
import { sha256 } from "../../src/core/canonical.ts";
import type { TransferInBlock } from "../../src/core/chain-transfer.ts";
import { whatKeeps } from "../../src/core/rail.ts";
import type { TreasuryChain } from "../../src/platform/treasury-chain.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { listDeposits } from "../../src/services/admin/balances.ts";
import { addDepositSender } from "../../src/services/admin/deposit-senders.ts";
import { listTreasuries, resumeTreasury } from "../../src/services/admin/treasuries.ts";
import { SPAN_FIRST, stepWatch, type Watching } from "../../src/services/chain/watch.ts";
import { setRailCode } from "../../src/services/rails/states.ts";
import { ALICE, BOB, CONFIRMATIONS, type Paying, STEP_MS, startPaying } from "../support/paying.ts";
import { must } from "../support/stage.ts";

/** Payouts of a treasury whose transfers do not add up to its balance wait, as its deposits do (docs/money, "Deposits on a chain"). */

const ACME = `0x${"ac".repeat(20)}`;
const hashOf = (text: string): string => `0x${sha256(text)}`;
const blockOf = (number: number) => ({ number, hash: hashOf(`block ${number}`) });
const deposit: TransferInBlock = {
  ...{ hash: hashOf("transaction"), counterparty: ACME, amount: 30n, direction: "received" },
  ...{ block: 2, blockHash: blockOf(2).hash },
};

let paying: Paying;
let watching: Watching;
/** The node hides logs while this is true. */
let hides: boolean;
let newest: number;
beforeEach(async () => {
  paying = await startPaying();
  [hides, newest] = [false, 1];
  watching = {
    ...{ treasury: paying.ctx.treasuries[0]!, span: SPAN_FIRST, onJudged: () => {} },
    chain: {
      head: async () => ({ newestTime: 0, confirmed: blockOf(newest) }),
      decimals: async () => ({ decimals: 6 }),
      block: async (number) => ({ block: blockOf(number) }),
      transfers: async ({ after, until }) => ({
        transfers: hides || after >= deposit.block || until < deposit.block ? [] : [deposit],
      }),
      balanceAt: async ({ number }) => ({ balance: number < deposit.block ? 500n : 530n }),
    } satisfies TreasuryChain,
  };
  const organisation_id = paying.stage.organisationId;
  must(await addDepositSender(paying.ctx, { organisation_id, mode: "sandbox", address: ACME }));
  await stepWatch(paying.ctx, watching);
});
afterEach(() => paying.close());

/** The next look of the watch meets a node that hides a log. */
async function differ(): Promise<void> {
  [hides, newest] = [true, 2];
  expect(await stepWatch(paying.ctx, watching)).toMatchObject({ outcome: "stopped", why: "balance_differs" });
}

const deposits = async () =>
  must(
    await listDeposits(paying.ctx, MACHINE, {
      organisation_id: paying.stage.organisationId,
      mode: "sandbox",
    }),
  ).data.flatMap(({ amount }) => (amount === "30" ? [amount] : []));
const treasury = async () => must(await listTreasuries(paying.ctx, MACHINE)).data[0];

test("they wait, say why, and go on with the deposits once the transfers add up", async () => {
  await differ();
  await paying.owe(ALICE);
  paying.chain.onAsked = (question) => {
    if (question === "gasOf") throw new Error("a payout that waits is not prepared");
  };
  await paying.payOut();
  paying.chain.onAsked = () => {};
  expect(paying.chain.sent).toEqual([]);
  expect(await paying.list("owed")).toMatchObject([
    { waits_for: { code: "balance_differs", message: expect.stringContaining("do not add up") } },
  ]);
  expect(await treasury()).toMatchObject({
    stopped: "balance_differs",
    waits_for: { code: "balance_differs" },
  });
  // A person cannot say that it adds up.
  expect(await resumeTreasury(paying.ctx, MACHINE, { mode: "sandbox", asset: "USDC" })).toMatchObject({
    waits_for: { code: "balance_differs" },
  });
  await paying.payOut();
  expect([paying.chain.sent, await deposits(), paying.reported]).toEqual([[], [], []]);
  hides = false;
  expect(await stepWatch(paying.ctx, watching)).toMatchObject({ outcome: "up_to_date" });
  await paying.payOut();
  expect(await deposits()).toEqual(["30"]);
  expect(await treasury()).toMatchObject({ stopped: null, waits_for: null });
  expect([...paying.chain.paid()]).toEqual([[ALICE, 100n]]);
  expect(await paying.list("failed")).toEqual([]);
});

test("one that is under way goes on to its end", async () => {
  await paying.owe(ALICE);
  await paying.step();
  await differ();
  await paying.owe(BOB);
  paying.chain.mine(CONFIRMATIONS);
  await paying.step();
  await paying.payOut();
  expect(await paying.list("paid")).toMatchObject([{ payee: ALICE }]);
  expect(await paying.waits()).toEqual([[BOB, "balance_differs"]]);
});

test("one that was planned a moment before the look is not committed", async () => {
  await paying.owe(ALICE);
  const { wallet } = paying.chain;
  paying.wrapped = {
    store: paying.ctx.store,
    wallet: {
      ...wallet,
      async gasOf(call) {
        await differ();
        return wallet.gasOf(call);
      },
    },
  };
  paying.restart();
  await paying.step(STEP_MS);
  expect(paying.chain.sent).toEqual([]);
  expect(await paying.waits()).toEqual([[ALICE, "balance_differs"]]);
});

test("what the wallet itself met is said first", async () => {
  await differ();
  await paying.owe(ALICE);
  await setRailCode(paying.ctx, paying.ctx.treasuries, { code: "no_gas", detail: null });
  expect(await paying.waits()).toEqual([[ALICE, "no_gas"]]);
  expect(await treasury()).toMatchObject({ waits_for: { code: "no_gas" }, stopped: "balance_differs" });
});

test.each(["asset_changed", "chain_replaced", "too_large", null] as const)(
  "a watch that has stopped for %p keeps no payout: its transfers add up",
  (stopped) => {
    expect(whatKeeps({ code: null, detail: null }, { stopped })).toBeNull();
  },
);
