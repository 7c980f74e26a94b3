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
import type { Party } from "../core/places.ts";
import type { SigstoreIdentity } from "../core/source-key.ts";
import type { ChildAnswer, ChildRequest } from "./evaluator-child.ts";
import { claimFor, EvaluatorMemory, MEMORY_WAIT_MS } from "./evaluator-memory.ts";
import {
  EvaluatorBusy,
  EvaluatorPool,
  EvaluatorUnavailable,
  type PoolChild,
  type PoolOptions,
  type PoolStats,
} from "./evaluator-pool.ts";
import type { BundleQuestion } from "./sigstore.ts";

export type EvaluatorOptions = {
  /** The command that starts a child: this executable, with the hidden argument that calls `runEvaluatorChild`. */
  readonly command: readonly string[];
  readonly clauseTimeoutMs: number;
  /** The time for all clauses of one evaluation, from when it has a child. No limit by default. */
  readonly runTimeoutMs?: number;
  /** How long to wait for a free child, before `EvaluatorBusy`. `runTimeoutMs` may end the wait earlier. */
  readonly waitTimeoutMs: number;
} & Partial<Omit<PoolOptions, "command">>;

export type EvaluationRequest = {
  readonly clauses: readonly Clause[];
  readonly evidence: Evidence;
  /** The schemas that the clauses name. Others are ignored. */
  readonly schemas: Schemas;
  /** Epoch ms. */
  readonly now: number;
  /** Who asks: each may hold only a share of the children and of the memory, and live comes before sandbox. */
  readonly party: Party;
};

export type Evaluator = {
  /**
   * The result of every clause, in order. A clause that takes too long or too much memory, or that crashes its process, fails
   * with `clause_timeout`. Rejects with `EvaluatorUnavailable` where nothing could be evaluated, so that nothing is decided;
   * with `EvaluatorBusy` where a retry may find a free child, or the memory that others use.
   */
  evaluate(request: EvaluationRequest): Promise<Evaluation>;
  /** `parseSchema` off the main thread: a large schema takes most of a second to compile. Rejects as `evaluate` does. */
  parseSchema(schema: unknown): Promise<{ readonly schema: JsonSchema } | Refusal>;
  /**
   * Who has signed a Sigstore bundle, off the main thread: a few hostile bytes keep its parser busy for hours. Null where nobody
   * has, or where verifying took too long. Rejects as `evaluate` does.
   *
   * @param root the text of a trusted root that `createSigstoreVerifier` takes
   */
  verifyBundle(root: string, question: BundleQuestion, party: Party): Promise<SigstoreIdentity | null>;
  /** Starts the children that are kept warm. Before that, work starts a child when it comes. */
  warmUp(): void;
  stats(): PoolStats;
  /** Ends the children. Evaluations that are under way reject with `EvaluatorUnavailable`. */
  close(): void;
};

/** There may be more children than cores: they run at a low priority. */
const SIZE_MAX = Math.min(32, Math.max(4, 4 * availableParallelism()));

const POOL_DEFAULTS = {
  size: 2,
  sizeMax: SIZE_MAX,
  queueMax: 256,
  idleMs: 10_000,
} as const;

/** How long a child may take to receive a body and read it. The worst 10 MiB take 3 s. */
const BEGIN_TIMEOUT_MS = 10_000;
/** After this many clauses that ended a child, all others fail too. Otherwise 64 hostile clauses would take a minute. */
const LOST_CHILDREN_MAX = 3;
/** An answer may have come in time while this process was too busy to read it. So a child gets this much longer. */
const LATE_ANSWER_MS = 20;

/** Evaluates in child processes: a hostile pattern, path or document holds up nobody else, and its process can be ended. */
export function createEvaluator(options: EvaluatorOptions): Evaluator {
  const memory = options.memory ?? new EvaluatorMemory();
  const pool = new EvaluatorPool({ ...POOL_DEFAULTS, ...options, memory });
  return {
    evaluate: (request) => evaluateIn(pool, memory, options, request),
    async parseSchema(schema) {
      const answered = await askOnce({ pool, memory, options }, SCHEMAS, 0, { ask: "schema", schema });
      return answered?.say === "schema"
        ? answered.outcome
        : refuseField("schema", "takes too long to compile");
    },
    async verifyBundle(root, { body, ...question }, party) {
      const asked = { ...question, body: ownBytes(body) };
      const request = { ask: "bundle", root, question: asked } as const;
      const answered = await askOnce({ pool, memory, options }, party, body.length, request);
      return answered?.say === "bundle" ? answered.signer : null;
    },
    warmUp: () => pool.warmUp(),
    stats: () => pool.stats(),
    close: () => pool.close(),
  };
}

async function evaluateIn(
  pool: EvaluatorPool,
  memory: EvaluatorMemory,
  options: EvaluatorOptions,
  request: EvaluationRequest,
): Promise<Evaluation> {
  const { clauses, evidence, schemas, now } = request;
  const results: (ClauseResult | undefined)[] = clauses.map((clause) =>
    needsDocument(clause, evidence) ? undefined : evaluateClause(clause, evidence, schemas, now),
  );
  if (evidence.reached && results.includes(undefined)) {
    const begun = await withMemory(memory, evidence.body.length, request.party, (claimed) =>
      evaluateInChildren(pool, options, { ...request, evidence }, claimed, results),
    );
    // No clause is to blame for a child that never came to the first one.
    if (!begun) throw new EvaluatorUnavailable("no child began to evaluate");
  }
  const details = clauses.map((clause, index) => results[index] ?? resultOf(clause, "clause_timeout"));
  return summarise(details, evidenceHashOf(evidence), now);
}

