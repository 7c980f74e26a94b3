import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { decodeTransaction } from "../../src/platform/evm-wallet.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { failPayoutOf, markPaid, submitPayouts } from "../../src/services/admin/payouts.ts";
import { resumeTreasury } from "../../src/services/admin/treasuries.ts";
import type { Store } from "../../src/store/store.ts";
import { type Dying, dyingAt, STORE_CALLS, WALLET_CALLS } from "../support/dying.ts";
import { ALICE, BOB, CAROL, CONFIRMATIONS, PAYOUT_MS, type Paying, startPaying } from "../support/paying.ts";
import { markRestored } from "../support/restored.ts";
import { must } from "../support/stage.ts";

/** Payouts on a chain in memory: crashes, reorganisations, and a wallet that others use too. */

let paying: Paying;
beforeEach(async () => {
  paying = await startPaying();
});
afterEach(() => paying.close());

const scope = () => ({ organisation_id: paying.stage.organisationId, mode: paying.stage.mode });
const resume = (nonce?: number) =>
  resumeTreasury(paying.ctx, MACHINE, {
    ...{ mode: "sandbox", asset: "USDC", ...(nonce !== undefined && { nonce }) },
  });
const idOf = async (status: "submitted" | "paid") => (await paying.list(status))[0]?.id ?? "";

/** Lets the job's process die at the n-th thing that it waits for. */
function killAt(n: number, when: "before" | "after"): Dying {
  const dying = dyingAt(n, when);
  paying.wrapped = {
    store: dying.of(paying.ctx.store, STORE_CALLS),
    wallet: dying.of(paying.chain.wallet, WALLET_CALLS),
  };
  paying.restart();
  return dying;
}

/** A store that keeps so many commits, and loses all after them. */
function losingCommits(of: Store, kept: number): Store {
  let commits = 0;
  const execute = async (command: never): Promise<unknown> => {
    commits += 1;
    if (commits > kept) throw new Error("killed");
    return of.execute(command);
  };
  return new Proxy(of, {
    get: (target, name) => (name === "execute" ? execute : Reflect.get(target, name)),
  });
}

describe("a crash", () => {
  test.each(["before", "after"] as const)(
    "%s any step, and a restart: each payee is paid once",
    async (when) => {
      let n = 0;
      for (let dies = true; dies; ) {
        n += 1;
        const payees = [n * 2, n * 2 + 1].map((number) => `0x${number.toString(16).padStart(40, "0")}`);
        for (const payee of payees) await paying.owe(payee, "10");
        const kill = killAt(n, when);
        await paying.step(PAYOUT_MS).catch(() => {});
        if (!kill.died()) {
          paying.chain.mine(CONFIRMATIONS);
          await paying.step().catch(() => {});
        }
        dies = kill.died();
        await paying.reopen();
        await paying.payOut();
        await paying.payOut();
        const paid = await paying.list("paid");
        for (const payee of payees) {
          expect([n, payee, paying.chain.paid().get(payee)]).toEqual([n, payee, 10n]);
          expect([n, payee, paid.filter((one) => one.payee === payee).length]).toEqual([n, payee, 1]);
        }
        expect([n, await paying.list("submitted"), await paying.list("owed")]).toEqual([n, [], []]);
      }
      expect(n).toBeGreaterThan(30);
    },
    // Each of some forty crashes opens the ledger again, which takes longest where it is in a database.
    240_000,
  );
});

describe("a node", () => {
  test("that takes each transaction twice, loses it, or takes it and does not say so: it is paid once", async () => {
    for (const payee of [ALICE, BOB]) await paying.owe(payee);
    const { send } = paying.chain.wallet;
    let answers = 0;
    const twice: typeof send = async (raw) => {
      await send(raw);
      await send(raw);
      answers += 1;
      return answers > 3 ? null : { away: "timeout" };
    };
    paying.wrapped = { store: paying.ctx.store, wallet: { ...paying.chain.wallet, send: twice } };
    paying.restart();
    await paying.step();
    expect(await paying.waits("submitted")).toContainEqual([ALICE, "away"]);
    paying.chain.drop();
    await paying.payOut();
    await paying.payOut();
    expect([...paying.chain.paid()]).toEqual([
      [ALICE, 100n],
      [BOB, 100n],
    ]);
    expect(await paying.list("paid")).toHaveLength(2);
  });

  test("that forgets one in the middle gets it again, and no gap stays", async () => {
    for (const payee of [ALICE, BOB, CAROL]) await paying.owe(payee);
    await paying.step();
    const [first, , third] = [...new Set(paying.chain.sent)];
    paying.chain.drop();
    for (const raw of [first, third]) await paying.chain.wallet.send(raw ?? "");
    paying.chain.mine(1);
    await paying.step();
    paying.chain.mine(CONFIRMATIONS);
    await paying.step();
    expect(await paying.list("paid")).toHaveLength(3);
  });

  test("that gives a receipt of another block, or none: nothing is guessed", async () => {
    await paying.owe(ALICE);
    await paying.step();
    const { receipt } = paying.chain.wallet;
    const wallet = { ...paying.chain.wallet };
    paying.wrapped = { store: paying.ctx.store, wallet };
    paying.restart();
    paying.chain.mine(CONFIRMATIONS);
    wallet.receipt = async () => null;
    await paying.step();
    wallet.receipt = async (hash) => ({ hash, block: 77, succeeded: false, transfers: [] });
    await paying.step();
    expect(await paying.waits("submitted")).toEqual([[ALICE, "confirmations"]]);
    wallet.receipt = receipt;
    await paying.step();
    expect(await paying.list("paid")).toHaveLength(1);
  });

  test("that is behind, and shows less than was sent, gets nothing new", async () => {
    await paying.owe(ALICE);
    await paying.payOut();
    await paying.owe(BOB);
    const { look } = paying.chain.wallet;
    const behind: typeof look = async (of) => {
      const view = await look(of);
      return "away" in view || of.length > 0 ? view : { ...view, nonce: 0 };
    };
    paying.wrapped = { store: paying.ctx.store, wallet: { ...paying.chain.wallet, look: behind } };
    paying.restart();
    await paying.step();
    expect(await paying.waits()).toEqual([[BOB, "away"]]);
    expect(new Set(paying.chain.sent).size).toBe(1);
  });
});

