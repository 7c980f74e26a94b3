/** The front page is short, and what it shows and leads to is there. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { buildProgram } from "../../src/cli/program.ts";
import type { CommandLineTools } from "../../src/cli/tools.ts";
import { readConfig } from "../../src/config.ts";
import { MARKDOWN_PAGES } from "../../src/docs/contents.ts";
import { renderMarkdown } from "../../src/docs/markdown.ts";
import { readRepositoryFile } from "../tidy/source-files.ts";

const LINES_MAX = 150;
const PICTURE_BYTES_MAX = 150_000;
const PNG = "89504e470d0a1a0a";
const DECISIONS = "decisions";

const readme = readRepositoryFile("README.md");
const fileAt = (path: string): string => join(import.meta.dir, "../..", path);
const found = (pattern: RegExp): string[] => [...readme.matchAll(pattern)].map(([, text = ""]) => text);

test(`it has at most ${LINES_MAX} lines`, () => {
  expect(readme.trimEnd().split("\n").length).toBeLessThanOrEqual(LINES_MAX);
});

test("it shows three pictures, which are there, say what they show, and are small", () => {
  const pictures = [...readme.matchAll(/!\[([^\]]*)\]\(([^)]+)\)/g)];
  expect(pictures).toHaveLength(3);
  for (const [, words = "", path = ""] of pictures) {
    expect([path, words.length > 20]).toEqual([path, true]);
    expect([path, readFileSync(fileAt(path)).subarray(0, 8).toString("hex")]).toEqual([path, PNG]);
    expect([path, statSync(fileAt(path)).size <= PICTURE_BYTES_MAX]).toEqual([path, true]);
  }
});

test("each of its links leads to a file, and to a heading of it; each page of the documentation is linked", () => {
  const links = found(/\]\(([^)]+)\)/g);
  for (const link of links) {
    const [path = "", anchor] = link.split("#");
    expect([link, existsSync(fileAt(path))]).toEqual([link, true]);
    if (anchor === undefined) continue;
    const { headings } = renderMarkdown(readRepositoryFile(path));
    expect([link, headings.some(({ id }) => id === anchor)]).toEqual([link, true]);
  }
  for (const page of MARKDOWN_PAGES) expect(links).toContain(`src/docs/${page}.md`);
});

test("the commands and variables that it names are there", () => {
  const scripts = Object.keys(JSON.parse(readRepositoryFile("package.json")).scripts);
  const run = found(/npx -y bun@\S+ run (\S+)/g);
  expect(run.slice(0, 2)).toEqual(["demo", "test"]);
  for (const script of run) expect(scripts).toContain(script);
  const commands = buildProgram({ version: "0" } as CommandLineTools).commands.map((command) =>
    command.name(),
  );
  for (const command of found(/(?:dist\/|`)holdfast (\S+?)[ `\n]/g)) expect(commands).toContain(command);
  for (const variable of found(/\b(HOLDFAST_[A-Z_]+)/g)) {
    const read = Bun.inspect(readConfig({}, { [variable]: "?" }));
    expect([variable, read]).toEqual([variable, expect.not.stringContaining("is not a setting")]);
  }
});

test("what it asks the service is run by a test", () => {
  const blocks = [...readme.matchAll(/^```([^\n]*)\n([\s\S]*?)^```$/gm)];
  const asking = blocks.filter(([, , code = ""]) => /^curl /m.test(code));
  expect(asking.map(([, info]) => info)).toEqual(["sh run"]);
});

test("it lists as many deviations from the interface as the page of decisions", () => {
  const section = readRepositoryFile(`src/docs/${DECISIONS}.md`).split("\n## ")[1] ?? "";
  expect(section).toStartWith("Deviations from the interface");
  expect(found(/^(\d+)\. /gm)).toHaveLength([...section.matchAll(/^- /gm)].length);
});
