import { describe, expect, test } from "bun:test";
import { deadExports, deadFiles, unusedExports } from "./dead.ts";

const fileOf = (path: string, ...lines: string[]) => ({ path, text: lines.join("\n") });

describe("a file", () => {
  test("that no entry leads to is dead, though another dead one imports it", () => {
    const files = [
      fileOf("src/main.ts", 'import { a } from "./a.ts";'),
      fileOf("src/a.ts", 'import type { B } from "./b.ts";'),
      fileOf("src/b.ts"),
      fileOf("src/c.ts", 'import { d } from "./d.ts";'),
      fileOf("src/d.ts"),
    ];
    expect(deadFiles(files, ["src/main.ts"])).toEqual([
      "src/c.ts: nothing imports it",
      "src/d.ts: nothing imports it",
    ]);
  });

  test("that is named to run in a process of its own is alive", () => {
    const files = [
      fileOf("test/a.test.ts", 'Bun.spawn([process.execPath, join(import.meta.dir, "child.ts")]);'),
      fileOf("test/child.ts", 'import { b } from "./b.ts";'),
      fileOf("test/b.ts"),
      fileOf("test/other.ts", '// See "./other.ts".'),
    ];
    expect(deadFiles(files, ["test/a.test.ts"])).toEqual(["test/other.ts: nothing imports it"]);
  });
});

describe("an export", () => {
  const deadIn = (lines: readonly string[], ...others: string[]) =>
    deadExports([fileOf("a.ts", ...lines), fileOf("b.ts", ...others)]).map(
      (problem) => problem.split(" ")[1],
    );

  test("of any kind that nothing imports is dead", () => {
    const kinds = [
      "export const one = 1;",
      "export function two() {}",
      "export async function three() {}",
      "export class Four {}",
      "export type Five = 5;",
      "export interface Six {}",
      "const seven = 7;",
      "export { seven, one as eight };",
    ];
    const names = ["one", "two", "three", "Four", "Five", "Six", "seven", "eight"];
    expect(deadIn(kinds)).toEqual(names);
    const clause = names.map((name) => (name === "Five" ? `type ${name}` : `${name} as other${name}`));
    expect(deadIn(kinds, `import { ${clause.join(", ")} } from "./a.ts";`)).toEqual([]);
  });

  test("is alive where it is handed on, or where a file may use every name", () => {
    const one = ["export const one = 1;"];
    expect(deadIn(one, 'export { one as two } from "./a.ts";')).toEqual(["two"]);
    expect(deadIn(one, 'import * as all from "./a.ts";')).toEqual([]);
    expect(deadIn(one, 'const all = await import("./a.ts");')).toEqual([]);
  });

  test("is dead though a file imports the same name from elsewhere, or its own file uses it", () => {
    expect(deadIn(["export const one = 1;"], 'import { one } from "./c.ts";')).toEqual(["one"]);
    expect(deadIn(["export const one = 1;", "export const two = one;"])).toEqual(["one", "two"]);
  });

  test("of a type is alive where another export of its file names it", () => {
    const type = "export type One = { readonly one: 1 };";
    const useTwo = 'import { two } from "./a.ts";';
    expect(deadIn([type, "", "export const two = (one: One) => one;"], useTwo)).toEqual([]);
    expect(deadIn([type, "", "const two = (one: One) => one;", "export { two };"], useTwo)).toEqual(["One"]);
  });

  test("that its own file uses, or another, is used; that a comment names is not", () => {
    const unusedIn = (lines: readonly string[], ...others: string[]) =>
      unusedExports([fileOf("a.ts", ...lines), fileOf("b.ts", ...others)]);
    const one = "export const one = 1;";
    expect(unusedIn([one])).toEqual(["a.ts: one is exported, and only tests use it"]);
    expect(unusedIn([one, "/** More than `one`. */", "const none = 0;"])).toHaveLength(1);
    expect(unusedIn([one, "const two = one + one;"])).toEqual([]);
    expect(unusedIn([one], 'import { one } from "./a.ts";')).toEqual([]);
  });

  test("in a form that is not known throws", () => {
    expect(() => deadIn(['export * from "./c.ts";'])).toThrow("a.ts:1");
    expect(() => deadIn(["", "export const { one } = two;"])).toThrow("a.ts:2");
  });
});
