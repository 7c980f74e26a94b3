import { refuse } from "../../core/errors.ts";
import type { AnyCommand } from "../batch.ts";
import { NewerLedger } from "../sql/ledger-version.ts";
import { type BatchParts, type Committed, LocksMissing, OutcomeUnknown, runBatch } from "./batch-run.ts";
import { ConnectionLost, type Session, type Sessions, sqlStateOf } from "./client.ts";
import { OF_OTHERS, pauseAtRandom, TRIES_MAX } from "./contention.ts";
import { createKeptRows } from "./kept-rows.ts";
import { type LedgerWatch, UnfitFault } from "./ledger-watch.ts";
import { isWithin, type Locks, locksOf, together } from "./locks.ts";
import { outcomeOf } from "./outcome.ts";

/** How many connections write. Commands of one organisation take the same, so they never wait for each other there. */
export const LANES = 4;
/** How many commands share one transaction. */
const BATCH_MAX = 256;
/** How long a command waits at most for others to join its transaction. */
const GATHER_MS_MAX = 4;
/** How long commands are tried while the database cannot be reached. */
const UNREACHABLE_MS_MAX = 5_000;

/** Besides, a row that another has inserted first, and one that another has changed or deleted (`counted` in `write-buffer.ts`). */
const CONTENDED: ReadonlySet<string> = new Set([...OF_OTHERS, "23505", "22012"]);

/** A lock was not free in time, which is 2 s. */
const LOCK_TIMEOUT = "55P03";
/** How long after they came commands are still tried by themselves where they shared a transaction that got no lock. */
const LOCKED_MS_MAX = 10_000;

/** The index by which a key is claimed once. */
const CLAIM = "idempotency_keys_by_key";
const KEY_TAKEN = refuse(
  "idempotency_conflict",
  "Another request claimed this Idempotency-Key at the same time. Retry shortly with the same key.",
);

const CONTENDED_TOO_LONG = refuse(
  "rate_limit_exceeded",
  "Other requests change the same at this moment. Retry shortly with the same Idempotency-Key.",
);

/** What lanes share. */
type OfStore = Omit<BatchParts, "kept" | "watch">;

type Job = {
  readonly command: AnyCommand;
  readonly queuedAt: number;
  readonly resolve: (answer: unknown) => void;
  readonly fail: (error: unknown) => void;
};

/** Figures since the start. */
export type LaneFigures = {
  readonly lanes: number;
  /** Lanes with a transaction under way, and commands that wait. */
  busy: number;
  waiting: number;
  batches: number;
  commands: number;
  retries: number;
  /** Transactions of which nobody could say whether they were committed. */
  undecided: number;
};

/** Group commit: commands of concurrent requests share a transaction. */
export type Lanes = {
  readonly figures: LaneFigures;
  execute(command: AnyCommand): Promise<unknown>;
  /** Does other work on a connection that nothing else uses meanwhile. */
  alone<Result>(work: (session: Session) => Promise<Result>): Promise<Result>;
  /** Commits what is queued. Later commands are refused. */
  close(): Promise<void>;
};

/**
 * @param sessions connections that are verified before they are used
 * @param onCommitted is called when a batch is on disk, before its commands are answered
 */
export function createLanes(
  sessions: Sessions,
  watch: LedgerWatch,
  parts: OfStore,
  onCommitted: (committed: Committed, commands: number, durationMs: number) => void,
): Lanes {
  const figures: LaneFigures = {
    ...{ lanes: LANES, busy: 0, waiting: 0, batches: 0, commands: 0, retries: 0, undecided: 0 },
  };
  const lanes = Array.from({ length: LANES }, (_, at) =>
    createLane(sessions, watch, parts, figures, (committed, commands, durationMs) => {
      if (committed.id !== null) watch.committed(at, committed.id);
      committed.keep();
      onCommitted(committed, commands, durationMs);
    }),
  );
  let closed = false;
  return {
    figures,
    execute: (command) =>
      new Promise((resolve, fail) => {
        if (closed) throw new Error("the store is closed");
        watch.refuseUnfit();
        const lane = lanes[command.scope === null ? 0 : laneOf(command.scope.organisationId)];
        lane?.add({ command, resolve, fail, queuedAt: performance.now() });
      }),
    async alone(work) {
      if (closed) throw new Error("the store is closed");
      const session = await sessions.reserve();
      try {
        return await work(session);
      } finally {
        session.release();
      }
    },
    async close() {
      closed = true;
      await Promise.all(lanes.map((lane) => lane.close()));
    },
  };
}

