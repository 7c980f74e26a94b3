import { expect, test } from "bun:test";
import { citationProblems, namesIn } from "./citations.ts";

const NAMES = namesIn(`# Holdfast

## The rules

- **Trace.** Every move adds an entry.
- **Sandbox and live** never meet.

**Back up** while it runs; a **word** in bold is no name.
`);
const problemsOf = (text: string): string[] => citationProblems({ path: "src/a.ts", text }, NAMES);

test("headings and the first words in bold of a paragraph may be cited", () => {
  expect([...NAMES]).toEqual(["Holdfast", "The rules", "Trace", "Sandbox and live", "Back up"]);
});

test.each([
  '/** One entry (README, "Trace"). */',
  '/** Both (README, "Trace" and "Sandbox and live"). */',
  '/**\n * A mode (README, "Sandbox\n * and live").\n */',
  "/** The README says more. */",
])("%p names what the README has", (text) => {
  expect(problemsOf(text)).toEqual([]);
});

test("a name that the README does not have is found", () => {
  expect(problemsOf('/** One entry (README, "Trace" and "Log"). */')).toEqual([
    'src/a.ts: the README has no "Log"',
  ]);
});
