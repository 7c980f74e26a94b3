import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { JOBS, type RunningOperation, runJobByHand, startOperation } from "../../src/app/operation.ts";
import type { WatchedDatabase } from "../../src/app/store.ts";
import { witnessJobs } from "../../src/app/witnessing.ts";
import { NO_SECRETS, readConfig } from "../../src/config.ts";
import type { SeenTreasury } from "../../src/core/solvency/judgement.ts";
import { createShell } from "../../src/http/shell.ts";
import type { Job } from "../../src/jobs/scheduler.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import type { Context } from "../../src/services/context.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { ALONE } from "../../src/store/instances.ts";
import { begunJobs } from "../support/begun-jobs.ts";
import type { Json } from "../support/client.ts";
import { createTestContext, NO_WITNESSES, TEST_NOW, type TestContext } from "../support/context.ts";
import { must } from "../support/organisations.ts";
import { markRestored } from "../support/restored.ts";
import { testSettings } from "../support/server.ts";
import { createStage, open, verify, warrantIn } from "../support/stage.ts";
import { attemptsOf, createTelling } from "../support/telling.ts";
import { copiesIn } from "../support/temporary.ts";

const FAILS = { kind: "http.status", equals: 418 };

/** What the service knows of itself, from its jobs to `/readyz` and `/metrics`. The test moves the timers. */

const TOKEN = "the-token-of-a-prometheus";
const URL = "http://localhost:8080";

let ctx: TestContext;
/** The time of the clock that never jumps. */
let monotonicMs: number;
let treasuries: readonly SeenTreasury[];
let database: WatchedDatabase | null;
let running: RunningOperation | null;
let printed: ReturnType<typeof jest.spyOn>;
beforeEach(() => {
  jest.useFakeTimers();
  ctx = createTestContext();
  monotonicMs = 0;
  treasuries = [];
  database = null;
  running = null;
  printed = jest.spyOn(process.stderr, "write").mockImplementation(() => true);
});
afterEach(async () => {
  await running?.stop();
  printed.mockRestore();
  jest.useRealTimers();
  await ctx.close();
});

/** The jobs and the routes over a context. The audit child prints what the test says. */
function operate(context: Context, disagreements: readonly string[], jobs: readonly Job[] = []) {
  const said = `console.log(${JSON.stringify(JSON.stringify(disagreements))})`;
  const started = startOperation({
    config: must(readConfig(testSettings(ctx.folder), {})),
    secrets: { ...NO_SECRETS, metricsToken: TOKEN },
    ctx: context,
    metrics: createMetrics(),
    evaluators: () => [],
    lastSeenAt: 0,
    monotonicNow: () => monotonicMs,
    self: [process.execPath, "-e", said],
    newestBackup: () => null,
    connectionsClosed: () => 0,
    anchorLateMs: () => null,
    witnesses: async () => [],
    deposits: async () => [],
    treasuries: () => treasuries,
    database,
    jobs,
  });
  running = started;
  const shell = createShell(context, {
    ...{ docsUrl: `${URL}/docs`, rateLimits: { read: 1_000, write: 1_000, bench: 1_000 } },
    trustedProxies: [],
    onFault: (error) => console.error(error),
    operation: started.operation,
  });
  const get = (path: string) =>
    shell(new Request(URL + path, { headers: { Authorization: `Bearer ${TOKEN}` } }), () => "192.0.2.1");
  return {
    async ready() {
      const response = await get("/readyz");
      const { checks }: Json = await response.json();
      const failing = checks.filter(({ ok }: Json) => !ok);
      return [response.status, ...failing.map(({ name }: Json) => name)];
    },
    async figure(series: string) {
      const text = await get("/metrics").then((response) => response.text());
      const line = text.split("\n").find((one) => one.startsWith(`${series} `));
      return line?.slice(series.length + 1);
    },
  };
}

/** Resolves when the figure has this value; until then the jobs run. */
async function becomes(read: () => Promise<string | undefined>, expected: string): Promise<void> {
  while ((await read()) !== expected) await new Promise(setImmediate);
}

