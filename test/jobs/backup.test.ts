import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nightlyBackup } from "../../src/jobs/backup.ts";
import { TEST_NOW } from "../support/context.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let folder: string;
let now: number;
let makes: (file: string) => void;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-nightly-"));
  now = TEST_NOW;
  makes = (file) => writeFileSync(file, "");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The job of a server that has just started. */
const nightly = (keep = 2) =>
  nightlyBackup(
    { folder, keep, hour: 3 },
    async (file) => makes(file),
    () => now,
  );
const job = (keep = 2) => nightly(keep).run;
const names = () => readdirSync(folder).sort();

test("last night's backup is made at the start, once, even with several restarts", async () => {
  const first = job();
  expect([await first(), await first(), await job()()]).toEqual([true, false, false]);
  expect(names()).toEqual(["holdfast-20300115T120000Z.backup"]);
  now += 15 * HOUR_MS - 1;
  expect(await first()).toBeFalse();
  now += 1;
  expect([await first(), await job()()]).toEqual([true, false]);
  expect(names()).toEqual(["holdfast-20300115T120000Z.backup", "holdfast-20300116T030000Z.backup"]);
});

test("as many backups stay as are to be kept, and all files of others", async () => {
  writeFileSync(join(folder, "monday.backup"), "");
  for (let night = 0; night < 4; night++, now += DAY_MS) expect(await job()()).toBeTrue();
  expect(names()).toEqual([
    ...["holdfast-20300117T120000Z.backup", "holdfast-20300118T120000Z.backup", "monday.backup"],
  ]);
});

test("where a backup fails nothing is removed, and the next run tries again", async () => {
  for (let night = 0; night < 2; night++, now += DAY_MS) await job(2)();
  const before = names();
  const good = makes;
  makes = () => {
    throw new Error("the disk is full");
  };
  const run = job(1);
  await expect(run()).rejects.toThrow("the disk is full");
  expect(names()).toEqual(before);
  makes = good;
  expect(await run()).toBeTrue();
  expect(names()).toEqual(["holdfast-20300117T120000Z.backup"]);
});

test("a missing folder is not created", async () => {
  rmSync(folder, { recursive: true });
  const made: string[] = [];
  makes = (file) => void made.push(file);
  await expect(job()()).rejects.toThrow("ENOENT");
  expect(made).toEqual([]);
});

test("during a run, the newest backup is still the last run's; after a failed run there is no newest one", async () => {
  const backups = nightly();
  const during: unknown[] = [];
  makes = (file) => {
    during.push(backups.newestAt());
    writeFileSync(file, "");
  };
  await backups.run();
  now += DAY_MS;
  const second = backups.run();
  during.push(backups.newestAt());
  await second;
  expect(during).toEqual([null, TEST_NOW, TEST_NOW]);
  const other = nightly();
  makes = () => {
    throw new Error("the disk is full");
  };
  for (const name of names()) rmSync(join(folder, name));
  await expect(other.run()).rejects.toThrow("the disk is full");
  expect(other.newestAt()).toBe(0);
});

test("each run says the newest backup: none, one that was found, one that was made, none where the folder is gone", async () => {
  const backups = nightly();
  expect(backups.newestAt()).toBeNull();
  writeFileSync(join(folder, "monday.backup"), "");
  await backups.run();
  expect(backups.newestAt()).toBe(TEST_NOW);
  const found = nightly();
  now += HOUR_MS;
  expect([await found.run(), found.newestAt()]).toEqual([false, TEST_NOW]);
  now += DAY_MS;
  makes = () => {
    throw new Error("the disk is full");
  };
  await expect(found.run()).rejects.toThrow("the disk is full");
  expect(found.newestAt()).toBe(TEST_NOW);
  rmSync(folder, { recursive: true });
  await expect(found.run()).rejects.toThrow("ENOENT");
  expect(found.newestAt()).toBe(0);
});
