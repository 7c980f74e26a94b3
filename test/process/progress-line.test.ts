import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { progressLine } from "../../src/cli/progress-line.ts";
import type { CommandLineTools } from "../../src/cli/tools.ts";
import { createCommandLine } from "../support/command-line.ts";
import { createTestContext } from "../support/context.ts";
import { onTerminal } from "../support/pseudo-terminal.ts";

/** How long work shows how far it has come. `test/process/progress.test.ts` tries the commands themselves. */

const ctx = createTestContext();
afterAll(() => ctx.close());

describe("the line", () => {
  const NONE = { done: null, total: null };
  test.each([
    [NONE, 2_000, "2 s"],
    [NONE, 59_999, "59 s"],
    [NONE, 61_000, "1 min 1 s"],
    [NONE, 3_600_000, "60 min 0 s"],
    [{ done: 1_200, total: 4_800 }, 3_000, "1,200 of 4,800 (25 %), 3 s"],
    [{ done: 0, total: 3 }, 3_000, "0 of 3 (0 %), 3 s"],
    [{ done: 2_999, total: 3_000 }, 3_000, "2,999 of 3,000 (99 %), 3 s"],
    [{ done: 5, total: 4 }, 3_000, "5 of 4 (100 %), 3 s"],
    [{ done: 0, total: 0 }, 3_000, "0 of 0 (100 %), 3 s"],
    [{ done: 1_234_567, total: null }, 3_000, "1,234,567 done, 3 s"],
  ])("of %p after %p ms", (figures, elapsedMs, shown) => {
    expect(progressLine("checking", figures, elapsedMs)).toBe(`holdfast: checking, ${shown}`);
  });
});

const SLOW_WORK = [process.execPath, join(import.meta.dir, "../support/slow-work.ts")];
const PROCESS_TIMEOUT_MS = 30_000;
/** Two seconds longer than it takes until the line is shown: other tests keep the machine busy. */
const LONG_MS = "4000";
const DONE = "done\r\n";

/** The terminal shows the line, each time its seconds change, clears it, and shows the end. */
const SHOWN = /^(?:holdfast: working hard, 1,200 of 4,800 \(25 %\), \d s<clear>\r)+<clear>done\r\n$/;

describe("on a terminal", () => {
  for (const how of ["blocked", "waiting"]) {
    test.concurrent(
      `work whose thread is ${how} shows a line after two seconds, and clears it at the end`,
      async () => {
        const { code, written } = await onTerminal([...SLOW_WORK, LONG_MS, how]);
        expect([code, written]).toEqual([0, expect.stringMatching(SHOWN)]);
      },
      PROCESS_TIMEOUT_MS,
    );
  }

  test.concurrent(
    "short work shows nothing",
    async () => {
      for (const ms of ["0", "10", "500"])
        expect(await onTerminal([...SLOW_WORK, ms, "blocked"])).toEqual({ code: 0, written: DONE });
    },
    PROCESS_TIMEOUT_MS,
  );

  test.concurrent(
    "a narrow terminal gets as much as fits on its line",
    async () => {
      const { written } = await onTerminal([...SLOW_WORK, LONG_MS, "blocked"], { columns: 20 });
      expect(written).toBe(`holdfast: working h<clear>\r<clear>${DONE}`);
    },
    PROCESS_TIMEOUT_MS,
  );

  test.concurrent(
    "a terminal that cannot clear a line gets whole lines, and no control sequence",
    async () => {
      const { written } = await onTerminal([...SLOW_WORK, LONG_MS, "blocked", "whole-lines"]);
      expect(written).toMatch(/^holdfast: working hard, 1,200 of 4,800 \(25 %\), \d s\r\ndone\r\n$/);
    },
    PROCESS_TIMEOUT_MS,
  );
});

describe("what a command shows", () => {
  const tools: Partial<CommandLineTools> = {
    serve: async () => ({
      url: "http://127.0.0.1:1",
      dataFolder: "d",
      database: null,
      setUpUrl: null,
      stopped: Promise.resolve(),
    }),
    runJob: async ({ job }) => ({ object: "job", job, done: 1 }),
    backUp: () => Promise.reject(new Error("no disk")),
    restore: () => Promise.reject(new Error("no disk")),
  };
  const STEPS: readonly (readonly [step: string, line: readonly string[]])[] = [
    ["checking the ledger", ["audit"]],
    ["copying the ledger and checking the copy", ["backup", "f"]],
    ["checking the backup and restoring it", ["restore", "f"]],
    ["acknowledging the restore", ["restore", "acknowledge"]],
    ["running the job retention", ["jobs", "run", "retention"]],
    ["starting the service", ["serve"]],
    ["finding what did not arrive", ["webhooks", "recover", "w", "--since", "2026-01-01T00:00:00Z"]],
    ["organisations list", ["organisations", "list"]],
  ];
  for (const [step, line] of STEPS) {
    test(`is "${step}" for ${line.join(" ")}, ended before anything is printed, and nothing with --json`, async () => {
      const cli = createCommandLine(ctx, tools);
      await cli.run(...line);
      expect(cli.steps).toEqual([step]);
      await cli.run(...line, "--json");
      expect(cli.steps).toEqual([step]);
    });
  }
});
