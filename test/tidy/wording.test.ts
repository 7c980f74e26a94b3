import { expect, test } from "bun:test";
import { WORDING_RULES, wordingProblems } from "./wording.ts";

const problemsOf = (path: string, line: string): string[] =>
  WORDING_RULES.flatMap((rule) => wordingProblems({ path, text: line }, rule));

// Each rule by a line that breaks it. The words are put together here: this file must not break the rules itself.
const ONLY = "only";
const BREACHES: readonly (readonly [path: string, line: string, why: string])[] = [
  ["src/http/a.ts", "const world = caller.mode;", "say mode"],
  ["src/docs/a.md", "what our books paid", "say ledger, balance or posting"],
  ["test/a.test.ts", "const intent = key;", "say idempotency"],
  ["src/core/a.ts", "type A = AdminAct;", "say audit entry"],
  ["src/store/a.ts", "// the known rows", "say row cache"],
  ["src/services/a.ts", "// It is mended.", "say reschedule"],
  ["src/platform/a.ts", "const sealed = secret;", "say encrypt, checksum or signature"],
  ["src/store/a.ts", "/** Is told how many rows were read. */", "say print, log, narrate or report"],
  ["src/core/a.ts", "const now = Date.now();", "time is an argument"],
  ["src/services/a.ts", "const now = new Date();", "time is an argument"],
  ["src/core/a.ts", "const r = Math.random();", "randomness is an argument"],
  ["src/services/a.ts", "const id = crypto.randomUUID();", "randomness is an argument"],
  ["src/core/a.ts", "const hash = Bun.hash(text);", "of Bun, core may have the hashes"],
  ["src/http/a.ts", "const port = process.env.PORT;", "only config.ts reads the environment"],
  ["src/http/a.ts", '"10.0.0/8 is none"', "name the rule that was broken, or the thing"],
  ["src/http/a.ts", "const a = b as any;", "say the type, or unknown"],
  ["src/http/a.ts", "function a(b: any) {}", "say the type, or unknown"],
  ["src/http/a.ts", "// @ts-ignore", "correct the type instead"],
  ["src/http/a.ts", "// TODO: later", "do it now, or open an issue"],
  ["src/core/a.ts", `/** See ${"decisions"}.md. */`, "cite what the repository has"],
  [
    "src/store/sqlite/tables/a.ts",
    "sql`status IN ('a', 'b')`",
    "make the list of a CHECK from the one in core",
  ],
  ["src/http/a.ts", "export default a;", "named exports only"],
  ["test/a.test.ts", `test.${ONLY}("a", () => {});`, "the other tests would not run"],
];
test.each(BREACHES)("in %s, %p is refused", (path, line, why) => {
  expect(problemsOf(path, line)).toEqual([`${path}:1: ${why}: ${line}`]);
});

test("every rule has a line here that breaks it", () => {
  const broken = WORDING_RULES.filter((rule) =>
    BREACHES.some(([path, line]) => wordingProblems({ path, text: line }, rule).length > 0),
  );
  expect(broken).toEqual([...WORDING_RULES]);
});

test.each([
  ["src/platform/a.ts", "const now = Date.now();"],
  ["src/core/a.ts", "// Date.now() would not be pure."],
  ["src/core/a.ts", "const hash = Bun.SHA256.hash(text);"],
  ["src/config.ts", "const { env } = process.env;"],
  ["src/http/a.ts", "// Null where there is none."],
  ["src/http/a.ts", "const many = company;"],
  ["src/http/a.ts", "// nobody could tell which, nor tell them apart"],
])("in %s, %p is allowed", (path, line) => {
  expect(problemsOf(path, line)).toEqual([]);
});
