import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { type CommandLine, createCommandLine } from "../support/command-line.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../support/context.ts";
import { rowCounts } from "../support/rows.ts";

let ctx: TestContext;
let cli: CommandLine;
let organisation: string;
let agent: string;
let key: string;
let session: string;

const idOf = (resource: unknown): string => (resource as { id: string }).id;
const NOW = new Date(TEST_NOW).toISOString();
const RULES = '{"bands":[{"minScore":1,"outcome":"release"},{"minScore":0,"outcome":"refund"}]}';

beforeAll(async () => {
  ctx = createTestContext();
  cli = createCommandLine(ctx);
  const owner = ["--owner-email", "ada@example.com", "--owner-password", "correct horse"];
  const created = await cli.json("organisations", "create", "--name", "Acme", ...owner);
  organisation = idOf(created.organisation);
  agent = idOf(
    await cli.json(
      "agents",
      "create",
      "--organisation",
      organisation,
      "--mode",
      "sandbox",
      "--name",
      "buyer",
    ),
  );
  key = idOf(await cli.json("keys", "create", "--agent", agent));
  session = idOf(await cli.json("sessions", "create", "--agent", agent, "--ceiling", "5000000"));
});
afterAll(() => ctx.close());

/** Words of a command line; `<…>` stands for what the beginning created. */
const words = (line: readonly string[]): string[] =>
  line.map((word) => {
    const ids: Record<string, string> = { organisation, agent, key, session };
    return word.replace(/^<(\w+)>$/, (_, name: string) => ids[name] ?? "");
  });

type Success = {
  readonly line: readonly string[];
  readonly json: Readonly<Record<string, unknown>>;
  readonly people: readonly string[];
};

const books = ["--organisation", "<organisation>", "--mode", "sandbox"];
const SUCCESSES: readonly Success[] = [
  {
    line: [
      "users",
      "create",
      "--organisation",
      "<organisation>",
      "--email",
      "U#@x.org",
      "--password",
      "12345678",
      "--role",
      "operator",
    ],
    json: { object: "user", role: "operator" },
    people: ["Created u", "operator", "e-mail", "@x.org"],
  },
  {
    line: ["agents", "create", ...books, "--name", "second", "--failure-budget", "7", "--must-be-named"],
    json: { object: "agent", name: "second", status: "active", failure_budget: 7 },
    people: ["Created the sandbox agent second.", "did:web:localhost%3A8080:agents:agt_", "0 in a row, of 7"],
  },
  {
    line: ["agents", "set-status", "<agent>", "paused"],
    json: { object: "agent", status: "paused" },
    people: ["The agent buyer is paused."],
  },
  {
    line: ["agents", "set-status", "<agent>", "active"],
    json: { object: "agent", status: "active" },
    people: ["The agent buyer is active."],
  },
  {
    line: ["keys", "create", "--agent", "<agent>"],
    json: { object: "api_key", mode: "sandbox", created_at: NOW, secret: expect.stringMatching(/^hf_test_/) },
    people: ["hf_test_", "shown once"],
  },
  {
    line: ["keys", "revoke", "<key>"],
    json: { object: "api_key", revoked_at: NOW },
    people: ["The key is revoked."],
  },
  {
    line: [
      "sessions",
      "create",
      "--agent",
      "<agent>",
      "--ceiling",
      "8400000",
      "--warrant-limit",
      "3",
      "--failure-budget",
      "2",
      "--expires-at",
      "2030-02-01T00:00:00Z",
    ],
    json: {
      object: "spend_session",
      amount_ceiling: "8400000",
      warrant_limit: 3,
      failure_budget: 2,
      expires_at: "2030-02-01T00:00:00.000Z",
    },
    people: ["8.40 USDC", "0, of 3"],
  },
  {
    line: ["sessions", "revoke", "<session>"],
    json: { object: "spend_session", revoked_at: NOW },
    people: ["The spend session is revoked."],
  },
  {
    line: [
      "policies",
      "create",
      "--organisation",
      "<organisation>",
      "--name",
      "standard #",
      "--rules",
      RULES,
      "--agent",
      "<agent>",
    ],
    json: { object: "policy", version: 1, rules: JSON.parse(RULES) },
    people: ["Saved version 1 of the policy standard", "release from 1, refund from 0", "agt_"],
  },
  {
    line: [
      "verifiers",
      "create",
      "--organisation",
      "<organisation>",
      "--type",
      "http.status",
      "--name",
      "ok",
      "--config",
      '{"equals":200}',
    ],
    json: { object: "verifier", type: "http.status", config: { equals: 200 } },
    people: ["Saved the verifier ok.", '{"equals":200}'],
  },
  {
    line: [
      "schemas",
      "create",
      "--organisation",
      "<organisation>",
      "--name",
      "s#",
      "--schema",
      '{"type":"object"}',
    ],
    json: { object: "schema", schema: { type: "object" } },
    people: ["Saved the schema s"],
  },
  {
    line: ["balances", "fund", ...books, "--amount", "1234560000", "--reference", "wire"],
    json: { object: "deposit", amount: "1234560000", asset: "USDC", reference: "wire" },
    people: ["1 234.56 USDC came in, sandbox."],
  },
  {
    line: ["balances", "show", ...books],
    json: {
      object: "balance",
      mode: "sandbox",
      balances: [{ asset: "USDC", available: "2469120000", held: "0", paid: "0" }],
    },
    people: ["available", "2 469.12 USDC", "0.00 USDC"],
  },
  {
    line: ["balances", "show", "--organisation", "<organisation>", "--mode", "live"],
    json: { object: "balance", mode: "live", balances: [] },
    people: ["Nothing has come in yet, live."],
  },
  { line: ["audit"], json: { object: "audit", ok: true, problems: [] }, people: ["The books balance"] },
  { line: ["openapi"], json: { openapi: "3.1.0" }, people: ['  "openapi": "3.1.0"'] },
];

