import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { AMOUNT_MAX } from "../../../src/core/money.ts";
import type { Mode } from "../../../src/core/roles.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { type DepositInput, fundBalance, showBalances } from "../../../src/services/admin/balances.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../../support/context.ts";
import { type Expected, expectRefused } from "../../support/refused.ts";
import { markRestored } from "../../support/restored.ts";
import { codeOf, createCaller, createStage, must, open, type Stage } from "../../support/stage.ts";

let ctx: TestContext;
let stage: Stage;

beforeAll(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx, { funds: "0" });
});
afterAll(() => ctx.close());

const input = (change: Partial<DepositInput> = {}): DepositInput => ({
  organisation_id: stage.organisationId,
  mode: "live",
  amount: "1000",
  ...change,
});
const fund = (change: Partial<DepositInput> = {}) => fundBalance(ctx, MACHINE, input(change));
const show = async (mode: Mode = "live") =>
  must(await showBalances(ctx, MACHINE, { organisation_id: stage.organisationId, mode })).balances;

test("a deposit is available in its own mode and asset, and nowhere else", async () => {
  expect(await show()).toEqual([]);
  const deposit = must(await fund({ amount: "0001000", reference: "wire 17" }));
  expect(deposit).toEqual({
    id: deposit.id,
    object: "deposit",
    organisation_id: stage.organisationId,
    mode: "live",
    asset: "USDC",
    amount: "1000",
    reference: "wire 17",
    created_at: new Date(TEST_NOW).toISOString(),
  });
  must(await fund({ amount: "7", asset: "eip155:1.X-y_z" }));
  expect(await show()).toEqual([
    { asset: "USDC", available: "1000", held: "0", paid: "0" },
    { asset: "eip155:1.X-y_z", available: "7", held: "0", paid: "0" },
  ]);
  expect(await show("sandbox")).toEqual([]);
});

test("what is held and paid counts towards the largest balance that is allowed", async () => {
  const before = (await show())[0]!;
  const caller = await createCaller(stage);
  expect(codeOf(await open(stage, caller, { amount: "400" }))).toBe(201);
  const room = AMOUNT_MAX - BigInt(before.available);
  const refusal: Expected = ["validation_failed", "amount: "];
  await expectRefused(ctx, () => fund({ amount: String(room + 1n) }), refusal);
  must(await fund({ amount: String(room) }));
  const full = (await show())[0]!;
  expect(BigInt(full.available) + BigInt(full.held)).toBe(AMOUNT_MAX);
  expect(full.held).toBe("400");
  await expectRefused(ctx, () => fund({ amount: "1" }), refusal);
  expect((await show())[0]).toEqual(full);
});

test("a reference names one deposit of an asset in a mode: the second time nothing is posted", async () => {
  const first = must(await fund({ amount: "40", asset: "ZREF", reference: "wire 18" }));
  const others = { asset: "ZREF", reference: "wire 18" };
  expect(must(await fund({ amount: "040", ...others }))).toEqual(first);
  await expectRefused(ctx, () => fund({ amount: "41", ...others }), [
    "deposit_reference_used",
    `reference: the deposit ${first.id} of 40 ZREF has it`,
  ]);
  expect((await show()).find(({ asset }) => asset === "ZREF")?.available).toBe("40");
  for (const change of [
    { asset: "ZREF2", reference: "wire 18" },
    { asset: "ZREF", reference: "wire 18", mode: "sandbox" },
    { asset: "ZREF", reference: "wire 19" },
    { asset: "ZREF" },
    { asset: "ZREF" },
  ] as const)
    expect(must(await fund({ amount: "1", ...change })).id).not.toBe(first.id);
});

