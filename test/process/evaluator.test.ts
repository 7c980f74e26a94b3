import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { reachedEvidence, unreachedEvidence } from "../../src/core/clauses/evidence.ts";
import type { Clause } from "../../src/core/clauses/registry.ts";
import type { JsonSchema, Schemas } from "../../src/core/clauses/schema.ts";
import type { Party } from "../../src/core/places.ts";
import type { Mode } from "../../src/core/roles.ts";
import { createEvaluator, type Evaluator, type EvaluatorOptions } from "../../src/platform/evaluator.ts";
import {
  claimFor,
  EvaluatorMemory,
  MEMORY_LIMITS,
  type MemoryLimits,
} from "../../src/platform/evaluator-memory.ts";
import { EvaluatorBusy, EvaluatorUnavailable } from "../../src/platform/evaluator-pool.ts";
import { benchSchemas } from "../../src/resources/bench-schemas.ts";
import { evaluate } from "../support/evaluate.ts";
import { until } from "../support/until.ts";
import { waitsFor } from "../support/waits.ts";

const MAIN = join(import.meta.dir, "../support/evaluator-main.ts");
const COMMAND = [process.execPath, MAIN];
const NOW = Date.parse("2026-03-01T12:00:00Z");
const MIB = 1024 * 1024;
/** A time limit longer than any test. */
const MINUTE_MS = 60_000;

const LIMITS = { clauseTimeoutMs: 1_000, waitTimeoutMs: MINUTE_MS };

const evaluators: Evaluator[] = [];
afterAll(() => {
  for (const evaluator of evaluators) evaluator.close();
});

function evaluatorOf(options: Partial<EvaluatorOptions> = {}): Evaluator {
  const evaluator = createEvaluator({
    command: COMMAND,
    ...LIMITS,
    size: 1,
    sizeMax: 2,
    ...options,
  });
  evaluators.push(evaluator);
  evaluator.warmUp();
  return evaluator;
}

/** A child with a program of the test: it may lie, hang or crash. */
const childOf = (onMessage: string): string[] => [
  process.execPath,
  "-e",
  `process.on("message", (request) => { ${onMessage} }); process.send({ say: "ready" });`,
];

const json = (value: unknown) =>
  reachedEvidence({
    status: 200,
    body: new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value)),
  });
const liveOf = (organisationId: string): Party => ({ organisationId, mode: "live" });
const work = (clauses: readonly Clause[], value: unknown, schemas: Schemas = benchSchemas) => ({
  party: liveOf("acme"),
  clauses,
  evidence: json(value),
  schemas,
  now: NOW,
});

/** Nested filters that look at every item for every item: 3,000 items take 27 billion steps. */
const EXPLOSION: Clause = {
  kind: "json.jsonpath",
  path: "$[?count($[?count($[?@.id > 1]) > 1]) > 1]",
  equals: 1,
};
/** Looks at every pair of items: that takes some time, but is within the limit. */
const PAIRS: Clause = { kind: "json.jsonpath", path: "$[?count($[?@.id > 1]) > 1]" };
const ITEMS = Array.from({ length: 3_000 }, (_, id) => ({ id }));
/** Makes a list of all nodes below for every item, and so garbage faster than it is collected. */
const HUNGRY: Clause = { kind: "json.jsonpath", path: "$[?count($..*) > 4]", equals: 5 };
const object: Clause = { kind: "json.schema", schema: "object" };
const array: Clause = { kind: "json.schema", schema: "array" };
const status200: Clause = { kind: "http.status", equals: 200 };

/** A tree of references that doubles at each of 40 levels. */
const DOUBLING: JsonSchema = {
  $defs: Object.fromEntries(
    Array.from({ length: 40 }, (_, level) => {
      const below = { $ref: `#/$defs/level${level - 1}` };
      return [`level${level}`, level === 0 ? { minLength: 0 } : { allOf: [below, below] }];
    }),
  ),
  not: { $ref: "#/$defs/level39" },
};

const elapsed = async <T>(promise: Promise<T>): Promise<[T, number]> => {
  const started = performance.now();
  return [await promise, performance.now() - started];
};
const codes = (evaluation: { details: readonly { reason_code: string | null }[] }) =>
  evaluation.details.map((detail) => detail.reason_code);

