import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { PersonCaller } from "../../../src/core/roles.ts";
import { type Authority, MACHINE } from "../../../src/services/admin/authority.ts";
import { setKillSwitch, setPasskeyThreshold, setReceiptSpecs } from "../../../src/services/admin/switches.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../../support/context.ts";
import { type Expected, expectRefused } from "../../support/refused.ts";
import { createStage, must, type Stage } from "../../support/stage.ts";

let ctx: TestContext;
let stage: Stage;
let elsewhere: PersonCaller;
beforeAll(() => {
  ctx = createTestContext();
});
afterAll(() => ctx.close());
beforeEach(async () => {
  stage = await createStage(ctx);
  elsewhere = { ...stage.owner, organisationId: "org_other" };
});

const set = (on: boolean, authority: Authority = MACHINE, organisation_id = stage.organisationId) =>
  setKillSwitch(ctx, authority, { organisation_id, on });
const threshold = (
  amount: string | null,
  authority: Authority = MACHINE,
  organisation_id = stage.organisationId,
) => setPasskeyThreshold(ctx, authority, { organisation_id, amount });
const kept = () => ctx.reader.organisations.get(stage.organisationId)!;
const auditEntries = () => ctx.reader.auditEntries.list(stage.organisationId, null, 100);

describe("setKillSwitch", () => {
  test("turns the switch on and off; nothing is written where it has that state already", async () => {
    const before = auditEntries().length;
    const on = must(await set(true));
    expect(on).toEqual({
      id: stage.organisationId,
      object: "organisation",
      name: "Stage",
      kill_switch: true,
      passkey_threshold: null,
      receipt_specs: "shown",
      second_factor: false,
      messaging_decisions: false,
      created_at: new Date(TEST_NOW).toISOString(),
    });
    expect(kept()).toMatchObject({ killSwitch: true, passkeyThreshold: null });
    expect(must(await set(true, stage.admin))).toEqual(on);
    expect(auditEntries().length - before).toBe(1);
    expect(must(await set(false, stage.admin)).kill_switch).toBeFalse();
    expect(kept().killSwitch).toBeFalse();
    expect(auditEntries().length - before).toBe(2);
  });

  test("is for admins of the same organisation; a refusal changes nothing", async () => {
    must(await set(true));
    const cases: readonly (readonly [() => Promise<unknown>, Expected])[] = [
      [() => set(false, stage.operator), ["insufficient_role", ""]],
      [() => set(false, elsewhere), ["organisation_not_found", ""]],
      [() => set(false, MACHINE, "org_none"), ["organisation_not_found", ""]],
    ];
    for (const [verb, expected] of cases) await expectRefused(ctx, verb, expected);
    expect(kept().killSwitch).toBeTrue();
  });

  test("belongs to one organisation", async () => {
    const other = await createStage(ctx);
    must(await set(true));
    expect(ctx.reader.organisations.get(other.organisationId)?.killSwitch).toBeFalse();
  });
});

describe("setPasskeyThreshold", () => {
  for (const [amount, shown] of [
    ["0", "0"],
    ["00100", "100"],
    ["9223372036854775807", "9223372036854775807"],
    [null, null],
  ] as const) {
    test(`keeps ${amount ?? "off"}, and leaves the kill switch`, async () => {
      must(await threshold("7", stage.owner));
      must(await set(true));
      const set100 = must(await threshold(amount, stage.owner));
      expect([set100.passkey_threshold, set100.kill_switch]).toEqual([shown, true]);
      expect(kept()).toMatchObject({
        killSwitch: true,
        passkeyThreshold: shown === null ? null : BigInt(shown),
      });
      const before = auditEntries().length;
      expect(must(await threshold(amount))).toEqual(set100);
      expect(auditEntries().length).toBe(before);
    });
  }

  test("is for owners, and must be an amount; a refusal changes nothing", async () => {
    must(await threshold("100"));
    const cases: readonly (readonly [() => Promise<unknown>, Expected])[] = [
      [() => threshold("9223372036854775808"), ["validation_failed", "amount: "]],
      [() => threshold("-1"), ["validation_failed", "amount: "]],
      [() => threshold("1.5"), ["validation_failed", "amount: "]],
      [() => threshold(""), ["validation_failed", "amount: "]],
      [() => threshold("OFF"), ["validation_failed", "amount: "]],
      [() => threshold(null, stage.admin), ["insufficient_role", ""]],
      [() => threshold(null, elsewhere), ["organisation_not_found", ""]],
      [() => threshold(null, MACHINE, "org_none"), ["organisation_not_found", ""]],
    ];
    for (const [verb, expected] of cases) await expectRefused(ctx, verb, expected);
    expect(kept().passkeyThreshold).toBe(100n);
  });
});

describe("setReceiptSpecs", () => {
  const hide = (hidden: boolean, authority: Authority = MACHINE, organisation_id = stage.organisationId) =>
    setReceiptSpecs(ctx, authority, { organisation_id, hidden });

  test("hides specs and shows them again, and leaves the other switches", async () => {
    must(await set(true));
    must(await threshold("7"));
    const hidden = must(await hide(true, stage.admin));
    expect([hidden.receipt_specs, hidden.kill_switch, hidden.passkey_threshold]).toEqual([
      "hidden",
      true,
      "7",
    ]);
    expect(kept()).toMatchObject({ hidesSpecs: true, killSwitch: true, passkeyThreshold: 7n });
    must(await set(false));
    expect(kept().hidesSpecs).toBeTrue();
    expect(must(await hide(false)).receipt_specs).toBe("shown");
    expect(kept().hidesSpecs).toBeFalse();
  });

  test("is for admins of the same organisation; a refusal changes nothing", async () => {
    must(await hide(true));
    const cases: readonly (readonly [() => Promise<unknown>, Expected])[] = [
      [() => hide(false, stage.operator), ["insufficient_role", ""]],
      [() => hide(false, elsewhere), ["organisation_not_found", ""]],
      [() => hide(false, MACHINE, "org_none"), ["organisation_not_found", ""]],
    ];
    for (const [verb, expected] of cases) await expectRefused(ctx, verb, expected);
    expect(kept().hidesSpecs).toBeTrue();
  });
});
