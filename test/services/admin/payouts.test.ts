import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Payout } from "../../../src/core/payout.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { showBalances } from "../../../src/services/admin/balances.ts";
import {
  failPayoutOf,
  type ListInput,
  listPayouts,
  markPaid,
  submitPayouts,
} from "../../../src/services/admin/payouts.ts";
import { setPasskeyThreshold } from "../../../src/services/admin/switches.ts";
import { readTrace } from "../../../src/services/warrants/read.ts";
import { payForUrl } from "../../../src/services/x402/pay.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { asksExact, asksVoucher, delivers, openMarket, RECEIPT } from "../../support/market.ts";
import { expectRefused } from "../../support/refused.ts";
import { markRestored } from "../../support/restored.ts";
import {
  createCaller,
  createStage,
  idempotencyOf,
  must,
  open,
  SCRIPTED,
  type Stage,
  settle,
  warrantIn,
} from "../../support/stage.ts";

let ctx: TestContext;
let stage: Stage;

beforeAll(async () => {
  ctx = createTestContext(SCRIPTED);
  stage = await createStage(ctx);
});
afterAll(() => ctx.close());

const scopeOf = (of = stage) => ({ organisation_id: of.organisationId, mode: of.mode });
const list = async (input: Partial<ListInput> = {}, of = stage) =>
  must(await listPayouts(ctx, of.admin, { ...scopeOf(of), ...input }));
const submit = async (payee?: string, of = stage) =>
  must(await submitPayouts(ctx, of.admin, { ...scopeOf(of), ...(payee !== undefined && { payee }) })).data;
async function release(payee: string, amount = "100", of = stage): Promise<string> {
  const { id } = warrantIn(await open(of, of.operator, { payee, amount }));
  must(await settle(of, of.operator, id, "release"));
  return id;
}
/** What is owed to a payee, under way and paid out. */
const account = (payee: string) =>
  ctx.reader.payees
    .list({ organisationId: stage.organisationId, mode: "live" }, 0, 1_000)
    .find((one) => one.payee === payee)?.balance;
const paid = async () => must(await showBalances(ctx, MACHINE, scopeOf())).balances[0]?.paid;

describe("what is owed to a payee", () => {
  test("is the sum of what was released to it, in one mode and asset", async () => {
    await release("acme");
    await release("acme", "23");
    const part = warrantIn(await open(stage, stage.operator, { payee: "acme", amount: "10" })).id;
    must(await settle(stage, stage.operator, part, "partial_release", { releasedBps: 5_000 }));
    const none = warrantIn(await open(stage, stage.operator, { payee: "nobody", amount: "10" })).id;
    must(await settle(stage, stage.operator, none, "refund"));
    expect(account("acme")).toEqual({ payable: 128n, submitted: 0n, paidOut: 0n });
    expect(account("nobody")).toBeUndefined();
    expect((await list()).data).toMatchObject([
      {
        id: null,
        object: "payout",
        payee: "acme",
        asset: "USDC",
        amount: "128",
        rail: "book",
        status: "owed",
      },
    ]);
  });

  test("of a payee with blanks in its name, of several in one batch, and page by page", async () => {
    await Promise.all(["a b", "a  b", "c"].flatMap((payee) => [release(payee, "5"), release(payee, "6")]));
    const first = await list({ limit: 2 });
    expect(first).toMatchObject({ has_more: true });
    const rest = await list({ limit: 1_000, starting_after: first.next_cursor! });
    expect(rest).toMatchObject({ has_more: false, next_cursor: null });
    const all = [...first.data, ...rest.data].map(({ payee, amount }) => [payee, amount]);
    expect(all.slice(1).sort()).toEqual([
      ["a  b", "11"],
      ["a b", "11"],
      ["c", "11"],
    ]);
  });
});

