import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { DAY_MS } from "../../src/core/time.ts";
import { decodeTransaction } from "../../src/platform/evm-wallet.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { failPayoutOf, markPaid, submitPayouts } from "../../src/services/admin/payouts.ts";
import { resumeTreasury } from "../../src/services/admin/treasuries.ts";
import { setRailCode } from "../../src/services/rails/states.ts";
import { submitSigned } from "../support/passkeys.ts";
import {
  ALICE,
  BOB,
  CAROL,
  CONFIRMATIONS,
  PAYOUT_MS,
  type Paying,
  STEP_MS,
  startPaying,
  TOKEN,
} from "../support/paying.ts";
import { expectRefused } from "../support/refused.ts";
import { createStage, must } from "../support/stage.ts";

/** Payouts on a chain in memory (docs/money, "On a chain"). */

let paying: Paying;
beforeEach(async () => {
  paying = await startPaying();
});
afterEach(() => paying.close());

const scope = () => ({ organisation_id: paying.stage.organisationId, mode: paying.stage.mode });
const resume = (nonce?: number) =>
  resumeTreasury(paying.ctx, MACHINE, {
    ...{ mode: "sandbox", asset: "USDC" },
    ...(nonce !== undefined && { nonce }),
  });
const underWay = (why: string) => ({ refused: "illegal_transition", message: expect.stringContaining(why) });
const account = (payee: string) =>
  paying.ctx.reader.payees.list(paying.stage, 0, 1_000).find((one) => one.payee === payee)?.balance;

describe("a payout", () => {
  test("is sent to its payee, submitted until the chain has confirmed it, and paid with its transaction", async () => {
    const { chain, step, list, owe } = paying;
    await owe(ALICE);
    expect(await list("owed")).toMatchObject([{ rail: "evm", waits_for: { code: "next_run" } }]);
    await step();
    expect(await list("owed")).toEqual([]);
    expect(await list("submitted")).toMatchObject([
      { payee: ALICE, amount: "100", rail: "evm", waits_for: { code: "confirmations" } },
    ]);
    chain.mine(CONFIRMATIONS - 1);
    await step();
    expect(await list("paid")).toEqual([]);
    chain.mine(1);
    await step();
    const { hash } = (await decodeTransaction(chain.sent[0]!))!;
    const reference = `eip155:84532:${hash}`;
    expect(await list("paid")).toMatchObject([
      { reference, transaction: reference, waits_for: null, version: 2 },
    ]);
    expect([...chain.paid()]).toEqual([[ALICE, 100n]]);
    expect(account(ALICE)).toEqual({ payable: 0n, submitted: 0n, paidOut: 100n });
    expect(paying.reported).toEqual([]);
  });

  test("is begun with the next run after its interval, of what was released since", async () => {
    await paying.payOut();
    await paying.owe(ALICE);
    await paying.step(PAYOUT_MS - 3 * STEP_MS);
    expect(await paying.waits()).toEqual([[ALICE, "next_run"]]);
    await paying.step(3 * STEP_MS);
    await paying.owe(ALICE, "7");
    expect(await paying.list("submitted")).toMatchObject([{ amount: "100" }]);
    expect(account(ALICE)).toMatchObject({ payable: 7n, submitted: 100n });
  });

  test("nobody ends while its transaction may still get into a block, or before it is accounted for", async () => {
    const { ctx, chain } = paying;
    await paying.owe(ALICE);
    await paying.step();
    const named = { payout_id: (await paying.list("submitted"))[0]?.id ?? "" };
    expect(await markPaid(ctx, MACHINE, { ...named, reference: "x" })).toMatchObject(
      underWay("may still get"),
    );
    expect(await failPayoutOf(ctx, MACHINE, { ...named, reason: "x" })).toMatchObject(
      underWay("may still get"),
    );
    chain.mine(CONFIRMATIONS);
    chain.onAsked = (question) => {
      chain.away = question === "receipt" ? "timeout" : null;
    };
    await paying.step();
    expect(await failPayoutOf(ctx, MACHINE, { ...named, reason: "x" })).toMatchObject(
      underWay("about to account"),
    );
    expect(await paying.waits("submitted")).toEqual([[ALICE, "away"]]);
    chain.onAsked = () => {};
    chain.away = null;
    await paying.step(PAYOUT_MS);
    expect(await paying.list("paid")).toHaveLength(1);
  });
});

