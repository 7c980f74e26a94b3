import { parse as parsePath } from "node:path";
import type { Subprocess } from "bun";
import type { Refusal } from "../core/errors.ts";
import type { Party } from "../core/places.ts";
import { withReserve } from "./descriptors.ts";
import type { ChildAnswer, ChildRequest } from "./evaluator-child.ts";
import { type EndedFor, type EvaluatorMemory, type MeasuredChild, memoryOf } from "./evaluator-memory.ts";
import { createPlaces, type Place, type Places } from "./places.ts";

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
  /** How many children there may be. They are shared by the rule of core/places.ts, so the sandbox may have half of them. */
  readonly sizeMax: number;
  /** How many evaluations may wait for a child. They share this room by the same rule. */
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

/** An evaluation that has its place, and waits until a child is free or has started. */
type Waiter = {
  readonly place: Place;
  readonly resolve: (child: PoolChild) => void;
  readonly reject: (error: Error) => void;
};

/** A child process of the pool. */
export class PoolChild implements MeasuredChild {
  state: ChildState = "starting";
  private place: Place | null = null;
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
          // The pool itself marks a child as gone before it kills it, so this kill came from outside.
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

  take(place: Place): void {
    this.state = "busy";
    this.place = place;
    if (this.idleTimer) clearTimeout(this.idleTimer);
    this.idleTimer = null;
    this.process.ref();
  }

  /** Leaves the place of the work that the child was taken for. */
  leavePlace(): void {
    this.place?.leave();
    this.place = null;
  }

  becomeIdle(): void {
    this.state = "idle";
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
 * Children that evaluate. A few are kept running. While all are busy more are started, up to `sizeMax`. Live comes before
 * sandbox, and organisations take turns.
 */
export class EvaluatorPool {
  private readonly children = new Set<PoolChild>();
  private readonly places: Places;
  private readonly waiters: Waiter[] = [];
  private startFailures = 0;
  private restarts = 0;
  private closed = false;

  constructor(private readonly options: PoolOptions) {
    this.places = createPlaces({ max: options.sizeMax, waitingMax: options.queueMax });
  }

  /** Starts the children that are kept warm. Before that, work starts a child when it comes. */
  warmUp(): void {
    if (this.closed) return;
    for (let count = this.children.size; count < this.options.size; count++) this.spawn();
  }

  /**
   * A child for one piece of work; give it back with `release`. Rejects with `EvaluatorBusy` where too many wait, or where no
   * child is free within `waitMsMax`; with `EvaluatorUnavailable` where children do not start, or the pool is closed.
   */
  async acquire(party: Party, waitMsMax: number): Promise<PoolChild> {
    const endsAt = performance.now() + waitMsMax;
    this.startFailures = 0;
    const place = await this.places.wait(party, null, waitMsMax);
    if (this.closed) throw new EvaluatorUnavailable("closed");
    if (place === null)
      throw new EvaluatorBusy("too many evaluations are waiting, or no child was free in time");
    const { promise, resolve, reject } = Promise.withResolvers<PoolChild>();
    const waiter: Waiter = { place, resolve, reject };
    this.waiters.push(waiter);
    this.dispatch();
    const timer = setTimeout(() => this.giveUp(waiter), endsAt - performance.now());
    try {
      return await promise;
    } catch (error) {
      place.leave();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  private giveUp(waiter: Waiter): void {
    this.waiters.splice(this.waiters.indexOf(waiter), 1);
    // Where no child is busy, children cannot start. That is a fault, and a retry does not help.
    const Reason = this.stats().busy > 0 ? EvaluatorBusy : EvaluatorUnavailable;
    waiter.reject(new Reason("no child was free in time"));
  }

  /** Gives a child back, whether it still runs or has ended. */
  release(child: PoolChild): void {
    // First, since the child may at once be given to one who waits for it with a place of its own.
    child.leavePlace();
    if (child.state === "busy") {
      if (memoryOf(child.pid) > MEMORY_BYTES_REPLACE) {
        child.kill();
      } else {
        child.becomeIdle();
        this.dispatch();
        this.endLaterIfIdle(child);
      }
    }
  }

  stats(): PoolStats {
    const busy = [...this.children].filter((child) => child.state === "busy").length;
    const processIds = [...this.children].map((child) => child.pid);
    const { restarts } = this;
    const [live, sandbox] = [this.places.figures("live"), this.places.figures("sandbox")];
    const waiting = this.waiters.length + live.waiting + sandbox.waiting;
    return { size: this.children.size, busy, waiting, restarts, processIds };
  }

  /** Whether the pool was closed. Its children end then, and no clause may be blamed for that. */
  get isClosed(): boolean {
    return this.closed;
  }

  /** Ends every child. The listener of a busy child gets null. */
  close(): void {
    this.closed = true;
    this.places.close();
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

  /** Gives idle children to those who wait, and starts a child for each who gets none. */
  private dispatch(): void {
    for (const child of this.children) {
      if (child.state !== "idle") continue;
      const waiter = this.waiters.shift();
      if (!waiter) return;
      child.take(waiter.place);
      waiter.resolve(child);
    }
    const starting = [...this.children].filter((child) => child.state === "starting").length;
    const room = this.options.sizeMax - this.children.size;
    for (let count = Math.min(room, this.waiters.length - starting); count > 0; count--) this.spawn();
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
