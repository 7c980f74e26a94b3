import { describe, expect, test } from "bun:test";
import { circlesOf, folderGraph } from "./circles.ts";
import { importGraph } from "./imports.ts";

/** A graph of files, each with the relative paths that it imports. */
const graphOf = (files: Readonly<Record<string, readonly string[]>>) =>
  importGraph(
    Object.entries(files).map(([path, specifiers]) => ({
      path,
      text: specifiers.map((specifier) => `import type { T } from "${specifier}";\n`).join(""),
    })),
  );

describe("files", () => {
  test("that import one way are in no circle", () => {
    expect(circlesOf(graphOf({ "a.ts": ["./b.ts", "./c.ts"], "b.ts": ["./c.ts"], "c.ts": [] }))).toEqual([]);
  });

  test("that import one another are in a circle, and so are those on a longer way round", () => {
    const graph = graphOf({
      "a.ts": ["./b.ts"],
      "b.ts": ["./a.ts"],
      "c.ts": ["./d.ts", "./a.ts"],
      "d.ts": ["./e.ts"],
      "e.ts": ["./c.ts"],
      "f.ts": ["./c.ts"],
    });
    expect(circlesOf(graph)).toEqual([
      ["a.ts", "b.ts"],
      ["c.ts", "d.ts", "e.ts"],
    ]);
  });

  test("that imports itself is a circle of one", () => {
    expect(circlesOf(graphOf({ "a.ts": ["./a.ts"] }))).toEqual([["a.ts"]]);
  });
});

describe("folders", () => {
  const circles = (files: Readonly<Record<string, readonly string[]>>) =>
    circlesOf(folderGraph(graphOf(files)));

  test("side by side are in a circle, though none of their files is", () => {
    expect(
      circles({
        "s/a/one.ts": ["../b/one.ts"],
        "s/a/two.ts": [],
        "s/b/one.ts": [],
        "s/b/two.ts": ["../a/two.ts"],
      }),
    ).toEqual([["s/a", "s/b"]]);
  });

  test("count with all that is inside them", () => {
    expect(circles({ "s/a/deep/one.ts": ["../../b/one.ts"], "s/b/two.ts": ["../a/three.ts"] })).toEqual([
      ["s/a", "s/b"],
    ]);
  });

  test("are in no circle with the folder around them, nor where imports go one way", () => {
    expect(
      circles({ "s/one.ts": ["./a/one.ts"], "s/a/one.ts": ["../two.ts", "../b/one.ts", "./three.ts"] }),
    ).toEqual([]);
  });
});