describe("every command, with --json and for people", () => {
  for (const { line, json, people } of SUCCESSES) {
    test(line.slice(0, 6).join(" "), async () => {
      const numbered = (run: string) => words(line).map((word) => word.replace("#", run));
      const before = cli.opened.count;
      const machine = await cli.run(...numbered("1"), "--json", "--data", "anywhere");
      expect([machine.code, machine.err]).toEqual([0, ""]);
      expect(machine.out.split("\n").length).toBe(2);
      expect(JSON.parse(machine.out)).toMatchObject(json);

      const human = await cli.run(...numbered("2"));
      expect([human.code, human.err]).toEqual([0, ""]);
      for (const text of people) expect(human.out).toContain(text);
      expect(cli.opened.count - before).toBe(line[0] === "openapi" ? 0 : 2);
      expect(cli.opened.closed).toBe(cli.opened.count);
    });
  }
});

type Failure = readonly [line: readonly string[], code: string, start: string];

/** Found before the ledger is opened. */
const BAD_LINES: readonly Failure[] = [
  [["frobnicate"], "validation_failed", "unknown command 'frobnicate'"],
  [["webhooks", "create"], "validation_failed", "required option '--organisation <id>' not specified"],
  [["agents"], "validation_failed", "agents: name one of its commands"],
  [["agents", "creat"], "validation_failed", "unknown command 'creat' (Did you mean create?)"],
  [["keys", "revoke", "--frob"], "validation_failed", "unknown option '--frob'"],
  [["keys", "create"], "validation_failed", "required option '--agent <id>' not specified"],
  [["keys", "create", "--agent"], "validation_failed", "option '--agent <id>' argument missing"],
  [["keys", "revoke"], "validation_failed", "missing required argument 'key'"],
  [["keys", "revoke", "a", "b"], "validation_failed", "too many arguments"],
  [["audit", "--jsn"], "validation_failed", "unknown option '--jsn' (Did you mean --json?)"],
  [
    ["balances", "show", "--organisation", "o", "--mode", "test"],
    "validation_failed",
    "option '--mode <mode>'",
  ],
  [["agents", "set-status", "<agent>", "asleep"], "validation_failed", "command-argument value 'asleep'"],
  [
    ["users", "create", "--organisation", "o", "--email", "e@x", "--role", "viewer"],
    "validation_failed",
    "--password: give it, or --password-file",
  ],
  [
    [
      "organisations",
      "create",
      "--name",
      "N",
      "--owner-email",
      "e@x",
      "--owner-password",
      "12345678",
      "--owner-password-file",
      "f",
    ],
    "validation_failed",
    "--owner-password: ",
  ],
  [
    ["organisations", "create", "--name", "N", "--owner-email", "e@x", "--owner-password-file", "/nowhere"],
    "validation_failed",
    "--owner-password-file: cannot read /nowhere (ENOENT)",
  ],
  ...(
    [
      ["{", "--rules: is not JSON"],
      ['{"bands":[],"bands":[]}', "--rules: has the same key twice"],
      ["@/nowhere.json", "--rules: cannot read /nowhere.json (ENOENT)"],
      ["@/", "--rules: cannot read /"],
    ] as const
  ).map(
    ([rules, start]): Failure => [
      ["policies", "create", "--organisation", "o", "--name", "n", "--rules", rules],
      "validation_failed",
      start,
    ],
  ),
  [
    [
      "verifiers",
      "create",
      "--organisation",
      "o",
      "--type",
      "http.status",
      "--name",
      "n",
      "--config",
      "{'equals':200}",
    ],
    "validation_failed",
    "--config: is not JSON",
  ],
  [
    ["verifiers", "create", "--organisation", "o", "--type", "shell.run", "--name", "n", "--config", "{}"],
    "validation_failed",
    "option '--type <kind>' argument 'shell.run' is invalid. Allowed choices are http.status",
  ],
  [
    ["schemas", "create", "--organisation", "o", "--name", "n", "--schema", ""],
    "validation_failed",
    "--schema: is not JSON",
  ],
];

