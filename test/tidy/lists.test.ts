import { expect, test } from "bun:test";
import { touchListsOf } from "./lists.ts";
import { readRepositoryFile } from "./source-files.ts";

/** How many files each may touch, the documentation counted as one. A thing that needs more is spread too wide. */
const MAX: Readonly<Record<string, number>> = {
  "a clause kind": 5,
  "an event": 4,
  "a column of a warrant": 9,
  "a command of the command line": 4,
  "an HTTP operation": 5,
};

const lists = touchListsOf(readRepositoryFile("CONTRIBUTING.md"));

test.each(Object.entries(MAX))("to add %s touches at most %p files, as its list says", (noun, max) => {
  const list = lists.find((one) => one.noun === noun);
  expect(list).toEqual({ noun, atMost: list?.counted ?? 0, counted: expect.any(Number) });
  expect(list?.counted).toBeLessThanOrEqual(max);
});

test("a list is as long as the files that it names", () => {
  const text = [
    "### … a thing: 2 to 4 files, 1 test",
    "1. `src/a.ts`: as `src/only-mentioned.ts` does, with `a name`.",
    "2. *`src/b.ts`, where it is so, and `src/c.ts`, where it must; or `src/d.ts`, where it is not.*",
    "3. `README.md`, and `src/docs/a.md`; `src/docs/b.md`.",
  ].join("\n");
  expect(touchListsOf(text)).toEqual([{ noun: "a thing", atMost: 4, counted: 4 }]);
});
