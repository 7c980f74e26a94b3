import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { AMOUNT_MAX } from "../../../src/core/money.ts";
import { approvalOfCorrection } from "../../../src/core/passkey.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { fundBalance, showBalances } from "../../../src/services/admin/balances.ts";
import { correctBalance, decideCorrection } from "../../../src/services/admin/corrections.ts";
import { setPasskeyThreshold } from "../../../src/services/admin/switches.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { putSignature } from "../../support/passkeys.ts";
import { expectRefused } from "../../support/refused.ts";
import { markRestored } from "../../support/restored.ts";
import { createStage, must, open, SCRIPTED, type Stage } from "../../support/stage.ts";

let ctx: TestContext;
let stage: Stage;
let deposit: string;

beforeAll(() => {
  ctx = createTestContext(SCRIPTED);
});
beforeEach(async () => {
  stage = await createStage(ctx, { funds: "0" });
  deposit = (await fund()).id;
});
afterAll(() => ctx.close());

const scope = () => ({ organisation_id: stage.organisationId, mode: stage.mode });
const fund = async (amount = "1000") => must(await fundBalance(ctx, MACHINE, { ...scope(), amount }));
const available = async () => must(await showBalances(ctx, MACHINE, scope())).balances[0]?.available;
const input = (amount: string) => ({ deposit_id: deposit, amount, reason: "typed wrongly" });
const correct = (amount: string, by: Parameters<typeof correctBalance>[1] = stage.admin) =>
  correctBalance(ctx, by, input(amount));

describe("a correction", () => {
  test("says what a deposit really brought, downwards and upwards, and posts it once", async () => {
    const down = must(await correct("900"));
    expect(down).toMatchObject({
      ...{ object: "correction", deposit_id: deposit, amount_before: "1000", amount_after: "900" },
      ...{ status: "recorded", reason: "typed wrongly", proposed_by: stage.admin.userId, decided_by: null },
    });
    expect(must(await correct("900"))).toEqual(down);
    expect(await available()).toBe("900");
    expect(must(await correct("1200"))).toMatchObject({ amount_before: "900", amount_after: "1200" });
    expect(must(await correct("0", MACHINE))).toMatchObject({ amount_before: "1200", proposed_by: null });
    expect(await available()).toBe("0");
    expect(must(await correct("1000"))).toMatchObject({ amount_before: "0" });
  });

  test("of two at once that say the same, one is recorded", async () => {
    const both = await Promise.all([correct("1"), correct("1")]);
    expect(must(both[0]!).id).toBe(must(both[1]!).id);
    expect(await available()).toBe("1");
  });

  test("never takes back what is held, nor brings more than a balance holds", async () => {
    must(await open(stage, stage.operator, { amount: "400" }));
    await expectRefused(ctx, () => correct("399"), [
      "insufficient_funds",
      "0.0006 USDC is available, and 0.000601 USDC is to be taken back.",
    ]);
    must(await correct("400"));
    expect(await available()).toBe("0");
    await fund("5");
    await expectRefused(ctx, () => correct(String(AMOUNT_MAX)), [
      "validation_failed",
      "amount: a balance holds",
    ]);
  });

  test("is refused where it says nothing new, nothing at all, or comes from another", async () => {
    await expectRefused(ctx, () => correct("1000"), [
      "validation_failed",
      "amount: is what the deposit brought as it was recorded: 0.001 USDC",
    ]);
    await expectRefused(ctx, () => correct("-1"), [
      "validation_failed",
      "amount: must be a string of digits",
    ]);
    await expectRefused(ctx, () => correct("1", stage.operator), ["insufficient_role", ""]);
    await expectRefused(ctx, () => correctBalance(ctx, stage.admin, { ...input("1"), reason: "" }), [
      "validation_failed",
      "reason: ",
    ]);
    const other = await createStage(ctx);
    await expectRefused(ctx, () => correct("1", other.admin), ["deposit_not_found", ""]);
  });

  test("waits after a restore, in live alone", async () => {
    const restored = createTestContext(SCRIPTED);
    const of = await createStage(restored);
    const made = must(
      await fundBalance(restored, MACHINE, { organisation_id: of.organisationId, mode: "live", amount: "7" }),
    );
    await markRestored(restored);
    await expectRefused(
      restored,
      () => correctBalance(restored, MACHINE, { deposit_id: made.id, amount: "1", reason: "x" }),
      ["restore_unacknowledged", ""],
    );
    await restored.close();
  });
});

