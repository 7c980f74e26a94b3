import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nightlyBackup } from "../../src/jobs/backup.ts";
import { TEST_NOW } from "../support/context.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let folder: string;
let now: number;
/** Makes a backup, and answers what its audit found, where it disagrees. */
let makes: (file: string, disagreesFile: string) => unknown;
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
    async (...files) => {
      const found = makes(...files);
      return typeof found === "string" ? found : null;
    },
    () => now,
  );
const job = (keep = 2) => nightly(keep).run;
const agreed = (agreedAt: number) => ({ agreedAt, disagrees: false });
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
    during.push(backups.newest());
    writeFileSync(file, "");
  };
  await backups.run();
  now += DAY_MS;
  const second = backups.run();
  during.push(backups.newest());
  await second;
  expect(during).toEqual([null, agreed(TEST_NOW), agreed(TEST_NOW)]);
  const other = nightly();
  makes = () => {
    throw new Error("the disk is full");
  };
  for (const name of names()) rmSync(join(folder, name));
  await expect(other.run()).rejects.toThrow("the disk is full");
  expect(other.newest()).toEqual(agreed(0));
});

test("each run says the newest backup: none, one that was found, one that was made, none where the folder is gone", async () => {
  const backups = nightly();
  expect(backups.newest()).toBeNull();
  writeFileSync(join(folder, "monday.backup"), "");
  await backups.run();
  expect(backups.newest()).toEqual(agreed(TEST_NOW));
  const found = nightly();
  now += HOUR_MS;
  expect([await found.run(), found.newest()]).toEqual([false, agreed(TEST_NOW)]);
  now += DAY_MS;
  makes = () => {
    throw new Error("the disk is full");
  };
  await expect(found.run()).rejects.toThrow("the disk is full");
  expect(found.newest()).toEqual(agreed(TEST_NOW));
  rmSync(folder, { recursive: true });
  await expect(found.run()).rejects.toThrow("ENOENT");
  expect(found.newest()).toEqual(agreed(0));
});

describe("where the audit of the backup disagrees", () => {
  const disagrees = (_: string, file: string) => {
    writeFileSync(file, "");
    return "The backup is made, and its audit disagrees";
  };

  test("it is kept under a name that says so, the run fails, and no other is made that night", async () => {
    makes = disagrees;
    const backups = nightly();
    await expect(backups.run()).rejects.toThrow("its audit disagrees");
    expect(names()).toEqual(["holdfast-20300115T120000Z.disagrees.backup"]);
    expect(backups.newest()).toEqual({ agreedAt: 0, disagrees: true });
    now += HOUR_MS;
    const restarted = nightly();
    expect([await restarted.run(), restarted.newest()]).toEqual([false, { agreedAt: 0, disagrees: true }]);
    now += DAY_MS;
    await expect(restarted.run()).rejects.toThrow("its audit disagrees");
    expect(names()).toHaveLength(2);
  });

  test("it pushes out no good one, and is pushed out by later ones like it", async () => {
    const good = makes;
    for (let night = 0; night < 2; night++, now += DAY_MS) await job(2)();
    const kept = names();
    makes = disagrees;
    for (let night = 0; night < 5; night++, now += DAY_MS) await expect(job(2)()).rejects.toThrow();
    expect(names()).toEqual([
      ...kept,
      ...["holdfast-20300120T120000Z.disagrees.backup", "holdfast-20300121T120000Z.disagrees.backup"],
    ]);
    // Fewer are to be kept now: still no good one goes while the newest disagrees.
    await expect(job(1)()).rejects.toThrow();
    expect(names()).toEqual([...kept, "holdfast-20300122T120000Z.disagrees.backup"]);
    now += DAY_MS;
    makes = good;
    const backups = nightly(1);
    expect(await backups.run()).toBeTrue();
    expect(names()).toEqual([
      ...["holdfast-20300122T120000Z.disagrees.backup", "holdfast-20300123T120000Z.backup"],
    ]);
    expect(backups.newest()).toEqual(agreed(now));
  });
});
