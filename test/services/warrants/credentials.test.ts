import { afterEach, beforeEach, expect, test } from "bun:test";
import type { KeyCaller } from "../../../src/core/roles.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { revokeKey } from "../../../src/services/admin/keys.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import {
  codeOf,
  createCaller,
  createStage,
  intentOf,
  open,
  SCRIPTED,
  type Stage,
  verify,
  warrantIn,
} from "../../support/stage.ts";

/** A request that is on its way when its key is revoked: the key is looked at again in the commit. */

let ctx: TestContext;
let stage: Stage;
let key: KeyCaller;
beforeEach(async () => {
  ctx = createTestContext(SCRIPTED);
  stage = await createStage(ctx);
  key = await createCaller(stage);
});
afterEach(() => ctx.close());

const held = () => ctx.store.reader.balances.list(stage).map(({ balance }) => balance.held);

test("a revoked key opens nothing, though its request was admitted before", async () => {
  const revoked = revokeKey(ctx, MACHINE, { key_id: key.keyId });
  expect(codeOf(await open(stage, key))).toBe("not_authenticated");
  await revoked;
  expect(held()).toEqual([0n]);
});

test("a revoked key begins no check", async () => {
  const { id } = warrantIn(await open(stage, key));
  const revoked = revokeKey(ctx, MACHINE, { key_id: key.keyId });
  expect(codeOf(await verify(stage, key, id))).toBe("not_authenticated");
  await revoked;
  expect(ctx.store.reader.warrants.find(id)?.state).toBe("held");
});

test("a revoked key replays nothing", async () => {
  const intent = intentOf();
  expect(codeOf(await open(stage, key, {}, intent))).toBe(201);
  await revokeKey(ctx, MACHINE, { key_id: key.keyId });
  expect(codeOf(await open(stage, key, {}, intent))).toBe("not_authenticated");
});
