import { DAY_MS, HOUR_MS, isoTime } from "./time.ts";

/** Which backups a server makes by itself, and which of them it keeps. */
export type BackupSchedule = {
  readonly folder: string;
  /** How many backups are kept. */
  readonly keep: number;
  /** The hour of the day (UTC) from which on the night's backup is made. */
  readonly hour: number;
};

/** The file name of a scheduled backup. It holds the time in UTC, to the second, so names sort by time. */
export const backupName = (time: number): string =>
  `holdfast-${isoTime(time).replace(/[-:]|\.\d+/g, "")}.backup`;

const NAME = /^holdfast-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.backup$/;
/** The names of temporary files, which an interrupted backup leaves behind. */
const REMAINS = /^holdfast-\d{8}T\d{6}Z\.backup\.\d+\.part(-journal)?$/;

/** The time in a backup's name. Any other name gives NaN, which is neither before nor after any time. */
const timeOf = (name: string): number =>
  NAME.test(name) ? Date.parse(name.replace(NAME, "$1-$2-$3T$4:$5:$6Z")) : Number.NaN;

/** Whether last night's backup is missing. A backup dated in the future does not count: the clock was wrong when it was made. */
export const isBackupDue = (names: readonly string[], { hour }: BackupSchedule, now: number): boolean =>
  !names.some((name) => timeOf(name) >= lastNight(now, hour) && timeOf(name) <= now);

/** When the newest backup was made, epoch milliseconds; 0 where there is none. */
export const newestBackupAt = (names: readonly string[], now: number): number =>
  Math.max(0, ...names.map(timeOf).filter((time) => time <= now));

/** The last time that it was `hour` o'clock, UTC. */
const lastNight = (now: number, hour: number): number =>
  Math.floor((now - hour * HOUR_MS) / DAY_MS) * DAY_MS + hour * HOUR_MS;

/**
 * The files to remove once a new backup exists: backups that are older than those that are kept, and temporary files. Files
 * with other names are not ours, and stay.
 */
export const surplusBackups = (
  names: readonly string[],
  { keep }: BackupSchedule,
  now: number,
): readonly string[] => [
  ...names
    .filter((name) => timeOf(name) <= now)
    .sort()
    .slice(0, -keep),
  ...names.filter((name) => REMAINS.test(name)),
];
