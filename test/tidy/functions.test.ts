import { describe, expect, test } from "bun:test";
import { longFunctions } from "./functions.ts";

/** The first lines of the functions over three lines. */
const longIn = (...lines: string[]) =>
  longFunctions({ path: "a.ts", text: lines.join("\n") }, 3).map((problem) => problem.split("lines: ")[1]);

const indented = (indent: number, count: number) =>
  Array.from({ length: count }, (_, index) => `${" ".repeat(indent)}work(${index});`);

describe("a function over the limit is found", () => {
  const AT_TOP = [
    "export function one(): void {",
    "async function* one(a: number) {",
    "const one = () => {",
    "const one = async (a: number): Promise<void> => {",
    "export const one = function (a: number) {",
    "list.map((item) => {",
    'test("a test", async () => {',
  ];
  test.each(AT_TOP)("%s", (head) => {
    expect(longIn(head, ...indented(2, 4), "}")).toEqual([head]);
    expect(longIn(head, ...indented(2, 3), "}")).toEqual([]);
  });

  const INSIDE = [
    "constructor(private readonly a: number) {",
    "method(): void {",
    "private async method<T>(a: T): Promise<T> {",
    "get size(): number {",
    "set size(value: number) {",
    "static {",
    "field = () => {",
    "arrow: () => {",
  ];
  test.each(INSIDE)("in a class or an object: %s", (head) => {
    expect(longIn("class A extends B(c) {", `  ${head}`, ...indented(4, 4), "  }", "}")).toEqual([head]);
    expect(longIn("const a = {", `  ${head}`, ...indented(4, 3), "  },", "};")).toEqual([]);
  });

  test("in a closure, with the function around it", () => {
    const outer = "export function outer(): Outer {";
    expect(longIn(outer, "  return {", "    inner() {", ...indented(6, 4), "    },", "  };", "}")).toEqual([
      outer,
      "inner() {",
    ]);
  });

  test("with parameters over several lines", () => {
    const head = "export async function one<T>(";
    expect(
      longIn(head, "  a: T,", "  b: { readonly c: T },", "): Promise<T> {", ...indented(2, 4), "}"),
    ).toEqual([head]);
  });

  test("that is an expression without a block", () => {
    const list = (count: number) => Array.from({ length: count }, (_, index) => `  ${index},`);
    expect(longIn("const one = () => [", ...list(4), "];", ...list(4))).toEqual(["const one = () => ["]);
    expect(longIn("const one = () => ({", ...list(4), "});")).toEqual(["const one = () => ({"]);
    expect(longIn("const one = () =>", ...indented(2, 4), "const two = 2;")).toEqual(["const one = () =>"]);
    expect(longIn("const one = () =>", ...indented(2, 3), "const two = 2;")).toEqual([]);
  });
});

test("the brackets inside count, and so do the lines of a text", () => {
  expect(longIn("function one() {", "  if (a) {", "    work(1);", "  } else {", "  }", "}")).toHaveLength(1);
  expect(longIn("function one() {", "  return `", "first", "second", "third", "`;", "}")).toHaveLength(1);
});

test("blank lines and comments do not count", () => {
  const body = ["  // Why.", ...indented(2, 3), "", "  /** Why", "   * so. */"];
  expect(longIn("function one() {", ...body, "}")).toEqual([]);
});

test("a class, a loop, a condition or a comment is not a function", () => {
  for (const head of [
    "class A extends B(c) {",
    "if (a) {",
    "} else if (a) {",
    "for (const a of b()) {",
    "while (a()) {",
    "switch (a()) {",
    "try {",
    "} catch (error) {",
    "// such as () => {",
  ])
    expect([head, longIn(head, ...indented(2, 4), "}")]).toEqual([head, []]);
  expect(longIn("if (", "  a &&", "  b", ") {", ...indented(2, 4), "}")).toEqual([]);
  expect(longIn("for (const a of b", "  .all(c)) {", ...indented(4, 4), "  }")).toEqual([]);
});

test("one that is exempt is left out, and what is inside it is not", () => {
  const file = {
    path: "a.ts",
    text: ['describe("x", () => {', '  test("y", () => {', ...indented(4, 4), "  });", "});"].join("\n"),
  };
  expect(longFunctions(file, 3, (head) => head.startsWith("describe"))).toEqual([
    'a.ts: a function of 4 lines: test("y", () => {',
  ]);
});
