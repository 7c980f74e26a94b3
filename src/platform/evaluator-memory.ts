import { readFileSync } from "node:fs";
import { ByteBudget } from "../core/byte-budget.ts";

/** The memory of all children that evaluate, of every pool of this process (docs/idempotency, "Memory"). */

const MIB = 1024 * 1024;

/** What all of them may use together. */
const BYTES_MAX = 512 * MIB;
/** Of this, what only live warrants may claim: so a small document of theirs need not wait for a large one of somebody else. */
const LIVE_BYTES = 48 * MIB;
/**
 * What an evaluation claims: something for the process itself, and much more than the body's length, since 10 MiB of JSON with
 * as many small objects as it can have take 430 MiB. Such a body is evaluated alone.
 */
const CLAIM_BYTES = 24 * MIB;
const CLAIM_PER_BYTE = 44;
/** What an evaluation may use of its own: more than it claims, since most claim more than they use. */
const OWN_BYTES_MIN = 128 * MIB;
const OWN_BYTES_MORE = 32 * MIB;
/** How often memory is measured while a child works. One can take 10 MiB and more in that time. */
const MEASURE_MS = 20;

/** What evaluations may wait for together: it stands for 120 MiB of documents. */
const WAITING_BYTES_MAX = 12 * BYTES_MAX;

/** How long an evaluation may wait for its memory. */
export const MEMORY_WAIT_MS = 5_000;

/**
 * Why a child was ended. `memory`: it used more than an evaluation may, whatever others do. `displaced`: all children together
 * used too much, and it the most beyond its claim, so its work may be tried again.
 */
export type EndedFor = "memory" | "displaced";

/** A child as its memory sees it. */
export type MeasuredChild = {
  readonly pid: number;
  /** What its work has claimed; null while it has none. */
  readonly claimedBytes: number | null;
  end(cause: EndedFor): void;
};

export type MemoryLimits = {
  readonly bytesMax: number;
  readonly liveBytes: number;
  readonly waitingMax: number;
  readonly waitingBytesMax: number;
  /** What one evaluation may use, by what it claims. */
  readonly ownBytesMax: (claimedBytes: number) => number;
};

export const MEMORY_LIMITS: MemoryLimits = {
  bytesMax: BYTES_MAX,
  liveBytes: LIVE_BYTES,
  waitingMax: 256,
  waitingBytesMax: WAITING_BYTES_MAX,
  ownBytesMax: (claimedBytes) => Math.max(OWN_BYTES_MIN, claimedBytes + OWN_BYTES_MORE),
};

/** What the evaluation of a body of this many bytes claims. */
export const claimFor = (bodyBytes: number): number =>
  Math.min(BYTES_MAX - LIVE_BYTES, CLAIM_BYTES + CLAIM_PER_BYTE * bodyBytes);

/** Grants memory to evaluations, and ends children that use too much. The system ends these before the server, if it has to. */
export class EvaluatorMemory {
  readonly budget: ByteBudget;
  private readonly children = new Set<MeasuredChild>();
  private timer: Timer | null = null;

  constructor(private readonly limits: MemoryLimits = MEMORY_LIMITS) {
    const { bytesMax, liveBytes, waitingMax, waitingBytesMax } = limits;
    this.budget = new ByteBudget({
      bytesMax,
      liveBytes,
      partyBytesMax: bytesMax / 2,
      waitingMax,
      partyWaitingMax: Math.ceil(waitingMax / 2),
      waitingBytesMax,
    });
  }

  add(child: MeasuredChild): void {
    this.children.add(child);
    this.timer ??= setInterval(() => this.measure(), MEASURE_MS);
    this.timer.unref();
  }

  remove(child: MeasuredChild): void {
    this.children.delete(child);
    if (this.children.size > 0 || this.timer === null) return;
    clearInterval(this.timer);
    this.timer = null;
  }

  private measure(): void {
    // Idle children are small: those that have grown are replaced.
    if (![...this.children].some(({ claimedBytes }) => claimedBytes !== null)) return;
    let used = 0;
    let most: { readonly child: MeasuredChild; readonly beyond: number } | null = null;
    for (const child of [...this.children]) {
      const bytes = memoryOf(child.pid);
      const claimed = child.claimedBytes;
      if (claimed !== null && bytes > this.limits.ownBytesMax(claimed)) {
        child.end("memory");
        continue;
      }
      used += bytes;
      const beyond = claimed === null ? 0 : bytes - claimed;
      if (beyond > (most?.beyond ?? 0)) most = { child, beyond };
    }
    if (used > this.limits.bytesMax) most?.child.end("displaced");
  }
}

/** The resident bytes of a process that are its own: not those of the executable, which all share. 0 where the system does not say. */
export function memoryOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(/^RssAnon:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