describe("payees", () => {
  const CHECKSUMMED = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359";
  test.each([
    ["acme", "book", "not_an_address"],
    [`${ALICE}00`, "book", "not_an_address"],
    [`eip155:1:${ALICE}`, "book", "other_chain"],
    [CHECKSUMMED.replace("fB", "Fb"), "book", "wrong_checksum"],
    [`0x${"0".repeat(40)}`, "book", "not_payable"],
    [TOKEN, "book", "not_payable"],
    [`eip155:84532:${TOKEN.toUpperCase().replace("0X", "0x")}`, "book", "not_payable"],
    ["the treasury", "book", "not_payable"],
    [CHECKSUMMED, "evm", null],
    [CHECKSUMMED.toLowerCase(), "evm", null],
    [`eip155:84532:${CHECKSUMMED}`, "evm", null],
  ] as const)("%s goes by %s: %p", async (name, rail, code) => {
    const payee = name === "the treasury" ? paying.chain.wallet.address : name;
    await paying.owe(payee);
    expect(await paying.list("owed")).toMatchObject([{ rail, waits_for: { code: code ?? "next_run" } }]);
    await paying.payOut();
    if (code === null) expect([...paying.chain.paid()]).toEqual([[CHECKSUMMED.toLowerCase(), 100n]]);
    else expect(await paying.waits()).toEqual([[payee, code]]);
    expect(paying.chain.sent).toHaveLength(code === null ? 1 : 0);
  });

  test("of which a person pays one by their own means get nothing from the wallet", async () => {
    await paying.owe(ALICE);
    await submitSigned(paying.ctx, paying.stage.admin, ALICE);
    must(await submitPayouts(paying.ctx, MACHINE, { ...scope(), payee: ALICE, rail: "book" }));
    await paying.payOut();
    // What was released is in that payout: it frees nothing that is owed later from the limits.
    await paying.owe(ALICE, "1001");
    await paying.payOut();
    expect(await paying.waits()).toEqual([[ALICE, "above_payout_limit"]]);
    expect(paying.chain.sent).toEqual([]);
    expect(await paying.list("submitted")).toMatchObject([
      { rail: "book", waits_for: null, transaction: null },
    ]);
  });
});

describe("many payouts", () => {
  test("of a wallet are before one that the operator of the machine submits, and are left to the wallet", async () => {
    const payees = Array.from({ length: 1_001 }, (_, at) => `0x${(at + 1).toString(16).padStart(40, "0")}`);
    for (let done = 0; done < payees.length; done += 77)
      await Promise.all(payees.slice(done, done + 77).map((payee) => paying.owe(payee, "1")));
    await paying.owe("acme");
    const made = must(await submitPayouts(paying.ctx, MACHINE, scope()));
    expect(made).toMatchObject({ data: [{ payee: "acme", rail: "book" }], has_more: false });
    expect(await paying.list("submitted")).toHaveLength(1);
  });

  test("are under way at once, sixteen without a block, and each reaches its payee once", async () => {
    const payees = Array.from({ length: 40 }, (_, at) => `0x${(at + 1).toString(16).padStart(40, "0")}`);
    for (const payee of payees) await paying.owe(payee, "10");
    await paying.step();
    expect(new Set(paying.chain.sent).size).toBe(16);
    for (let round = 0; round < 6; round++) {
      paying.chain.mine(1);
      await paying.step();
    }
    expect(await paying.list("paid")).toHaveLength(40);
    expect([...paying.chain.paid()]).toEqual(payees.map((payee) => [payee, 10n]));
  });

  test("of two organisations go out in turns", async () => {
    const other = await createStage(paying.ctx, { mode: "sandbox" });
    for (let at = 1; at <= 20; at++) await paying.owe(`0x${at.toString(16).padStart(40, "0")}`, "10");
    for (let at = 21; at <= 24; at++) await paying.owe(`0x${at.toString(16).padStart(40, "0")}`, "10", other);
    await paying.step();
    expect([(await paying.list("submitted")).length, (await paying.list("submitted", other)).length]).toEqual(
      [12, 4],
    );
  });

  test("of a node that is slow are begun for a minute, so that those under way are looked after", async () => {
    for (let at = 1; at <= 14; at++) await paying.owe(`0x${at.toString(16).padStart(40, "0")}`, "10");
    paying.chain.onAsked = () => paying.wait(4_900);
    await paying.step();
    const begun = (await paying.list("submitted")).length;
    expect([begun > 0, begun < 14]).toEqual([true, true]);
    for (let round = 0; round < 6; round++) {
      paying.chain.mine(1);
      await paying.step();
    }
    expect([await paying.list("owed"), (await paying.list("paid")).length >= begun]).toEqual([[], true]);
  });

  test("that no wallet can send keep another organisation waiting for one run at most", async () => {
    const other = await createStage(paying.ctx, { mode: "sandbox" });
    for (let at = 0; at < 501; at++) await paying.owe(`acme ${at}`, "1");
    await paying.owe(BOB, "10", other);
    await paying.step();
    expect(await paying.list("submitted", other)).toHaveLength(1);
  });
});

