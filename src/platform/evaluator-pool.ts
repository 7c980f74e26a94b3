import { parse as parsePath } from "node:path";
import type { Subprocess } from "bun";
import type { Refusal } from "../core/errors.ts";
import { withReserve } from "./descriptors.ts";
import type { ChildAnswer, ChildRequest } from "./evaluator-child.ts";
import { type EndedFor, type EvaluatorMemory, type MeasuredChild, memoryOf } from "./evaluator-memory.ts";

/** No child could do the work, so nothing was evaluated or decided. */
export class EvaluatorUnavailable extends Error {}

/** All children are busy. It is a `Refusal` too: the caller may retry, since one will be free soon. */
export class EvaluatorBusy extends EvaluatorUnavailable implements Refusal {
  readonly refused = "rate_limit_exceeded";
}

export type PoolOptions = {
  /** The executable and its arguments. */
  readonly command: readonly string[];
  /** How many children are kept running, once `warmUp` has started them. */
  readonly size: number;
  readonly sizeMax: number;
  /** How many evaluations may wait for a child. One caller may have half of them. */
  readonly queueMax: number;
  /** An idle child beyond `size` is ended after this time. */
  readonly idleMs: number;
  /** What the children of all pools may use. It can be measured on Linux only. */
  readonly memory: EvaluatorMemory;
};

export type PoolStats = {
  readonly size: number;
  readonly busy: number;
  readonly waiting: number;
  /** Children that ended while they worked or started: they crashed, or took too much time or memory. */
  readonly restarts: number;
  readonly processIds: readonly number[];
};

/** A child that uses more is replaced when its work is done. */
const MEMORY_BYTES_REPLACE = 32 * 1024 * 1024;
/**
 * Of a machine with so little memory, the runtime would collect garbage early. Otherwise a document of 10 MiB takes twice as
 * much while a path is followed through it.
 */
const RAM_BYTES = 128 * 1024 * 1024;
const START_FAILURES_MAX = 3;

type ChildState = "starting" | "idle" | "busy" | "gone";

type Waiter = {
  readonly callerKey: string | null;
  readonly resolve: (child: PoolChild) => void;
  readonly reject: (error: Error) => void;
};

/** A child process of the pool. */
export class PoolChild implements MeasuredChild {
  state: ChildState = "starting";
  callerKey: string | null = null;
  idleTimer: Timer | null = null;
  /** Receives the answers to the current request, and null when the child has ended. */
  listener: ((answer: ChildAnswer | null) => void) | null = null;
  claimedBytes: number | null = null;
  /** Why the child has ended; null while it lives, and where it ended by itself or by `kill`. */
  endedFor: EndedFor | "outside" | null = null;
  private readonly process: Subprocess;

  constructor(
    private readonly options: PoolOptions,
    private readonly onChange: (child: PoolChild, was: ChildState) => void,
  ) {
    this.process = withReserve("this thread", () =>
      Bun.spawn([...options.command], {
        // The child inherits nothing: no secrets, and no settings of the folder that the server was started in.
        env: { BUN_JSC_forceRAMSize: String(RAM_BYTES) },
        cwd: parsePath(process.execPath).root,
        stdio: ["ignore", "ignore", "ignore"],
        serialization: "advanced",
        ipc: (answer: ChildAnswer) => this.receive(answer),
        onExit: ({ signalCode }) => {
          // A child that the pool kills is gone before.
          if (signalCode === "SIGKILL" && this.state !== "gone") this.endedFor = "outside";
          this.markGone();
        },
      }),
    );
    this.process.unref();
    options.memory.add(this);
  }

  get pid(): number {
    return this.process.pid;
  }

  private receive(answer: ChildAnswer): void {
    if (this.state === "gone") return;
    if (answer.say !== "ready") {
      this.listener?.(answer);
    } else if (this.state === "starting") {
      this.state = "idle";
      this.onChange(this, "starting");
    }
  }

  private markGone(): void {
    if (this.state === "gone") return;
    const was = this.state;
    this.state = "gone";
    this.options.memory.remove(this);
    if (this.idleTimer) clearTimeout(this.idleTimer);
    this.listener?.(null);
    this.onChange(this, was);
  }

  take(callerKey: string | null): void {
    this.state = "busy";
    this.callerKey = callerKey;
    if (this.idleTimer) clearTimeout(this.idleTimer);
    this.idleTimer = null;
    this.process.ref();
  }

  becomeIdle(): void {
    this.state = "idle";
    this.callerKey = null;
    this.listener = null;
    this.claimedBytes = null;
    this.process.unref();
  }

  send(request: ChildRequest): void {
    try {
      this.process.send(request);
    } catch {
      this.kill();
    }
  }

  kill(): void {
    this.process.kill("SIGKILL");
    this.markGone();
  }

  end(cause: EndedFor): void {
    this.endedFor = cause;
    this.kill();
  }
}

/**
 * Children that evaluate. A few are kept running. While all are busy more are started, up to `sizeMax`; one caller gets at most
 * half of them. Whoever has waited longest is served first, except callers that have their share.
 */
export class EvaluatorPool {
  private readonly children = new Set<PoolChild>();
  private readonly waiters: Waiter[] = [];
  private startFailures = 0;
  private restarts = 0;
  private closed = false;

  constructor(private readonly options: PoolOptions) {}

  /** Starts the children that are kept warm. Before that, work starts a child when it comes. */
  warmUp(): void {
    if (this.closed) return;
    for (let count = this.children.size; count < this.options.size; count++) this.spawn();
  }

