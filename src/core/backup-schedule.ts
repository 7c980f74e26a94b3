import { DAY_MS, HOUR_MS, isoTime } from "./time.ts";

/** Which backups a server makes by itself, and which of them it keeps. */
export type BackupSchedule = {
  readonly folder: string;
  /** How many backups are kept. */
  readonly keep: number;
  /** The hour of the day (UTC) from which on the night's backup is made. */
  readonly hour: number;
};

/**
 * The file name of a scheduled backup, or of one whose audit disagrees. It holds the time in UTC, to the second, so names sort
 * by time.
 */
export const backupName = (time: number): string => `${stem(time)}.backup`;
export const disagreeingName = (time: number): string => `${stem(time)}${DISAGREES}`;

const stem = (time: number): string => `holdfast-${isoTime(time).replace(/[-:]|\.\d+/g, "")}`;

const DISAGREES = ".disagrees.backup";
const NAME = /^holdfast-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z(\.disagrees)?\.backup$/;
/** The names of temporary files, which an interrupted backup leaves behind. */
const REMAINS = /^holdfast-\d{8}T\d{6}Z\.backup\.\d+\.part(-journal)?$/;

/** The time in a backup's name. Any other name gives NaN, which is neither before nor after any time. */
const timeOf = (name: string): number =>
  NAME.test(name) ? Date.parse(name.replace(NAME, "$1-$2-$3T$4:$5:$6Z")) : Number.NaN;

const isDisagreeing = (name: string): boolean => name.endsWith(DISAGREES);

/**
 * Whether last night's backup is missing. One whose audit disagrees counts as made: another would disagree too. A backup dated
 * in the future does not count: the clock was wrong when it was made.
 */
export const isBackupDue = (names: readonly string[], { hour }: BackupSchedule, now: number): boolean =>
  !names.some((name) => timeOf(name) >= lastNight(now, hour) && timeOf(name) <= now);

export type NewestBackup = {
  /** When the newest one whose audit agreed was made, epoch milliseconds; 0 where there is none. */
  readonly agreedAt: number;
  /** Whether a later one disagrees. */
  readonly disagrees: boolean;
};

export function newestBackup(names: readonly string[], now: number): NewestBackup {
  const newest = (of: readonly string[]) => Math.max(0, ...of.map(timeOf).filter((time) => time <= now));
  const agreedAt = newest(names.filter((name) => !isDisagreeing(name)));
  return { agreedAt, disagrees: newest(names.filter(isDisagreeing)) > agreedAt };
}

/** The last time that it was `hour` o'clock, UTC. */
const lastNight = (now: number, hour: number): number =>
  Math.floor((now - hour * HOUR_MS) / DAY_MS) * DAY_MS + hour * HOUR_MS;

/**
 * The files to remove once a new backup exists: backups that are older than those that are kept, and temporary files. Files
 * with other names are not ours, and stay. Those that disagree are counted apart, so that they push out no good one; and where
 * the new one disagrees, no good one is removed.
 */
export const surplusBackups = (
  names: readonly string[],
  schedule: BackupSchedule,
  now: number,
): readonly string[] => [
  ...(newestBackup(names, now).disagrees
    ? []
    : olderThanKept(
        names.filter((name) => !isDisagreeing(name)),
        schedule,
        now,
      )),
  ...olderThanKept(names.filter(isDisagreeing), schedule, now),
  ...names.filter((name) => REMAINS.test(name)),
];

const olderThanKept = (names: readonly string[], { keep }: BackupSchedule, now: number): readonly string[] =>
  names
    .filter((name) => timeOf(name) <= now)
    .sort()
    .slice(0, -keep);
