/** The style that matters, held by a test. The rules are in test/tidy/, with tests of their own. */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { AUDIT_ACTIONS } from "../src/core/audit-entry.ts";
import { CLAUSE_KINDS, CODES_OF_KINDS } from "../src/core/clauses/registry.ts";
import { ERRORS } from "../src/core/errors.ts";
import { EVENT_TYPES } from "../src/core/warrant.ts";
import { EMBEDDED_ONLY } from "./support/only-embedded.ts";
import { circlesOf, folderGraph } from "./tidy/circles.ts";
import { citationProblems, headingsOf } from "./tidy/citations.ts";
import { deadExports, deadFiles, unusedExports } from "./tidy/dead.ts";
import { longFunctions } from "./tidy/functions.ts";
import { importGraph } from "./tidy/imports.ts";
import { lengthProblems, lonelyFolders, nameProblems, strangersAtTop } from "./tidy/places.ts";
import { engineProblems, roomProblems } from "./tidy/rooms.ts";
import { filesOf, readRepositoryFile } from "./tidy/source-files.ts";
import { type Manifest, otherBuns, programsOf, rangedVersions } from "./tidy/versions.ts";
import { WORDING_RULES, wordingProblems } from "./tidy/wording.ts";

const FILE_LINES_MAX = 350;
const FUNCTION_LINES_MAX = 80;

const sources = filesOf("src/**/*.{ts,tsx}");
const tests = filesOf("test/**/*.{ts,tsx}");
const all = [...sources, ...tests];
const documentation = filesOf("src/docs/*.md");
const pages = [...documentation, { path: "README.md", text: readRepositoryFile("README.md") }];
const paths = (files: readonly { readonly path: string }[]) => files.map(({ path }) => path);
const manifest: Manifest = JSON.parse(readRepositoryFile("package.json"));

describe("imports", () => {
  test("every file of src is in a room, and imports only what its room may", () => {
    expect(sources.flatMap(roomProblems)).toEqual([]);
  });

  test("core, services, http, console, cli and jobs do not know which engine there is", () => {
    expect(sources.flatMap(engineProblems)).toEqual([]);
  });

  test("no files import one another in a circle; imports of types count", () => {
    const circles = circlesOf(importGraph(all)).map((circle) => circle.join(" "));
    expect(circles).toEqual([]);
  });

  test("no folders side by side import one another in a circle", () => {
    const circles = circlesOf(folderGraph(importGraph(all))).map((circle) => circle.join(" "));
    expect(circles).toEqual([]);
  });
});

describe("what is dead", () => {
  test("every file of src is reached from main.ts", () => {
    const ambient = paths(sources).filter((path) => path.endsWith(".d.ts"));
    // The page of a receipt is bundled from here, by a macro that names it as a path.
    const bundled = "src/console/receipt/browser.ts";
    expect(deadFiles(sources, ["src/main.ts", bundled, ...ambient])).toEqual([]);
  });

  test("every file of test is a test, a program of package.json, or reached from one", () => {
    const entries = paths(tests).filter((path) => path.endsWith(".test.ts"));
    expect(deadFiles(tests, [...entries, ...programsOf(manifest)])).toEqual([]);
  });

  test("every file with tests that PostgreSQL skips is listed with the reason, and no other", () => {
    const marked = tests.filter(({ text }) => /^(const .+ = )?onlyEmbedded\(/m.test(text));
    expect(paths(marked).toSorted()).toEqual(Object.keys(EMBEDDED_ONLY).toSorted());
  });

  test("every export is imported somewhere", () => {
    expect(deadExports(all)).toEqual([]);
  });

  test("every export of src is used in src", () => {
    expect(unusedExports(sources)).toEqual([]);
  });
});

describe("what the text may not say", () => {
  for (const rule of WORDING_RULES) {
    test(`${rule.why}: ${rule.not}`, () => {
      expect([...all, ...pages].flatMap((file) => wordingProblems(file, rule))).toEqual([]);
    });
  }
});

test("a citation of the documentation names a page and a heading of it", () => {
  const headings = new Map(
    documentation.map(({ path, text }) => [path.replace(/^src\/(.*)\.md$/, "$1"), headingsOf(text)]),
  );
  // The rule and its tests cite what is not there.
  const cited = all.filter(({ path }) => !path.startsWith("test/tidy/"));
  const besides = ["SECURITY.md", "CONTRIBUTING.md"].map((path) => ({
    path,
    text: readRepositoryFile(path),
  }));
  expect([...cited, ...besides].flatMap((file) => citationProblems(file, headings))).toEqual([]);
});

describe("a closed list stands once, so a new name touches no second one: there is, with all of them, no other file", () => {
  const registry = ["src/core/clauses/evaluate.ts", "src/core/clauses/registry.ts"];
  test.each([
    ["kinds of clauses", CLAUSE_KINDS, registry],
    ["reasons why a clause failed", CODES_OF_KINDS, registry],
    ["events", EVENT_TYPES, ["src/core/warrant.ts", "src/resources/event.ts"]],
    ["codes of refusals", Object.keys(ERRORS), ["src/core/errors.ts"]],
    ["names in the audit log", AUDIT_ACTIONS, ["src/core/audit-entry.ts"]],
  ])("%s", (_, names, files) => {
    expect(paths(sources.filter(({ text }) => names.every((name) => text.includes(name)))).sort()).toEqual(
      files,
    );
  });
});

describe("files", () => {
  test(`no file of src is over ${FILE_LINES_MAX} lines`, () => {
    expect(sources.flatMap((file) => lengthProblems(file, FILE_LINES_MAX))).toEqual([]);
  });

  test(`no function is over ${FUNCTION_LINES_MAX} lines, wherever it stands`, () => {
    // A group of tests is a list of them, and a test may be a list of steps, however long.
    const isList = (head: string): boolean => /^(embedded\.)?(describe|test)\b/.test(head);
    const found = all.flatMap((file) => longFunctions(file, FUNCTION_LINES_MAX, isList));
    expect(found).toEqual([]);
  });

  test("names are kebab-case and say what is inside", () => {
    expect(paths(all).flatMap(nameProblems)).toEqual([]);
  });

  test("no folder of src holds one file alone", () => {
    const found = lonelyFolders(paths(filesOf("src/**/*")));
    expect(found).toEqual([]);
  });

  test("the top level holds only what is listed", () => {
    const names = readdirSync(join(import.meta.dir, ".."));
    expect(strangersAtTop(names, readRepositoryFile(".gitignore"))).toEqual([]);
  });
});

describe("versions", () => {
  test("of dependencies are exact", () => {
    expect(rangedVersions(manifest)).toEqual([]);
  });

  test("of Bun are the same everywhere", () => {
    const pinned = manifest.devDependencies.bun;
    expect(manifest.engines.bun).toBe(pinned);
    const files = [".ci/run", "Dockerfile", "CONTRIBUTING.md"].map((path) => ({
      path,
      text: readRepositoryFile(path),
    }));
    expect([...files, ...pages].flatMap((file) => otherBuns(file, pinned))).toEqual([]);
  });
});
