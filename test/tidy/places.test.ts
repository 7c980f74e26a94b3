import { expect, test } from "bun:test";
import { lengthProblems, lonelyFolders, nameProblems, strangersAtTop } from "./places.ts";

test("a file over the limit of lines is named", () => {
  const fileOf = (count: number) => ({ path: "src/a.ts", text: "line\n".repeat(count) });
  expect(lengthProblems(fileOf(3), 3)).toEqual([]);
  expect(lengthProblems(fileOf(4), 3)).toEqual(["src/a.ts: 4 lines; look for the second idea in it"]);
});

test("names are kebab-case and say what is inside", () => {
  for (const path of ["src/a-b/c2.test.ts", "src/main.ts"]) expect(nameProblems(path)).toEqual([]);
  for (const path of ["src/aB.ts", "src/A/b.ts", "src/a_b.ts", "src/a--b.ts"])
    expect(nameProblems(path)[0]).toContain("is not kebab-case");
  for (const path of ["src/utils.ts", "src/helper/a.ts", "src/common.ts"])
    expect(nameProblems(path)[0]).toContain("name ");
});

test("the top level holds what is listed, hidden or ignored, and nothing else", () => {
  const names = [
    ...["src", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"],
    ...[".git", "dist", "error.log", "NOTES.md", "lib"],
  ];
  expect(strangersAtTop(names, "# what is built\n/dist/\n*.log\n")).toEqual(["NOTES.md", "lib"]);
});

test("a folder of one file is lonely, one with a folder beside the file is not", () => {
  expect(lonelyFolders(["src/a.ts", "src/b/c.ts", "src/d/e.ts", "src/d/f/g.ts", "src/d/f/h.ts"])).toEqual([
    "src/b",
  ]);
});