test("an instance that has lost the database is 503", async () => {
  let isLost = true;
  const { ready } = operate({ ...ctx, instances: { ...ALONE, isLost: () => isLost } }, []);
  expect(await ready()).toEqual([503, "ledger"]);
  isLost = false;
  expect(await ready()).toEqual([200]);
});

test("a ledger that cannot be written is 503, and 0 in the metrics; it is ready again when it can", async () => {
  let isFull = true;
  const probe = async () => {
    if (isFull) throw new Error("disk full");
    await ctx.store.probe();
  };
  const { ready, figure } = operate({ ...ctx, store: { ...ctx.store, probe } }, []);
  expect([await ready(), await figure("holdfast_ready")]).toEqual([[200], "1"]);
  jest.advanceTimersByTime(1_000);
  await becomes(() => figure('holdfast_job_failures_total{job="ledger"}'), "1");
  expect([await ready(), await figure("holdfast_ready")]).toEqual([[503, "ledger"], "0"]);
  isFull = false;
  jest.advanceTimersByTime(15_000);
  await becomes(() => figure("holdfast_ready"), "1");
  expect(await ready()).toEqual([200]);
});

test("a chain that holds less than is owed is 503, and one that does not answer is not; both are in the metrics", async () => {
  const { ready, figure } = operate(ctx, []);
  const of = '{mode="live",asset="USDC"}';
  const shown = async () => [
    await ready(),
    await figure(`holdfast_treasury_balance${of}`),
    await figure(`holdfast_treasury_block${of}`),
    await figure(`holdfast_treasury_short${of}`),
    await figure(`holdfast_treasury_age_seconds${of}`),
  ];
  const treasury = { mode: "live", asset: "USDC", chain: "eip155:8453" } as const;
  treasuries = [{ ...treasury, judgement: "unknown", seen: null }];
  expect(await shown()).toEqual([[200], undefined, undefined, undefined, undefined]);
  const seen = { balance: 70n, block: 5, ageMs: 2_000 };
  treasuries = [{ ...treasury, judgement: "enough", seen }];
  expect(await shown()).toEqual([[200], "70", "5", "0", "2"]);
  treasuries = [{ ...treasury, judgement: "short", seen }];
  expect(await shown()).toEqual([[503, "solvency"], "70", "5", "1", "2"]);
  treasuries = [{ ...treasury, judgement: "unknown", seen: { ...seen, ageMs: 3_600_000 } }];
  expect(await shown()).toEqual([[200], "70", "5", undefined, "3600"]);
});

test("a database that does not answer is 503; what is known of it is in the metrics, and nothing where there is none", async () => {
  const names = ["reachable", "round_trip_seconds", "lanes", "lanes_busy", "commands_waiting"];
  const counted = ["transactions_total", "commands_total", "retries_total", "undecided_total"];
  const shown = ({ figure }: ReturnType<typeof operate>) =>
    Promise.all([...names, ...counted].map((name) => figure(`holdfast_database_${name}`)));
  expect(await shown(operate(ctx, []))).toEqual([...names, ...counted].map(() => undefined));
  await running?.stop();

  let isReachable = true;
  database = {
    figures: () => ({
      ...{ isReachable, roundTripMs: 2, lanes: 4, busy: 3, waiting: 7 },
      ...{ batches: 11, commands: 70, retries: 5, undecided: 1 },
      readReplicas: [
        { name: "ledger at near:5432", state: "in_use", lagMs: 20, reads: 4 },
        { name: "ledger at far:5432", state: "away", lagMs: null, reads: 0 },
      ],
      fallbacks: { no_replica: 1, failed: 2, not_found: 3 },
    }),
    replicas: async () => [
      { name: "near", lagMs: 20, isSynchronous: true },
      { name: "far", lagMs: null, isSynchronous: false },
    ],
    lastAudit: { keep: async () => {}, read: async () => null },
    auditCopies: { ...copiesIn(ctx.folder), removeLeft: () => {} },
  };
  const started = operate(ctx, []);
  expect(await started.ready()).toEqual([200]);
  expect(await shown(started)).toEqual(["1", "0.002", "4", "3", "7", "11", "70", "5", "1"]);
  const lagOf = (of: string) => started.figure(`holdfast_database_replica_lag_seconds{${of}}`);
  expect(await lagOf('replica="near",synchronous="true"')).toBe("0.02");
  expect(await lagOf('replica="far",synchronous="false"')).toBeUndefined();
  for (const [series, value] of [
    ['up{replica="ledger at near:5432"}', "1"],
    ['up{replica="ledger at far:5432"}', "0"],
    ['lag_seconds{replica="ledger at near:5432"}', "0.02"],
    ['lag_seconds{replica="ledger at far:5432"}', undefined],
    ['reads_total{replica="ledger at near:5432"}', "4"],
    ['fallbacks_total{reason="no_replica"}', "1"],
    ['fallbacks_total{reason="failed"}', "2"],
    ['fallbacks_total{reason="not_found"}', "3"],
  ] as const)
    expect([series, await started.figure(`holdfast_database_read_replica_${series}`)]).toEqual([
      series,
      value,
    ]);
  expect(await started.figure("holdfast_warrants_overdue")).toBe("0");
  isReachable = false;
  const read = jest.spyOn(ctx.store, "read").mockRejectedValue(new Error("no connection"));
  try {
    expect(await started.ready()).toEqual([503, "ledger", "database"]);
    expect(await started.figure("holdfast_database_reachable")).toBe("0");
    expect(await started.figure("holdfast_warrants_overdue")).toBe("0");
    expect(await lagOf('replica="near",synchronous="true"')).toBeUndefined();
    expect(read).not.toHaveBeenCalled();
  } finally {
    read.mockRestore();
  }
});