/** Found by the verb. */
const REFUSED: readonly Failure[] = [
  [["keys", "create", "--agent", "agt_none"], "agent_not_found", "There is no agent agt_none"],
  [["keys", "revoke", "key_none"], "api_key_not_found", "There is no API key key_none"],
  [["sessions", "revoke", "ses_none"], "session_not_found", "There is no spend session"],
  [["agents", "set-status", "agt_none", "killed"], "agent_not_found", ""],
  [
    ["agents", "create", ...books, "--name", "n", "--failure-budget", "many"],
    "validation_failed",
    "failure_budget: ",
  ],
  [
    ["agents", "create", ...books, "--name", "n", "--failure-budget", "-1"],
    "validation_failed",
    "failure_budget: ",
  ],
  [
    ["sessions", "create", "--agent", "<agent>", "--ceiling", "8.40"],
    "validation_failed",
    "amount_ceiling: ",
  ],
  [
    ["sessions", "create", "--agent", "<agent>", "--ceiling", "1", "--expires-at", "tomorrow"],
    "validation_failed",
    "expires_at: ",
  ],
  [["balances", "fund", ...books, "--amount", "1e6"], "validation_failed", "amount: "],
  [["balances", "show", "--organisation", "org_none", "--mode", "live"], "organisation_not_found", ""],
  [
    ["policies", "create", "--organisation", "<organisation>", "--name", "n", "--rules", '{"bands":[]}'],
    "policy_no_bands",
    "rules.bands: ",
  ],
  [
    [
      "organisations",
      "create",
      "--name",
      "N",
      "--owner-email",
      "ADA@example.com",
      "--owner-password",
      "12345678",
    ],
    "already_exists",
    "owner_email: ",
  ],
];