test("in a restored copy no live deposit is recorded before that is acknowledged", async () => {
  const known = must(await fund({ asset: "ZREST", reference: "wire 21" }));
  await markRestored(ctx);
  for (const reference of ["wire 22", undefined])
    await expectRefused(ctx, () => fund({ asset: "ZREST", ...(reference && { reference }) }), [
      "restore_unacknowledged",
      "The service was restored from a backup",
    ]);
  // What the copy knows is answered, since it moves nothing; and the sandbox goes on.
  expect(await fund({ asset: "ZREST", reference: "wire 21" })).toEqual(known);
  must(await fund({ asset: "ZREST", mode: "sandbox" }));
  await markRestored(ctx, { acknowledgedAt: ctx.clock.now });
  must(await fund({ asset: "ZREST", reference: "wire 22" }));
  expect((await show()).find(({ asset }) => asset === "ZREST")?.available).toBe("2000");
});

test("of two deposits of one reference at once, one is made", async () => {
  const made = await Promise.all(
    ["5", "5", "6"].map((amount) => fund({ amount, asset: "ZTWIN", reference: "wire 20" })),
  );
  expect(made[1]).toEqual(made[0]!);
  expect(made[2]).toMatchObject({ refused: "deposit_reference_used" });
  expect((await show()).find(({ asset }) => asset === "ZTWIN")?.available).toBe("5");
});

test("of two deposits at once that do not both fit, one is refused", async () => {
  const half = String(AMOUNT_MAX / 2n + 1n);
  const both = await Promise.all([1, 2].map(() => fund({ amount: half, mode: "sandbox" })));
  expect(both.map((one) => "refused" in one)).toEqual([false, true]);
  expect((await show("sandbox"))[0]?.available).toBe(half);
});

describe("fundBalance refuses, and the balances stay as they were:", () => {
  const REFUSED: readonly (readonly [string, Partial<DepositInput>, Expected])[] = [
    ["an unknown mode", { mode: "test" as Mode }, ["validation_failed", "mode: "]],
    ["an empty asset", { asset: "" }, ["validation_failed", "asset: "]],
    ["an asset of 33", { asset: "x".repeat(33) }, ["validation_failed", "asset: "]],
    ["an asset with a space", { asset: "US DC" }, ["validation_failed", "asset: "]],
    ["a reference of two lines", { reference: "a\r\nb" }, ["validation_failed", "reference: "]],
    ["an unknown organisation", { organisation_id: "org_none" }, ["organisation_not_found", ""]],
    ...[
      "",
      "0",
      "000",
      "-1",
      "+1",
      "1.5",
      "1e3",
      "1_000",
      " 1",
      "١٢",
      "9223372036854775808",
      "9".repeat(300),
    ].map(
      (amount) =>
        [
          `the amount ${JSON.stringify(amount.slice(0, 30))}`,
          { amount },
          ["validation_failed", "amount: "],
        ] as const,
    ),
    ["a number for an amount", { amount: 5 as unknown as string }, ["validation_failed", "amount: "]],
  ];
  for (const [what, change, expected] of REFUSED) {
    test(what, () => expectRefused(ctx, () => fund({ asset: "EUR", ...change }), expected));
  }

  test("callers who may not", async () => {
    await expectRefused(ctx, () => fundBalance(ctx, stage.operator, input()), ["insufficient_role", ""]);
    const other = { ...stage.owner, organisationId: "org_other" };
    await expectRefused(ctx, () => fundBalance(ctx, other, input()), ["organisation_not_found", ""]);
  });
});

test("showBalances is for everybody of the organisation", async () => {
  const ask = { organisation_id: stage.organisationId, mode: "live" as const };
  const viewer = { ...stage.operator, role: "viewer" as const };
  expect(must(await showBalances(ctx, viewer, ask)).object).toBe("balance");
  const refused: readonly (readonly [() => Promise<unknown>, Expected])[] = [
    [
      () => showBalances(ctx, { ...viewer, organisationId: "org_other" }, ask),
      ["organisation_not_found", ""],
    ],
    [
      () => showBalances(ctx, MACHINE, { ...ask, organisation_id: "org_none" }),
      ["organisation_not_found", ""],
    ],
    [() => showBalances(ctx, MACHINE, { ...ask, mode: "x" as Mode }), ["validation_failed", "mode: "]],
  ];
  for (const [verb, expected] of refused) await expectRefused(ctx, verb, expected);
});
