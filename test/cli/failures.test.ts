import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Command } from "commander";
import { NEXT_STEPS } from "../../src/cli/failure-sentence.ts";
import { buildProgram } from "../../src/cli/program.ts";
import type { CommandLineTools } from "../../src/cli/tools.ts";
import { type CommandLine, createCommandLine } from "../support/command-line.ts";
import { createOperator, type SetUp } from "../support/operator.ts";
import { rowCounts } from "../support/rows.ts";

/** What a failure prints: with `--json` the error's body, without it a sentence and the next step. */

const { ctx, cli, setUp } = createOperator();
let made: SetUp;
beforeAll(async () => {
  made = await setUp();
});
afterAll(() => ctx.close());

/** Words of a command line; `<agent>` and so on stand for what `setUp` made. */
const words = (line: readonly string[]): string[] =>
  line.map((word) => {
    const ids: Record<string, string> = { organisation: made.organisation, agent: made.agent };
    return word.replace(/^<(\w+)>$/, (_, name: string) => ids[name] ?? "");
  });

/** The line with `--json` before its first option: after an option it could be read as that option's value. */
function withJson(line: readonly string[]): string[] {
  const first = line.findIndex((word) => word.startsWith("--"));
  return first === -1 ? [...line, "--json"] : [...line.slice(0, first), "--json", ...line.slice(first)];
}

type Failure = {
  readonly line: readonly string[];
  readonly code?: string;
  /** How the message of the error's body starts. */
  readonly start: string;
  /** What people read after `holdfast: `; an ellipsis stands for any text. */
  readonly says: string;
};

const account = ["--organisation", "<organisation>", "--mode", "sandbox"];
const policy = ["policies", "create", "--organisation", "o", "--name", "n", "--rules"];
const verifier = ["verifiers", "create", "--organisation", "o", "--name", "n"];
const organisation = ["organisations", "create", "--name", "N", "--owner-email", "e@x"];

