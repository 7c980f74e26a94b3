import { afterAll, beforeAll, expect, test } from "bun:test";
import type { DemoFlags } from "../../src/cli/tools.ts";
import { refuse } from "../../src/core/errors.ts";
import { createCommandLine } from "../support/command-line.ts";
import { createTestContext, type TestContext } from "../support/context.ts";

let ctx: TestContext;
beforeAll(() => {
  ctx = createTestContext();
});
afterAll(() => ctx.close());

test("demo hands its flags on, and a refusal back", async () => {
  const seen: DemoFlags[] = [];
  const cli = createCommandLine(ctx, {
    demo: async (options) => {
      seen.push(options);
      return options.data === "full" ? refuse("validation_failed", "the folder is not empty") : null;
    },
  });
  expect(await cli.run("demo")).toEqual({ code: 0, out: "", err: "" });
  expect((await cli.run("demo", "--exit", "--data", "d")).code).toBe(0);
  const refused = await cli.run("demo", "--data", "full", "--json");
  expect([refused.code, refused.out, JSON.parse(refused.err).error.message]).toEqual([
    ...[1, "", "the folder is not empty"],
  ]);
  expect(seen).toEqual([
    { exit: false, json: false },
    { exit: true, json: false, data: "d" },
    { exit: false, json: true, data: "full" },
  ]);
});