describe("a failure is exit code 1 and the error's body on stderr, and nothing is written:", () => {
  for (const [line, code, start] of [...BAD_LINES, ...REFUSED]) {
    const isBadLine = BAD_LINES.some(([bad]) => bad === line);
    test(line.join(" ").slice(0, 100), async () => {
      for (const args of isBadLine ? [words(line)] : [words(line), [...words(line), "--json"]]) {
        const rows = rowCounts(ctx.folder);
        const before = cli.opened.count;
        const ran = await cli.run(...args);
        expect([ran.code, ran.out]).toEqual([1, ""]);
        const { error } = JSON.parse(ran.err);
        expect(Object.keys(error).sort()).toEqual(["code", "doc_url", "message", "request_id", "type"]);
        expect([error.code, error.message.slice(0, start.length)]).toEqual([code, start]);
        expect(rowCounts(ctx.folder)).toEqual(rows);
        expect(cli.opened.count - before).toBe(isBadLine ? 0 : 1);
        expect(cli.opened.closed).toBe(cli.opened.count);
      }
    });
  }

  test("a fault of the machine says what failed", async () => {
    const broken = createCommandLine(ctx, {
      open: () =>
        Promise.reject(new Error("Failed query: … params: secret", { cause: new Error("disk I/O error") })),
    });
    const { code, out, err } = await broken.run("audit");
    expect([code, out]).toEqual([1, ""]);
    expect(JSON.parse(err).error).toMatchObject({ code: "internal_error", message: "disk I/O error" });
  });

  test("a ledger that cannot be opened says why", async () => {
    const message = "HOLDFAST_FROB: is not a setting";
    const broken = createCommandLine(ctx, { open: async () => ({ refused: "validation_failed", message }) });
    expect(JSON.parse((await broken.run("audit")).err).error.message).toBe(message);
  });
});

test("JSON and passwords may come from files", async () => {
  const rules = join(ctx.folder, "rules.json");
  await Bun.write(rules, RULES);
  const policy = await cli.json(
    "policies",
    "create",
    "--organisation",
    organisation,
    "--name",
    "f",
    "--rules",
    `@${rules}`,
  );
  expect(policy.rules).toEqual(JSON.parse(RULES));

  const password = join(ctx.folder, "password");
  await Bun.write(password, "from a file\n");
  const flags = ["--organisation", organisation, "--role", "viewer", "--password-file", password];
  const user = await cli.json("users", "create", ...flags, "--email", "file@example.com");
  expect(ctx.reader.users.get(idOf(user))?.passwordHash).toBe("test:from a file");

  const huge = join(ctx.folder, "huge.json");
  await Bun.write(huge, `"${"x".repeat(1024 * 1024)}"`);
  const { err } = await cli.run(
    "schemas",
    "create",
    "--organisation",
    organisation,
    "--name",
    "h",
    "--schema",
    `@${huge}`,
  );
  expect(JSON.parse(err).error.message).toEndWith("is larger than 1 MiB");
});

test("an audit that finds something lists it and exits 1", async () => {
  const problems = ["balance of org_1 USDC: held 5, warrants hold 4", "trace of wrt_1: broken at 2"];
  const broken = createCommandLine({ ...ctx, store: { ...ctx.store, audit: async () => problems } });
  expect(await broken.run("audit")).toEqual({ code: 1, out: `${problems.join("\n")}\n`, err: "" });
  const { code, out, err } = await broken.run("audit", "--json");
  expect([code, JSON.parse(out), err]).toEqual([1, { object: "audit", ok: false, problems }, ""]);
  expect(broken.opened).toEqual({ count: 2, closed: 2 });
});

test("the machine's verbs and the command line's are the same", async () => {
  const direct = await setAgentStatus(ctx, MACHINE, { agent_id: agent, status: "active" });
  expect(await cli.json("agents", "set-status", agent, "active")).toEqual(JSON.parse(JSON.stringify(direct)));
});