/** Found before the ledger is opened. */
const BAD_LINES: readonly Failure[] = [
  {
    line: ["frobnicate"],
    start: "unknown command 'frobnicate'",
    says: 'there is no command "frobnicate". See holdfast --help',
  },
  {
    line: ["webhooks", "create"],
    start: "required option '--organisation <id>' not specified",
    says: "--organisation is missing. See holdfast webhooks create --help",
  },
  {
    line: ["agents", "creat"],
    start: "unknown command 'creat' (Did you mean create?)",
    says: 'there is no command "creat". Did you mean create? See holdfast agents --help',
  },
  {
    line: ["agent", "create"],
    start: "unknown command 'agent' (Did you mean agents?)",
    says: 'there is no command "agent". Did you mean agents? See holdfast --help',
  },
  {
    line: ["keys", "revoke", "--frob"],
    start: "unknown option '--frob'",
    says: "there is no option --frob. See holdfast keys revoke --help",
  },
  {
    line: ["keys", "create"],
    start: "required option '--agent <id>' not specified",
    says: "--agent is missing. See holdfast keys create --help",
  },
  {
    line: ["keys", "create", "--agent"],
    start: "option '--agent <id>' argument missing",
    says: "--agent needs a value. See holdfast keys create --help",
  },
  {
    line: ["keys", "revoke"],
    start: "missing required argument 'key'",
    says: "<key> is missing. See holdfast keys revoke --help",
  },
  {
    line: ["keys", "revoke", "a", "b"],
    start: "too many arguments",
    says: "too many arguments for 'revoke'. Expected 1 argument but got 2: a, b. See holdfast keys revoke --help",
  },
  {
    line: ["audit", "--jsn"],
    start: "unknown option '--jsn' (Did you mean --json?)",
    says: "there is no option --jsn. Did you mean --json? See holdfast audit --help",
  },
  {
    line: ["balances", "show", "--organisation", "o", "--mode", "test"],
    start: "option '--mode <mode>'",
    says: '--mode is "test", and must be one of sandbox, live. See holdfast balances show --help',
  },
  {
    line: ["agents", "set-status", "<agent>", "asleep"],
    start: "command-argument value 'asleep'",
    says: '<status> is "asleep", and must be one of active, paused, killed. See holdfast agents set-status --help',
  },
  {
    line: ["users", "create", "--organisation", "o", "--email", "e@x", "--role", "viewer"],
    start: "--password: is missing: give it, or --password-file",
    says: "--password is missing: give it, or --password-file. See holdfast users create --help",
  },
  {
    line: [...organisation, "--owner-password", "correct horse", "--owner-password-file", "f"],
    start: "--owner-password: ",
    says: "--owner-password cannot be given together with --owner-password-file. See holdfast organisations create --help",
  },
  {
    line: [...organisation, "--owner-password-file", "/nowhere"],
    start: "--owner-password-file: cannot read /nowhere (ENOENT)",
    says: "--owner-password-file: cannot read /nowhere (ENOENT). See holdfast organisations create --help",
  },
  {
    line: ["receipt", "verify", "/nowhere.html"],
    start: "<file>: cannot read /nowhere.html (ENOENT)",
    says: "<file>: cannot read /nowhere.html (ENOENT). See holdfast receipt verify --help",
  },
  {
    line: [...policy, "{"],
    start: "--rules: is not JSON",
    says: "--rules is not JSON…. See holdfast policies create --help",
  },
  {
    line: [...policy, '{"bands":[],"bands":[]}'],
    start: "--rules: has the same key twice",
    says: "--rules has the same key twice…. See holdfast policies create --help",
  },
  {
    line: [...policy, "@/nowhere.json"],
    start: "--rules: cannot read /nowhere.json (ENOENT)",
    says: "--rules: cannot read /nowhere.json (ENOENT). See holdfast policies create --help",
  },
  {
    line: [...policy, "@/"],
    start: "--rules: cannot read /",
    says: "--rules: cannot read /…. See holdfast policies create --help",
  },
  {
    line: [...verifier, "--type", "http.status", "--config", "{'equals':200}"],
    start: "--config: is not JSON",
    says: "--config is not JSON…. See holdfast verifiers create --help",
  },
  {
    line: [...verifier, "--type", "shell.run", "--config", "{}"],
    start: "option '--type <kind>' argument 'shell.run' is invalid. Allowed choices are http.status",
    says: '--type is "shell.run", and must be one of http.status, …. See holdfast verifiers create --help',
  },
  {
    line: ["schemas", "create", "--organisation", "o", "--name", "n", "--schema", ""],
    start: "--schema: is not JSON",
    says: "--schema is not JSON…. See holdfast schemas create --help",
  },
];

/** Found by the verb. */
const REFUSED: readonly Failure[] = [
  {
    line: ["keys", "create", "--agent", "agt_none"],
    code: "agent_not_found",
    start: "There is no agent agt_none",
    says: "There is no agent agt_none. See holdfast agents list",
  },
  {
    line: ["keys", "revoke", "key_none"],
    code: "api_key_not_found",
    start: "There is no API key key_none",
    says: "There is no API key key_none. See holdfast keys list",
  },
  {
    line: ["sessions", "revoke", "ses_none"],
    code: "session_not_found",
    start: "There is no spend session",
    says: "There is no spend session ses_none. See holdfast agents show, which names an agent's session",
  },
  {
    line: ["agents", "set-status", "agt_none", "killed"],
    code: "agent_not_found",
    start: "",
    says: "There is no agent agt_none. See holdfast agents list",
  },
  {
    line: ["checks", "export", "chk_none"],
    code: "check_not_found",
    start: "There is no check chk_none",
    says: "There is no check chk_none. See the help of holdfast checks export, which says where the ids of checks are",
  },
  {
    line: ["agents", "create", ...account, "--name", "n", "--failure-budget", "many"],
    start: "failure_budget: ",
    says: "--failure-budget must be …. See holdfast agents create --help",
  },
  {
    line: ["agents", "create", ...account, "--name", "n", "--failure-budget", "-1"],
    start: "failure_budget: ",
    says: "--failure-budget must be …. See holdfast agents create --help",
  },
  {
    line: ["sessions", "create", "--agent", "<agent>", "--ceiling", "8.40"],
    start: "amount_ceiling: ",
    says: "--ceiling must be …. See holdfast sessions create --help",
  },
  {
    line: ["sessions", "create", "--agent", "<agent>", "--ceiling", "1", "--expires-at", "tomorrow"],
    start: "expires_at: ",
    says: "--expires-at must be …. See holdfast sessions create --help",
  },
  {
    line: ["balances", "fund", ...account, "--amount", "1e6"],
    start: "amount: ",
    says: "--amount must be …. See holdfast balances fund --help",
  },
  {
    line: ["balances", "show", "--organisation", "org_none", "--mode", "live"],
    code: "organisation_not_found",
    start: "",
    says: "There is no such organisation. See holdfast organisations list",
  },
  {
    line: [
      "policies",
      "create",
      "--organisation",
      "<organisation>",
      "--name",
      "n",
      "--rules",
      '{"bands":[]}',
    ],
    code: "policy_no_bands",
    start: "rules.bands: ",
    says: "--rules: bands… See holdfast policies create --help",
  },
  {
    line: [
      ...["organisations", "create", "--name", "N"],
      ...["--owner-email", "ADA1@example.com", "--owner-password", "correct horse"],
    ],
    code: "already_exists",
    start: "owner_email: ",
    says: "--owner-email…",
  },
];

