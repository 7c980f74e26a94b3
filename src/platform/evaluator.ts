import { availableParallelism } from "node:os";
import { evaluateClause, needsDocument, resultOf } from "../core/clauses/evaluate.ts";
import {
  type ClauseResult,
  type Evaluation,
  type Evidence,
  evidenceHashOf,
  type ReachedEvidence,
  summarise,
} from "../core/clauses/evidence.ts";
import { type Clause, schemaNamesOf } from "../core/clauses/registry.ts";
import type { JsonSchema, Schemas } from "../core/clauses/schema.ts";
import { type Refusal, refuseField } from "../core/errors.ts";
import type { ChildAnswer, ChildRequest } from "./evaluator-child.ts";
import {
  EvaluatorPool,
  EvaluatorUnavailable,
  type PoolChild,
  type PoolOptions,
  type PoolStats,
} from "./evaluator-pool.ts";

export { EvaluatorBusy, EvaluatorUnavailable } from "./evaluator-pool.ts";

export type EvaluatorOptions = {
  /** What starts a child: the executable again, with the hidden argument that calls `runEvaluatorChild`. */
  readonly command: readonly string[];
  readonly clauseTimeoutMs: number;
  /** For all clauses of one evaluation, from when it gets a child; none by default. */
  readonly runTimeoutMs?: number;
  /** For a free child, then `EvaluatorBusy`; none by default. The run's own limit comes first where it is shorter. */
  readonly waitTimeoutMs?: number;
} & Partial<Omit<PoolOptions, "command">>;

export type EvaluationRequest = {
  readonly clauses: readonly Clause[];
  readonly evidence: Evidence;
  /** Those that the clauses name; others are ignored. */
  readonly schemas: Schemas;
  /** Epoch ms. */
  readonly now: number;
  /** Who asks, for the share of the pool that one caller may hold; without it there is none. */
  readonly callerKey?: string;
};

export type Evaluator = {
  /**
   * Every clause's result, in order. A clause that takes too long, or takes its process down, fails with
   * `clause_timeout`. Rejects with `EvaluatorUnavailable` where nothing could be evaluated: then nothing is decided.
   * It is `EvaluatorBusy` where a retry may find a child free.
   */
  evaluate(request: EvaluationRequest): Promise<Evaluation>;
  /** `parseSchema` off the main thread: a large schema takes most of a second to compile. Rejects as `evaluate`. */
  parseSchema(schema: unknown): Promise<{ readonly schema: JsonSchema } | Refusal>;
  stats(): PoolStats;
  /** Ends the children. What they have not answered yet rejects with `EvaluatorUnavailable`. */
  close(): void;
};

/** More than the cores: those that burn run at a low priority, and one caller has no more than half. */
const SIZE_MAX = Math.min(32, Math.max(4, 4 * availableParallelism()));

const POOL_DEFAULTS = {
  size: 2,
  sizeMax: SIZE_MAX,
  queueMax: 256,
  idleMs: 10_000,
  memoryBytesMax: 1024 * 1024 * 1024,
} as const;

/** Until a child has received a body and read it: 10 MiB take about 0.2 s. */
const BEGIN_TIMEOUT_MS = 5_000;
/** So many clauses of one evaluation may cost a child; the rest fail unseen, or 64 hostile ones would take a minute. */
const LOST_CHILDREN_MAX = 3;
/** An answer may be here already, unread because this process was busy: it gets one more turn. */
const LATE_ANSWER_MS = 20;

/** Evaluates in child processes (architecture.md, Evidence): a hostile pattern, path or document stalls nobody else. */
export function createEvaluator(options: EvaluatorOptions): Evaluator {
  const pool = new EvaluatorPool({ ...POOL_DEFAULTS, ...options });
  return {
    evaluate: (request) => evaluateIn(pool, options, request),
    parseSchema: (schema) => parseSchemaIn(pool, options, schema),
    stats: () => pool.stats(),
    close: () => pool.close(),
  };
}

async function evaluateIn(
  pool: EvaluatorPool,
  options: EvaluatorOptions,
  request: EvaluationRequest,
): Promise<Evaluation> {
  const { clauses, evidence, schemas, now } = request;
  const results: (ClauseResult | undefined)[] = clauses.map((clause) =>
    needsDocument(clause, evidence) ? undefined : evaluateClause(clause, evidence, schemas, now),
  );
  if (evidence.reached && results.includes(undefined))
    await evaluateInChildren(pool, options, { ...request, evidence }, results);
  const details = clauses.map((clause, index) => results[index] ?? resultOf(clause, "clause_timeout"));
  return summarise(details, evidenceHashOf(evidence), now);
}

