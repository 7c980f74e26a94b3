import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createCommandLine } from "../support/command-line.ts";
import { createTestContext, type TestContext } from "../support/context.ts";

let ctx: TestContext;
beforeAll(() => {
  ctx = createTestContext();
});
afterAll(() => ctx.close());

describe("jobs run", () => {
  const seen: unknown[] = [];
  const cli = createCommandLine(ctx, {
    runJob: async (options) => {
      seen.push(options);
      return { object: "job", job: options.job, done: options.job === "agents" ? null : 3 };
    },
  });

  test("runs the job that is named, and says what it did", async () => {
    expect(await cli.json("jobs", "run", "deadlines")).toEqual({ object: "job", job: "deadlines", done: 3 });
    expect((await cli.run("jobs", "run", "retention", "--data", "d")).out).toBe(
      "The job retention ran. 3 done.\n",
    );
    expect((await cli.run("jobs", "run", "agents")).out).toBe("The job agents ran.\n");
    expect(seen.splice(0)).toEqual([
      { job: "deadlines" },
      { job: "retention", data: "d" },
      { job: "agents" },
    ]);
  });

  test("refuses a job that does not exist, and runs nothing", async () => {
    const { code, err } = await cli.run("jobs", "run", "everything", "--json");
    expect([code, JSON.parse(err).error.code, seen]).toEqual([1, "validation_failed", []]);
    expect(JSON.parse(err).error.message).toContain("deadlines, agents, recover, retention");
  });
});