describe("an evaluation", () => {
  const evaluator = evaluatorOf();

  test("has the same result whether the server or a child evaluates a clause", async () => {
    const clauses: Clause[] = [
      status200,
      array,
      object,
      { kind: "json.jsonpath", path: "$.list[1]", equals: { a: null } },
      { kind: "json.jsonpath", path: "$.missing" },
      { kind: "json.schema", schema: "unknown" },
      { kind: "data.freshness", maxAgeSeconds: 60 },
      { kind: "file.sha256", digest: "0".repeat(64) },
      { kind: "llm.judge", rubric: "good?", minScore: 0.5 },
    ];
    for (const value of [
      { list: [1, { a: null }], generated_at: "2026-03-01T11:59:30Z" },
      "not json",
      [],
      "",
    ]) {
      const request = work(clauses, value);
      expect(await evaluator.evaluate(request)).toEqual(
        evaluate(clauses, request.evidence, benchSchemas, NOW),
      );
    }
    const evidence = unreachedEvidence("source_timeout");
    const request = { ...work(clauses, null), evidence };
    expect(await evaluator.evaluate(request)).toEqual(evaluate(clauses, evidence, benchSchemas, NOW));
  });

  test("sends no bytes but the body's, though it is a view of a larger buffer", async () => {
    const buffer = new TextEncoder().encode('secret{"a":1}secret');
    const evidence = reachedEvidence({ body: buffer.subarray(6, 13) });
    const clauses: Clause[] = [{ kind: "json.jsonpath", path: "$.a", equals: 1 }];
    expect((await evaluator.evaluate({ ...work(clauses, null), evidence })).passed).toBe(true);
  });

  test("uses the schema of the request's hash, not another of that name", async () => {
    const named = (hash: string, schema: JsonSchema): Schemas => ({ mine: { hash, schema } });
    const clause: Clause = { kind: "json.schema", schema: "mine" };
    expect((await evaluator.evaluate(work([clause], {}, named("1", { type: "object" })))).passed).toBe(true);
    expect((await evaluator.evaluate(work([clause], {}, named("2", { type: "array" })))).passed).toBe(false);
  });

  test("takes a body of 10 MiB", async () => {
    const text = JSON.stringify(Array.from({ length: 150_000 }, (_, id) => ({ id, text: "x".repeat(45) })));
    expect(text.length).toBeGreaterThan(9_500_000);
    const evaluation = await evaluator.evaluate(
      work([{ kind: "json.jsonpath", path: "$[149999].id", equals: 149_999 }], text),
    );
    expect(evaluation.passed).toBe(true);
  });

  test("fails a clause over a document that is too deep, and the process goes on", async () => {
    const deep = `${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}`;
    const before = evaluator.stats().processIds;
    const evaluation = await evaluator.evaluate(work([{ kind: "json.jsonpath", path: "$..a" }, array], deep));
    expect(codes(evaluation)).toEqual(["body_not_json", "body_not_json"]);
    expect(before.length).toBeGreaterThan(0);
  });

  // Only Linux has it.
  test.skipIf(!existsSync("/proc/self/oom_score_adj"))(
    "is ended before any other process where the system has no memory left",
    async () => {
      await evaluator.evaluate(work([object], {}));
      const scores = evaluator
        .stats()
        .processIds.map((processId) => readFileSync(`/proc/${processId}/oom_score_adj`, "utf8").trim());
      expect([scores.length > 0, new Set(scores)]).toEqual([true, new Set(["1000"])]);
    },
  );

  test("gets nothing of the server's environment, and no folder of its", async () => {
    const program =
      'process.send({ say: "begun" }); process.send({ say: "clause", code: null, observed: [process.env, process.cwd()] });';
    const evaluation = await evaluatorOf({ command: childOf(program) }).evaluate(work([object], {}));
    expect(evaluation.details[0]?.observed).toEqual([{ BUN_JSC_forceRAMSize: "134217728" }, "/"]);
  });
});

