import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  DAY_MS,
  HOUR_MS,
  isoTime,
  isoTimeOrNull,
  MINUTE_MS,
  parseTime,
  SECOND_MS,
} from "../../src/core/time.ts";

describe("parseTime", () => {
  const GOOD: readonly (readonly [text: string, iso: string])[] = [
    ["2030-01-31T12:00:00Z", "2030-01-31T12:00:00.000Z"],
    ["2030-01-31T12:00:00.123Z", "2030-01-31T12:00:00.123Z"],
    ["2030-01-31T12:00:00.5Z", "2030-01-31T12:00:00.500Z"],
    ["2030-01-31T12:00:00.9999Z", "2030-01-31T12:00:00.999Z"],
    ["2030-01-31T12:00:00.123456789123456789Z", "2030-01-31T12:00:00.123Z"],
    ["2030-01-31t12:00:00z", "2030-01-31T12:00:00.000Z"],
    ["2030-01-31t12:00:00.25+01:00", "2030-01-31T11:00:00.250Z"],
    ["2030-01-31T00:30:00+05:30", "2030-01-30T19:00:00.000Z"],
    ["2030-01-31T23:59:59-23:59", "2030-02-01T23:58:59.000Z"],
    ["2030-01-31T12:00:00+00:00", "2030-01-31T12:00:00.000Z"],
    ["2030-01-31T12:00:00-00:00", "2030-01-31T12:00:00.000Z"],
    ["2030-12-31T23:59:59Z", "2030-12-31T23:59:59.000Z"],
    ["2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z"],
    ["2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000Z"],
    ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"],
    ["1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"],
    ["0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"],
    ["0000-02-29T00:00:00Z", "0000-02-29T00:00:00.000Z"],
    ["0050-06-01T00:00:00Z", "0050-06-01T00:00:00.000Z"],
    ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"],
    ["9999-12-31T23:59:59.999+00:01", "9999-12-31T23:58:59.999Z"],
  ];
  for (const [text, iso] of GOOD) {
    test(`takes ${text}`, () => {
      const time = parseTime(text);
      expect(time).not.toBeNull();
      expect(isoTime(time!)).toBe(iso);
    });
  }

  const BAD: readonly unknown[] = [
    ...[1_900_000_000_000, null, undefined, {}, new Date(0), ["2030-01-31T12:00:00Z"]],
    ...["", "now", "2030", "2030-01-31", "2030-01-31T12:00Z", "12:00:00Z", "1900000000"],
    // No zone, or none that RFC 3339 knows.
    ...["2030-01-31T12:00:00", "2030-01-31T12:00:00 Z", "2030-01-31T12:00:00 UTC", "2030-01-31T12:00:00+01"],
    ...["2030-01-31T12:00:00+0100", "2030-01-31T12:00:00+24:00", "2030-01-31T12:00:00+01:60"],
    // Days that do not exist.
    ...["2030-02-30T00:00:00Z", "2030-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2100-02-29T00:00:00Z"],
    ...["2030-04-31T00:00:00Z", "2030-01-32T00:00:00Z", "2030-01-00T00:00:00Z", "2030-00-10T00:00:00Z"],
    ...["2030-13-01T00:00:00Z"],
    // Times of the day that do not exist; the leap second counts as one.
    ...["2030-01-31T24:00:00Z", "2030-01-31T12:60:00Z", "2016-12-31T23:59:60Z", "2030-01-31T12:00:61Z"],
    // Instants whose year in UTC does not have four digits.
    ...["0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "10000-01-01T00:00:00Z"],
    ...["-000001-01-01T00:00:00Z", "+002030-01-31T12:00:00Z"],
    // Other forms of ISO 8601 and other languages' dates.
    ...["2030-01-31 12:00:00Z", "20300131T120000Z", "2030-W05-4T12:00:00Z", "2030-031T12:00:00Z"],
    ...["2030-1-31T12:00:00Z", "2030-01-31T12:00:00.Z", "2030-01-31T12:00:00,5Z", "٢٠٣٠-01-31T12:00:00Z"],
    ...["Thu, 31 Jan 2030 12:00:00 GMT", " 2030-01-31T12:00:00Z", "2030-01-31T12:00:00Z\n"],
    `2030-01-31T12:00:00.${"1".repeat(60)}Z`,
  ];
  for (const value of BAD) {
    test(`refuses ${typeof value} ${JSON.stringify(value)}`, () => expect(parseTime(value)).toBeNull());
  }

  test("knows the length of every month", () => {
    const isLeap = (year: number) => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
    for (const year of [0, 1, 4, 96, 99, 100, 400, 1900, 2000, 2023, 2024, 2100, 2400, 9999]) {
      const lengths = [31, isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
      for (const [index, length] of lengths.entries()) {
        const day = (number: number) =>
          `${String(year).padStart(4, "0")}-${String(index + 1).padStart(2, "0")}-${number}T00:00:00Z`;
        expect([day(length), parseTime(day(length)) !== null]).toEqual([day(length), true]);
        expect([day(length + 1), parseTime(day(length + 1))]).toEqual([day(length + 1), null]);
      }
    }
  });

  const instants = fc.integer({
    min: Date.parse("0000-01-02T00:00:00Z"),
    max: Date.parse("9999-12-30T23:59:59.999Z"),
  });

  test("reads back what isoTime wrote", () => {
    fc.assert(fc.property(instants, (time) => expect(parseTime(isoTime(time))).toBe(time)));
  });

  test("reads an instant the same in every zone", () => {
    fc.assert(
      fc.property(instants, fc.integer({ min: -1439, max: 1439 }), (time, offset) => {
        const local = isoTime(time + offset * MINUTE_MS).slice(0, -1);
        const two = (value: number) => String(value).padStart(2, "0");
        const zone = `${two(Math.floor(Math.abs(offset) / 60))}:${two(Math.abs(offset) % 60)}`;
        expect(parseTime(local + (offset < 0 ? "-" : "+") + zone)).toBe(time);
      }),
    );
  });
});

test("times are written in ISO 8601 with milliseconds and Z, and null stays null", () => {
  expect(isoTime(0)).toBe("1970-01-01T00:00:00.000Z");
  expect(isoTimeOrNull(1)).toBe("1970-01-01T00:00:00.001Z");
  expect(isoTimeOrNull(null)).toBeNull();
});

test("the units are milliseconds", () => {
  expect([SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS]).toEqual([1_000, 60_000, 3_600_000, 86_400_000]);
});
