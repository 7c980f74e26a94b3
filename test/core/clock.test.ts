import { expect, test } from "bun:test";
import { type ClockDisagreement, type ClockReading, disagreementOf } from "../../src/core/clock.ts";

const NOW = Date.UTC(2030, 0, 15, 12);
const HOUR_MS = 3_600_000;

/** A clock that is right: the ledger's last commit is a second old, and the service has run for a day. */
const RIGHT: ClockReading = {
  now: NOW,
  lastRecordedAt: NOW - 1_000,
  wallElapsedMs: 24 * HOUR_MS,
  monotonicElapsedMs: 24 * HOUR_MS,
};
/** The same, after the clock was set to another time while the service ran. */
const setBy = (ms: number): Partial<ClockReading> => ({
  now: NOW + ms,
  wallElapsedMs: RIGHT.wallElapsedMs + ms,
});

const CASES: readonly (readonly [
  name: string,
  reading: Partial<ClockReading>,
  expected: ClockDisagreement | null,
])[] = [
  ["agrees", {}, null],
  ["agrees where nothing was ever recorded", { lastRecordedAt: -1 }, null],
  ["agrees in the millisecond of the last commit", { lastRecordedAt: NOW }, null],
  ["is behind the ledger by a millisecond", { lastRecordedAt: NOW + 1 }, { behindLedgerMs: 1, jumpedMs: 0 }],
  [
    "is behind the ledger from the start",
    { lastRecordedAt: NOW + HOUR_MS },
    { behindLedgerMs: HOUR_MS, jumpedMs: 0 },
  ],
  ["was slewed forwards", { lastRecordedAt: -1, ...setBy(5_000) }, null],
  ["was slewed back", { lastRecordedAt: -1, ...setBy(-5_000) }, null],
  ["jumped forwards", setBy(5_001), { behindLedgerMs: 0, jumpedMs: 5_001 }],
  ["jumped back", { lastRecordedAt: -1, ...setBy(-5_001) }, { behindLedgerMs: 0, jumpedMs: -5_001 }],
  ["jumped back behind the ledger", setBy(-HOUR_MS), { behindLedgerMs: HOUR_MS - 1_000, jumpedMs: -HOUR_MS }],
  [
    "jumped by fractions of a millisecond more",
    { wallElapsedMs: 10_000, monotonicElapsedMs: 4_999.25 },
    { behindLedgerMs: 0, jumpedMs: 5_001 },
  ],
];

for (const [name, reading, expected] of CASES) {
  test(`a clock that ${name}`, () => expect(disagreementOf({ ...RIGHT, ...reading })).toEqual(expected));
}
