import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { approvalOfCorrection } from "../../../src/core/passkey.ts";
import type { Mode } from "../../../src/core/roles.ts";
import { type Authority, MACHINE } from "../../../src/services/admin/authority.ts";
import { fundBalance } from "../../../src/services/admin/balances.ts";
import { correctBalance, decideCorrection } from "../../../src/services/admin/corrections.ts";
import { failPayoutOf, markPaid } from "../../../src/services/admin/payouts.ts";
import { setPasskeyThreshold } from "../../../src/services/admin/switches.ts";
import { keepRailStates } from "../../../src/services/rails/states.ts";
import { createTestContext } from "../../support/context.ts";
import { putSignature } from "../../support/passkeys.ts";
import { ALICE, CONFIRMATIONS, type Paying, startPaying } from "../../support/paying.ts";
import { expectRefused } from "../../support/refused.ts";
import { createStage, must } from "../../support/stage.ts";

/** A treasury has the money of all organisations: the people of one do not get any of it by saying that there is more of theirs. */

let paying: Paying;
const begin = async (mode: Mode): Promise<void> => {
  paying = await startPaying({ mode });
};
afterEach(() => paying.close());

const scope = () => ({ organisation_id: paying.stage.organisationId, mode: paying.stage.mode });
const fund = (by: Authority, asset = "USDC", reference = "wire") =>
  fundBalance(paying.ctx, by, { ...scope(), asset, amount: "100", reference });
const correct = (by: Authority, deposit_id: string, amount: string) =>
  correctBalance(paying.ctx, by, { deposit_id, amount, reason: "as the bank says" });

describe("where a treasury holds real money", () => {
  beforeEach(() => begin("live"));

  test("an owner records none of it, and the operator of the machine does", async () => {
    const { owner } = paying.stage;
    await expectRefused(paying.ctx, () => fund(owner), [
      "validation_failed",
      "asset: USDC comes in on a chain",
    ]);
    const deposit = must(await fund(MACHINE));
    expect(must(await fund(owner))).toEqual(deposit);
    // What no wallet holds is paid by their own means.
    must(await fund(owner, "EUR"));
  });

  test("an owner corrects a deposit downwards alone, and the operator of the machine either way", async () => {
    const { owner } = paying.stage;
    const { id } = must(await fund(MACHINE));
    await expectRefused(paying.ctx, () => correct(owner, id, "101"), [
      "validation_failed",
      "amount: must not",
    ]);
    must(await correct(owner, id, "90"));
    // It was there before, and is added anew all the same.
    await expectRefused(paying.ctx, () => correct(owner, id, "100"), [
      "validation_failed",
      "amount: must not",
    ]);
    must(await correct(MACHINE, id, "110"));
    const { id: other } = must(await fund(owner, "EUR"));
    must(await correct(owner, other, "110"));
  });

  test("an owner does not say that a payout came back or failed, and the operator of the machine does", async () => {
    const { owner } = paying.stage;
    await paying.owe(ALICE);
    await paying.payOut();
    const [paid] = await paying.list("paid");
    const end = { payout_id: paid?.id ?? "", reason: "it came back", returned: true };
    await expectRefused(paying.ctx, () => failPayoutOf(paying.ctx, owner, end), [
      "insufficient_role",
      `The payout ${end.payout_id} was sent by a treasury`,
    ]);
    must(await failPayoutOf(paying.ctx, MACHINE, end));
  });

  test("nor that one failed whose transaction the chain does not show; that it was paid they may say", async () => {
    const { owner } = paying.stage;
    await paying.owe(ALICE);
    await paying.step();
    paying.chain.useNonce();
    paying.chain.mine(CONFIRMATIONS);
    await paying.step();
    const [undecided] = await paying.list("submitted");
    const payout_id = undecided?.id ?? "";
    await expectRefused(
      paying.ctx,
      () => failPayoutOf(paying.ctx, owner, { payout_id, reason: "not on the chain" }),
      ["insufficient_role", `The payout ${payout_id} was sent by a treasury`],
    );
    must(await markPaid(paying.ctx, owner, { payout_id, reference: "found it" }));
  });
});

test("in the sandbox, whose money is not real, an admin does all of it", async () => {
  await begin("sandbox");
  const { admin } = paying.stage;
  const { id } = must(await fund(admin));
  must(await correct(admin, id, "110"));
  await paying.owe(ALICE);
  await paying.payOut();
  const [paid] = await paying.list("paid");
  const end = { payout_id: paid?.id ?? "", reason: "it came back", returned: true };
  expect(must(await failPayoutOf(paying.ctx, admin, end))).toMatchObject({ status: "failed" });
});

test("what a person proposed before there was a treasury is not approved any more; what the operator proposed is", async () => {
  await begin("live");
  const ctx = createTestContext();
  const { organisationId, owner, admin } = await createStage(ctx);
  const input = { organisation_id: organisationId, mode: "live", amount: "100" } as const;
  must(await setPasskeyThreshold(ctx, MACHINE, { organisation_id: organisationId, amount: "1" }));
  const proposals = [];
  for (const by of [owner, MACHINE]) {
    const { id: deposit_id } = must(await fundBalance(ctx, by, { ...input, asset: "USDC" }));
    proposals.push(
      must(await correctBalance(ctx, by, { deposit_id, amount: "200", reason: "more came" })).id,
    );
  }
  await keepRailStates({ ...ctx, treasuries: paying.ctx.treasuries });
  const [persons = "", operators = ""] = proposals;
  const approve = async (id: string) => {
    const passkey_token = await putSignature(ctx, admin, approvalOfCorrection(admin.userId, id));
    return () => decideCorrection(ctx, admin, { correction_id: id, decision: "approve", passkey_token });
  };
  await expectRefused(ctx, await approve(persons), ["validation_failed", "amount: must not"]);
  must(await (await approve(operators))());
  must(await decideCorrection(ctx, admin, { correction_id: persons, decision: "withdraw" }));
  await ctx.close();
});
