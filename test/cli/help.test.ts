import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Command } from "commander";
import { buildProgram } from "../../src/cli/program.ts";
import type { CommandLineTools } from "../../src/cli/tools.ts";
import { createCommandLine } from "../support/command-line.ts";
import { createTestContext, type TestContext } from "../support/context.ts";

let ctx: TestContext;
beforeAll(() => {
  ctx = createTestContext();
});
afterAll(() => ctx.close());

/** Every command, as its words. */
function leavesOf(command: Command, path: readonly string[] = []): string[][] {
  return command.commands.length === 0
    ? [[...path]]
    : command.commands.flatMap((child) => leavesOf(child, [...path, child.name()]));
}
const LEAVES = leavesOf(buildProgram({ version: "0" } as CommandLineTools));

test("a command that is named is built alone, the same as when all are built", () => {
  const tools = { version: "0" } as CommandLineTools;
  const all = buildProgram(tools);
  expect(all.commands.length).toBeGreaterThan(15);
  for (const command of all.commands) {
    const program = buildProgram(tools, command.name());
    expect(program.commands.map((child) => child.name())).toEqual([command.name()]);
    expect(program.commands[0]?.helpInformation()).toBe(command.helpInformation());
  }
  for (const name of ["help", "--help", "no-such-command"])
    expect(buildProgram(tools, name).helpInformation()).toBe(all.helpInformation());
});

describe("the help", () => {
  for (const leaf of LEAVES) {
    test(`of ${leaf.join(" ")} says what it does and takes`, async () => {
      const { code, out, err } = await createCommandLine(ctx).run(...leaf, "--help");
      expect([code, err]).toEqual([0, ""]);
      expect(out).toStartWith(`Usage: holdfast ${leaf.join(" ")}`);
      expect(out).toContain("--data <folder>");
      expect(out).toContain("--json");
      expect(out).toMatch(new RegExp(`^Examples:\\n {2}\\$ holdfast ${leaf.join(" ")} ?`, "m"));
      // An option that is not explained would stand alone on its line.
      expect(out).not.toMatch(/^ {2}--\S+( <\S+>)?$/m);
    });
  }

  for (const line of [[], ["--help"], ["help"], ["-h"]]) {
    test(`of the whole, asked with [${line}]`, async () => {
      const { code, out, err } = await createCommandLine(ctx).run(...line);
      expect([code, err]).toEqual([0, ""]);
      const headings = [
        "Run it:",
        "Who may act:",
        "What stops them:",
        "What decides:",
        "The money:",
        "Who hears of it:",
        "Keep it safe:",
        "Reference:",
      ];
      for (const heading of headings) expect(out).toContain(`\n${heading}\n`);
      for (const [name] of LEAVES) expect(out).toMatch(new RegExp(`^ {2}${name}( <\\w+>)? +[a-z]`, "m"));
    });
  }

  test("of a group lists its commands", async () => {
    expect((await createCommandLine(ctx).run("keys", "--help")).out).toContain("revoke <key>");
    expect((await createCommandLine(ctx).run("help", "keys")).out).toContain("revoke <key>");
  });

  test("the version", async () => {
    expect(await createCommandLine(ctx).run("--version")).toEqual({ code: 0, out: "1.2.3\n", err: "" });
  });
});
