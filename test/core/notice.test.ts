import { describe, expect, test } from "bun:test";
import {
  claimNotice,
  endNotice,
  isTimeZone,
  NOTICE_ATTEMPTS_MAX,
  NOTICE_CLAIM_MS,
  newNotice,
  nextOfPlan,
  noticeSettingsOf,
  type PlannedNotice,
  rescheduleNotice,
  withinHours,
} from "../../src/core/notice.ts";

/** The rules of notices (docs/notices, "Notices"). */

const HOUR_MS = 3_600_000;
const at = (text: string) => Date.parse(text);

describe("hours", () => {
  const hours = (from: number | null, until: number | null, timeZone = "UTC") => ({
    ...noticeSettingsOf("usr_1", "org_1"),
    ...{
      fromMinute: from === null ? null : from * 60,
      untilMinute: until === null ? null : until * 60,
      timeZone,
    },
  });
  const next = (settings: ReturnType<typeof hours>, time: string) =>
    new Date(withinHours(settings, at(time))).toISOString();

  test.each([
    ["all hours", hours(null, null), "2030-01-15T03:00:30.000Z", "2030-01-15T03:00:30.000Z"],
    ["within", hours(8, 18), "2030-01-15T08:00:00.000Z", "2030-01-15T08:00:00.000Z"],
    ["the last minute", hours(8, 18), "2030-01-15T17:59:59.999Z", "2030-01-15T17:59:59.999Z"],
    ["their end", hours(8, 18), "2030-01-15T18:00:00.000Z", "2030-01-16T08:00:00.000Z"],
    ["before", hours(8, 18), "2030-01-15T07:59:59.999Z", "2030-01-15T08:00:00.000Z"],
    ["over midnight", hours(22, 6), "2030-01-15T02:00:00.000Z", "2030-01-15T02:00:00.000Z"],
    ["over midnight, outside", hours(22, 6), "2030-01-15T06:00:00.000Z", "2030-01-15T22:00:00.000Z"],
    ["elsewhere", hours(8, 18, "Asia/Kolkata"), "2030-01-15T02:29:00.000Z", "2030-01-15T02:30:00.000Z"],
    [
      "a clock set forward",
      hours(8, 18, "Europe/Berlin"),
      "2030-03-30T20:00:00.000Z",
      "2030-03-31T06:00:00.000Z",
    ],
    [
      "a clock set back",
      hours(8, 18, "Europe/Berlin"),
      "2030-10-26T20:00:00.000Z",
      "2030-10-27T07:00:00.000Z",
    ],
  ])("%s", (_, settings, now, expected) => {
    expect(next(settings, now)).toBe(expected);
  });

  test("a time zone is one that the system knows", () => {
    expect(["UTC", "Europe/Berlin", "", "Mars/Base", "Europe/Berlin;"].map(isTimeZone)).toEqual([
      ...[true, true, false, false, false],
    ]);
  });
});

describe("the plan of an escalation", () => {
  const plan: PlannedNotice = {
    ...{ id: "esc_1", organisationId: "org_1", mode: "live", made: 0, dueAt: 0, createdAt: 0 },
  };
  test("is for now, a day and three days", () => {
    const first = nextOfPlan(plan, 0);
    expect(first).toEqual({ hours: 0, next: { ...plan, made: 1, dueAt: 24 * HOUR_MS } });
    const second = nextOfPlan(first.next!, 24 * HOUR_MS);
    expect(second).toEqual({ hours: 24, next: { ...plan, made: 2, dueAt: 72 * HOUR_MS } });
    expect(nextOfPlan(second.next!, 72 * HOUR_MS)).toEqual({ hours: 72, next: null });
  });
  test("makes up for nothing: after three days without a server there is one notice", () => {
    expect(nextOfPlan(plan, 80 * HOUR_MS)).toEqual({ hours: 72, next: null });
  });
});

describe("an attempt", () => {
  const fresh = newNotice(
    {
      ...{ id: "ntc_1", organisationId: "org_1", mode: "live", userId: "usr_1", channel: "email" },
      ...{ subject: "password_reset", about: { kind: "password_reset", expiresAt: 1 }, createdAt: 1_000 },
    },
    "encrypted",
  );

  test("that fails is made again after longer and longer waits, and given up at last", () => {
    let notice = fresh;
    let now = 1_000;
    const waits: number[] = [];
    for (let attempt = 1; attempt <= NOTICE_ATTEMPTS_MAX; attempt++) {
      const claimed = claimNotice(notice, now);
      expect(claimed).toMatchObject({
        attempts: attempt,
        nextAttemptAt: null,
        claimedUntil: now + NOTICE_CLAIM_MS,
      });
      notice = endNotice(claimed!, { outcome: "failed", answer: "421 busy", durationMs: 5 }, now);
      if (notice.nextAttemptAt !== null) waits.push(notice.nextAttemptAt - now);
      now = notice.nextAttemptAt ?? now;
    }
    expect(waits).toEqual([1, 5, 30, 120, 360].map((minutes) => minutes * 60_000));
    expect(notice).toMatchObject({
      status: "exhausted",
      encryptedLink: null,
      answer: "421 busy",
      durationMs: 5,
    });
    expect(claimNotice(notice, now + 365 * 24 * HOUR_MS)).toBeNull();
  });

  test("keeps the link while it is still to be sent, and forgets it then", () => {
    const claimed = claimNotice(fresh, 1_000)!;
    const end = (outcome: "delivered" | "failed" | "never") =>
      endNotice(claimed, { outcome, answer: "", durationMs: 1 }, 2_000);
    expect(
      [end("failed"), end("delivered"), end("never")].map((one) => [one.status, one.encryptedLink]),
    ).toEqual([
      ["failed", "encrypted"],
      ["delivered", null],
      ["exhausted", null],
    ]);
  });

  test("that was cut off is made again, and no clock that was ahead holds one up", () => {
    const claimed = claimNotice(fresh, 1_000)!;
    expect(rescheduleNotice(claimed, 1_000)).toBeNull();
    const over = 1_000 + NOTICE_CLAIM_MS;
    expect(rescheduleNotice(claimed, over)).toMatchObject({
      status: "failed",
      answer: "cut_off",
      nextAttemptAt: over + 60_000,
    });
    expect(rescheduleNotice(claimed, -10 * HOUR_MS)).toMatchObject({ status: "failed" });
    expect(rescheduleNotice({ ...fresh, nextAttemptAt: 40 * HOUR_MS }, 0)).toMatchObject({
      nextAttemptAt: 0,
    });
    expect(rescheduleNotice({ ...fresh, nextAttemptAt: 20 * HOUR_MS }, 0)).toBeNull();
  });
});