const commandsOf = (jobs: readonly Job[]): readonly AnyCommand[] => jobs.map(({ command }) => command);

const organisationsOf = (jobs: readonly Job[]): readonly (readonly Job[])[] => [
  ...Map.groupBy(jobs, ({ command: { scope } }) => scope?.organisationId).values(),
];

const laneOf = (organisationId: string): number => Number(Bun.hash(organisationId) % BigInt(LANES));

function createLane(
  sessions: Sessions,
  watch: LedgerWatch,
  parts: OfStore,
  figures: LaneFigures,
  onCommitted: Parameters<typeof createLanes>[3],
) {
  const committer = createCommitter(sessions, watch, parts, figures, onCommitted);
  let queue: Job[] = [];
  let running: Promise<void> | null = null;

  function take(isTaken: (job: Job, taken: number) => boolean): readonly Job[] {
    const taken: Job[] = [];
    queue = queue.filter((job) => {
      if (!isTaken(job, taken.length)) return true;
      taken.push(job);
      return false;
    });
    figures.waiting -= taken.length;
    return taken;
  }

  async function work(): Promise<void> {
    figures.busy += 1;
    while (queue.length > 0) {
      await gathered(() => queue);
      let jobs = take((_, taken) => taken < BATCH_MAX);
      const join: TakeJobs = (locks, most) => {
        const room = Math.min(most, BATCH_MAX - jobs.length);
        const joined = take(({ command }, taken) => taken < room && isWithin(locksOf([command]), locks));
        jobs = [...jobs, ...joined];
        return joined;
      };
      try {
        await committer.commit(jobs, join);
      } catch (error) {
        // What nobody has thought of must not leave a command without an answer, nor those that wait.
        for (const job of jobs) job.fail(error);
      }
    }
    figures.busy -= 1;
    running = null;
  }

  return {
    add(job: Job): void {
      queue.push(job);
      figures.waiting += 1;
      running ??= work();
    },
    async close(): Promise<void> {
      await running;
      committer.release();
    },
  };
}

/** Takes jobs that wait and need no other locks than these, at most so many. */
type TakeJobs = (locks: Locks, most: number) => readonly Job[];

