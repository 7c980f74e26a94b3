import { afterEach, beforeEach, expect, test } from "bun:test";
import { showAuditLog } from "../../src/services/admin/audit-log.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { resumeTreasury } from "../../src/services/admin/treasuries.ts";
import { setRailCode } from "../../src/services/rails/states.ts";
import { type Paying, startPaying } from "../support/paying.ts";
import { createStage, must, type Stage } from "../support/stage.ts";

/** Who lets payouts of a treasury go on decides about the money of all: the audit log of each organisation says so. */

let paying: Paying;
let other: Stage;
beforeEach(async () => {
  paying = await startPaying();
  other = await createStage(paying.ctx);
});
afterEach(() => paying.close());

const resume = (nonce?: number) =>
  resumeTreasury(paying.ctx, MACHINE, {
    ...{ mode: "sandbox", asset: "USDC" },
    ...(nonce !== undefined && { nonce }),
  });
const entries = async ({ organisationId }: Stage) =>
  must(await showAuditLog(paying.ctx, MACHINE, { organisation_id: organisationId })).data.filter(
    ({ action }) => action === "treasury.resumed",
  );

test("an act that lets payouts go on is in the audit log of each organisation, as they were and as they are", async () => {
  await setRailCode(paying.ctx, paying.ctx.treasuries, {
    ...{ code: "unknown_transactions", detail: "nonces 1 to 2", seenNonce: 3 },
  });
  must(await resume(3));
  const [treasury] = paying.ctx.treasuries;
  for (const stage of [paying.stage, other])
    expect(await entries(stage)).toMatchObject([
      {
        actor: { kind: "machine" },
        subject: treasury?.address,
        before: {
          ...{ object: "treasury", mode: "sandbox", asset: "USDC", accepted_nonce: null },
          ...{ unknown_until_nonce: 3, waits_for: { code: "unknown_transactions" } },
        },
        after: { waits_for: null, unknown_until_nonce: null, accepted_nonce: 3 },
      },
    ]);
});

test("what is refused, or lets nothing go on, has no entry", async () => {
  must(await resume());
  await setRailCode(paying.ctx, paying.ctx.treasuries, {
    ...{ code: "unknown_transactions", detail: "nonce 1", seenNonce: 2 },
  });
  expect(await resume(1)).toMatchObject({ refused: "validation_failed" });
  await setRailCode(paying.ctx, paying.ctx.treasuries, { code: "no_gas", detail: null });
  expect([await entries(paying.stage), await entries(other)]).toEqual([[], []]);
  must(await resume(2));
  must(await resume(2));
  expect(await entries(paying.stage)).toHaveLength(1);
});
