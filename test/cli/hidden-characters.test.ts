import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Command } from "commander";
import { buildProgram } from "../../src/cli/program.ts";
import type { CommandLineTools } from "../../src/cli/tools.ts";
import { hasHiddenCharacters } from "../../src/core/hidden-characters.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { sendExample } from "../../src/services/admin/deliveries.ts";
import { createWebhook } from "../../src/services/admin/webhooks.ts";
import { type CommandLine, createCommandLine } from "../support/command-line.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { buildGoodPurchases } from "../support/good-purchases.ts";
import { openTestLedger } from "../support/ledger.ts";
import { openMarket } from "../support/market.ts";
import { removeLedgerFolder } from "../support/new-ledger.ts";
import { createCaller, createStage, must, SCRIPTED, type Stage } from "../support/stage.ts";

describe("text that is given", () => {
  let ctx: TestContext;
  let cli: CommandLine;
  let stage: Stage;
  let agentId: string;
  beforeAll(async () => {
    ctx = createTestContext(SCRIPTED);
    cli = createCommandLine(ctx);
    stage = await createStage(ctx, { mode: "sandbox" });
    ({ agentId } = await createCaller(stage));
  });
  afterAll(() => ctx.close());

  /** What no option can write into the ledger as text: it is looked up, counted, parsed, or a file's name or a secret. */
  const NO_TEXT = [
    // An origin is parsed, and a key is base64.
    "<origin>",
    "<jwk>",
    ...[
      "<id>",
      "<entry>",
      "<purchase>",
      "<payee>",
      "<amount>",
      "<count>",
      "<number>",
      "<seconds>",
      "<time>",
      "<events>",
      "<origins>",
      "<did>",
      "<witness>",
      "<key...>",
    ],
    ...["<asset>", "<file>", "<folder>", "<password>", "<address>", "<cidrs>", "<what>", "<ledger>"],
  ];
  /** The URLs of a server's own settings. */
  const SETTINGS = ["serve --base-url", "serve --docs-url"];
  /** Taken in printable ASCII alone, as certificates have it. */
  const IDENTITIES = ["source-keys add --issuer", "source-keys add --subject"];

  const policy = (label: string): string =>
    JSON.stringify({ bands: [{ minScore: 0, outcome: "refund", label }] });
  const ACCOUNT = ["--organisation", "ORG", "--mode", "sandbox"];
  const PASSWORD = ["--password", "correct horse battery staple"];
  /** A line for each option whose text is kept, where `TEXT` stands for it. A name alone is harmless. */
  const LINES: Readonly<Record<string, readonly string[]>> = {
    "agents create --name": [...ACCOUNT, "--name", "TEXT"],
    "agents update --name": ["AGENT", "--name", "TEXT"],
    "sessions create --payees": ["--agent", "AGENT", "--ceiling", "1", "--payees", "TEXT"],
    "organisations create --name": [
      "--name",
      "TEXT",
      "--owner-email",
      "a1@example.com",
      "--owner-password",
      "correct horse battery",
    ],
    "organisations create --owner-email": [
      "--name",
      "n",
      "--owner-email",
      "TEXT@example.com",
      "--owner-password",
      "correct horse battery",
    ],
    "users create --email": [
      "--organisation",
      "ORG",
      "--role",
      "viewer",
      "--email",
      "TEXT@example.org",
      ...PASSWORD,
    ],
    "users create --name": [
      "--organisation",
      "ORG",
      "--role",
      "viewer",
      "--email",
      "b@example.com",
      "--name",
      "TEXT",
      ...PASSWORD,
    ],
    "policies create --name": ["--organisation", "ORG", "--name", "TEXT", "--rules", policy("l")],
    "policies create --rules": ["--organisation", "ORG", "--name", "n", "--rules", policy("TEXT")],
    "verifiers create --name": [
      "--organisation",
      "ORG",
      "--type",
      "http.status",
      "--name",
      "TEXT",
      "--config",
      '{"equals":200}',
    ],
    "verifiers create --config": [
      "--organisation",
      "ORG",
      "--type",
      "chain.event",
      "--name",
      "n",
      "--config",
      '{"topic":"TEXT"}',
    ],
    "schemas create --name": ["--organisation", "ORG", "--name", "TEXT", "--schema", "{}"],
    "webhooks create --url": [...ACCOUNT, "--url", "https://hook.example/TEXT"],
    "balances fund --reference": [...ACCOUNT, "--amount", "1", "--reference", "TEXT"],
    // There is no purchase, deposit or payout here; the text is looked at first.
    "balances correct --reason": ["dep_none", "--amount", "1", "--reason", "TEXT"],
    "deposits senders add --note": [...ACCOUNT, "--address", `0x${"ac".repeat(20)}`, "--note", "TEXT"],
    "payouts fail --reason": ["pay_none", "--reason", "TEXT"],
    "payouts mark-paid --reference": ["pay_none", "--reference", "TEXT"],
    "x402 acknowledge --note": ["pur_none", "--note", "TEXT"],
    "x402 resolve --note": ["pur_none", "--paid", "--note", "TEXT"],
  };
  /** A JSON Schema is a document: what is hidden in it is compared with what is hidden in others. */
  const DOCUMENTS = ["schemas create --schema"];

  test("every option whose text is kept is known here", () => {
    const found: string[] = [];
    const walk = (command: Command, path: readonly string[]): void => {
      for (const child of command.commands) walk(child, [...path, child.name()]);
      for (const { flags, long, required, optional, argChoices } of command.options) {
        const placeholder = /<.*>/.exec(flags)?.[0] ?? "";
        if ((required || optional) && !argChoices && !NO_TEXT.includes(placeholder))
          found.push([...path, long].join(" "));
      }
    };
    walk(buildProgram({ version: "0" } as CommandLineTools), []);
    expect(found.sort()).toEqual([...Object.keys(LINES), ...SETTINGS, ...IDENTITIES, ...DOCUMENTS].sort());
  });

  for (const [option, line] of Object.entries(LINES)) {
    test(`${option} refuses hidden characters, and takes joiners`, async () => {
      const path = option.split(" ").slice(0, -1);
      const run = (text: string) =>
        cli.run(
          ...path,
          ...line.map((word) =>
            word
              .replace("ORG", stage.organisationId)
              .replace("AGENT", agentId)
              .replace("TEXT", word.startsWith("{") ? JSON.stringify(text).slice(1, -1) : text),
          ),
        );
      for (const hidden of ["\u0007", "\u009b", "\u200b", "\u200f", "\u202e", "\u2060", "\u2069", "\ufeff"]) {
        for (const text of [`x${hidden}y`, `${hidden}x`, `x${hidden}`]) {
          const { code, err } = await run(text);
          expect([text, code, err]).toEqual([
            text,
            1,
            expect.stringMatching(
              /without control or invisible characters|must be 1 to 128 characters of A-Z/,
            ),
          ]);
        }
      }
      const plain = await run(option === "schemas create --name" ? "plain" : "می\u200cخواهم");
      if (line[0]?.endsWith("_none")) expect(plain.err).toMatch(/There is no (such purchase|deposit|payout)/);
      else expect([plain.code, plain.err]).toEqual([0, ""]);
    });
  }
});

