import { type HeldLine, judgeSeen, type SeenTreasury } from "../core/solvency/judgement.ts";
import { HOUR_MS } from "../core/time.ts";
import { caip2Of } from "../core/x402/chains.ts";
import type { Context } from "../services/context.ts";
import { readSolvency } from "../services/solvency/figures.ts";
import { findStatement } from "../services/solvency/read.ts";
import { signStatement } from "../services/solvency/sign.ts";

export type SolvencyWatch = {
  /** Asks the chains what the treasuries hold. It may take as long as the chains do. */
  run(): Promise<void>;
  /** What was seen last. It waits for nothing. */
  seen(): readonly SeenTreasury[];
};

type WatchOptions = {
  /** A clock that never jumps, in milliseconds. */
  readonly monotonicNow: () => number;
  /** Called where a treasury is found to hold less than is owed, and before it was not; with false, where that has ended. */
  readonly onShort: (treasury: SeenTreasury, isShort: boolean) => void;
};

type Seen = Pick<SeenTreasury, "mode" | "asset" | "chain"> & {
  found:
    | (Pick<HeldLine, "judgement"> & {
        readonly balance: bigint;
        readonly block: number;
        readonly at: number;
      })
    | null;
};

/** Compares what the chains hold with what the ledger owes, and remembers what was seen last. */
export function solvencyWatch(ctx: Context, { monotonicNow, onShort }: WatchOptions): SolvencyWatch {
  const treasuries = ctx.treasuries.map(
    ({ mode, asset, chainId }): Seen => ({ mode, asset, chain: caip2Of(chainId), found: null }),
  );
  const show = ({ found, ...treasury }: Seen): SeenTreasury => {
    const ageMs = found === null ? 0 : monotonicNow() - found.at;
    return {
      ...treasury,
      judgement: found === null ? "unknown" : judgeSeen(found.judgement, ageMs),
      seen: found && { balance: found.balance, block: found.block, ageMs },
    };
  };
  return {
    async run() {
      const askedAt = monotonicNow();
      for (const { mode, asset, held } of await readSolvency(ctx)) {
        const treasury = treasuries.find((one) => one.mode === mode && one.asset === asset);
        if (!treasury || !held?.holding) continue;
        const { balance, block, newestTime } = held.holding;
        // A node that stands still answers, and says nothing of what has happened since its newest block.
        const at = askedAt - Math.max(0, ctx.now() - newestTime);
        const wasShort = treasury.found?.judgement === "short";
        treasury.found = { judgement: held.judgement, balance, block, at };
        const isShort = held.judgement === "short";
        if (isShort !== wasShort) onShort(show(treasury), isShort);
      }
    },
    seen: () => treasuries.map(show),
  };
}

/** Signs a statement where the newest one is older than so many hours, or where there is none. */
export const statementsJob =
  (hours: number) =>
  async (ctx: Context): Promise<void> => {
    const newest = await ctx.store.read((reader) => findStatement(reader, null));
    const ageMs = newest === null ? Number.POSITIVE_INFINITY : ctx.now() - newest.statement.createdAt;
    // One of the future was signed while the clock was ahead.
    if (ageMs >= 0 && ageMs < hours * HOUR_MS) return;
    await signStatement(ctx);
  };