describe("a clause that takes too long", () => {
  test.each<[string, Clause, unknown, Schemas]>([
    ["a JSONPath that explodes", EXPLOSION, ITEMS, {}],
    [
      "a schema that doubles",
      { kind: "json.schema", schema: "d" },
      "x",
      { d: { hash: "d", schema: DOUBLING } },
    ],
  ])("%s is clause_timeout, and the rest is evaluated", async (_, hostile, value, schemas) => {
    const evaluator = evaluatorOf({ clauseTimeoutMs: 300 });
    const first: Clause = { kind: "json.jsonpath", path: "$" };
    const request = work([first, hostile, status200, first], value === "x" ? '"x"' : value, schemas);
    const [evaluation, durationMs] = await elapsed(evaluator.evaluate(request));
    expect(codes(evaluation)).toEqual([null, "clause_timeout", null, null]);
    expect(evaluation.score).toBe(0.75);
    // A timer may fire a little early. Without the limit both would take minutes.
    expect(durationMs).toBeGreaterThan(295);
  });

  test("is killed: its process is gone, and another takes its place", async () => {
    const evaluator = evaluatorOf({ clauseTimeoutMs: 200 });
    await evaluator.evaluate(work([object], {}));
    const [killed] = evaluator.stats().processIds;
    await evaluator.evaluate(work([EXPLOSION], ITEMS));
    expect(evaluator.stats().processIds).not.toContain(killed as number);
    expect(evaluator.stats().restarts).toBe(1);
    expect((await evaluator.evaluate(work([object], {}))).passed).toBe(true);
  });

  test("costs three processes at most: 64 of them do not take a minute", async () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-asked-"));
    const asked = join(folder, "asked");
    // Each child that gets a request writes a file, and hangs.
    const hang = `require("node:fs").appendFileSync(${JSON.stringify(asked)}, "x"); process.send({ say: "begun" });`;
    const evaluator = evaluatorOf({ clauseTimeoutMs: 50, command: childOf(hang) });
    const clauses = [...Array<Clause>(63).fill(array), status200];
    const evaluation = await evaluator.evaluate(work(clauses, ITEMS));
    const marks = readFileSync(asked, "utf8");
    rmSync(folder, { recursive: true });
    expect(codes(evaluation)).toEqual([...Array<string>(63).fill("clause_timeout"), null as never]);
    expect(evaluation.reasonCodes).toEqual(["clause_timeout"]);
    expect(marks).toBe("xxx");
  });

  test("ends the run where the whole run has a limit", async () => {
    const evaluator = evaluatorOf({ clauseTimeoutMs: MINUTE_MS, runTimeoutMs: 300 });
    await evaluator.evaluate(work([object], {}));
    const [evaluation, durationMs] = await elapsed(
      evaluator.evaluate(work([array, EXPLOSION, array, status200], ITEMS)),
    );
    // This is less than one clause may take. If the run did not end, the test would time out.
    expect(codes(evaluation)).toEqual([null, "clause_timeout", "clause_timeout", null]);
    expect(durationMs).toBeGreaterThan(250);
  });

  test("ends the run where no child is free for the rest of it", async () => {
    const evaluator = evaluatorOf({ sizeMax: 1, clauseTimeoutMs: 400, runTimeoutMs: 600 });
    const clauses = [EXPLOSION, EXPLOSION, EXPLOSION];
    // After 400 ms the second run gets the only child, and keeps it until both runs have ended.
    const runs = await Promise.all([1, 2].map(() => evaluator.evaluate(work(clauses, ITEMS))));
    for (const run of runs) expect(run.reasonCodes).toEqual(["clause_timeout"]);
  });
});

