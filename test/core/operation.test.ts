import { describe, expect, test } from "bun:test";
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
};

/** The check that fails, with its message; null where none does. */
function failing(vitals: Partial<Vitals>) {
  const { object, ready, checks } = readinessOf({ ...WELL, ...vitals });
  const failed = checks.filter(({ ok }) => !ok);
  expect([object, ready]).toEqual(["readiness", failed.length === 0]);
  expect(checks.map(({ name }) => name)).toEqual(["ledger", "disk", "jobs", "audit", "clock"]);
  expect(checks.every(({ ok, message }) => ok === (message === null))).toBeTrue();
  return failed.map(({ name, message }) => `${name}: ${message}`);
}

describe("ready", () => {
  const READY: readonly (readonly [name: string, vitals: Partial<Vitals>])[] = [
    ["where all is well", {}],
    ["before the first audit has ended", { audit: null }],
    ["where the system does not say what the disk has left", { freeBytes: null }],
    ["where a job has failed, but not for long", { jobs: [{ ...JOB, failures: 9 }] }],
    ["without a job", { jobs: [] }],
  ];
  for (const [name, vitals] of READY) test(name, () => expect(failing(vitals)).toEqual([]));
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
      "clock: The clock is 3600 s behind the ledger's last commit: deadlines, retention and recovery wait. Set the clock right, and restart the service. If it is right, this ends once it has passed that commit.",
      { clock: { behindLedgerMs: 3_600_000, jumpedMs: 0 } },
    ],
    [
      "clock: The clock has jumped 60 s forwards since the service started: deadlines, retention and recovery wait. Set the clock right, and restart the service.",
      { clock: { behindLedgerMs: 0, jumpedMs: 60_001 } },
    ],
    [
      "clock: The clock is 1 s behind the ledger's last commit and has jumped 60 s back since the service started: deadlines, retention and recovery wait. Set the clock right, and restart the service. If it is right, this ends once it has passed that commit.",
      { clock: { behindLedgerMs: 1, jumpedMs: -60_000 } },
    ],
  ];
  for (const [message, vitals] of UNREADY) {
    test(message, () => expect(failing(vitals)).toEqual([message]));
  }

  test("every check that fails is named", () =>
    expect(failing({ audit, freeBytes: 0 }).map((line) => line.split(":")[0])).toEqual(["disk", "audit"]));
});
