import { expect, test } from "bun:test";
import { otherBuns, programsOf, rangedVersions } from "./versions.ts";

const manifestOf = (dependencies: Record<string, string>, scripts: Record<string, string> = {}) => ({
  engines: { bun: "1.4.5" },
  dependencies,
  devDependencies: { bun: "1.4.5" },
  scripts,
});

test("a version is exact, and a range is named", () => {
  expect(rangedVersions(manifestOf({ a: "1.2.3", b: "1.2.3-beta.1" }))).toEqual([]);
  for (const range of ["^1.2.3", "~1.2.3", "1.2", "*", "latest", ">=1.2.3"])
    expect(rangedVersions(manifestOf({ a: range }))).toEqual([
      `package.json: a is ${range}; pin one version`,
    ]);
});

test("another version of Bun than the pinned one is named", () => {
  // Put together here, so that this file names no other version itself.
  const text = `npx bun@${"1.4.5"} run test\nFROM oven/bun:${"1.4.4"}\n`;
  expect(otherBuns({ path: "Dockerfile", text }, "1.4.5")).toEqual([
    "Dockerfile: bun:1.4.4, but package.json pins 1.4.5",
  ]);
});

test("the programs of test are those that a script names", () => {
  const scripts = {
    bench: "bun run build && bun test/bench/bench.ts",
    browser: "bun test ./test/browser/account.ts",
    simulate: "RUNS=2 bun test test/simulation",
    build: "bun build src/main.ts",
  };
  expect(programsOf(manifestOf({}, scripts))).toEqual(["test/bench/bench.ts", "test/browser/account.ts"]);
});