describe("a process that fails", () => {
  test("by crashing on a clause: that clause is clause_timeout, and the rest is evaluated", async () => {
    const onMessage = `
      process.send({ say: "begun" });
      for (const clause of request.clauses) {
        if (clause.schema === "crash") process.exit(1);
        process.send({ say: "clause", code: null, observed: null });
      }`;
    const evaluator = evaluatorOf({ command: childOf(onMessage) });
    const crash: Clause = { kind: "json.schema", schema: "crash" };
    expect(codes(await evaluator.evaluate(work([object, crash, object], {})))).toEqual([
      null,
      "clause_timeout",
      null,
    ]);
  });

  test("by crashing on each clause: every clause is clause_timeout, and nothing hangs", async () => {
    const evaluator = evaluatorOf({
      command: childOf('process.send({ say: "begun" }, () => process.exit(1));'),
    });
    const evaluation = await evaluator.evaluate(work([object, object, array], {}));
    expect(codes(evaluation)).toEqual(Array<string>(3).fill("clause_timeout"));
  });

  test("by crashing before it has begun, each time: there is no verdict", async () => {
    const evaluator = evaluatorOf({ command: childOf("process.exit(1);") });
    expect(evaluator.evaluate(work([object, object, array, status200], {}))).rejects.toThrow(
      "no child began to evaluate",
    );
  });

  test("by hanging before it has begun: there is no verdict either", async () => {
    const evaluator = evaluatorOf({ command: childOf(""), runTimeoutMs: 300 });
    expect(evaluator.evaluate(work([object, status200], {}))).rejects.toThrow("no child began to evaluate");
  });

  test("by crashing before it has begun with what another child was lost on: there is no verdict either", async () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-lost-"));
    // Only the first child that is asked begins. All of them end.
    const program = `
      try {
        require("node:fs").writeFileSync(${JSON.stringify(join(folder, "asked"))}, "", { flag: "wx" });
        process.send({ say: "begun" }, () => process.exit(1));
      } catch {
        process.exit(1);
      }`;
    const evaluator = evaluatorOf({ command: childOf(program) });
    const evaluating = evaluator.evaluate(work([array, object, status200], {}));
    expect(await evaluating.catch((error) => error)).toBeInstanceOf(EvaluatorUnavailable);
    rmSync(folder, { recursive: true });
  });

  const memoryOf = (limits: Partial<MemoryLimits>) => new EvaluatorMemory({ ...MEMORY_LIMITS, ...limits });

  test("by using more memory than an evaluation may: that clause is clause_timeout, and the rest is evaluated", async () => {
    const memory = memoryOf({ ownBytesMax: () => 60 * MIB });
    const evaluator = evaluatorOf({ clauseTimeoutMs: 20_000, memory });
    const [evaluation, durationMs] = await elapsed(
      evaluator.evaluate(work([object, HUNGRY, array], Array(300_000).fill({}))),
    );
    expect(codes(evaluation)).toEqual(["schema_mismatch", "clause_timeout", null]);
    expect(durationMs).toBeLessThan(15_000);
  }, 20_000);

  test("by using too much memory to read a body: that is a verdict at once, the same each time", async () => {
    const evaluator = evaluatorOf({ clauseTimeoutMs: 20_000, memory: memoryOf({ ownBytesMax: () => 1 }) });
    const evaluation = await evaluator.evaluate(work([object, status200, array], Array(1_000_000).fill({})));
    expect(codes(evaluation)).toEqual(["clause_timeout", null, "clause_timeout"]);
    expect(evaluator.stats().restarts).toBe(1);
  });

  test("because all together use too much memory: there is no verdict, and a retry may pass", async () => {
    const evaluator = evaluatorOf({
      clauseTimeoutMs: 20_000,
      memory: memoryOf({ bytesMax: 45 * MIB, liveBytes: 0 }),
    });
    // It claims less than there is, and uses more.
    const running = evaluator.evaluate(work([HUNGRY], Array(100_000).fill({})));
    expect(await running.catch((error) => error)).toBeInstanceOf(EvaluatorBusy);
    expect(codes(await evaluator.evaluate(work([array], [])))).toEqual([null]);
  }, 20_000);

  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "does not end by %s, which only its parent obeys",
    async (signal) => {
      const evaluator = evaluatorOf({ clauseTimeoutMs: 20_000 });
      await evaluator.evaluate(work([object], {}));
      const running = evaluator.evaluate(work([PAIRS, PAIRS, object], ITEMS.slice(0, 500)));
      await until("a child has the clauses", () => evaluator.stats().busy === 1);
      for (const processId of evaluator.stats().processIds) process.kill(processId, signal);
      expect(codes(await running)).toEqual([null, null, "schema_mismatch"]);
      expect(evaluator.stats().restarts).toBe(0);
    },
  );

  test("by being killed from outside, as where the system has no memory left: there is no verdict", async () => {
    const evaluator = evaluatorOf({ clauseTimeoutMs: 20_000 });
    await evaluator.evaluate(work([object], {}));
    const running = evaluator.evaluate(work([EXPLOSION, array], ITEMS));
    await until("a child has the clauses", () => evaluator.stats().busy === 1);
    // Long enough for it to begin with them. Only the pool hears when it does.
    await Bun.sleep(50);
    for (const processId of evaluator.stats().processIds) process.kill(processId, "SIGKILL");
    const error = await running.catch((error) => error);
    expect([error instanceof EvaluatorUnavailable, error instanceof EvaluatorBusy]).toEqual([true, false]);
  });

  test.each([["/nonexistent/executable"], ["/bin/false"]])(
    "by not starting (%s): nothing is decided",
    async (command) => {
      const evaluator = evaluatorOf({ command: [command] });
      for (let attempt = 0; attempt < 2; attempt++)
        expect(evaluator.evaluate(work([object], {}))).rejects.toThrow(EvaluatorUnavailable);
      expect((await evaluator.evaluate(work([status200], {}))).passed).toBe(true);
    },
  );
});

