import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { removeLeftCopies } from "../../src/store/postgres/audit.ts";
import { TEMPORARY } from "../support/temporary.ts";
import { until } from "../support/until.ts";

/** The copies of a ledger in a database that are audited, of several processes in one folder. */

const SOURCE = JSON.stringify(join(import.meta.dir, "../../src/store/postgres/audit.ts"));
const AUDITS = 400;

let folder: string;
const children: Bun.Subprocess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(TEMPORARY, "holdfast-copies-"));
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a program that has what audits and removes copies. Answers what it prints. */
function run(body: string) {
  const program = `import { auditCopy, removeLeftCopies } from ${SOURCE};
    import { existsSync, writeFileSync } from "node:fs";
    const folder = ${JSON.stringify(folder)};
    ${body}`;
  const child = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe", stderr: "pipe" });
  children.push(child);
  const printed = Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { child, printed: printed.then((texts) => texts.join("")) };
}

test("audits at once in one folder do not touch each other's copies", async () => {
  const audit = `
    for (let times = 0; times < ${AUDITS}; times++)
      await auditCopy(folder, () => {}, async (file) => {
        writeFileSync(file, "rows");
        await Bun.sleep(0);
        return existsSync(file) ? "" : "the copy is gone";
      }).then(({ problems }) => problems.join("") && console.log(problems), (error) => console.log(error));`;
  const audits = [run(audit), run(audit)];
  expect(await Promise.all(audits.map(({ printed }) => printed))).toEqual(["", ""]);
  expect(readdirSync(folder)).toEqual([]);
});

test("a copy is removed once its process was killed, and not before", async () => {
  const { child } = run(`await auditCopy(folder, () => {}, async (file) => {
    writeFileSync(file, "rows");
    await Bun.sleep(1e6);
  });`);
  const copied = () => readdirSync(folder, { recursive: true }).filter((path) => `${path}`.endsWith(".db"));
  await until("a copy is made", () => copied().length === 1);
  removeLeftCopies(folder);
  expect(copied()).toHaveLength(1);
  child.kill("SIGKILL");
  await child.exited;
  removeLeftCopies(folder);
  expect(readdirSync(folder)).toEqual([]);
});