describe("a reorganisation", () => {
  test.each([1, CONFIRMATIONS - 1])(
    "of %d blocks before the confirmation: it is paid once",
    async (blocks) => {
      await paying.owe(ALICE);
      await paying.step();
      paying.chain.mine(CONFIRMATIONS - 1);
      paying.chain.takeOut(blocks);
      await paying.step();
      expect(await paying.list("paid")).toEqual([]);
      paying.chain.mine(CONFIRMATIONS);
      await paying.step();
      expect(await paying.list("paid")).toHaveLength(1);
      expect([...paying.chain.paid()]).toEqual([[ALICE, 100n]]);
    },
  );

  test("that moves one and leaves the next in its block, before they are accounted for: both are paid", async () => {
    const wallet = { ...paying.chain.wallet };
    const { receipt } = wallet;
    paying.wrapped = { store: paying.ctx.store, wallet };
    paying.restart();
    await paying.owe(ALICE);
    await paying.step();
    paying.chain.mine(1);
    await paying.owe(BOB);
    await paying.step(PAYOUT_MS);
    paying.chain.mine(CONFIRMATIONS);
    // They are confirmed, and what became of them cannot be asked yet.
    wallet.receipt = async () => ({ away: "timeout" });
    await paying.step();
    wallet.receipt = receipt;
    paying.chain.takeOut(CONFIRMATIONS + 1);
    const sent = [...new Set(paying.chain.sent)];
    paying.chain.drop();
    paying.chain.mine(1);
    for (const raw of sent) await paying.chain.wallet.send(raw);
    paying.chain.mine(CONFIRMATIONS);
    for (let step = 0; step < 3; step++) await paying.step();
    expect([await paying.list("submitted"), (await paying.list("paid")).length]).toEqual([[], 2]);
    expect(paying.chain.paid().get(ALICE)).toBe(100n);
  });

  /** A payout that was paid, and is on its way again. */
  async function takenOut(): Promise<void> {
    for (const payee of [ALICE, BOB]) await paying.owe(payee);
    await paying.payOut();
    paying.chain.takeOut(CONFIRMATIONS);
    await paying.step(PAYOUT_MS);
  }

  test("deeper than the confirmations: it stays paid with a warning, and the warning goes when it is in again", async () => {
    await takenOut();
    const paid = await paying.list("paid");
    expect(paid.map(({ waits_for: of }) => of?.message)).toEqual(
      Array(2).fill(expect.stringContaining("a reorganisation took it out of its block")),
    );
    expect(paying.reported).toContain("a reorganisation took a payout out of its block");
    expect(
      await failPayoutOf(paying.ctx, MACHINE, { payout_id: await idOf("paid"), reason: "x", returned: true }),
    ).toMatchObject({
      refused: "illegal_transition",
    });
    paying.chain.mine(CONFIRMATIONS);
    await paying.step();
    expect((await paying.list("paid")).map(({ waits_for: of }) => of)).toEqual([null, null]);
    expect([...paying.chain.paid()]).toEqual([
      [ALICE, 100n],
      [BOB, 100n],
    ]);
    expect(new Set(paying.chain.sent).size).toBe(2);
  });

  test("after which the token reverts it: it came back, and is owed again", async () => {
    await takenOut();
    paying.chain.token = "reverts";
    paying.chain.mine(CONFIRMATIONS);
    await paying.step();
    expect(await paying.list("failed")).toHaveLength(2);
    expect(await paying.waits()).toEqual([
      [ALICE, "failed"],
      [BOB, "failed"],
    ]);
    expect([...paying.chain.paid()]).toEqual([]);
  });

  test("that a restart finds half noted is noted then", async () => {
    await paying.owe(ALICE);
    await paying.payOut();
    paying.chain.takeOut(CONFIRMATIONS);
    // The first commit opens the transaction; the one that notes it is lost.
    const store = losingCommits(paying.ctx.store, 1);
    paying.wrapped = { store, wallet: paying.chain.wallet };
    paying.restart();
    await expect(paying.step(PAYOUT_MS)).rejects.toThrow("killed");
    await paying.reopen();
    paying.chain.mine(CONFIRMATIONS);
    await paying.step();
    expect(paying.reported).toContain("a reorganisation took a payout out of its block");
    expect((await paying.list("paid")).map(({ waits_for: of }) => of)).toEqual([null]);
  });
});

