/** Times are epoch milliseconds inside, and ISO 8601 with milliseconds and `Z` on the wire. */

const RFC_3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:[Zz]|[+-](\d{2}):(\d{2}))$/;

/**
 * Only years of four digits are accepted. A zone offset can move a time into year -1 or 10000, for which
 * `isoTime` would write a sign and six digits.
 */
const YEAR_0 = Date.parse("0000-01-01T00:00:00.000Z");
const YEAR_10000 = Date.parse("9999-12-31T23:59:59.999Z") + 1;

/** Epoch milliseconds of an RFC 3339 timestamp with a zone; null for any other text, and for a day such as 30 February. */
export function parseTime(text: unknown): number | null {
  const match = typeof text === "string" && text.length <= 64 ? RFC_3339.exec(text) : null;
  if (!match) return null;
  const [year, month, day, hour, minute, second, zoneHour, zoneMinute] = match
    .slice(1)
    .map((part) => Number(part ?? 0)) as [number, number, number, number, number, number, number, number];
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return null;
  if (hour > 23 || minute > 59 || second > 59 || zoneHour > 23 || zoneMinute > 59) return null;
  const time = Date.parse(text as string);
  return time >= YEAR_0 && time < YEAR_10000 ? time : null;
}

/**
 * How many days a month has. Date.UTC takes a year below 100 for one after 1900, so a year from 2000 to 2399
 * is used: the calendar repeats every 400 years.
 */
const daysIn = (year: number, month: number): number =>
  new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate();

let lastTime = Number.NaN;
let lastText = "";

/**
 * ISO 8601 text of a time. The last text is remembered, since one request writes the same time up to four
 * times.
 */
export function isoTime(time: number): string {
  if (time !== lastTime) {
    lastText = new Date(time).toISOString();
    lastTime = time;
  }
  return lastText;
}

/** ISO 8601 text of a time, or null. */
export const isoTimeOrNull = (time: number | null): string | null => (time === null ? null : isoTime(time));

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
