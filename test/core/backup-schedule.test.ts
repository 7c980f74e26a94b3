import { describe, expect, test } from "bun:test";
import {
  backupName,
  disagreeingName,
  isBackupDue,
  newestBackup,
  surplusBackups,
} from "../../src/core/backup-schedule.ts";

const at = (text: string): number => Date.parse(`2030-01-${text}Z`);
const schedule = { folder: "/backups", keep: 2, hour: 3 };

test("a name is the time in UTC, to the second", () =>
  expect([backupName(at("15T03:00:00.999")), disagreeingName(at("15T03:00:00.999"))]).toEqual([
    ...["holdfast-20300115T030000Z.backup", "holdfast-20300115T030000Z.disagrees.backup"],
  ]));

describe("the night's backup", () => {
  const TABLE: readonly (readonly [due: boolean, now: string, names: readonly string[]])[] = [
    [true, "15T12:00:00", []],
    [true, "15T02:59:59.999", ["holdfast-20300114T025959Z.backup"]],
    [false, "15T02:59:59.999", ["holdfast-20300114T030000Z.backup"]],
    [true, "15T03:00:00", ["holdfast-20300114T030000Z.backup"]],
    [true, "15T03:00:00", ["holdfast-20300115T025959Z.backup"]],
    [false, "15T03:00:00", ["holdfast-20300115T030000Z.backup"]],
    [false, "16T02:59:59", ["holdfast-20300115T233000Z.backup", "holdfast-20300101T030000Z.backup"]],
    // This backup is dated in the future: the clock was wrong when it was made.
    [true, "15T12:00:00", ["holdfast-20310115T030000Z.backup"]],
    // Another one would disagree too.
    [false, "15T03:00:00", ["holdfast-20300115T030000Z.disagrees.backup"]],
    [true, "15T03:00:00", ["holdfast-20300115T025959Z.disagrees.backup"]],
    // Not names of backups.
    [true, "15T12:00:00", ["monday.backup", "holdfast-20300115T030000Z.backup.12.part"]],
    [true, "15T12:00:00", ["holdfast-20309915T030000Z.backup", "old-holdfast-20300115T030000Z.backup"]],
  ];
  for (const [due, now, names] of TABLE) {
    test(`at ${now} beside [${names}] is ${due ? "due" : "there"}`, () =>
      expect(isBackupDue(names, schedule, at(now))).toBe(due));
  }

  test("at midnight is that of the day before until the hour is midnight", () => {
    const names = ["holdfast-20300114T235959Z.backup"];
    expect(isBackupDue(names, { ...schedule, hour: 0 }, at("15T00:00:00"))).toBeTrue();
    expect(isBackupDue(names, { ...schedule, hour: 23 }, at("15T00:00:00"))).toBeFalse();
  });
});

test("the oldest and temporary files are removed; other files stay, and backups dated in the future", () => {
  const names = [
    ...["holdfast-20300113T030000Z.backup", "holdfast-20300115T030000Z.backup"],
    ...["holdfast-20291231T030000Z.backup", "holdfast-20300114T030000Z.backup"],
    ...["holdfast-20310101T030000Z.backup", "monday.backup", "holdfast.db"],
    ...["holdfast-20300113T030000Z.backup.7.part", "holdfast-20300113T030000Z.backup.7.part-journal"],
    ...["holdfast-20300113T030000Z.backup.gz", "monday.backup.7.part"],
  ];
  expect(surplusBackups(names, schedule, at("15T03:00:01"))).toEqual([
    ...["holdfast-20291231T030000Z.backup", "holdfast-20300113T030000Z.backup"],
    ...["holdfast-20300113T030000Z.backup.7.part", "holdfast-20300113T030000Z.backup.7.part-journal"],
  ]);
  expect(surplusBackups(names, { ...schedule, keep: 4 }, at("15T03:00:01"))).toEqual([
    ...["holdfast-20300113T030000Z.backup.7.part", "holdfast-20300113T030000Z.backup.7.part-journal"],
  ]);
});

describe("those whose audit disagrees", () => {
  const good = ["13", "14", "15"].map((day) => `holdfast-203001${day}T030000Z.backup`);
  const bad = ["16", "17", "18"].map((day) => `holdfast-203001${day}T030000Z.disagrees.backup`);
  const now = at("19T03:00:00");

  test("count apart; none that agrees is removed while the newest disagrees", () => {
    expect(surplusBackups([...good, ...bad], schedule, now)).toEqual(bad.slice(0, 1));
    const newest = "holdfast-20300119T030000Z.backup";
    expect(surplusBackups([...good, ...bad, newest], schedule, now)).toEqual([
      ...good.slice(0, 2),
      ...bad.slice(0, 1),
    ]);
  });

  test("are not the newest backup, which says that a later one disagrees", () => {
    const agreedAt = at("15T03:00:00");
    expect(newestBackup([...good, ...bad], now)).toEqual({ agreedAt, disagrees: true });
    expect(newestBackup([...good, ...bad], agreedAt)).toEqual({ agreedAt, disagrees: false });
    expect(newestBackup([], now)).toEqual({ agreedAt: 0, disagrees: false });
  });
});