describe("the pool", () => {
  test("has no child before its warm-up, and serves work that comes earlier", async () => {
    const evaluator = createEvaluator({ command: COMMAND, ...LIMITS, size: 2, sizeMax: 4 });
    evaluators.push(evaluator);
    expect(evaluator.stats().size).toBe(0);
    expect((await evaluator.evaluate(work([object], {}))).passed).toBe(true);
    expect(evaluator.stats()).toMatchObject({ size: 1, restarts: 0 });
    evaluator.warmUp();
    expect(evaluator.stats().size).toBe(2);
    evaluator.warmUp();
    expect(evaluator.stats().size).toBe(2);
  });

  test("that is closed does not warm up", () => {
    const evaluator = createEvaluator({ command: COMMAND, ...LIMITS, size: 2, sizeMax: 4 });
    evaluator.close();
    evaluator.warmUp();
    expect(evaluator.stats().size).toBe(0);
  });

  test("does not let other callers wait for one whose clauses use up their time", async () => {
    const evaluator = evaluatorOf({ size: 2, sizeMax: 4, clauseTimeoutMs: MINUTE_MS });
    await Promise.all([1, 2].map(() => evaluator.evaluate(work([object], {}))));
    const burning = Array.from({ length: 6 }, () =>
      evaluator.evaluate({ ...work([EXPLOSION], ITEMS), party: liveOf("hostile") }),
    );
    const innocents = Array.from({ length: 20 }, (_, index) =>
      evaluator.evaluate({ ...work([object], { index }), party: liveOf(`innocent ${index}`) }),
    );
    for (const evaluation of await Promise.all(innocents)) expect(evaluation.passed).toBe(true);
    // Nobody waited for that caller: all six of its evaluations still run, or wait.
    const { busy, waiting } = evaluator.stats();
    expect([busy === 1 || busy === 2, busy + waiting]).toEqual([true, 6]);
    evaluator.close();
    await Promise.allSettled(burning);
  });

  test("serves live before sandbox, whoever came first", async () => {
    const evaluator = evaluatorOf({ size: 1, sizeMax: 1, clauseTimeoutMs: MINUTE_MS });
    await evaluator.evaluate(work([object], {}));
    const served: string[] = [];
    const evaluate = async (mode: Mode, organisationId: string) => {
      await evaluator.evaluate({ ...work([object], {}), party: { organisationId, mode } });
      served.push(`${mode} ${organisationId}`);
    };
    await Promise.all([
      evaluate("sandbox", "first"),
      ...["many", "many", "many"].map((name) => evaluate("sandbox", name)),
      evaluate("sandbox", "other"),
      evaluate("live", "late"),
    ]);
    expect(served).toEqual([
      ...["sandbox first", "live late"],
      ...["sandbox many", "sandbox other", "sandbox many", "sandbox many"],
    ]);
  });

  test("gives back the place of each, also where a child goes straight on to one that waited for another", async () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-evaluator-"));
    // Only the first child ever starts, and its work takes a while.
    const program = `
      process.on("message", (request) => setTimeout(() => {
        process.send({ say: "begun" });
        for (const _ of request.clauses) process.send({ say: "clause", code: null, observed: null });
      }, 50));
      try {
        require("node:fs").writeFileSync(${JSON.stringify(join(folder, "started"))}, "", { flag: "wx" });
        process.send({ say: "ready" });
      } catch {}`;
    const evaluator = evaluatorOf({ command: [process.execPath, "-e", program], waitTimeoutMs: 5_000 });
    const evaluateFor = async (organisationId: string) =>
      (await evaluator.evaluate({ ...work([object], {}), party: liveOf(organisationId) })).passed;
    await evaluateFor("a");
    for (let round = 0; round < 3; round++)
      expect(await Promise.all([evaluateFor("a"), evaluateFor("b")])).toEqual([true, true]);
    evaluator.close();
    rmSync(folder, { recursive: true });
  });

  test("never gives the sandbox all children", async () => {
    const evaluator = evaluatorOf({ size: 1, sizeMax: 4, clauseTimeoutMs: MINUTE_MS });
    const burning = ["a", "b", "c", "d"].map((organisationId) =>
      evaluator.evaluate({ ...work([EXPLOSION], ITEMS), party: { organisationId, mode: "sandbox" } }),
    );
    await until("the sandbox has its share", () => evaluator.stats().busy === 2);
    for (const name of ["e", "f"]) {
      const { passed } = await evaluator.evaluate({ ...work([object], {}), party: liveOf(name) });
      expect(passed).toBe(true);
    }
    expect(evaluator.stats()).toMatchObject({ busy: 2, waiting: 2 });
    evaluator.close();
    await Promise.allSettled(burning);
  });

  test("refuses, and decides nothing, when too many wait", async () => {
    const evaluator = evaluatorOf({ size: 1, sizeMax: 1, queueMax: 2, clauseTimeoutMs: 200 });
    const all = Array.from({ length: 5 }, () => evaluator.evaluate(work([EXPLOSION], ITEMS)));
    const settled = await Promise.allSettled(all);
    const rejected = settled.filter((one) => one.status === "rejected");
    expect(rejected.length).toBeGreaterThanOrEqual(2);
    for (const one of rejected) expect(one.reason).toBeInstanceOf(EvaluatorBusy);
    for (const one of settled) if (one.status === "fulfilled") expect(one.value.passed).toBe(false);
  });

  test("refuses, and decides nothing, when an evaluation waits too long; later ones are served", async () => {
    const evaluator = evaluatorOf({ size: 1, sizeMax: 1, clauseTimeoutMs: MINUTE_MS, waitTimeoutMs: 50 });
    // The first child is slow to start.
    const warm = () =>
      evaluator.evaluate(work([object], {})).then(
        () => true,
        () => false,
      );
    while (!(await warm()));
    const burning = evaluator.evaluate(work([EXPLOSION], ITEMS));
    const late = await Promise.allSettled([
      evaluator.evaluate(work([object], {})),
      evaluator.parseSchema({ type: "object" }),
    ]);
    for (const one of late)
      expect([one.status, one.status === "rejected" && one.reason]).toEqual([
        "rejected",
        expect.any(EvaluatorBusy),
      ]);
    expect(evaluator.stats()).toMatchObject({ busy: 1, waiting: 0 });
    for (const processId of evaluator.stats().processIds) process.kill(processId, "SIGKILL");
    await Promise.allSettled([burning]);
  });

  test("is unavailable, not busy, where no child starts in time", async () => {
    const evaluator = evaluatorOf({ command: ["/bin/sleep", "60"], waitTimeoutMs: 50 });
    const [outcome] = await Promise.allSettled([evaluator.evaluate(work([object], {}))]);
    if (outcome.status === "fulfilled") throw new Error("evaluated");
    expect(outcome.reason).toBeInstanceOf(EvaluatorUnavailable);
    expect(outcome.reason).not.toBeInstanceOf(EvaluatorBusy);
  });

  test("lets one caller wait in half of the queue only", async () => {
    const evaluator = evaluatorOf({ size: 1, sizeMax: 1, queueMax: 4, clauseTimeoutMs: 200 });
    const hostile = Array.from({ length: 5 }, () =>
      evaluator.evaluate({ ...work([EXPLOSION], ITEMS), party: liveOf("hostile") }),
    );
    const innocent = evaluator.evaluate({ ...work([object], {}), party: liveOf("innocent") });
    const settled = await Promise.allSettled(hostile);
    expect(settled.filter((one) => one.status === "rejected").length).toBe(2);
    expect((await innocent).passed).toBe(true);
  });

  test("ends the processes it no longer needs, and keeps the warm ones", async () => {
    const evaluator = evaluatorOf({ size: 1, sizeMax: 3, idleMs: 30 });
    await Promise.all(Array.from({ length: 9 }, () => evaluator.evaluate(work([object], {}))));
    await until("the others have ended", () => evaluator.stats().size === 1);
    expect(evaluator.stats()).toMatchObject({ size: 1, busy: 0, waiting: 0, restarts: 0 });
  });

  test("settles everything when it is closed", async () => {
    const evaluator = evaluatorOf({ size: 1, sizeMax: 1, clauseTimeoutMs: 20_000 });
    const all = [1, 2, 3].map(() => evaluator.evaluate(work([EXPLOSION], ITEMS)));
    evaluator.close();
    for (const one of await Promise.allSettled(all)) expect(one).toMatchObject({ status: "rejected" });
    expect(evaluator.evaluate(work([object], {}))).rejects.toThrow(EvaluatorUnavailable);
    expect(evaluator.stats().size).toBe(0);
  });

  test("decides nothing about the clause that a child evaluated when the pool was closed", async () => {
    const begun = 'process.send({ say: "begun" });';
    const evaluator = evaluatorOf({
      size: 2,
      sizeMax: 2,
      clauseTimeoutMs: MINUTE_MS,
      command: childOf(begun),
    });
    const all = [evaluator.evaluate(work([array, object], {})), evaluator.parseSchema({ type: "object" })];
    await until("both are busy", () => evaluator.stats().busy === 2);
    // Long enough for `begun` to arrive. After that, the end of a child counts as the fault of a clause.
    await Bun.sleep(100);
    evaluator.close();
    for (const one of await Promise.allSettled(all))
      expect(one).toMatchObject({ status: "rejected", reason: expect.any(EvaluatorUnavailable) });
  });
});

