import { expect } from "bun:test";
import { type CommandLine, createCommandLine } from "./command-line.ts";
import { createTestContext, type TestContext } from "./context.ts";
import { rowCounts } from "./rows.ts";

/** An operator at a terminal, on a ledger of its own. */
export type Operator = {
  readonly ctx: TestContext;
  readonly cli: CommandLine;
  /** Makes an organisation with an owner, a viewer, and a sandbox agent with a key. */
  setUp(): Promise<SetUp>;
  /** What the command prints for people; it must succeed. */
  printed(...args: readonly string[]): Promise<string>;
  /** The command must fail, with `--json` and without, and must not have written a row. */
  refused(args: readonly string[], code: string, start?: string): Promise<void>;
};

/** The ids of what was made. E-mails are new each time: Bob's is `emailOf("bob")`. */
export type SetUp = {
  readonly organisation: string;
  readonly owner: string;
  readonly viewer: string;
  readonly agent: string;
  readonly key: string;
  emailOf(name: string): string;
  /** The options for the organisation and the mode. */
  account(mode?: string): readonly string[];
};

export function createOperator(): Operator {
  const ctx = createTestContext();
  const cli = createCommandLine(ctx);
  let sequence = 0;
  return {
    ctx,
    cli,
    async setUp() {
      sequence += 1;
      const suffix = sequence;
      const emailOf = (name: string) => `${name}${suffix}@example.com`;
      const password = "correct horse";
      const created = await cli.json(
        ...["organisations", "create", "--name", "Acme"],
        ...["--owner-email", emailOf("ada"), "--owner-password", password],
      );
      const organisation = idOf(created.organisation);
      const account = (mode = "sandbox") => ["--organisation", organisation, "--mode", mode];
      const person = ["--email", emailOf("bob"), "--password", password, "--role", "viewer"];
      const viewer = idOf(await cli.json("users", "create", "--organisation", organisation, ...person));
      const agent = idOf(await cli.json("agents", "create", ...account(), "--name", "buyer"));
      const key = idOf(await cli.json("keys", "create", "--agent", agent));
      return { organisation, owner: idOf(created.owner), viewer, agent, key, emailOf, account };
    },
    async printed(...args) {
      const { code, out, err } = await cli.run(...args);
      expect([code, err]).toEqual([0, ""]);
      return out;
    },
    async refused(args, code, start = "") {
      const before = rowCounts(ctx.folder);
      const machine = await cli.run(...args, "--json");
      expect([machine.code, machine.out]).toEqual([1, ""]);
      const { error } = JSON.parse(machine.err);
      expect([error.code, error.message.slice(0, start.length)]).toEqual([code, start]);
      const human = await cli.run(...args);
      expect([human.code, human.out]).toEqual([1, ""]);
      expect(human.err).toMatch(/^holdfast: [^\n]+\n$/);
      expect(rowCounts(ctx.folder)).toEqual(before);
    },
  };
}

export const idOf = (resource: unknown): string => (resource as { id: string }).id;