/** Does work with memory for the evaluation of a body. Rejects with `EvaluatorBusy` where none is free in time. */
async function withMemory<Result>(
  { budget }: EvaluatorMemory,
  bodyBytes: number,
  { organisationId, mode }: Party,
  work: (claimedBytes: number) => Promise<Result>,
): Promise<Result> {
  const bytes = claimFor(bodyBytes);
  const asked = { bytes, party: organisationId, live: mode === "live" };
  const claim = await budget.claimWithin(asked, MEMORY_WAIT_MS);
  if (!claim) throw new EvaluatorBusy("other evaluations use all memory");
  try {
    return await work(bytes);
  } finally {
    claim.end();
  }
}

/**
 * Fills the gaps in `results`. A gap that is left ran out of time. Answers false where the last child never began: then nothing
 * is known of the clauses that were left to it.
 */
async function evaluateInChildren(
  pool: EvaluatorPool,
  options: EvaluatorOptions,
  request: EvaluationRequest & { readonly evidence: ReachedEvidence },
  claimedBytes: number,
  results: (ClauseResult | undefined)[],
): Promise<boolean> {
  const { clauses, evidence, now } = request;
  let endsAt: number | null = null;
  let begun = false;
  for (let lost = 0; lost < LOST_CHILDREN_MAX && results.includes(undefined); lost++) {
    const child = await childBefore(pool, options, request.party, endsAt);
    if (child === null) break;
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
    const limits = { ...options, endsAt, claimedBytes };
    const end = await exchange(pool, child, ask, limits, asked.length, (answer, position) => {
      const at = open[position];
      if (at && answer.say === "clause")
        results[at.index] = resultOf(at.clause, answer.code, answer.observed);
    });
    // A body that takes too much memory when it is read does so every time: that is a verdict on all that read it.
    if (!end.begun && end.endedFor === "memory") return true;
    const isOver = performance.now() >= endsAt;
    // What is open because the last child never began has no verdict, unless the run's time is over.
    begun = end.begun || (begun && isOver);
    const unfinished = open[end.answered];
    if (end.begun && unfinished) results[unfinished.index] ??= resultOf(unfinished.clause, "clause_timeout");
    if (isOver) break;
  }
  return begun;
}

/** A free child; null where the run's time ends before one is free. */
async function childBefore(
  pool: EvaluatorPool,
  { waitTimeoutMs }: EvaluatorOptions,
  party: Party,
  endsAt: number | null,
): Promise<PoolChild | null> {
  if (endsAt === null) return pool.acquire(party, waitTimeoutMs);
  try {
    // A timer may fire a little early. One more millisecond ensures that the run's time is really over.
    return await pool.acquire(party, Math.min(waitTimeoutMs, endsAt - performance.now() + 1));
  } catch (error) {
    if (performance.now() >= endsAt && !pool.isClosed) return null;
    throw error;
  }
}

/** Copies bytes that are a part of a larger buffer: otherwise the whole buffer would be sent to the child. */
const ownBytes = (bytes: Uint8Array): Uint8Array =>
  bytes.length === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);

const named = (schemas: Schemas, clauses: readonly Clause[]): Schemas =>
  Object.fromEntries(
    schemaNamesOf(clauses).flatMap((name) => {
      const schema = Object.hasOwn(schemas, name) ? schemas[name] : undefined;
      return schema ? [[name, schema]] : [];
    }),
  );

/** Schemas are registered by administrators, whoever they are, so they share as one party. */
const SCHEMAS: Party = { organisationId: "schemas", mode: "sandbox" };

/** Asks a child one thing; null where its answer took too long or too much memory. */
const askOnce = (
  { pool, memory, options }: { pool: EvaluatorPool; memory: EvaluatorMemory; options: EvaluatorOptions },
  party: Party,
  bodyBytes: number,
  request: ChildRequest,
): Promise<ChildAnswer | null> =>
  withMemory(memory, bodyBytes, party, async (claimedBytes) => {
    const child = await pool.acquire(party, options.waitTimeoutMs);
    let answered: ChildAnswer | null = null;
    const limits = { ...options, endsAt: Number.POSITIVE_INFINITY, claimedBytes };
    await exchange(pool, child, request, limits, 1, (answer) => {
      answered = answer;
    });
    return answered;
  });

type Limits = {
  readonly clauseTimeoutMs: number;
  readonly endsAt: number;
  readonly claimedBytes: number;
};
type End = {
  readonly begun: boolean;
  readonly answered: number;
  readonly endedFor: PoolChild["endedFor"];
};

/**
 * Sends a request, receives `count` answers, and gives the child back. Resolves when all have come, or when the child has
 * ended. Rejects with `EvaluatorUnavailable` where it ended because the pool was closed or somebody killed it, as the system does
 * when it has no memory left; with `EvaluatorBusy` where others needed its memory. No clause is to blame then.
 */
async function exchange(
  pool: EvaluatorPool,
  child: PoolChild,
  request: ChildRequest,
  limits: Limits,
  count: number,
  onAnswer: (answer: ChildAnswer, position: number) => void,
): Promise<End> {
  child.claimedBytes = limits.claimedBytes;
  const end = await receiveAnswers(child, request, limits, count, onAnswer);
  pool.release(child);
  if (end.answered === count) return end;
  if (pool.isClosed) throw new EvaluatorUnavailable("closed");
  if (end.endedFor === "outside") throw new EvaluatorUnavailable("the child was killed from outside");
  if (end.endedFor === "displaced") throw new EvaluatorBusy("all evaluations together use too much memory");
  return end;
}

/** Each answer has a time limit. A child that exceeds it is killed. */
function receiveAnswers(
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
      resolve({ begun, answered, endedFor: child.endedFor });
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