describe("the memory of all evaluations", () => {
  const SMALL = 1_000;
  const LARGE = 10 * MIB;

  test("lets one document of 10 MiB be evaluated at a time, and a small one of a live warrant beside it", () => {
    const { budget } = new EvaluatorMemory();
    const isGranted = (bytes: number, party: string, live: boolean) =>
      budget.claim({ bytes: claimFor(bytes), party, live })?.isGranted;
    expect([isGranted(LARGE, "a", false), isGranted(SMALL, "b", false)]).toEqual([true, false]);
    expect(isGranted(SMALL, "c", true)).toBe(true);
    expect(claimFor(LARGE) + claimFor(SMALL)).toBeLessThan(MEMORY_LIMITS.bytesMax);
  });

  test("is shared by pools: the one waits for what the other uses", async () => {
    const memory = new EvaluatorMemory();
    const [first, second] = [evaluatorOf({ memory }), evaluatorOf({ memory })];
    await Promise.all([first.evaluate(work([object], {})), second.evaluate(work([object], {}))]);
    const claim = memory.budget.claim({ bytes: claimFor(LARGE), party: "large", live: false });
    const waiting = second.evaluate({
      ...work([object], {}),
      party: { organisationId: "waits", mode: "sandbox" },
    });
    expect(codes(await first.evaluate({ ...work([object], {}), party: liveOf("live") }))).toEqual([null]);
    expect(second.stats().busy).toBe(0);
    claim?.end();
    expect(codes(await waiting)).toEqual([null]);
    expect(memory.budget.heldBytes).toBe(0);
  });

  test("is waited for five seconds, and no longer: then nothing is decided", async () => {
    const memory = new EvaluatorMemory();
    const evaluator = createEvaluator({ command: COMMAND, ...LIMITS, size: 0, memory });
    memory.budget.claim({ bytes: claimFor(LARGE), party: "large", live: false });
    const party: Party = { organisationId: "sandboxed", mode: "sandbox" };
    const evaluating = () => evaluator.evaluate({ ...work([object], {}), party }).catch((error) => error);
    expect(await waitsFor(5_000, evaluating)).toBeInstanceOf(EvaluatorBusy);
    evaluator.close();
  });

  test("is refused, and nothing decided, where too many wait for it", async () => {
    const memory = new EvaluatorMemory({ ...MEMORY_LIMITS, waitingMax: 0 });
    const evaluator = evaluatorOf({ memory });
    memory.budget.claim({ bytes: claimFor(LARGE), party: "large", live: false });
    const party: Party = { organisationId: "sandboxed", mode: "sandbox" };
    const error = await evaluator.evaluate({ ...work([object], {}), party }).catch((error) => error);
    expect(error).toBeInstanceOf(EvaluatorBusy);
    expect(error).toMatchObject({ refused: "rate_limit_exceeded" });
    // What needs no document needs no memory.
    expect(codes(await evaluator.evaluate(work([status200], {})))).toEqual([null]);
  });
});