test.each([
  [["the ledger disagrees", "so does the trace"], [503, "audit"], "0"],
  [[], [200], "1"],
])("an audit that found %p is %p, and in the metrics", async (found, expected, isReady) => {
  const { ready, figure } = operate(ctx, found);
  expect(await figure("holdfast_audit_disagreements")).toBe("-1");
  jest.advanceTimersByTime(60_000);
  await becomes(() => figure("holdfast_audit_disagreements"), String(found.length));
  expect([await ready(), await figure("holdfast_ready")]).toEqual([expected, isReady]);
});

describe("while the clock disagrees, deadlines, retention, recovery and payouts on chains wait, and it says so; then they go on", () => {
  const TWO_HOURS_MS = 2 * 3_600_000;
  /** Retention first runs after a minute, and then every ten. */
  const FIRST_MS = 60_000;
  const SECOND_MS = 600_000 - FIRST_MS;

  test.each([
    [
      "because it has jumped",
      { startsAt: 0, jumpsBy: TWO_HOURS_MS, isSetBy: 0 },
      { behind_ledger_ms: 0, jumped_ms: TWO_HOURS_MS },
    ],
    [
      "because it is behind the ledger",
      { startsAt: -TWO_HOURS_MS, jumpsBy: 0, isSetBy: 2 * TWO_HOURS_MS },
      { behind_ledger_ms: TWO_HOURS_MS, jumped_ms: 0 },
    ],
  ])("%s", async (_, { startsAt, jumpsBy, isSetBy }, logged) => {
    let forgot = 0;
    const forget: Context["store"]["forget"] = async () => {
      forgot += 1;
      return 0;
    };
    const checking = Promise.withResolvers<void>();
    Object.assign(ctx, {
      fetchEvidence() {
        checking.resolve();
        return new Promise(() => {});
      },
    });
    const stage = await createStage(ctx);
    const due = warrantIn(await open(stage, stage.operator));
    const deadline = new Date(ctx.clock.now + 86_400_000).toISOString();
    const checked = warrantIn(await open(stage, stage.operator, { deadline }));
    const check = verify(stage, stage.operator, checked.id);
    await Promise.race([check, checking.promise]);
    const states = () => [due, checked].map(({ id }) => ctx.reader.warrants.find(id)?.state as string);
    ctx.clock.now += startsAt;
    let paid = 0;
    const payouts = {
      name: "payouts",
      everyMs: FIRST_MS,
      needsTheClock: true,
      doneBy: "each",
      run: async () => ++paid,
    } as const;
    const { ready, figure } = operate({ ...ctx, store: { ...ctx.store, forget } }, [], [payouts]);
    const runsEnd = async (count: number, afterMs: number) => {
      jest.advanceTimersByTime(afterMs);
      for (const job of ["deadlines", "retention", "recover"]) {
        await becomes(() => figure(`holdfast_job_runs_total{job="${job}"}`), `${count}`);
      }
    };

    ctx.clock.now += jumpsBy;
    expect([await ready(), await figure("holdfast_clock_disagrees")]).toEqual([[503, "clock"], "1"]);
    await runsEnd(1, FIRST_MS);
    expect([states(), forgot, paid]).toEqual([["held", "verifying"], 0, 0]);

    // Either the clock was set right, or it was right and the other clock has caught up.
    ctx.clock.now += isSetBy;
    monotonicMs += jumpsBy + isSetBy;
    expect([await ready(), await figure("holdfast_clock_disagrees")]).toEqual([[200], "0"]);
    await runsEnd(2, SECOND_MS);
    expect([states(), forgot, paid > 0]).toEqual([["expired", "held"], 1, true]);
    const lines = printed.mock.calls.map((call: unknown[]) => JSON.parse(String(call[0])));
    expect(lines.filter(({ message }: Json) => message.startsWith("the clock "))).toMatchObject([
      {
        level: "warning",
        message: "the clock disagrees: deadlines, retention, recovery and payouts on chains wait",
        ...logged,
      },
      {
        level: "warning",
        message: "the clock agrees again: deadlines, retention, recovery and payouts on chains go on",
      },
    ]);
  });
});

