import { MINUTE_MS, SECOND_MS } from "../core/time.ts";
import type { Tally } from "../core/treasury-watch.ts";
import { stepWatch, type Watched, type Watching, type WatchTrouble } from "../services/chain/watch.ts";
import type { Context } from "../services/context.ts";

/** How often a chain is asked for new blocks. */
const STEP_MS = 10 * SECOND_MS;
/** After a failure the chain is asked again after so long; twice as long each time, until the second. */
const FIRST_PAUSE_MS = 5 * SECOND_MS;
const PAUSE_MS_MAX = 10 * MINUTE_MS;
/** A node among several may be behind the others for a while. */
const BEHIND_MS_MAX = 10 * MINUTE_MS;

export type DepositsOptions = {
  readonly watching: () => Watching;
  /** A clock that never jumps, in milliseconds. */
  readonly monotonicNow: () => number;
  /** From 0 up to 1, without 1. */
  readonly random: () => number;
  /** Called where deposits stop for another reason than before; with null, where they go on. */
  readonly onTrouble: (trouble: WatchTrouble | null) => void;
  /** Called where more deposits than before are in no block any more. */
  readonly onGone: (gone: Tally) => void;
};

export type DepositsJob = {
  /** Does what is due. It may be called at any time. */
  run(): Promise<void>;
  /** How many confirmed blocks were not looked at when the chain answered last; null before it did. */
  blocksBehind(): number | null;
  /**
   * For how long the deposits have not been found up to the newest confirmed block, with the age that the chain's newest block had
   * then: a node that stands still answers, and shows no deposit.
   */
  lateMs(): number;
};

/** Watches one treasury: a chain that hangs holds up no other. */
export function depositsJob(ctx: Context, options: DepositsOptions): DepositsJob {
  const { monotonicNow, random, onTrouble, onGone } = options;
  let nextAt = 0;
  let failures = 0;
  let trouble: WatchTrouble | null = null;
  let gone = 0;
  let blocksBehind: number | null = null;
  let upToDateAt = monotonicNow();
  let newestAgeMs = 0;

  function pause(stepped: WatchTrouble): void {
    const pauseMs = Math.min(PAUSE_MS_MAX, FIRST_PAUSE_MS * 2 ** Math.min(failures, 20));
    failures += 1;
    nextAt = monotonicNow() + pauseMs * (0.5 + random() / 2);
    if (stepped.outcome === "behind" && monotonicNow() - upToDateAt < BEHIND_MS_MAX) return;
    if (!isSame(stepped, trouble)) onTrouble(stepped);
    trouble = stepped;
  }

  async function note(stepped: Watched): Promise<void> {
    if (stepped.outcome !== "up_to_date" && stepped.outcome !== "catching_up") {
      pause(stepped);
      return;
    }
    failures = 0;
    if (trouble !== null) onTrouble(null);
    trouble = null;
    if (stepped.outcome === "catching_up") {
      blocksBehind = stepped.blocksBehind;
      return;
    }
    blocksBehind = 0;
    upToDateAt = monotonicNow();
    newestAgeMs = Math.max(0, ctx.now() - stepped.newestTime);
    nextAt = upToDateAt + STEP_MS;
    // Only here: until all blocks were looked at, what a reorganisation has moved may come back in a later one.
    const now = await ctx.store.read(({ chainTransfers }) => chainTransfers.gone(stepped.watch.id));
    if (now.count > gone) onGone(now);
    gone = now.count;
  }

  return {
    async run() {
      if (monotonicNow() < nextAt) return;
      await note(await stepWatch(ctx, options.watching()));
    },
    blocksBehind: () => blocksBehind,
    lateMs: () => Math.max(0, monotonicNow() - upToDateAt) + newestAgeMs,
  };
}

const isSame = (one: WatchTrouble, other: WatchTrouble | null): boolean =>
  one.outcome === other?.outcome && whyOf(one) === whyOf(other);

const whyOf = (trouble: WatchTrouble): string => ("why" in trouble ? trouble.why : "");
