import { expect, test } from "bun:test";
import { importGraph, importsOf, reachedFrom, targetOf } from "./imports.ts";

const fileOf = (path: string, ...lines: string[]) => ({ path, text: lines.join("\n") });

test("every form of import is read, type imports too", () => {
  const file = fileOf(
    "sample.ts",
    'import type { A } from "./a.ts";',
    "import {",
    "  type B,",
    '} from "./b.ts";',
    'import "./c.ts";',
    'export * from "./d.ts";',
    'export type { E } from "./e.ts";',
    'type F = import("./f.ts").F;',
    'export const from = "./not-an-import.ts";',
    'import text from "./g.sql" with { type: "text" };',
    'const later = (): typeof import("./h.ts") => require("./h.ts");',
  );
  expect(importsOf(file).map(({ specifier, typeOnly, line }) => [specifier, typeOnly, line])).toEqual([
    ["./a.ts", true, 1],
    ["./b.ts", false, 2],
    ["./c.ts", false, 5],
    ["./d.ts", false, 6],
    ["./e.ts", true, 7],
    ["./f.ts", false, 8],
    ["./g.sql", false, 10],
    ["./h.ts", false, 11],
    ["./h.ts", false, 11],
  ]);
});

test("an import that cannot be read throws", () => {
  expect(() => importsOf(fileOf("sample.ts", "", "import fs = require('x');"))).toThrow("sample.ts:2");
});

test("a relative import leads to a path, and a package to none", () => {
  const file = fileOf("src/a/b.ts", 'import { c } from "../c.ts";', 'import { d } from "d";');
  expect(importsOf(file).map((found) => targetOf(file, found))).toEqual(["src/c.ts", null]);
});

test("what is reached is what imports lead to, the start only by a circle", () => {
  const graph = importGraph([
    fileOf("a.ts", 'import "./b.ts";'),
    fileOf("b.ts", 'import type { C } from "./c.ts";'),
    fileOf("c.ts", 'import "./b.ts";'),
    fileOf("d.ts", 'import "./a.ts";'),
  ]);
  expect([...reachedFrom(["a.ts"], graph)].sort()).toEqual(["b.ts", "c.ts"]);
  expect([...reachedFrom(["b.ts"], graph)].sort()).toEqual(["b.ts", "c.ts"]);
});