describe("a payout", () => {
  test("takes all that is owed, once, and is marked as paid once", async () => {
    const before = await paid();
    const [payout, ...more] = await submit("acme");
    expect(more).toEqual([]);
    expect(payout).toMatchObject({ status: "submitted", amount: "128", version: 1, reference: null });
    expect(account("acme")).toEqual({ payable: 0n, submitted: 128n, paidOut: 0n });
    expect(await submit("acme")).toEqual([]);
    const id = payout!.id!;
    const done = must(await markPaid(ctx, stage.admin, { payout_id: id, reference: "wire 1" }));
    expect(done).toMatchObject({ status: "paid", reference: "wire 1", version: 2 });
    expect(must(await markPaid(ctx, stage.admin, { payout_id: id, reference: "wire 1" }))).toEqual(done);
    expect(account("acme")).toEqual({ payable: 0n, submitted: 0n, paidOut: 128n });
    await expectRefused(ctx, () => markPaid(ctx, stage.admin, { payout_id: id, reference: "wire 2" }), [
      "illegal_transition",
      `The payout ${id} was marked as paid with the reference wire 1.`,
    ]);
    await expectRefused(ctx, () => failPayoutOf(ctx, stage.admin, { payout_id: id, reason: "x" }), [
      "illegal_transition",
      `The payout ${id} was marked as paid. Where the payment came back`,
    ]);
    expect(await paid()).toBe(before!);
  });

  test("that failed is owed again, and the next one is another", async () => {
    const [first] = await submit("c");
    const failing = { payout_id: first!.id!, reason: "no such account" };
    const failed = must(await failPayoutOf(ctx, stage.admin, failing));
    expect(failed).toMatchObject({ status: "failed", reason: "no such account", version: 2 });
    expect(must(await failPayoutOf(ctx, stage.admin, failing))).toEqual(failed);
    await expectRefused(ctx, () => markPaid(ctx, stage.admin, { payout_id: first!.id!, reference: "r" }), [
      "illegal_transition",
      `The payout ${first!.id} has failed, and its amount is owed again.`,
    ]);
    expect(account("c")).toEqual({ payable: 11n, submitted: 0n, paidOut: 0n });
    await release("c", "4");
    const [second] = await submit("c");
    expect(second).toMatchObject({ amount: "15" });
    expect(second!.id).not.toBe(first!.id);
    await expectRefused(
      ctx,
      () => failPayoutOf(ctx, stage.admin, { payout_id: second!.id!, reason: "x", returned: true }),
      ["illegal_transition", `The payout ${second!.id} is submitted: it was not paid`],
    );
    must(await markPaid(ctx, stage.admin, { payout_id: second!.id!, reference: "wire 3" }));
    const returned = { payout_id: second!.id!, reason: "account closed", returned: true };
    expect(must(await failPayoutOf(ctx, stage.admin, returned))).toMatchObject({
      status: "failed",
      version: 3,
    });
    must(await failPayoutOf(ctx, stage.admin, returned));
    expect(account("c")).toEqual({ payable: 15n, submitted: 0n, paidOut: 0n });
    expect((await list({ status: "failed" })).data.map(({ id }) => id)).toEqual([second!.id, first!.id]);
  });

  test("of every payee that is owed something; of two runs at once, one makes it", async () => {
    const both = await Promise.all([submit(), submit()]);
    const made = both.flat();
    expect(made.map(({ payee }) => payee).sort()).toEqual(["a  b", "a b", "c"]);
    expect((await list()).data).toEqual([]);
    expect((await list({ status: "submitted" })).data).toHaveLength(3);
    const { id } = made[0] as { id: string };
    const ends = await Promise.all([
      markPaid(ctx, stage.admin, { payout_id: id, reference: "r" }),
      failPayoutOf(ctx, stage.admin, { payout_id: id, reason: "x" }),
    ]);
    expect(ends.filter((end) => "refused" in end)).toHaveLength(1);
  });

  test("changes nothing of its warrants: neither trace nor paid, and no event fires", async () => {
    const id = await release("unchanged");
    const before = [must(await readTrace(ctx, stage.admin, id)), await paid()];
    const [payout] = await submit("unchanged");
    must(await markPaid(ctx, stage.admin, { payout_id: payout!.id!, reference: "r" }));
    expect([must(await readTrace(ctx, stage.admin, id)), await paid()]).toEqual(before);
  });

  test("is an admin's: nobody else begins or ends one, nor one of others", async () => {
    await release("refused");
    await expectRefused(ctx, () => submitPayouts(ctx, stage.operator, scopeOf()), [
      "insufficient_role",
      "This needs the role admin",
    ]);
    const caller = await createCaller(stage);
    await expectRefused(ctx, () => submitPayouts(ctx, caller, scopeOf()), ["user_session_required", ""]);
    const [payout] = await submit("refused");
    const other = await createStage(ctx);
    for (const id of [payout!.id!, "pay_none"])
      await expectRefused(ctx, () => markPaid(ctx, other.admin, { payout_id: id, reference: "r" }), [
        "payout_not_found",
        `There is no payout ${id}.`,
      ]);
    await expectRefused(
      ctx,
      () => markPaid(ctx, stage.operator, { payout_id: payout!.id!, reference: "r" }),
      ["insufficient_role", ""],
    );
    await expectRefused(ctx, () => submitPayouts(ctx, other.admin, scopeOf()), [
      "organisation_not_found",
      "",
    ]);
  });

  test("above the passkey threshold is no person's without a passkey, and the machine's operator submits it", async () => {
    const of = await createStage(ctx);
    await release("large", "100", of);
    must(await setPasskeyThreshold(ctx, MACHINE, { organisation_id: of.organisationId, amount: "99" }));
    await expectRefused(ctx, () => submitPayouts(ctx, of.admin, scopeOf(of)), [
      "passkey_unavailable",
      "The sum of these payouts is above the passkey threshold 99, and you have no passkey",
    ]);
    expect(must(await submitPayouts(ctx, MACHINE, scopeOf(of))).data).toHaveLength(1);
  });

  test("waits after a restore, in live alone", async () => {
    const restored = createTestContext(SCRIPTED);
    const of = await createStage(restored);
    await release("waits", "100", of);
    await markRestored(restored);
    await expectRefused(restored, () => submitPayouts(restored, MACHINE, scopeOf(of)), [
      "restore_unacknowledged",
      "",
    ]);
    await restored.close();
  });
});