/** Fills the gaps in `results`; what is still missing afterwards ran out of time. */
async function evaluateInChildren(
  pool: EvaluatorPool,
  options: EvaluatorOptions,
  request: EvaluationRequest & { readonly evidence: ReachedEvidence },
  results: (ClauseResult | undefined)[],
): Promise<void> {
  const { clauses, evidence, now } = request;
  let endsAt: number | null = null;
  for (let lost = 0; lost < LOST_CHILDREN_MAX && results.includes(undefined); lost++) {
    const child = await childBefore(pool, options, request.callerKey ?? null, endsAt);
    if (child === null) return;
    endsAt ??= performance.now() + (options.runTimeoutMs ?? Number.POSITIVE_INFINITY);
    const open = clauses.flatMap((clause, index) =>
      results[index] === undefined ? [{ clause, index }] : [],
    );
    const asked = open.map(({ clause }) => clause);
    const ask: ChildRequest = {
      ask: "evaluate",
      clauses: asked,
      evidence: { ...evidence, body: ownBytes(evidence.body) },
      schemas: named(request.schemas, asked),
      now,
    };
    const limits = { ...options, endsAt };
    const end = await converse(pool, child, ask, limits, asked.length, (answer, position) => {
      const at = open[position];
      if (at && answer.say === "clause")
        results[at.index] = resultOf(at.clause, answer.code, answer.observed);
    });
    const guilty = open[end.answered];
    if (end.begun && guilty) results[guilty.index] ??= resultOf(guilty.clause, "clause_timeout");
    if (performance.now() >= endsAt) return;
  }
}

/** A child, waited for no longer than may be; null where the run's time is up meanwhile. */
async function childBefore(
  pool: EvaluatorPool,
  options: EvaluatorOptions,
  callerKey: string | null,
  endsAt: number | null,
): Promise<PoolChild | null> {
  const { waitTimeoutMs = Number.POSITIVE_INFINITY } = options;
  if (endsAt === null) return pool.acquire(callerKey, waitTimeoutMs);
  try {
    // A timer may be early by a fraction: the millisecond lets the run's time be up when it fires.
    return await pool.acquire(callerKey, Math.min(waitTimeoutMs, endsAt - performance.now() + 1));
  } catch (error) {
    if (performance.now() >= endsAt && !pool.isClosed) return null;
    throw error;
  }
}

/** A view may share its buffer with bytes that are no business of the child's, and all of it would be sent. */
const ownBytes = (bytes: Uint8Array): Uint8Array =>
  bytes.length === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);

const named = (schemas: Schemas, clauses: readonly Clause[]): Schemas =>
  Object.fromEntries(
    schemaNamesOf(clauses).flatMap((name) => {
      const schema = Object.hasOwn(schemas, name) ? schemas[name] : undefined;
      return schema ? [[name, schema]] : [];
    }),
  );

async function parseSchemaIn(
  pool: EvaluatorPool,
  options: EvaluatorOptions,
  schema: unknown,
): Promise<{ readonly schema: JsonSchema } | Refusal> {
  const child = await pool.acquire(null, options.waitTimeoutMs);
  let outcome: { readonly schema: JsonSchema } | Refusal = refuseField("schema", "takes too long to compile");
  const limits = { ...options, endsAt: Number.POSITIVE_INFINITY };
  await converse(pool, child, { ask: "schema", schema }, limits, 1, (answer) => {
    if (answer.say === "schema") outcome = answer.outcome;
  });
  return outcome;
}

type Limits = { readonly clauseTimeoutMs: number; readonly endsAt: number };
type End = { readonly begun: boolean; readonly answered: number };

/**
 * Sends a request, hears `count` answers, and gives the child back. Resolves when all are heard, or when the child is gone;
 * rejects with `EvaluatorUnavailable` where it is gone because the pool was closed: that is no clause's fault.
 */
async function converse(
  pool: EvaluatorPool,
  child: PoolChild,
  request: ChildRequest,
  limits: Limits,
  count: number,
  onAnswer: (answer: ChildAnswer, position: number) => void,
): Promise<End> {
  const end = await hearAnswers(child, request, limits, count, onAnswer);
  pool.release(child);
  if (end.answered < count && pool.isClosed) throw new EvaluatorUnavailable("closed");
  return end;
}

/** Each answer has its own time; who misses it is killed. */
function hearAnswers(
  child: PoolChild,
  request: ChildRequest,
  limits: Limits,
  count: number,
  onAnswer: (answer: ChildAnswer, position: number) => void,
): Promise<End> {
  return new Promise((resolve) => {
    let begun = false;
    let answered = 0;
    let timer: Timer | null = null;
    const finish = (): void => {
      if (timer) clearTimeout(timer);
      child.listener = null;
      resolve({ begun, answered });
    };
    const wait = (timeoutMs: number): void => {
      if (timer) clearTimeout(timer);
      const remainingMs = Math.max(0, Math.min(timeoutMs, limits.endsAt - performance.now()));
      timer = setTimeout(() => {
        timer = setTimeout(() => child.kill(), LATE_ANSWER_MS);
      }, remainingMs);
    };
    child.listener = (answer) => {
      if (answer === null) return finish();
      if (answer.say === "begun") begun = true;
      else onAnswer(answer, answered++);
      if (answered === count) finish();
      else wait(limits.clauseTimeoutMs);
    };
    if (child.state === "gone") return finish();
    wait(BEGIN_TIMEOUT_MS);
    child.send(request);
  });
}
