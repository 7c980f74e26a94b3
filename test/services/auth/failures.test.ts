import { expect, test } from "bun:test";
import { createSignInFailures } from "../../../src/services/auth/failures.ts";
import { callerAt } from "../../support/client.ts";

/** What strangers can write into the audit log by failing (docs/people, "The audit log"). */

const HOUR_MS = 3_600_000;
const failure = (userId: string | null, address = "203.0.113.7") => ({
  ...({ client: callerAt(address), by: "password", why: "wrong" } as const),
  user: userId === null ? null : { id: userId, organisationId: "org_1" },
});
const LIMITS = { ofAccount: 2, inAll: 5, accounts: 4 };

test("of an account and hour a few failures have an entry each, and all others one when the hour is over", () => {
  const failures = createSignInFailures(LIMITS);
  for (let count = 0; count < 9; count++) failures.record(failure("usr_1", `203.0.113.${count}`), count);
  expect(failures.take(10).map(({ failures: number }) => number)).toEqual([1, 1]);
  expect(failures.take(HOUR_MS - 1)).toEqual([]);
  expect(failures.take(HOUR_MS)).toMatchObject([
    { userId: "usr_1", failures: 7, firstAt: 2, lastAt: 8, network: "203.0.113.8" },
  ]);
  failures.record(failure("usr_1"), HOUR_MS);
  expect(failures.take(HOUR_MS)).toMatchObject([{ failures: 1 }]);
});

test("a sum whose hour is over is written before the next hour's entries, whichever comes first", () => {
  const failures = createSignInFailures(LIMITS);
  for (let count = 0; count < 4; count++) failures.record(failure("usr_1"), 0);
  failures.record(failure("usr_1"), HOUR_MS);
  expect(failures.take(HOUR_MS).map(({ failures: number }) => number)).toEqual([1, 1, 2, 1]);
});

test("entries of one failure each, accounts, and addresses of a sum are bounded", () => {
  const failures = createSignInFailures(LIMITS);
  for (let user = 0; user < 10; user++) {
    for (let count = 0; count < 20; count++) {
      failures.record(failure(`usr_${user}`, `203.0.${user}.${count}`), 0);
    }
  }
  failures.record(failure(null), 0);
  expect(failures.take(0)).toHaveLength(5);
  const sums = failures.take(HOUR_MS);
  expect(sums.map(({ userId, failures: number }) => [userId, number])).toEqual([
    ["usr_0", 18],
    ["usr_1", 18],
    ["usr_2", 19],
    ["usr_3", 20],
  ]);
  expect(sums.every(({ networks }) => networks.length === 5)).toBeTrue();
});

test("what could not be written comes again, and on stop the sums too", () => {
  const failures = createSignInFailures(LIMITS);
  for (let count = 0; count < 5; count++) failures.record(failure("usr_1"), 0);
  const entries = failures.take(0);
  failures.putBack(entries);
  expect(failures.take(1, true).map(({ failures: number }) => number)).toEqual([1, 1, 3]);
  expect(failures.take(1, true)).toEqual([]);
});