test("one submission has a thousand payouts at most, and begins all of them or none", async () => {
  const of = await createStage(ctx, { funds: "1001" });
  for (let done = 0; done < 1_001; done += 77)
    await Promise.all(Array.from({ length: 77 }, (_, index) => release(`payee ${done + index}`, "1", of)));
  const first = must(await submitPayouts(ctx, of.admin, scopeOf(of)));
  expect([first.data.length, first.has_more]).toEqual([1_000, true]);
  expect(new Set(first.data.map(({ id }) => id)).size).toBe(1_000);
  const last = must(await submitPayouts(ctx, of.admin, scopeOf(of)));
  expect([last.data.length, last.has_more]).toEqual([1, false]);
  const paidOut = [...first.data, ...last.data].map(({ payee }) => payee);
  expect(new Set(paidOut).size).toBe(1_001);
});

test("what a wallet has paid is owed to nobody, and what a voucher promised is", async () => {
  const market = openMarket();
  const bought = createTestContext({ x402: market.x402 });
  const of = await createStage(bought, { mode: "sandbox" });
  const caller = await createCaller(of);
  const pay = (path: string) =>
    payForUrl(
      bought,
      caller,
      {
        url: `http://seller.example/${path}`,
        ...{ max_amount: "100", spec: { clauses: [{ kind: "json.jsonpath", path: "$.ok" }] } },
      },
      idempotencyOf(path),
    );
  market.first = asksExact("100", 1);
  market.paid = () => delivers({ ok: 1 }, RECEIPT);
  market.findings = ["used"];
  must(await pay("exact"));
  const owed = () => bought.reader.payees.list({ organisationId: of.organisationId, mode: "sandbox" }, 0, 10);
  expect(owed().map(({ balance }) => balance)).toEqual([{ payable: 0n, submitted: 0n, paidOut: 100n }]);
  expect(must(await submitPayouts(bought, of.admin, scopeOf(of))).data).toEqual([]);
  market.first = asksVoucher("100");
  market.paid = () => delivers({ ok: 1 });
  must(await pay("voucher"));
  expect(owed().map(({ balance: { payable } }) => payable)).toEqual([0n, 100n]);
  await bought.close();
});

test("a status outside the list is refused", async () => {
  await expectRefused(
    ctx,
    () => listPayouts(ctx, MACHINE, { ...scopeOf(), status: "gone" as Payout["status"] }),
    ["validation_failed", "status: "],
  );
});