describe("limits", () => {
  beforeEach(async () => {
    await paying.close();
    paying = await startPaying({ limits: { payoutMax: 100n, dayMax: 250n } });
  });

  test("of one payout are kept at their edge, until a person releases it with a passkey", async () => {
    await paying.owe(ALICE, "100");
    await paying.owe(BOB, "101");
    await paying.payOut();
    expect(await paying.waits()).toEqual([[BOB, "above_payout_limit"]]);
    await expectRefused(paying.ctx, () => submitPayouts(paying.ctx, MACHINE, { ...scope(), payee: BOB }), [
      "passkey_required",
      `What is owed to ${BOB} is sent by the treasury`,
    ]);
    expect(must(await submitPayouts(paying.ctx, MACHINE, scope())).data).toEqual([]);
    const released = await submitSigned(paying.ctx, paying.stage.admin, BOB);
    expect(released).toMatchObject([
      { id: null, status: "owed", rail: "evm", waits_for: { code: "released" } },
    ]);
    expect(await paying.waits()).toEqual([[BOB, "released"]]);
    await paying.owe(BOB, "50");
    await paying.payOut();
    // What came after the release is not released.
    expect([...paying.chain.paid()]).toEqual([
      [ALICE, 100n],
      [BOB, 101n],
    ]);
    expect(account(BOB)).toMatchObject({ payable: 50n, paidOut: 101n });
    // A release is used up with its payout.
    await paying.owe(BOB, "51");
    await paying.payOut();
    expect(await paying.waits()).toEqual([[BOB, "above_payout_limit"]]);
  });

  test("of 24 hours are kept at their edge, by the time of the records, and nobody behind uses them up", async () => {
    const { ctx } = paying;
    await paying.owe(ALICE, "100");
    await paying.payOut();
    ctx.clock.now += 1_000;
    await paying.owe(BOB, "100");
    await paying.payOut();
    const first = ctx.clock.now - 1_000;
    await paying.owe(ALICE, "51");
    await paying.owe(CAROL, "50");
    await paying.payOut();
    const until = new Date(first + DAY_MS).toISOString();
    expect(await paying.list("owed")).toMatchObject([
      { payee: ALICE, waits_for: { code: "above_day_limit", until } },
      { payee: CAROL, waits_for: { code: "above_day_limit", until } },
    ]);
    // A clock that is behind takes nothing out of the limit.
    ctx.clock.aheadMs = -2 * DAY_MS;
    await paying.payOut();
    ctx.clock.aheadMs = 0;
    ctx.clock.now = first + DAY_MS - 1;
    await paying.payOut();
    expect(await paying.list("paid")).toHaveLength(2);
    ctx.clock.now += 1;
    await paying.payOut();
    expect(await paying.list("paid")).toHaveLength(4);
  });

  test("of 24 hours are not used up by what was released, nor by what has failed", async () => {
    await paying.owe(ALICE, "240");
    await submitSigned(paying.ctx, paying.stage.admin, ALICE);
    await paying.payOut();
    paying.chain.playsHonestly = false;
    paying.chain.token = "reverts";
    await paying.owe(BOB, "100");
    await paying.payOut();
    paying.chain.token = "plain";
    for (const payee of [CAROL, `0x${"d4".repeat(20)}`]) await paying.owe(payee, "100");
    await paying.payOut();
    expect(await paying.waits()).toEqual([[BOB, "failed"]]);
  });
});

