/** Every error, event, metric, environment variable, command and clause kind has its place in the documentation. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { buildProgram } from "../../src/cli/program.ts";
import type { CommandLineTools } from "../../src/cli/tools.ts";
import { readConfig } from "../../src/config.ts";
import { CLAUSE_KINDS, CODES_OF_KINDS } from "../../src/core/clauses/registry.ts";
import { ERRORS } from "../../src/core/errors.ts";
import { EVENT_TYPES } from "../../src/core/warrant.ts";
import { MARKDOWN_PAGES } from "../../src/docs/contents.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { NO_FIGURES } from "../support/no-figures.ts";
import { filesOf } from "../tidy/source-files.ts";

const FOLDER = join(import.meta.dir, "../../src/docs");

/** What blocks may be in. In `text` is what is printed; `sh run` is typed, and test/process/documentation.test.ts runs it. */
const LANGUAGES = ["", "sh", "text", "json", "js", "ini", "yaml", "nginx"];
/** Programs that a test cannot have, or that need somebody's real money. */
const ELSEWHERE =
  /^(systemctl |docker |pg_dump |psql |pg_basebackup |pg_ctl |curl -sS --config - |(?:\{ )?openssl |export HOLDFAST_(?:ANCHOR|TREASURY_LIVE|DATABASE_FILE)=|holdfast (copy|restore (declare|acknowledge)|x402 (resolve|acknowledge)|deposits assign|treasuries resume)[ \n])/;

const pageOf = (name: string): string => readFileSync(join(FOLDER, `${name}.md`), "utf8");

/** What is below each heading of a page: from the heading to the next one, whatever its level. */
function sectionsOf(name: string): ReadonlyMap<string, string> {
  const parts = pageOf(name).split(/^#{2,4} /m);
  return new Map(
    parts.slice(1).map((part) => {
      const [heading = "", ...lines] = part.split("\n");
      return [heading.replaceAll("`", ""), lines.join("\n")];
    }),
  );
}

test("the error page has a section for each code, and no other at its level", () => {
  const headings = [...pageOf("errors").matchAll(/^### (.*)$/gm)].map(([, code = ""]) => code);
  expect(headings).toEqual(Object.keys(ERRORS));
});

const sources = filesOf("src/**/*.ts");

/** The texts in the code, in the parts between what is put in. */
const TEXTS: readonly (readonly string[])[] = sources.flatMap(({ text }) =>
  [...text.matchAll(/"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g)].map(([, quoted, template]) =>
    (quoted ?? template ?? "").replaceAll("\\", "").split(/\$\{(?:[^{}]|\{[^{}]*\})*\}/),
  ),
);

/** Whether a message comes from a text in the code, which may follow the path of a field; two fifths of it at least are fixed. */
const isFromCode = (shown: string): boolean => {
  // Ids and times are put in, so their length does not count.
  const message = shown.replaceAll(/\b[a-z]{3}_[0-9A-Z]{26}|\b\d{4}-\S+Z/g, "…");
  return TEXTS.some(
    (parts) =>
      parts.join("").length >= message.length * 0.4 &&
      parts.every((part) => message.includes(part)) &&
      new RegExp(`^(\\S+: )?${parts.map(RegExp.escape).join("[\\s\\S]+")}$`).test(message),
  );
};

/** Whether the code refuses with it anywhere: one code is kept for engines that are not here yet. */
const isUsed = (code: string): boolean =>
  sources.some(({ path, text }) => path !== "src/core/errors.ts" && text.includes(`"${code}"`));

for (const [code, section] of sectionsOf("errors")) {
  if (!(code in ERRORS)) continue;
  test(`the section on ${code} says what to do, and shows a message that the code has`, () => {
    const [todo = "", message = ""] = section
      .split("\n## ")[0]!
      .trim()
      .split(/\n\n> /);
    expect(todo.length).toBeGreaterThan(30);
    expect([message, isUsed(code) && !isFromCode(message)]).toEqual([message, false]);
  });
}

/** The names of a table of settings, as config.ts declares it. */
function settingsIn(table: string): string[] {
  const { text = "" } = sources.find(({ path }) => path === "src/config.ts") ?? {};
  const declared = text.split(`\nconst ${table} = {\n`)[1]?.split("\n}")[0] ?? "";
  return [...declared.matchAll(/^ {2}(?:\.\.\.\{ )?([A-Z0-9_]+):/gm)].map(([, name]) => `HOLDFAST_${name}`);
}

test("the page on configuration has each variable, and no other", () => {
  const secrets = settingsIn("SECRETS");
  const known = [...settingsIn("SETTINGS"), ...secrets, ...secrets.map((name) => `${name}_FILE`)];
  const rows = [...pageOf("configuration").matchAll(/^\| `(HOLDFAST_\w+)` \|(?: `(HOLDFAST_\w+)`)?/gm)];
  const shown = rows.flatMap(([, name, file]) => (file === undefined ? [name] : [name, file]));
  expect(shown.toSorted()).toEqual(known.toSorted());
  for (const name of known)
    expect(Bun.inspect(readConfig({}, { [name]: "?" }))).not.toContain("is not a setting");
});

/** Every command, as its words. One that has others below it is one itself where it takes the options of a command. */
function commandsOf(command: Command, path: readonly string[] = []): [string, Command][] {
  const below = command.commands.flatMap((child) => commandsOf(child, [...path, child.name()]));
  const isCommand = below.length === 0 || command.options.some(({ long }) => long === "--json");
  return isCommand ? [[path.join(" "), command], ...below] : below;
}
const COMMANDS = commandsOf(buildProgram({ version: "0" } as CommandLineTools));

test("the page on the command line has a section for each command, and no other", () => {
  const headings = [...pageOf("commands").matchAll(/^### `holdfast (.*)`$/gm)].map(([, name]) => name);
  expect(headings.toSorted()).toEqual(COMMANDS.map(([name]) => name).toSorted());
});

for (const [name, command] of COMMANDS) {
  test(`the section on ${name} names each option and argument, and has a line to type`, () => {
    const section = sectionsOf("commands").get(`holdfast ${name}`) ?? "";
    for (const { long } of command.options.filter(({ long }) => long !== "--data" && long !== "--json"))
      expect(section).toContain(`\`${long}`);
    expect(section.replaceAll("`", "")).toContain(command.description().replaceAll("`", ""));
    expect(section).toMatch(new RegExp(`^\`\`\`sh.*\\n(.*\\n)*?.*holdfast ${name}\\b`, "m"));
  });
}

test("the page on events has a section for each event", () => {
  const headings = [...pageOf("events").matchAll(/^## (.*)$/gm)].map(([, name]) => name);
  expect(headings).toEqual([...EVENT_TYPES]);
});

test("the page on clauses has a section for each kind, with one that passes and one that fails", () => {
  for (const kind of CLAUSE_KINDS) {
    const section = sectionsOf("clauses").get(kind) ?? "";
    expect([kind, section]).toEqual([kind, expect.stringContaining('{"passed":true,')]);
    expect([kind, section]).toEqual([kind, expect.stringContaining('{"passed":false,')]);
  }
});

test("the page on evaluation has each reason code that evaluation gives", () => {
  for (const code of CODES_OF_KINDS) expect(pageOf("evaluation")).toContain(`\`${code}\``);
});

test("the page on metrics has each metric, with its type and what it says of itself", async () => {
  const text = await createMetrics().text(async () => NO_FIGURES);
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]);
  const rows = [...pageOf("metrics").matchAll(/^\| `(\w+)` \| (\w+) \|/gm)].map(([, name, type]) => [
    name,
    type,
  ]);
  expect(rows.toSorted()).toEqual(types.toSorted());
  for (const [, name, help] of text.matchAll(/^# HELP (\S+) (.*)\.$/gm))
    expect([name, pageOf("metrics")]).toEqual([name, expect.stringContaining(help!)]);
});

test("every file of Markdown in the folder is a page, and every page a file", () => {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith(".md"));
  const names = MARKDOWN_PAGES.map((page) => `${page}.md`);
  expect(files.toSorted()).toEqual(names.toSorted());
});

test("every block that is typed is run by a test, unless its programs are not here", () => {
  for (const page of MARKDOWN_PAGES) {
    for (const [, info = "", code = ""] of pageOf(page).matchAll(/^```([^\n]*)\n([\s\S]*?)^```$/gm)) {
      const [language, how] = info.split(" ");
      expect([page, info, LANGUAGES.includes(language ?? "")]).toEqual([page, info, true]);
      if (language === "json" && !code.startsWith('{"time"')) JSON.parse(code);
      // A table of figures names commands, and nobody types it.
      if (code.startsWith("What  ")) continue;
      if (language !== "sh")
        expect([page, code]).toEqual([page, expect.not.stringMatching(/^(curl|holdfast) /m)]);
      else if (how !== "run") expect([page, code, ELSEWHERE.test(code)]).toEqual([page, code, true]);
    }
  }
});
