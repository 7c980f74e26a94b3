import { DAY_MS, HOUR_MS, isoTime } from "./time.ts";

/** Which backups a server makes by itself, and which of them stay. */
export type BackupSchedule = {
  readonly folder: string;
  /** How many stay. */
  readonly keep: number;
  /** The hour of the day, UTC, from which on a night's backup is made. */
  readonly hour: number;
};

/** What a scheduled backup is called; in UTC and to the second, so that names sort as times do. */
export const backupName = (time: number): string =>
  `holdfast-${isoTime(time).replace(/[-:]|\.\d+/g, "")}.backup`;

const NAME = /^holdfast-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.backup$/;
/** What a backup that was cut off left beside its name. */
const REMAINS = /^holdfast-\d{8}T\d{6}Z\.backup\.\d+\.part(-journal)?$/;

/** NaN, which is neither before nor after anything, where it is no such name. */
const timeOf = (name: string): number =>
  NAME.test(name) ? Date.parse(name.replace(NAME, "$1-$2-$3T$4:$5:$6Z")) : Number.NaN;

/** Whether the folder still lacks the last night's backup. One from after now is of a clock that was wrong. */
export const isBackupDue = (names: readonly string[], { hour }: BackupSchedule, now: number): boolean =>
  !names.some((name) => timeOf(name) >= lastNight(now, hour) && timeOf(name) <= now);

/** When the newest of them was made, epoch milliseconds; 0 where there is none. */
export const newestBackupAt = (names: readonly string[], now: number): number =>
  Math.max(0, ...names.map(timeOf).filter((time) => time <= now));

/** When the hour struck last. */
const lastNight = (now: number, hour: number): number =>
  Math.floor((now - hour * HOUR_MS) / DAY_MS) * DAY_MS + hour * HOUR_MS;

/** What may go once a new backup is there: the oldest beyond those that stay, and remains. Other names are not ours. */
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