describe("text that an older version let in, or that a stranger sent", () => {
  const EVIL = "ev\u001b[2J\u009b31m\u202e\u200b\u061c\ufeff\nil";
  const SHOWN = "ev\\u001b[2J\\u009b31m\\u202e\\u200b\\u061c\\ufeff\\u000ail";
  /** Written in raw SQL, past every rule. */
  const WRITES = [
    "UPDATE organisations SET name = ?1",
    "UPDATE users SET name = ?1, email = ?1 || id",
    "UPDATE agents SET name = ?1, identity = 'did:key:' || ?1",
    "UPDATE webhooks SET url = ?1",
    "UPDATE webhook_deliveries SET response_start = ?1, response_code = NULL",
    "UPDATE purchases SET url = ?1, quoted_payee = CASE WHEN quoted_payee IS NULL THEN NULL ELSE ?1 END",
    `UPDATE audit_entries SET subject = ?1, after = '{"name":' || ?2 || '}'`,
  ];
  let folder: string;
  let ctx: TestContext;
  let cli: CommandLine;
  const ids: Record<string, string> = {};
  beforeAll(async () => {
    const market = openMarket();
    const before = createTestContext({ x402: market.x402 });
    folder = before.folder;
    const stage = await createStage(before, { mode: "sandbox" });
    await buildGoodPurchases(stage, market);
    const account = { organisation_id: stage.organisationId, mode: stage.mode };
    const webhook = must(await createWebhook(before, MACHINE, { ...account, url: "https://hook.example/" }));
    must(await sendExample(before, MACHINE, { webhook_id: webhook.id }));
    Object.assign(ids, {
      ORG: stage.organisationId,
      AGENT: (await createCaller(stage)).agentId,
      USER: stage.operator.userId,
      HOOK: webhook.id,
      PURCHASE: before.reader.purchases.list(stage, null, 1)[0]!.id,
    });
    await before.store.close();
    const { unguarded, change, close } = openTestLedger(folder);
    unguarded(() => {
      for (const write of WRITES) {
        const given = write.includes("?2") ? [EVIL, JSON.stringify(EVIL)] : [EVIL];
        expect([write, change(write, ...given)]).not.toEqual([write, 0]);
      }
    });
    close();
    ctx = createTestContext({ x402: market.x402 }, folder);
    cli = createCommandLine(ctx);
  });
  afterAll(async () => {
    await ctx.store.close();
    removeLedgerFolder(folder);
  });

  const LINES = [
    ["organisations", "list"],
    ["organisations", "show", "ORG"],
    ["kill-switch", "off", "--organisation", "ORG"],
    ["passkey-threshold", "--amount", "off", "--organisation", "ORG"],
    ["users", "list", "--organisation", "ORG"],
    ["users", "set-role", "USER", "operator"],
    ["agents", "list", "--organisation", "ORG", "--mode", "sandbox"],
    ["agents", "show", "AGENT"],
    ["webhooks", "list", "--organisation", "ORG", "--mode", "sandbox"],
    ["webhooks", "deliveries", "HOOK"],
    ["x402", "list", "--organisation", "ORG", "--mode", "sandbox"],
    ["x402", "show", "PURCHASE"],
    ["audit-log", "--organisation", "ORG"],
  ];
  for (const line of LINES) {
    test(`${line.slice(0, 2).join(" ")} shows it escaped, in words and in JSON`, async () => {
      const words = line.map((word) => ids[word] ?? word);
      const human = await cli.run(...words);
      expect([human.code, human.err]).toEqual([0, ""]);
      expect(human.out).toContain(SHOWN);
      const printed = human.out.split("\n");
      expect(printed.filter((each) => hasHiddenCharacters(each) || each.startsWith("il"))).toEqual([]);

      const machine = await cli.run(...words, "--json");
      expect(hasHiddenCharacters(machine.out.replace(/\n$/, ""))).toBe(false);
      expect(textsIn(JSON.parse(machine.out)).some((text) => text.startsWith(EVIL))).toBe(true);
    });
  }

  const textsIn = (value: unknown): readonly string[] =>
    typeof value === "string"
      ? [value]
      : Object.values(typeof value === "object" && value !== null ? value : {}).flatMap(textsIn);

  test("a failure that names it is one line", async () => {
    const { err } = await cli.run(`x${EVIL}`);
    expect(err).toBe(`holdfast: there is no command "x${SHOWN}". See holdfast --help\n`);
    const { err: body } = await cli.run(`x${EVIL}`, "--json");
    expect(hasHiddenCharacters(body.replace(/\n$/, ""))).toBe(false);
    expect(JSON.parse(body).error.message).toContain("\u009b31m\u202e");
  });
});
