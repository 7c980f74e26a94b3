import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { type CommandLine, createCommandLine } from "../support/command-line.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../support/context.ts";

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

/** Words of a command line; `<agent>` and so on stand for what `beforeAll` created. */
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

const account = ["--organisation", "<organisation>", "--mode", "sandbox"];
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
      "correct horse",
      "--role",
      "operator",
    ],
    json: { object: "user", role: "operator" },
    people: ["Created u", "operator", "e-mail", "@x.org"],
  },
  {
    line: ["agents", "create", ...account, "--name", "second", "--failure-budget", "7", "--must-be-named"],
    json: { object: "agent", name: "second", status: "active", failure_budget: 7 },
    people: ["Created the sandbox agent second.", "did:web:localhost%3A8080:agents:agt_", "0 in a row, of 7"],
  },
  {
    line: [
      "agents",
      "update",
      "<agent>",
      "--name",
      "buyer",
      "--failure-budget",
      "4",
      "--must-be-named",
      "on",
    ],
    json: { object: "agent", name: "buyer", failure_budget: 4, must_be_named: true },
    people: ["Changed the agent buyer.", "0 in a row, of 4", "must be named  yes"],
  },
  {
    line: ["agents", "update", "<agent>", "--must-be-named", "off"],
    json: { object: "agent", name: "buyer", failure_budget: 4, must_be_named: false },
    people: ["Changed the agent buyer.", "must be named  no"],
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
    line: [
      ...["source-keys", "add", "--organisation", "<organisation>", "--origin", "https://API#.example/"],
      ...["--key", JSON.stringify({ kty: "OKP", crv: "Ed25519", x: "A".repeat(43) })],
    ],
    json: { object: "source_key", origin: "https://api1.example", algorithm: "ed25519", removed_at: null },
    people: ["Registered who signs for https://api2.example.", "ed25519"],
  },
  {
    line: ["source-keys", "list", "--organisation", "<organisation>"],
    json: { object: "list", data: [{ origin: "https://api1.example" }, { origin: "https://api2.example" }] },
    people: ["https://api1.example", "ed25519"],
  },
  {
    line: [
      ...["source-keys", "add", "--organisation", "<organisation>", "--origin", "https://signed#.example"],
      ...["--issuer", "https://issuer.example", "--subject", "reports@api.example"],
    ],
    json: {
      object: "source_key",
      origin: "https://signed1.example",
      algorithm: "sigstore",
      identity: { issuer: "https://issuer.example", subject: "reports@api.example" },
    },
    people: ["Registered who signs for", "reports@api.example"],
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
    people: ["8.40 USDC", "0, of 3", "--must-be-named on"],
  },
  {
    line: [
      ...["sessions", "create", "--agent", "<agent>", "--ceiling", "8400000", "--per-warrant-max", "1000000"],
      ...["--hourly-max", "2000000", "--daily-max", "3000000", "--payees", "acme, shop*"],
      ...["--source-origins", "https://Good.example,https://other.example:*"],
    ],
    json: {
      per_warrant_max: "1000000",
      hourly_max: "2000000",
      daily_max: "3000000",
      payees: ["acme", "shop*"],
      source_origins: ["https://good.example", "https://other.example:*"],
      warning: expect.stringContaining("--must-be-named on"),
    },
    people: [
      ...["per warrant  1.00 USDC", "per hour     2.00 USDC", "per day      3.00 USDC"],
      ...["payees       acme, shop*", "sources      https://good.example, https://other.example:*"],
    ],
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
    line: ["balances", "fund", ...account, "--amount", "1234560000", "--reference", "wire"],
    json: { object: "deposit", amount: "1234560000", asset: "USDC", reference: "wire" },
    people: ["1 234.56 USDC came in, sandbox."],
  },
  {
    // Each line is run twice, and the reference names one deposit.
    line: ["balances", "show", ...account],
    json: {
      object: "balance",
      mode: "sandbox",
      balances: [{ asset: "USDC", available: "1234560000", held: "0", paid: "0" }],
    },
    people: ["available", "1 234.56 USDC", "0.00 USDC"],
  },
  {
    line: ["deposits", "list", ...account],
    json: { object: "list", data: [{ object: "deposit", amount: "1234560000", counts_for: "1234560000" }] },
    people: ["1 234.56 USDC", "wire", "dep_"],
  },
  {
    line: ["deposits", "list", "--unassigned", "--mode", "sandbox"],
    json: { object: "list", data: [], has_more: false, next_cursor: null },
    people: ["Nothing came in, sandbox."],
  },
  {
    line: ["deposits", "senders", "add", ...account, "--address", `0x${"ac".repeat(20)}`, "--note", "Acme"],
    json: { object: "deposit_sender", mode: "sandbox", address: `0x${"ac".repeat(20)}`, note: "Acme" },
    people: ["The sender is registered.", "Acme"],
  },
  {
    line: ["deposits", "senders", "list", ...account],
    json: { object: "list", data: [{ object: "deposit_sender", note: "Acme" }], has_more: false },
    people: [`0x${"ac".repeat(20)}`, "Acme"],
  },
  {
    line: ["payouts", "list", ...account],
    json: { object: "list", data: [], has_more: false, next_cursor: null },
    people: ["Nothing is owed, sandbox."],
  },
  {
    line: ["treasuries", "list"],
    json: { object: "list", data: [], has_more: false },
    people: ["No wallet holds money on a chain"],
  },
  {
    line: ["solvency"],
    json: { object: "list", data: [{ object: "solvency", owes: "1234560000", judgement: null }] },
    people: ["1 234.56 USDC", "by your own means"],
  },
  {
    line: ["solvency", "list"],
    json: { object: "list", data: [], has_more: false },
    people: ["No statement was signed so far"],
  },
  {
    line: ["payouts", "submit", ...account],
    json: { object: "list", data: [], has_more: false },
    people: ["Nothing is owed that you pay by your own means, sandbox."],
  },
  {
    line: ["balances", "show", "--organisation", "<organisation>", "--mode", "live"],
    json: { object: "balance", mode: "live", balances: [] },
    people: ["Nothing has come in yet, live."],
  },
  { line: ["audit"], json: { object: "audit", ok: true, problems: [] }, people: ["The ledger balances"] },
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
  await Bun.write(password, "a line of a file\n");
  const flags = ["--organisation", organisation, "--role", "viewer", "--password-file", password];
  const user = await cli.json("users", "create", ...flags, "--email", "file@example.com");
  expect(ctx.reader.users.get(idOf(user))?.passwordHash).toBe("test:a line of a file");

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
    "--json",
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
