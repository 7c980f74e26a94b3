import { MINUTE_MS, SECOND_MS } from "../core/time.ts";
import { beginAnchor } from "../services/chain/anchor.ts";
import {
  reopenTakenOut,
  type Sending,
  type Stepped,
  type Stopped,
  stepTransactions,
} from "../services/chain/wallet.ts";
import type { Context } from "../services/context.ts";
import { createPauses } from "./pauses.ts";

/** How often an anchor that is under way is looked after. */
const STEP_MS = 10 * SECOND_MS;
/** How often it is asked whether the newest confirmed anchor is still in its block. */
const RECHECK_MS = 10 * MINUTE_MS;

/** What keeps anchors from being made. */
export type AnchorTrouble = Stopped | { readonly outcome: "capped" };

export type ChainAnchorsOptions = {
  readonly sending: () => Sending;
  /** An anchor is begun no sooner than so long after the one before it. */
  readonly everyMs: number;
  /** A clock that never jumps, in milliseconds. */
  readonly monotonicNow: () => number;
  /** From 0 up to 1, without 1. */
  readonly random: () => number;
  /** Called where anchors stop for another reason than before; with null, where they go on. */
  readonly onTrouble: (trouble: AnchorTrouble | null) => void;
  readonly onGivenUp: () => void;
};

export type ChainAnchorsJob = {
  /** Does what is due. It may be called at any time. */
  run(): Promise<void>;
  /** For how long an anchor has been due or under way, or the chain away; 0 where all is as it should be. */
  lateMs(): number;
};

/** Anchors the log on a chain: begins an anchor when one is due, and looks after it until the chain has confirmed it. */
export function chainAnchorsJob(ctx: Context, options: ChainAnchorsOptions): ChainAnchorsJob {
  const { everyMs, monotonicNow, random, onTrouble, onGivenUp } = options;
  const pauses = createPauses(monotonicNow, random);
  let recheckAt = 0;
  let trouble: AnchorTrouble | null = null;
  /** When the next anchor may be begun; null until the ledger was asked for the last one. */
  let beginAt: number | null = null;
  let lateSince: number | null = null;

  /** A clock that is ahead makes one anchor early; one that is behind makes one late, by the interval at most. */
  async function firstBeginAt({ wallet }: Sending): Promise<number> {
    const { chainId, address } = wallet;
    const last = await ctx.store.read(({ chainTransactions }) =>
      chainTransactions.lastConfirmed({ chainId, wallet: address }),
    );
    const sinceMs = last === null ? everyMs : Math.max(0, ctx.now() - last.createdAt);
    return monotonicNow() + Math.max(0, everyMs - sinceMs);
  }

  async function step(sending: Sending): Promise<Stepped> {
    if (monotonicNow() >= recheckAt) {
      const away = await reopenTakenOut(ctx, sending);
      if (away) return { outcome: "away", why: away.away };
      recheckAt = monotonicNow() + RECHECK_MS;
    }
    const stepped = await stepOnly(sending);
    if (stepped.outcome !== "idle") return stepped;
    beginAt ??= await firstBeginAt(sending);
    const begun = monotonicNow() < beginAt ? null : await beginAnchor(ctx, sending);
    if (begun === null) return stepped;
    if (begun.outcome !== "begun") return begun;
    beginAt = monotonicNow() + everyMs;
    return stepOnly(sending);
  }

  /** One anchor at a time is under way. */
  async function stepOnly(sending: Sending): Promise<Stepped> {
    const { stepped } = await stepTransactions(ctx, sending);
    return stepped[0] ?? { outcome: "idle" };
  }

  function note(stepped: Stepped): void {
    const isTrouble = "why" in stepped || stepped.outcome === "capped";
    if (stepped.outcome === "confirmed" || stepped.outcome === "idle") lateSince = null;
    else lateSince ??= monotonicNow();
    if (stepped.outcome === "given_up") {
      beginAt = null;
      onGivenUp();
    }
    if (!isTrouble) {
      pauses.answered(STEP_MS);
      if (trouble !== null) onTrouble(null);
      trouble = null;
      return;
    }
    pauses.failed();
    if (stepped.outcome !== trouble?.outcome) onTrouble(stepped);
    trouble = stepped;
  }

  return {
    async run() {
      if (pauses.isDue()) note(await step(options.sending()));
    },
    lateMs: () => (lateSince === null ? 0 : monotonicNow() - lateSince),
  };
}
