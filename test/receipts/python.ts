/** `bun run receipts`: the receipts of the tests, by a program of a stranger in Python 3, written from the page on receipts alone. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Case, withGenuine } from "./genuine.ts";
import { rewritten, tamperedOf } from "./tampered.ts";

const PROGRAM = join(import.meta.dir, "verify.py");
const TEST_MS = 300_000;
const AT_ONCE = 2;

let good: readonly Case[];
let bad: readonly Case[];
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-python-"));
  await withGenuine(async (genuine) => {
    good = [
      ...genuine.cases,
      { ...(await rewritten(genuine)), name: "rewritten, with no witness asked for" },
    ];
    bad = await tamperedOf(genuine);
  });
}, TEST_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What it says of each, by the name of the case. */
async function said(cases: readonly Case[]): Promise<Readonly<Record<string, string>>> {
  const left = [...cases.entries()];
  const found: Record<string, string> = {};
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next; next = left.shift()) {
      const [number, { name, receipt, jwks, witnesses }] = next;
      const [file, keys] = [join(folder, `${number}.json`), join(folder, `${number}.jwks.json`)];
      writeFileSync(file, receipt);
      writeFileSync(keys, jwks);
      const child = Bun.spawn(["python3", "-B", PROGRAM, file, keys, ...witnesses], { stderr: "pipe" });
      const text = `${await new Response(child.stdout).text()}${await new Response(child.stderr).text()}`;
      found[name] = `${await child.exited} ${text.trim()}`;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return found;
}

test(
  "what the instance answered is accepted",
  async () => {
    expect(await said(good)).toEqual(
      Object.fromEntries(good.map(({ name }) => [name, "0 The receipt holds."])),
    );
  },
  TEST_MS,
);

test(
  "what was altered is refused",
  async () => {
    const refused = expect.stringMatching(/^1 The receipt does not hold: /);
    expect(await said(bad)).toEqual(Object.fromEntries(bad.map(({ name }) => [name, refused])));
  },
  TEST_MS,
);
