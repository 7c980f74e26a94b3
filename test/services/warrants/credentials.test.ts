import { afterEach, beforeEach, expect, test } from "bun:test";
import type { KeyCaller } from "../../../src/core/roles.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { revokeKey, rotateKey } from "../../../src/services/admin/keys.ts";
import { setKillSwitch } from "../../../src/services/admin/switches.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import {
  codeOf,
  createCaller,
  createStage,
  idempotencyOf,
  open,
  SCRIPTED,
  type Stage,
  verify,
  warrantIn,
} from "../../support/stage.ts";
import { together } from "../../support/together.ts";

/** A request that is on its way when its key ends, or the kill switch is turned: the commit looks again. */

let ctx: TestContext;
let stage: Stage;
let key: KeyCaller;
beforeEach(async () => {
  ctx = createTestContext(SCRIPTED);
  stage = await createStage(ctx);
  key = await createCaller(stage);
});
afterEach(() => ctx.close());

const held = () => ctx.reader.balances.list(stage).map(({ balance }) => balance.held);

test("a revoked key opens nothing, though its request was admitted before", async () => {
  const [, opened] = await together(
    () => revokeKey(ctx, MACHINE, { key_id: key.keyId }),
    () => open(stage, key),
  );
  expect(codeOf(opened)).toBe("not_authenticated");
  expect(held()).toEqual([0n]);
});

test("a revoked key begins no check", async () => {
  const { id } = warrantIn(await open(stage, key));
  const [, verified] = await together(
    () => revokeKey(ctx, MACHINE, { key_id: key.keyId }),
    () => verify(stage, key, id),
  );
  expect(codeOf(verified)).toBe("not_authenticated");
  expect(ctx.reader.warrants.find(id)?.state).toBe("held");
});

test("a revoked key replays nothing", async () => {
  const idempotency = idempotencyOf();
  expect(codeOf(await open(stage, key, {}, idempotency))).toBe(201);
  await revokeKey(ctx, MACHINE, { key_id: key.keyId });
  expect(codeOf(await open(stage, key, {}, idempotency))).toBe("not_authenticated");
});

/** Ends the key now, by a rotation without an overlap: an expiry, not a revocation. */
const expire = () => rotateKey(ctx, MACHINE, { key_id: key.keyId, overlap_seconds: 0 });

test("an expired key opens nothing, though its request was admitted before", async () => {
  const [, refused] = await together(expire, () => open(stage, key));
  expect(refused).toMatchObject({ refused: "not_authenticated", message: "The API key has expired." });
  expect(held()).toEqual([0n]);
});

test("an expired key begins no check, and replays nothing", async () => {
  const idempotency = idempotencyOf();
  const { id } = warrantIn(await open(stage, key, {}, idempotency));
  await expire();
  expect(codeOf(await verify(stage, key, id))).toBe("not_authenticated");
  expect(codeOf(await open(stage, key, {}, idempotency))).toBe("not_authenticated");
  expect(ctx.reader.warrants.find(id)?.state).toBe("held");
});

test("a kill switch turned beside opens: those before it hold, those after it do not", async () => {
  const openMany = () => Array.from({ length: 10 }, () => open(stage, key));
  const before = openMany();
  const turned = setKillSwitch(ctx, MACHINE, { organisation_id: stage.organisationId, on: true });
  const after = openMany();
  await turned;
  expect((await Promise.all(before)).map(codeOf)).toEqual(Array(10).fill(201));
  expect((await Promise.all(after)).map(codeOf)).toEqual(Array(10).fill("kill_switch_active"));
  expect(held()).toEqual([1_000n]);
});