describe("a correction above the passkey threshold", () => {
  beforeEach(async () => {
    must(await setPasskeyThreshold(ctx, MACHINE, { organisation_id: stage.organisationId, amount: "100" }));
  });
  const decide = (id: string, decision: "approve" | "withdraw", by = stage.owner) =>
    decideCorrection(ctx, by, { correction_id: id, decision });
  /** Approves with the person's signature, which must work. */
  async function approve(id: string, by = stage.owner) {
    const token = await putSignature(ctx, by, approvalOfCorrection(by.userId, id));
    const input = { correction_id: id, decision: "approve", passkey_token: token } as const;
    return must(await decideCorrection(ctx, by, input));
  }

  test("moves nothing until a second person approves it", async () => {
    expect(must(await correct("900"))).toMatchObject({ status: "recorded" });
    const proposed = must(await correct("799"));
    expect(proposed).toMatchObject({ status: "proposed", amount_before: "900", decided_at: null });
    expect(await available()).toBe("900");
    await expectRefused(ctx, () => decide(proposed.id, "approve", stage.admin), [
      "second_person_required",
      "",
    ]);
    await expectRefused(ctx, () => decide(proposed.id, "approve", stage.operator), ["insufficient_role", ""]);
    await expectRefused(ctx, () => correct("1"), ["illegal_transition", `The correction ${proposed.id}`]);
    expect(must(await correct("799"))).toEqual(proposed);
    await expectRefused(ctx, () => decide(proposed.id, "approve"), ["passkey_unavailable", ""]);
    expect(await approve(proposed.id)).toMatchObject({
      ...{ status: "recorded", decided_by: stage.owner.userId },
    });
    expect(await available()).toBe("799");
    await expectRefused(ctx, () => decide(proposed.id, "withdraw"), ["illegal_transition", ""]);
  });

  test("by small steps waits as well, once they add up to more than the threshold", async () => {
    for (const step of ["950", "900"])
      expect(must(await correct(step))).toMatchObject({ status: "recorded" });
    const down = must(await correct("890"));
    expect(down).toMatchObject({ status: "proposed", amount_before: "900", amount_after: "890" });
    must(await decide(down.id, "withdraw"));
    for (const step of ["1000", "1100"])
      expect(must(await correct(step))).toMatchObject({ status: "recorded" });
    expect(must(await correct("1101"))).toMatchObject({ status: "proposed" });
    expect(await available()).toBe("1100");
  });

  test("of the machine's operator waits for a person too, and may be withdrawn", async () => {
    const proposed = must(await correct("0", MACHINE));
    expect(proposed).toMatchObject({ status: "proposed", proposed_by: null });
    expect(must(await decide(proposed.id, "withdraw", stage.admin))).toMatchObject({ status: "withdrawn" });
    expect(await available()).toBe("1000");
    const again = must(await correct("0", MACHINE));
    expect(again.id).not.toBe(proposed.id);
    expect(await approve(again.id, stage.admin)).toMatchObject({ status: "recorded" });
    expect(await available()).toBe("0");
  });

  test("is refused at its approval where the money has been held meanwhile", async () => {
    const proposed = must(await correct("0"));
    must(await setPasskeyThreshold(ctx, MACHINE, { organisation_id: stage.organisationId, amount: null }));
    must(await open(stage, stage.operator, { amount: "1" }));
    await expectRefused(ctx, () => decide(proposed.id, "approve"), ["insufficient_funds", ""]);
    await expectRefused(ctx, () => decide("cor_none", "approve"), ["correction_not_found", ""]);
  });
});