test("a clock that jumps while a sweep goes on lets nothing expire that was not due before", async () => {
  const stage = await createStage(ctx);
  const openFor = async (ms: number): Promise<string> => {
    const deadline = new Date(ctx.clock.now + ms).toISOString();
    return warrantIn(await open(stage, stage.operator, { deadline })).id;
  };
  const [due, later] = [await openFor(1_000), await openFor(3_600_000)];
  ctx.clock.now += 1_000;
  monotonicMs += 1_000;
  let jumpMs = 0;
  // The sweep asks for the instance first, when it has already looked at the clock.
  const read: Context["store"]["read"] = (use) =>
    ctx.store.read((reader) => {
      const get = () => {
        jumpMs = 86_400_000;
        ctx.clock.now = TEST_NOW + 1_000 + jumpMs;
        return reader.instance.get();
      };
      return use({ ...reader, instance: { get } });
    });
  const { figure } = operate({ ...ctx, store: { ...ctx.store, read } }, []);
  jest.advanceTimersByTime(500);
  await becomes(() => figure('holdfast_job_runs_total{job="deadlines"}'), "1");
  expect(jumpMs).toBeGreaterThan(0);
  const states = [due, later].map((id) => ctx.reader.warrants.find(id)?.state as string);
  expect(states).toEqual(["expired", "held"]);
});

test("a job by hand that needs the clock is refused while it is behind the ledger", async () => {
  const stage = await createStage(ctx);
  const { id } = warrantIn(await open(stage, stage.operator));
  const state = () => ctx.reader.warrants.find(id)?.state as string;
  ctx.clock.now -= 3_600_000;
  for (const job of ["deadlines", "retention", "recover"] as const) {
    expect(await runJobByHand(job, ctx)).toEqual({
      refused: "internal_error",
      message:
        "The clock is 3600 s behind the ledger's last commit: deadlines, retention, recovery and payouts on chains wait. Set the clock right, and restart the service. If it is right, this ends once it has passed that commit.",
    });
  }
  expect([await runJobByHand("agents", ctx), state()]).toEqual([null, "held"]);
  ctx.clock.now += 3 * 86_400_000;
  expect([await runJobByHand("deadlines", ctx), state()]).toEqual([1, "expired"]);
});