/** Commits jobs on a connection of its own, and begins again what can be. */
function createCommitter(
  sessions: Sessions,
  watch: LedgerWatch,
  ofStore: OfStore,
  figures: LaneFigures,
  onCommitted: Parameters<typeof createLanes>[3],
) {
  const parts = { ...ofStore, watch, kept: createKeptRows() };
  let session: Session | null = null;

  /**
   * Commits the jobs in one transaction, or in several where one of them is a fault.
   *
   * @param more takes jobs that join them when the locks are held
   */
  async function commitTogether(
    first: readonly Job[],
    locks: Locks,
    tries: number,
    more?: TakeJobs,
  ): Promise<void> {
    let jobs = first;
    const join = (most: number) => {
      const joined = more?.(locks, most) ?? [];
      jobs = [...jobs, ...joined];
      return commandsOf(joined);
    };
    const begunAt = performance.now();
    let committed: Committed;
    try {
      watch.refuseUnfit();
      session ??= await sessions.reserve();
      committed = await runBatch(session, { commands: commandsOf(first), locks, join }, parts);
    } catch (error) {
      if (error instanceof NewerLedger) return failAll(jobs, watch.foundNewer(error));
      if (error instanceof UnfitFault) return failAll(jobs, error);
      if (error instanceof LocksMissing) return commitTogether(jobs, together(locks, error.locks), tries);
      if (isLost(error)) {
        session = null;
        parts.kept.clear();
      }
      const found = error instanceof OutcomeUnknown ? await outcomeOf(sessions, error.id, locks) : null;
      if (error instanceof OutcomeUnknown && found !== true) watch.decided(error.id);
      if (!(error instanceof OutcomeUnknown && found === true))
        return tryAgain(jobs, locks, tries, error instanceof OutcomeUnknown && found === null, error);
      committed = error.committed;
    }
    figures.batches += 1;
    figures.commands += jobs.length;
    onCommitted(committed, jobs.length, performance.now() - begunAt);
    for (const [at, job] of jobs.entries()) job.resolve(committed.answers[at]);
  }

  async function tryAgain(
    jobs: readonly Job[],
    locks: Locks,
    tries: number,
    isUndecided: boolean,
    error: unknown,
  ): Promise<void> {
    if (isUndecided) {
      figures.undecided += 1;
      return failAll(jobs, error);
    }
    if (isLost(error)) {
      const waiting = failLate(jobs, error);
      if (waiting.length === 0) return;
      await pause(figures);
      return commitTogether(waiting, locks, tries);
    }
    const state = sqlStateOf(error) ?? "";
    const isShared = state === LOCK_TIMEOUT && organisationsOf(jobs).length > 1;
    if (CONTENDED.has(state) && constraintOf(error) !== CLAIM && !isShared && tries < TRIES_MAX) {
      await pause(figures);
      return commitTogether(jobs, locks, tries + 1);
    }
    if (state === LOCK_TIMEOUT) return commitByOrganisation(jobs);
    const [job] = jobs;
    if (job !== undefined && jobs.length === 1) refuseOrFail(job, error);
    else for (const half of halvesOf(jobs)) await commitTogether(half, locksOf(commandsOf(half)), 0);
  }

  /**
   * Commits the commands of each organisation by themselves, after a lock was not free in time: it may be the lock of one organisation,
   * for which the commands of all others waited too. Commands that have waited for too long are refused.
   */
  async function commitByOrganisation(jobs: readonly Job[]): Promise<void> {
    const groups = organisationsOf(jobs);
    for (const group of groups) {
      const isLate = group.some(({ queuedAt }) => performance.now() - queuedAt > LOCKED_MS_MAX);
      if (groups.length === 1 || isLate) for (const job of group) job.resolve(CONTENDED_TOO_LONG);
      else await commitTogether(group, locksOf(commandsOf(group)), TRIES_MAX);
    }
  }

  return {
    /** The last of their answers has come when this resolves. */
    commit: (jobs: readonly Job[], more: TakeJobs) =>
      commitTogether(jobs, locksOf(commandsOf(jobs)), 0, more),
    release: () => session?.release(),
  };
}

/** Waits until a turn of the event loop brings no more commands, for a limited time. */
async function gathered(queue: () => readonly Job[]): Promise<void> {
  for (let before = -1; before < queue().length && queue().length < BATCH_MAX; ) {
    before = queue().length;
    await new Promise<void>((next) => setImmediate(next));
    if (performance.now() - (queue()[0]?.queuedAt ?? 0) > GATHER_MS_MAX) return;
  }
}

const isLost = (error: unknown): boolean =>
  error instanceof ConnectionLost || error instanceof OutcomeUnknown;

const constraintOf = (error: unknown): unknown => (error as { readonly constraint?: unknown }).constraint;

function failAll(jobs: readonly Job[], error: unknown): void {
  for (const job of jobs) job.fail(error);
}

/** Fails those that have waited long enough for a database that cannot be reached, and answers the others. */
function failLate(jobs: readonly Job[], error: unknown): readonly Job[] {
  const late = jobs.filter(({ queuedAt }) => performance.now() - queuedAt >= UNREACHABLE_MS_MAX);
  failAll(late, error);
  return jobs.filter((job) => !late.includes(job));
}

/** A command that was tried often enough by itself. */
function refuseOrFail(job: Job, error: unknown): void {
  if (constraintOf(error) === CLAIM) job.resolve(KEY_TAKEN);
  else if (OF_OTHERS.has(sqlStateOf(error) ?? "")) job.resolve(CONTENDED_TOO_LONG);
  else job.fail(error);
}

async function pause(figures: LaneFigures): Promise<void> {
  figures.retries += 1;
  await pauseAtRandom();
}

const halvesOf = <Item>(items: readonly Item[]): readonly (readonly Item[])[] => {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
};