  /**
   * A child for one piece of work; give it back with `release`. Rejects with `EvaluatorBusy` where too many wait, or where no
   * child is free within `waitTimeoutMs`; with `EvaluatorUnavailable` where children do not start, or the pool is closed.
   */
  acquire(callerKey: string | null, waitTimeoutMs = Number.POSITIVE_INFINITY): Promise<PoolChild> {
    if (this.closed) return Promise.reject(new EvaluatorUnavailable("closed"));
    const { queueMax } = this.options;
    const own =
      callerKey === null ? 0 : this.waiters.filter((waiter) => waiter.callerKey === callerKey).length;
    if (this.waiters.length >= queueMax || own >= Math.ceil(queueMax / 2))
      return Promise.reject(new EvaluatorBusy("too many evaluations are waiting"));
    this.startFailures = 0;
    const { promise, resolve, reject } = Promise.withResolvers<PoolChild>();
    const waiter: Waiter = { callerKey, resolve, reject };
    this.waiters.push(waiter);
    this.dispatch();
    if (this.waiters.includes(waiter) && waitTimeoutMs !== Number.POSITIVE_INFINITY) {
      const timer = setTimeout(() => this.giveUp(waiter), waitTimeoutMs);
      const stop = (): void => clearTimeout(timer);
      promise.then(stop, stop);
    }
    return promise;
  }

  private giveUp(waiter: Waiter): void {
    this.waiters.splice(this.waiters.indexOf(waiter), 1);
    // Where no child is busy, children cannot start. That is a fault, and a retry does not help.
    const Reason = this.stats().busy > 0 ? EvaluatorBusy : EvaluatorUnavailable;
    waiter.reject(new Reason("no child was free in time"));
  }

  /** Gives a child back, whether it still runs or has ended. */
  release(child: PoolChild): void {
    if (child.state !== "busy") return;
    if (memoryOf(child.pid) > MEMORY_BYTES_REPLACE) {
      child.kill();
    } else {
      child.becomeIdle();
      this.dispatch();
      this.endLaterIfIdle(child);
    }
  }

  stats(): PoolStats {
    const busy = [...this.children].filter((child) => child.state === "busy").length;
    const processIds = [...this.children].map((child) => child.pid);
    const { restarts } = this;
    return { size: this.children.size, busy, waiting: this.waiters.length, restarts, processIds };
  }

  /** Whether the pool was closed. Its children end then, and no clause may be blamed for that. */
  get isClosed(): boolean {
    return this.closed;
  }

  /** Ends every child. The listener of a busy child gets null. */
  close(): void {
    this.closed = true;
    for (const child of [...this.children]) child.kill();
    for (const waiter of this.waiters.splice(0)) waiter.reject(new EvaluatorUnavailable("closed"));
  }

  /** After some failures it stops trying to start a child: waiting work is rejected, and the next request tries again. */
  private spawn(): void {
    if (this.startFailures < START_FAILURES_MAX) {
      try {
        const onChange = (child: PoolChild, was: ChildState) => this.changed(child, was);
        this.children.add(new PoolChild(this.options, onChange));
        return;
      } catch {
        this.startFailures = START_FAILURES_MAX;
      }
    }
    for (const waiter of this.waiters.splice(0))
      waiter.reject(new EvaluatorUnavailable("the evaluator's process does not start"));
  }

  private changed(child: PoolChild, was: ChildState): void {
    const wasStarting = was === "starting";
    if (child.state === "gone") {
      this.children.delete(child);
      if (this.closed) return;
      if (was !== "idle") this.restarts++;
      if (wasStarting) this.startFailures++;
      if (this.children.size < this.options.size) this.spawn();
    } else if (wasStarting) {
      this.startFailures = 0;
      this.endLaterIfIdle(child);
    }
    this.dispatch();
  }

  private dispatch(): void {
    const share = Math.max(1, Math.floor(this.options.sizeMax / 2));
    const held = new Map<string, number>();
    let starting = 0;
    for (const child of this.children) {
      if (child.state === "starting") starting++;
      if (child.state === "busy" && child.callerKey !== null)
        held.set(child.callerKey, (held.get(child.callerKey) ?? 0) + 1);
    }
    for (const waiter of [...this.waiters]) {
      const own = waiter.callerKey === null ? 0 : (held.get(waiter.callerKey) ?? 0);
      if (own >= share) continue;
      const idles = [...this.children].filter((child) => child.state === "idle");
      // A caller that has a child already leaves the last idle one to others, since a new child needs time to
      // start.
      const idle = own > 0 && idles.length === 1 ? undefined : idles[0];
      if (waiter.callerKey !== null) held.set(waiter.callerKey, own + 1);
      if (idle) {
        this.waiters.splice(this.waiters.indexOf(waiter), 1);
        idle.take(waiter.callerKey);
        waiter.resolve(idle);
      } else if (starting > 0) {
        starting--;
      } else if (this.children.size < this.options.sizeMax) {
        this.spawn();
      }
    }
  }

  private endLaterIfIdle(child: PoolChild): void {
    if (child.state !== "idle") return;
    if (child.idleTimer) clearTimeout(child.idleTimer);
    child.idleTimer = setTimeout(() => {
      if (child.state === "idle" && this.children.size > this.options.size) child.kill();
    }, this.options.idleMs);
    child.idleTimer.unref();
  }
}