test("the log of a restored ledger is neither signed nor offered to witnesses before that is acknowledged", async () => {
  const stage = await createStage(ctx);
  warrantIn(await open(stage, stage.operator));
  await markRestored(ctx);
  expect(await runJobByHand("anchor", ctx)).toMatchObject({ refused: "restore_unacknowledged" });
  const { figure } = operate(ctx, []);
  const runs = (count: number) => becomes(() => figure('holdfast_job_runs_total{job="anchor"}'), `${count}`);
  const asked: string[] = [];
  const witness = {
    ...NO_WITNESSES,
    witnesses: [{ key: (await NO_WITNESSES.signer()).key, url: "https://w.example" }],
    ask: async (url: string) => {
      asked.push(url);
      return { failed: "source_timeout" as const };
    },
  };
  const offer = () =>
    Promise.all(
      begunJobs(witnessJobs({ ...ctx, witness }).jobs, { ...ctx, witness }).map(({ run }) => run()),
    );
  jest.advanceTimersByTime(10_000);
  await runs(1);
  expect(ctx.reader.log.newestCheckpoint()).toBeNull();

  await anchor(ctx);
  await offer();
  expect(asked).toEqual([]);

  await markRestored(ctx, { acknowledgedAt: ctx.clock.now });
  await offer();
  expect(asked).toEqual(["https://w.example/add-checkpoint"]);
  warrantIn(await open(stage, stage.operator));
  jest.advanceTimersByTime(10_000);
  await runs(2);
  expect(ctx.reader.log.newestCheckpoint()?.number).toBe(2);
  expect(await runJobByHand("anchor", ctx)).toBe(0);
});

/** A warrant that waits for a person: its id. */
async function escalate(): Promise<string> {
  const stage = await createStage(ctx);
  const { id } = warrantIn(await open(stage, stage.operator, { spec: { clauses: [FAILS] } }));
  expect(warrantIn(await verify(stage, stage.operator, id)).state).toBe("escalated");
  return id;
}

/** The reminders in the log. */
const reminders = (): readonly Json[] =>
  printed.mock.calls
    .map((call: unknown[]) => JSON.parse(String(call[0])))
    .filter(({ message }: Json) => message === "an escalation waits");

test("reminders by hand name every escalation that has waited for a day, each time", async () => {
  const id = await escalate();
  expect(await JOBS.reminders(ctx)).toBe(0);
  ctx.clock.now += 3 * 86_400_000;
  expect([await JOBS.reminders(ctx), await JOBS.reminders(ctx)]).toEqual([1, 1]);
  expect(reminders()).toMatchObject(Array(2).fill({ level: "warning", warrant_id: id, waiting_hours: 72 }));
});

test("nobody is reminded of a restored ledger's escalations before that is acknowledged", async () => {
  const id = await escalate();
  ctx.clock.now += 3 * 86_400_000;
  await markRestored(ctx);
  expect(await runJobByHand("reminders", ctx)).toMatchObject({ refused: "restore_unacknowledged" });
  const { figure } = operate(ctx, []);
  const runs = (count: number) =>
    becomes(() => figure('holdfast_job_runs_total{job="reminders"}'), `${count}`);
  jest.advanceTimersByTime(10_000);
  await runs(1);
  expect(reminders()).toEqual([]);

  await markRestored(ctx, { acknowledgedAt: ctx.clock.now });
  jest.advanceTimersByTime(600_000);
  await runs(2);
  expect(reminders()).toMatchObject([{ warrant_id: id }]);
  expect(await runJobByHand("reminders", ctx)).toBe(1);
});

test("nobody is mailed of a restored ledger's escalations before that is acknowledged", async () => {
  const { notices, sent } = createTelling();
  Object.assign(ctx, { notices });
  await escalate();
  await markRestored(ctx);
  const { figure } = operate(ctx, []);
  const runs = async (count: number) => {
    jest.advanceTimersByTime(1_000);
    await becomes(() => figure('holdfast_job_runs_total{job="notices"}'), `${count}`);
    await attemptsOf(notices);
  };
  await runs(1);
  await runs(2);
  expect(sent()).toEqual([]);

  await markRestored(ctx, { acknowledgedAt: ctx.clock.now });
  await runs(3);
  await runs(4);
  expect(sent().map(({ subject }) => subject)).toContain("0.0001 USDC waits for your decision");
});
