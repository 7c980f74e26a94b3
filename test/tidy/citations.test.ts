import { expect, test } from "bun:test";
import { citationProblems, headingsOf } from "./citations.ts";

const HEADINGS = headingsOf(`# Security model

## Trace

Every move adds an entry. **A word in bold** is no heading.

### \`exact\`

## Sandbox and live
`);
const PAGES = new Map([["docs/security", HEADINGS]]);
const problemsOf = (text: string): string[] => citationProblems({ path: "src/a.ts", text }, PAGES);

test("the title of a page and its headings may be cited", () => {
  expect([...HEADINGS]).toEqual(["Security model", "Trace", "exact", "Sandbox and live"]);
});

test.each([
  '/** One entry (docs/security, "Trace"). */',
  '/** Both (docs/security, "Trace" and "Sandbox and live"). */',
  '/**\n * A mode (docs/security,\n * "Sandbox and live").\n */',
  "/** The page docs/elsewhere says more, and so does the README. */",
])("%p names what the page has", (text) => {
  expect(problemsOf(text)).toEqual([]);
});

test.each([
  ['/** One entry (docs/security, "Trace" and "Log"). */', 'src/a.ts: docs/security has no heading "Log"'],
  ['/** One entry (docs/proof, "Trace"). */', "src/a.ts: there is no page docs/proof"],
  ['// One entry (docs/security,\n// "Tra\n// ce").', 'src/a.ts: docs/security has no heading "Tra ce"'],
  [
    '/** One entry (README, "Trace"). */',
    'src/a.ts: cite a page of src/docs in the place of README, "Trace"',
  ],
])("%p leads nowhere", (text, problem) => {
  expect(problemsOf(text)).toEqual([problem]);
});
