import { expect } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { writeBackup } from "../../src/store/sqlite/backup.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";

const { afterEach, beforeEach, test } = onlyEmbedded(import.meta.path);

/** Where the copy is while it is not encrypted yet. */

const PID_OF_NOBODY = 2 ** 22 + 1;

let ctx: TestContext;
let backups: string;
beforeEach(() => {
  ctx = createTestContext();
  backups = mkdtempSync(join(tmpdir(), "holdfast-encrypted-"));
});
afterEach(async () => {
  await ctx.close();
  rmSync(backups, { recursive: true, force: true });
});

const drafts = () => readdirSync(ctx.folder).filter((name) => name.startsWith("backup."));
const write = (encrypt: (from: string, to: string) => Promise<void>) => {
  const file = join(backups, "b");
  const means = { keys: {}, backupKey: new Uint8Array(32), encrypt };
  return writeBackup(ctx.folder, { file, disagreesFile: file }, 1, means);
};

test("what is to be encrypted is never in the folder of the backup, and stays with its owner", async () => {
  let seen: unknown;
  await write(async (from, to) => {
    const modes = [from, to].map((path) => (statSync(path).mode & 0o777).toString(8));
    seen = [dirname(from), statSync(to).size, readdirSync(backups).length, modes];
    writeFileSync(to, "encrypted");
  });
  expect(seen).toEqual([ctx.folder, 0, 1, ["600", "600"]]);
  expect(readFileSync(join(backups, "b"), "utf8")).toStartWith("encrypted\nholdfast backup 2 sha256 ");
  expect([readdirSync(backups), drafts()]).toEqual([["b"], []]);
});

test("where encrypting fails, as on a full disk, nothing is left", async () => {
  const full = write(async (from, to) => {
    copyFileSync(from, to);
    throw new Error("no space left on device");
  });
  await expect(full).rejects.toThrow("no space left on device");
  expect([readdirSync(backups), drafts()]).toEqual([[], []]);
});

test("what a killed backup left is removed by the next one; what another one works on stays", async () => {
  const left = [`backup.${PID_OF_NOBODY}.part`, `backup.${PID_OF_NOBODY}.part-journal`];
  const other = `backup.${process.ppid}.part`;
  for (const name of [...left, other]) writeFileSync(join(ctx.folder, name), "");
  await write(async (_, to) => writeFileSync(to, "encrypted"));
  expect(drafts()).toEqual([other]);
  expect(existsSync(join(backups, "b"))).toBeTrue();
});
