import { describe, expect, test } from "bun:test";
import type { DatabaseFigures } from "../../src/core/database.ts";
import { FREE_BYTES_MIN, type JobState, readinessOf, type Vitals } from "../../src/core/operation.ts";

const JOB: JobState = {
  name: "deadlines",
  running: false,
  runs: 3,
  failures: 1,
  lastOutcome: "failed",
  lastStartedAt: 1,
  lastEndedAt: 2,
  lastDurationMs: 1,
  lagMs: 0,
  quietMs: 312_400,
  stuck: false,
};
const WELL: Vitals = {
  ledger: { readable: true, writable: true },
  freeBytes: FREE_BYTES_MIN,
  jobs: [JOB],
  audit: { disagreements: 0, endedAt: 1, durationMs: 1 },
  clock: null,
  treasuries: [],
  ...{ database: null, replicas: [] },
};

const TREASURY = { mode: "live", asset: "USDC", chain: "eip155:8453" } as const;
const SEEN = { balance: 7n, block: 7, ageMs: 42_000 };

/** The check that fails, with its message; null where none does. */
function failing(vitals: Partial<Vitals>) {
  const { object, ready, checks } = readinessOf({ ...WELL, ...vitals });
  const failed = checks.filter(({ ok }) => !ok);
  expect([object, ready]).toEqual(["readiness", failed.length === 0]);
  expect(checks.map(({ name }) => name)).toEqual(["ledger", "disk", "jobs", "audit", "clock", "solvency"]);
  expect(checks.every(({ ok, message }) => ok || message !== null)).toBeTrue();
  return failed.map(({ name, message }) => `${name}: ${message}`);
}

describe("ready", () => {
  const READY: readonly (readonly [name: string, vitals: Partial<Vitals>])[] = [
    ["where all is well", {}],
    ["before the first audit has ended", { audit: null }],
    ["where the system does not say what the disk has left", { freeBytes: null }],
    ["where a job has failed, but not for long", { jobs: [{ ...JOB, failures: 9 }] }],
    ["without a job", { jobs: [] }],
    ["where a chain does not answer", { treasuries: [{ ...TREASURY, judgement: "unknown", seen: null }] }],
  ];
  for (const [name, vitals] of READY) test(name, () => expect(failing(vitals)).toEqual([]));
});

describe("a ledger in a database", () => {
  const DATABASE: DatabaseFigures = {
    ...{ isReachable: true, roundTripMs: 1.2, lanes: 4, busy: 1, waiting: 2 },
    ...{ batches: 9, commands: 90, retries: 3, undecided: 0 },
    ...{ readReplicas: [], fallbacks: { no_replica: 0, failed: 0, not_found: 0 } },
  };
  const checkOf = (database: Partial<DatabaseFigures>) =>
    readinessOf({ ...WELL, freeBytes: null, database: { ...DATABASE, ...database } });

  test("says how the database does", () => {
    const known = "1 of 4 lanes are busy, 2 commands wait, 3 transactions were made again.";
    expect(checkOf({}).checks).toContainEqual({
      ...{ name: "database", ok: true, message: `It answered in 2 ms; ${known}` },
    });
    expect(checkOf({ roundTripMs: null }).checks).toContainEqual({
      ...{ name: "database", ok: true, message: known },
    });
  });

  test("says how many replicas reads go to, and is ready without one", () => {
    const replica = { name: "ledger at near:5432", lagMs: 1, reads: 0 };
    const { ready, checks } = checkOf({
      readReplicas: [
        { ...replica, state: "in_use" },
        { ...replica, state: "late" },
        { ...replica, state: "away" },
      ],
    });
    expect(ready).toBeTrue();
    expect(checks.find(({ name }) => name === "database")?.message).toEndWith(
      "Reads go to 1 of 3 replicas, the latest of them by 1 ms.",
    );
  });

  test("says how late the replicas are that the server reports", () => {
    const replica = { name: "walreceiver", isSynchronous: true };
    const messageOf = (...lags: readonly (number | null)[]) => {
      const replicas = lags.map((lagMs) => ({ ...replica, lagMs }));
      const { checks } = readinessOf({ ...WELL, freeBytes: null, database: DATABASE, replicas });
      return checks.find(({ name }) => name === "database")?.message?.replace(/.*made again\.\s*/, "");
    };
    expect(messageOf()).toBe("");
    expect(messageOf(null)).toBe("It reports 1 replicas.");
    expect(messageOf(0, 12.3, null)).toBe("It reports 3 replicas, the latest of them by 13 ms.");
  });

  test("is not ready where the database does not answer", () => {
    const { ready, checks } = checkOf({ isReachable: false });
    expect(ready).toBeFalse();
    expect(checks).toContainEqual({ name: "database", ok: false, message: "The database does not answer." });
  });
});

test("what is not known of a chain is said", () => {
  const { ready, checks } = readinessOf({
    ...WELL,
    treasuries: [{ ...TREASURY, judgement: "unknown", seen: null }],
  });
  const message = "What the chain holds is not known: live USDC on eip155:8453, not seen since the start.";
  expect(ready).toBeTrue();
  expect(checks.at(-1)).toEqual({ name: "solvency", ok: true, message });
});

describe("not ready", () => {
  const audit = { disagreements: 2, endedAt: 1, durationMs: 1 };
  const UNREADY: readonly (readonly [message: string, vitals: Partial<Vitals>])[] = [
    ["ledger: The ledger cannot be read.", { ledger: { readable: false, writable: true } }],
    [
      "ledger: The ledger cannot be written; the log says why.",
      { ledger: { readable: true, writable: false } },
    ],
    ["disk: The disk has less than 100 MiB left.", { freeBytes: FREE_BYTES_MIN - 1 }],
    [
      "jobs: No run has succeeded for too long: deadlines, for 312 s.",
      { jobs: [JOB, { ...JOB, stuck: true }] },
    ],
    ["audit: The last audit found disagreements in the ledger; `holdfast audit` lists them.", { audit }],
    [
      "clock: The clock is 3600 s behind the ledger's last commit: deadlines, retention, recovery and payouts on chains wait. Set the clock right, and restart the service. If it is right, this ends once it has passed that commit.",
      { clock: { behindLedgerMs: 3_600_000, jumpedMs: 0 } },
    ],
    [
      "clock: The clock has jumped 60 s forwards since the service started: deadlines, retention, recovery and payouts on chains wait. Set the clock right, and restart the service.",
      { clock: { behindLedgerMs: 0, jumpedMs: 60_001 } },
    ],
    [
      "clock: The clock is 1 s behind the ledger's last commit and has jumped 60 s back since the service started: deadlines, retention, recovery and payouts on chains wait. Set the clock right, and restart the service. If it is right, this ends once it has passed that commit.",
      { clock: { behindLedgerMs: 1, jumpedMs: -60_000 } },
    ],
    [
      "solvency: The chain holds less than the ledger owes; `holdfast solvency` shows it: live USDC on eip155:8453, seen 42 s ago.",
      {
        treasuries: [
          { ...TREASURY, judgement: "short", seen: SEEN },
          { ...TREASURY, asset: "EURC", judgement: "enough", seen: SEEN },
        ],
      },
    ],
  ];
  for (const [message, vitals] of UNREADY) {
    test(message, () => expect(failing(vitals)).toEqual([message]));
  }

  test("every check that fails is named", () =>
    expect(failing({ audit, freeBytes: 0 }).map((line) => line.split(":")[0])).toEqual(["disk", "audit"]));
});