describe("parseSchema", () => {
  const evaluator = evaluatorOf({ clauseTimeoutMs: 400 });

  test("takes and refuses the same schemas as the server's own process", async () => {
    expect(await evaluator.parseSchema({ type: "object" })).toEqual({ schema: { type: "object" } });
    expect(await evaluator.parseSchema({ type: "strng" })).toMatchObject({ refused: "validation_failed" });
  });

  test("refuses what does not compile in time", async () => {
    const hang = evaluatorOf({ clauseTimeoutMs: 100, command: childOf('process.send({ say: "begun" });') });
    expect(await hang.parseSchema({})).toMatchObject({
      refused: "validation_failed",
      message: "schema: takes too long to compile",
    });
  });
});

describe("the children's lives", () => {
  const script = (rest: string): string => `
    import { createEvaluator } from ${JSON.stringify(join(import.meta.dir, "../../src/platform/evaluator.ts"))};
    import { reachedEvidence } from ${JSON.stringify(join(import.meta.dir, "../../src/core/clauses/evidence.ts"))};
    const evaluator = createEvaluator({ command: ${JSON.stringify(COMMAND)}, ...${JSON.stringify(LIMITS)} });
    const evidence = reachedEvidence({ body: new TextEncoder().encode("{}") });
    const clauses = [{ kind: "json.jsonpath", path: "$" }];
    const party = { organisationId: "acme", mode: "live" };
    const { passed } = await evaluator.evaluate({ party, clauses, evidence, schemas: {}, now: 0 });
    console.log(JSON.stringify({ passed, ids: evaluator.stats().processIds }));
    ${rest}`;
  const spawnParent = (rest: string) =>
    Bun.spawn([process.execPath, "-e", script(rest)], { stdout: "pipe", stderr: "inherit" });
  /** A zombie has ended: only its new parent has not noticed it yet. */
  const isAlive = (processId: number): boolean => {
    try {
      process.kill(processId, 0);
      const status = `/proc/${processId}/status`;
      return !existsSync(status) || !/^State:\s+Z/m.test(readFileSync(status, "utf8"));
    } catch {
      return false;
    }
  };
  const allGone = (ids: readonly number[]) => until("all have ended", () => !ids.some(isAlive));

  test("idle children do not keep the server from exiting, and end with it", async () => {
    const parent = spawnParent("");
    const said = JSON.parse(await new Response(parent.stdout).text());
    expect(await parent.exited).toBe(0);
    expect(said.passed).toBe(true);
    expect(said.ids.length).toBeGreaterThan(0);
    await allGone(said.ids);
  });

  test("they end when the server is killed", async () => {
    const parent = spawnParent("setInterval(() => {}, 1_000);");
    const reader = parent.stdout.getReader();
    const said = JSON.parse(new TextDecoder().decode((await reader.read()).value));
    expect(said.ids.every(isAlive)).toBe(true);
    parent.kill("SIGKILL");
    await parent.exited;
    await allGone(said.ids);
  });
});