describe("what keeps a payout", () => {
  test("a treasury with too little of the token: smaller ones go, and it goes when there is more", async () => {
    paying.chain.balance = 150n;
    for (const [payee, amount] of [
      [ALICE, "100"],
      [BOB, "60"],
      [CAROL, "50"],
    ] as const)
      await paying.owe(payee, amount);
    await paying.step();
    expect(await paying.waits()).toEqual([[BOB, "no_money"]]);
    expect((await paying.list("submitted")).map(({ payee }) => payee)).toEqual([CAROL, ALICE]);
    paying.chain.balance = 1_000n;
    await paying.payOut();
    await paying.payOut();
    expect(await paying.list("paid")).toHaveLength(3);
  });

  test("an empty gas account: nothing is submitted, it is said once, and it goes when there is some", async () => {
    paying.chain.coin = 0n;
    await paying.owe(ALICE);
    await paying.step();
    await paying.step(PAYOUT_MS);
    expect(await paying.waits()).toEqual([[ALICE, "no_gas"]]);
    expect([paying.chain.sent, paying.reported]).toEqual([[], ["no_gas"]]);
    paying.chain.coin = 10n ** 18n;
    await paying.payOut();
    expect(await paying.list("paid")).toHaveLength(1);
    expect(paying.reported).toEqual(["no_gas", "goes on"]);
  });

  test("gas that runs out while it is under way: it stays submitted and says so", async () => {
    await paying.owe(ALICE);
    paying.chain.onAsked = (question) => {
      if (question === "send") paying.chain.coin = 0n;
    };
    await paying.step();
    expect(await paying.waits("submitted")).toEqual([[ALICE, "no_gas"]]);
    paying.chain.onAsked = () => {};
    paying.chain.coin = 10n ** 18n;
    await paying.payOut();
    expect(await paying.list("paid")).toHaveLength(1);
    expect(new Set(paying.chain.sent).size).toBe(1);
  });

  test("fees above the most that is paid: nothing is begun; what is under way waits, and both go when they fall", async () => {
    await paying.owe(ALICE);
    await paying.step();
    paying.chain.drop();
    paying.feeMax = 110n;
    paying.restart();
    paying.chain.fees = { max: 5_000n, priority: 50n };
    paying.chain.mine(5);
    await paying.owe(BOB);
    await paying.step();
    expect([await paying.waits("submitted"), await paying.waits()]).toEqual([
      [[ALICE, "fees"]],
      [[BOB, "fees"]],
    ]);
    paying.chain.drop();
    paying.chain.fees = { max: 100n, priority: 10n };
    await paying.payOut();
    await paying.payOut();
    expect(await paying.list("paid")).toHaveLength(2);
    for (const raw of paying.chain.sent) expect((await decodeTransaction(raw))!.fees.max <= 110n).toBe(true);
  });

  test("fees above the most that is paid, with nothing under way: nothing is signed", async () => {
    paying.chain.fees = { max: 2_100n, priority: 50n };
    await paying.owe(ALICE);
    await paying.step();
    expect([await paying.waits(), paying.chain.sent]).toEqual([[[ALICE, "fees"]], []]);
    paying.chain.fees = { max: 100n, priority: 10n };
    await paying.payOut();
    expect(await paying.list("paid")).toHaveLength(1);
  });

  test("what is under way is spent, though no block has it", async () => {
    paying.chain.balance = 150n;
    await paying.owe(ALICE);
    await paying.step();
    await paying.owe(BOB);
    await paying.step(PAYOUT_MS);
    expect(await paying.waits()).toEqual([[BOB, "no_money"]]);
    expect(new Set(paying.chain.sent).size).toBe(1);
  });

  test("a stop that comes while a payout is being signed: it is not committed", async () => {
    paying.chain.onAsked = async (question) => {
      const stop = { code: "other_amount", detail: "pay_1" } as const;
      if (question === "gasOf") await setRailCode(paying.ctx, [{ mode: "sandbox", asset: "USDC" }], stop);
    };
    await paying.owe(ALICE);
    await paying.step();
    expect([await paying.waits(), paying.chain.sent]).toEqual([[[ALICE, "other_amount"]], []]);
  });

  test("a fee spike below the most that is paid: each is replaced with its nonce, and paid once", async () => {
    for (const payee of [ALICE, BOB]) await paying.owe(payee);
    await paying.step();
    paying.chain.drop();
    paying.chain.mine(5);
    paying.chain.fees = { max: 300n, priority: 30n };
    await paying.step();
    paying.chain.mine(CONFIRMATIONS);
    await paying.step();
    expect(new Set(paying.chain.sent).size).toBe(4);
    expect([...paying.chain.paid()]).toEqual([
      [ALICE, 100n],
      [BOB, 100n],
    ]);
    expect(await paying.list("paid")).toHaveLength(2);
  });

  test("a chain that is away: owed and submitted say so, and nothing is sent twice", async () => {
    await paying.owe(ALICE);
    await paying.step();
    await paying.owe(BOB);
    paying.chain.away = "timeout";
    await paying.step(PAYOUT_MS);
    expect([await paying.waits(), await paying.waits("submitted")]).toEqual([
      [[BOB, "away"]],
      [[ALICE, "away"]],
    ]);
    paying.chain.away = null;
    await paying.payOut();
    await paying.payOut();
    expect([...paying.chain.paid()]).toEqual([
      [ALICE, 100n],
      [BOB, 100n],
    ]);
    expect(paying.reported).toEqual(["away", "goes on"]);
  });

  test("a node that refuses what is sent: it is sent again as it is, and its words are shown", async () => {
    paying.chain.refusals.push({ refused: "by_node", message: "txpool is full" });
    await paying.owe(ALICE);
    await paying.step();
    expect(await paying.list("submitted")).toMatchObject([
      { waits_for: { message: expect.stringContaining("full") } },
    ]);
    await paying.payOut();
    expect(await paying.list("paid")).toHaveLength(1);
    expect(new Set(paying.chain.sent).size).toBe(1);
  });
});

