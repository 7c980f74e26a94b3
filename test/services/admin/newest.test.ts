import { afterEach, beforeEach, expect, test } from "bun:test";
import { createIds } from "../../../src/core/ids.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { createPolicy } from "../../../src/services/admin/policies.ts";
import { createSession } from "../../../src/services/admin/sessions.ts";
import type { Context } from "../../../src/services/context.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../../support/context.ts";
import { codeOf, createCaller, createStage, must, open, type Stage, warrantIn } from "../../support/stage.ts";

/** Every command is a process of its own, and a clock may be set back between two: the newest is the last that was saved. */

let ctx: TestContext;
let stage: Stage;
beforeEach(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx);
});
afterEach(() => ctx.close());

/** The same ledger, as a process that starts now sees it. */
const nextProcess = (): Context => ({
  ...ctx,
  newId: createIds(ctx.now, () => 2, ctx.store.reader.newestIdTime()),
});

test("a policy saved after the clock was set back is in force", async () => {
  const save = (outcome: string) =>
    createPolicy(nextProcess(), MACHINE, {
      organisation_id: stage.organisationId,
      name: "rules",
      rules: { bands: [{ minScore: 0, outcome }] },
    });
  ctx.clock.now = TEST_NOW + 3_600_000;
  must(await save("release"));
  ctx.clock.now = TEST_NOW;
  expect(must(await save("refund")).version).toBe(2);
  expect(must(await save("escalate")).version).toBe(3);
  expect(warrantIn(await open(stage, stage.operator)).policy_version).toBe(3);
});

test("a session created after the clock was set back is the live one", async () => {
  const key = await createCaller(stage);
  const create = () =>
    createSession(nextProcess(), MACHINE, { agent_id: key.agentId, amount_ceiling: "100" });
  ctx.clock.now = TEST_NOW + 3_600_000;
  must(await create());
  ctx.clock.now = TEST_NOW;
  must(await create());
  expect(codeOf(await open(stage, key, { agent_id: key.agentId }))).toBe(201);
});