/** Compares stderr with what is expected, in which an ellipsis stands for any text. */
function expectSays(err: string, says: string): void {
  const parts = `holdfast: ${says}\n`.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  expect(err).toMatch(new RegExp(`^${parts.join(".*")}$`));
}

describe("a failure is exit code 1, its reason on stderr, and nothing is written:", () => {
  for (const { line, code = "validation_failed", start, says } of [...BAD_LINES, ...REFUSED]) {
    const isBadLine = BAD_LINES.some(({ line: bad }) => bad === line);
    test(line.join(" ").slice(0, 100), async () => {
      const run = async (args: readonly string[]) => {
        const rows = rowCounts(ctx.folder);
        const before = cli.opened.count;
        const ran = await cli.run(...args);
        expect([ran.code, ran.out]).toEqual([1, ""]);
        expect(rowCounts(ctx.folder)).toEqual(rows);
        expect(cli.opened.count - before).toBe(isBadLine ? 0 : 1);
        expect(cli.opened.closed).toBe(cli.opened.count);
        return ran.err;
      };
      const { error } = JSON.parse(await run(withJson(words(line))));
      expect(Object.keys(error).sort()).toEqual(["code", "doc_url", "message", "request_id", "type"]);
      expect([error.code, error.message.slice(0, start.length)]).toEqual([code, start]);
      expectSays(await run(words(line)), says);
    });
  }

  const failsWith = (tools: Partial<CommandLineTools>): CommandLine => createCommandLine(ctx, tools);

  test("a group without a command names its commands", async () => {
    expectSays(
      (await cli.run("keys")).err,
      "keys needs one of its commands: create, rotate, list, revoke. See holdfast keys --help",
    );
    expectSays(
      (await cli.run("help", "frobnicate")).err,
      "there is no command of that name. See holdfast --help",
    );
  });

  test("a fault of the machine says what failed", async () => {
    const broken = failsWith({
      open: () =>
        Promise.reject(new Error("Failed query: … params: secret", { cause: new Error("disk I/O error") })),
    });
    const { code, out, err } = await broken.run("audit", "--json");
    expect([code, out]).toEqual([1, ""]);
    expect(JSON.parse(err).error).toMatchObject({ code: "internal_error", message: "disk I/O error" });
    expectSays(
      (await broken.run("audit")).err,
      "unexpected fault: disk I/O error. Check the disk and the data folder, and try again; holdfast audit checks the ledger",
    );
  });

  test("a ledger that cannot be opened says why", async () => {
    const message = "HOLDFAST_FROB: is not a setting";
    const broken = failsWith({ open: async () => ({ refused: "validation_failed", message }) });
    expect(JSON.parse((await broken.run("audit", "--json")).err).error.message).toBe(message);
    expectSays((await broken.run("audit")).err, "HOLDFAST_FROB is not a setting.");
  });

  test("a setting is named as it was given: by its option, else by its variable", async () => {
    const message = "HOLDFAST_PORT: must be a port";
    const broken = failsWith({ serve: async () => ({ refused: "validation_failed", message }) });
    expectSays((await broken.run("serve")).err, "HOLDFAST_PORT must be a port.");
    expectSays(
      (await broken.run("serve", "--port", "x")).err,
      "--port must be a port. See holdfast serve --help",
    );
  });

  test("a message that names a command is the next step itself", async () => {
    const message = "HOLDFAST_DATA: there is no ledger in d; holdfast organisations create makes one";
    const broken = failsWith({ open: async () => ({ refused: "validation_failed", message }) });
    expectSays(
      (await broken.run("audit", "--data", "d")).err,
      "--data: there is no ledger in d; holdfast organisations create makes one.",
    );
  });

  test("the error's body comes wherever --json is on the line, even on one that cannot be read", async () => {
    const lines = [
      ["--json", "frobnicate"],
      ["agents", "--json", "creat"],
      ["agents", "--json"],
      ["keys", "revoke", "--json"],
      ["keys", "create", "--frob", "--json"],
      ["agents", "create", "--organisation", "--json"],
    ];
    for (const line of lines) {
      const { code, err } = await cli.run(...line);
      expect([code, JSON.parse(err).error.code]).toEqual([1, "validation_failed"]);
    }
    expectSays(
      (await cli.run("keys", "revoke", "--", "--json")).err,
      "There is no API key --json. See holdfast keys list",
    );
  });

  test("text from the command line that is printed again cannot control the terminal", async () => {
    for (const [control, shown] of [
      ["\u001b[31m", "\\u001b[31m"],
      ["\u009b2J", "\\u009b2J"],
      ["\r\n", "\\u000d\\u000a"],
      ["\u202e", "\\u202e"],
      ["\u200b\ufeff", "\\u200b\\ufeff"],
    ]) {
      expectSays((await cli.run(`x${control}`)).err, `there is no command "x${shown}". See holdfast --help`);
      expectSays(
        (await cli.run("keys", "revoke", `k${control}`)).err,
        `There is no API key k${shown}. See holdfast keys list`,
      );
    }
    expectSays((await cli.run("keys", "revoke", "ключ\u200d")).err, "There is no API key ключ\u200d…");
  });

  test("text from the command line that is printed again is cut where it is very long", async () => {
    const { err } = await cli.run("audit", "x".repeat(100_000));
    expect(err.length).toBeLessThan(1_200);
    expect(err).toEndWith("x… See holdfast audit --help\n");
  });
});

test("a table shows names, URLs and answers of others without their control characters", async () => {
  const name = "agent\u001b[2J";
  const { agent } = await setUp();
  const { store, reader } = ctx;
  const renamed = { ...reader.agents.get(agent)!, name };
  const read: typeof store.read = (use) =>
    store.read((real) => {
      const agents = Object.assign(Object.create(real.agents) as typeof real.agents, {
        get: async () => renamed,
      });
      return use({ ...real, agents });
    });
  const broken = createCommandLine({ ...ctx, store: { ...store, read } });
  const { out } = await broken.run("agents", "show", agent);
  expect(out).toContain("The agent agent\\u001b[2J is active.");
  expect(out).not.toContain("\u001b");
});

test("every command that a next step names exists", () => {
  const program = buildProgram({ version: "0" } as CommandLineTools);
  for (const step of Object.values(NEXT_STEPS)) {
    const [, path = ""] = /holdfast ([a-z0-9 -]+?)(?:,|$)/.exec(step) ?? [];
    const found = path
      .split(" ")
      .reduce<Command | undefined>(
        (command, word) => command?.commands.find((each) => each.name() === word),
        program,
      );
    expect([step, found instanceof Command]).toEqual([step, true]);
  }
});