describe("another program with the wallet's key", () => {
  test("has the nonce: whether the payee was paid is not known, all stops, and a person decides", async () => {
    await paying.owe(ALICE);
    await paying.step();
    paying.chain.useNonce();
    paying.chain.mine(CONFIRMATIONS);
    await paying.step();
    expect(await paying.list("submitted")).toMatchObject([
      { waits_for: { code: "decision", message: expect.stringContaining("has its nonce 0") } },
    ]);
    await paying.owe(BOB);
    await paying.payOut();
    expect(await paying.waits()).toEqual([[BOB, "unknown_transactions"]]);
    expect(new Set(paying.chain.sent).size).toBe(1);
    const payout_id = await idOf("submitted");
    must(await failPayoutOf(paying.ctx, MACHINE, { payout_id, reason: "not on the chain" }));
    expect((await paying.list("failed")).map(({ waits_for: of }) => of)).toEqual([null]);
    must(await resume());
    await paying.payOut();
    expect(await paying.waits()).toEqual([[ALICE, "failed"]]);
    expect([...paying.chain.paid()]).toEqual([[BOB, 100n]]);
  });

  test("has sent some: nothing is sent until the operator says up to which nonce they have looked", async () => {
    await paying.owe(ALICE);
    await paying.payOut();
    paying.chain.useNonce();
    paying.chain.useNonce();
    await paying.owe(BOB);
    await paying.payOut();
    expect(await paying.waits()).toEqual([[BOB, "unknown_transactions"]]);
    // It is said once, and not taken back while they are stopped.
    await paying.payOut();
    expect(paying.reported).toEqual(["unknown_transactions"]);
    expect(await paying.list("owed")).toMatchObject([
      { waits_for: { message: expect.stringContaining("nonces 1 to 2") } },
    ]);
    expect(await resume()).toMatchObject({
      refused: "validation_failed",
      message: expect.stringContaining("must be 3"),
    });
    expect(await resume(2)).toMatchObject({ refused: "validation_failed" });
    paying.chain.useNonce();
    must(await resume(3));
    await paying.payOut();
    // One more came meanwhile.
    expect(await paying.waits()).toEqual([[BOB, "unknown_transactions"]]);
    must(await resume(4));
    await paying.payOut();
    expect(await paying.list("paid")).toHaveLength(2);
  });

  test("sent some before the ledger knew the wallet: they are taken for what they are", async () => {
    paying.chain.useNonce();
    await paying.owe(ALICE);
    await paying.payOut();
    expect(await paying.list("paid")).toHaveLength(1);
    expect((await decodeTransaction(paying.chain.sent[0]!))!.nonce).toBe(1);
  });
});

describe("a restored ledger", () => {
  test("that forgot payouts sends nothing that the chain may have, until the operator has compared", async () => {
    paying.chain.useNonce();
    await markRestored(paying.ctx, { acknowledgedAt: paying.ctx.now() });
    await paying.owe(ALICE);
    await paying.payOut();
    expect(await paying.waits()).toEqual([[ALICE, "unknown_transactions"]]);
    expect(paying.chain.sent).toEqual([]);
    // It was paid before the restore: the operator records that, and nothing is paid twice.
    must(await submitPayouts(paying.ctx, MACHINE, { ...scope(), payee: ALICE, rail: "book" }));
    must(
      await markPaid(paying.ctx, MACHINE, {
        payout_id: await idOf("submitted"),
        reference: "eip155:84532:0x1",
      }),
    );
    must(await resume(1));
    await paying.payOut();
    expect(paying.chain.sent).toEqual([]);
    expect(await paying.list("paid")).toHaveLength(1);
  });

  test("whose payout another transaction replaced: whether it was paid is not known, and a person says so", async () => {
    await paying.owe(ALICE);
    await paying.step();
    await markRestored(paying.ctx, { acknowledgedAt: paying.ctx.now() });
    paying.chain.useNonce();
    paying.chain.mine(CONFIRMATIONS);
    await paying.step();
    expect(await paying.list("submitted")).toMatchObject([
      {
        waits_for: {
          code: "decision",
          message: expect.stringContaining("look whether the payee has the money"),
        },
      },
    ]);
    must(await markPaid(paying.ctx, MACHINE, { payout_id: await idOf("submitted"), reference: "found it" }));
    expect((await paying.list("paid")).map(({ waits_for: of }) => of)).toEqual([null]);
  });

  test("that is not acknowledged commits no payout", async () => {
    await paying.owe(ALICE);
    await markRestored(paying.ctx);
    await paying.step();
    expect(paying.chain.sent).toEqual([]);
    expect(await paying.list("submitted")).toEqual([]);
  });
});