describe("a token", () => {
  test.each([18, null])(
    "of %p decimals, where its asset has 6, is not called, and says why",
    async (decimals) => {
      paying.chain.decimals = decimals;
      await paying.owe(ALICE);
      await paying.payOut();
      expect(paying.chain.sent).toEqual([]);
      expect(await paying.list("owed")).toMatchObject([
        {
          waits_for: { code: "token_refuses", message: expect.stringContaining("decimals, and USDC has 6") },
        },
      ]);
      paying.chain.decimals = 6;
      await paying.payOut();
      expect(await paying.list("paid")).toHaveLength(1);
    },
  );

  test("of other decimals is asked for them once, however many payees wait for it", async () => {
    paying.chain.decimals = 18;
    const asked: string[] = [];
    paying.chain.onAsked = (question) => void asked.push(question);
    await paying.owe(ALICE);
    await paying.owe(BOB);
    await paying.step();
    expect(asked.filter((question) => question === "decimalsOf")).toEqual(["decimalsOf"]);
    expect(await paying.waits()).toEqual([
      [ALICE, "token_refuses"],
      [BOB, "token_refuses"],
    ]);
  });

  test.each(["answers_false", "reverts"] as const)("that %s is not called, and says why", async (token) => {
    paying.chain.token = token;
    await paying.owe(ALICE);
    await paying.payOut();
    expect(paying.chain.sent).toEqual([]);
    expect(await paying.waits()).toEqual([[ALICE, "token_refuses"]]);
    paying.chain.token = "plain";
    await paying.payOut();
    expect(await paying.list("paid")).toHaveLength(1);
  });

  test.each(["answers_false", "reverts"] as const)(
    "that %s only in the block: it failed, and a person submits it again",
    async (token) => {
      Object.assign(paying.chain, { token, playsHonestly: false });
      await paying.owe(ALICE);
      await paying.payOut();
      expect(await paying.list("failed")).toMatchObject([
        { rail: "evm", reason: expect.stringContaining("eip155:84532:0x") },
      ]);
      expect(account(ALICE)).toMatchObject({ payable: 100n, submitted: 0n, paidOut: 0n });
      paying.chain.token = "plain";
      await paying.payOut();
      expect(await paying.waits()).toEqual([[ALICE, "failed"]]);
      await submitSigned(paying.ctx, paying.stage.admin, ALICE);
      await paying.payOut();
      expect([...paying.chain.paid()]).toEqual([[ALICE, 100n]]);
    },
  );

  test.each(["the chain", "a person"])(
    "of which %s says that one payout failed, while a later one is under way: its amount waits for a passkey",
    async (who) => {
      const { chain, ctx } = paying;
      chain.playsHonestly = false;
      await paying.owe(ALICE, "100");
      await paying.step();
      if (who === "the chain") chain.token = "reverts";
      chain.mine(CONFIRMATIONS);
      if (who === "a person") await paying.step();
      chain.token = "plain";
      await paying.owe(ALICE, "30");
      if (who === "the chain") {
        chain.takeOut(CONFIRMATIONS - 1);
        await paying.step(PAYOUT_MS);
        chain.mine(CONFIRMATIONS - 1);
        await paying.step();
      } else {
        await paying.step(PAYOUT_MS);
        const payout_id = (await paying.list("paid"))[0]?.id ?? "";
        must(await failPayoutOf(ctx, MACHINE, { payout_id, reason: "it came back", returned: true }));
      }
      chain.mine(CONFIRMATIONS);
      await paying.payOut();
      await paying.payOut();
      expect((await paying.list("paid")).map(({ amount }) => amount)).toEqual(["30"]);
      expect([await paying.waits(), account(ALICE)]).toEqual([
        [[ALICE, "failed"]],
        { payable: 100n, submitted: 0n, paidOut: 30n },
      ]);
      await submitSigned(ctx, paying.stage.admin, ALICE);
      await paying.payOut();
      expect(account(ALICE)).toEqual({ payable: 0n, submitted: 0n, paidOut: 130n });
    },
  );

  test("that answers nothing has paid", async () => {
    paying.chain.token = "answers_nothing";
    await paying.owe(ALICE);
    await paying.payOut();
    expect(await paying.list("paid")).toHaveLength(1);
  });

  test("that hides a fee from a node without old balances is believed by its event", async () => {
    [paying.chain.token, paying.chain.keepsBalances] = ["hides_fee", false];
    await paying.owe(ALICE);
    await paying.payOut();
    expect(await paying.list("paid")).toHaveLength(1);
  });

  test.each(["takes_fee", "hides_fee", "pays_another"] as const)(
    "that %s: it stays submitted, all stops, and a person decides",
    async (token) => {
      paying.chain.token = token;
      await paying.owe(ALICE);
      await paying.payOut();
      const [payout] = await paying.list("submitted");
      expect(payout?.waits_for).toMatchObject({
        code: "decision",
        message: expect.stringContaining("of 100 arrived"),
      });
      await paying.owe(BOB);
      await paying.payOut();
      expect(await paying.waits()).toEqual([[BOB, "other_amount"]]);
      expect(new Set(paying.chain.sent).size).toBe(1);
      must(
        await markPaid(paying.ctx, MACHINE, { payout_id: payout?.id ?? "", reference: "seen on the chain" }),
      );
      paying.chain.token = "plain";
      must(await resume());
      await paying.payOut();
      expect(await paying.list("paid")).toHaveLength(2);
    },
  );
});
