import { expect, test } from "bun:test";
import { NO_LEGS } from "../../../src/core/postings.ts";
import { readSolvencyPage } from "../../../src/services/console/solvency.ts";
import { signStatement } from "../../../src/services/solvency/sign.ts";
import type { Reader } from "../../../src/store/reader.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { createStage, must } from "../../support/stage.ts";

/** How many steps the postings since the statement take. */
const STEPS = 200;

test("while what was posted since an old statement is summed, everybody else has turns", async () => {
  const ctx = createTestContext();
  const stage = await createStage(ctx, { funds: "10000" });
  must(await signStatement(ctx));
  let steps = 0;
  const long = (reader: Reader): Reader =>
    new Proxy(reader, {
      get: (of, name: keyof Reader) =>
        name === "statements"
          ? { ...of.statements, sums: async () => ({ legs: NO_LEGS, last: ++steps < STEPS ? steps : null }) }
          : of[name],
    });
  const store: TestContext["store"] = {
    ...ctx.store,
    read: (use) => ctx.store.read((reader) => use(long(reader))),
  };
  let turns = 0;
  let goesOn = true;
  const turn = () => {
    turns += 1;
    if (goesOn) setImmediate(turn);
  };
  turn();
  const { newest } = must(await readSolvencyPage({ ...ctx, store }, stage.owner));
  goesOn = false;
  expect(newest?.lines).toMatchObject([{ asset: "USDC", owed: { available: 10_000n } }]);
  expect([steps, turns >= STEPS]).toEqual([STEPS, true]);
  await ctx.close();
});
