import { MINUTE_MS, SECOND_MS } from "../core/time.ts";
import type { Witness } from "../core/witness.ts";
import type { Context } from "../services/context.ts";
import { isCosigned, keepCosignature, type Offered, offerCheckpoint } from "../services/witness/offer.ts";
import type { OwnLog } from "../services/witness/own-log.ts";

/** A witness that does not sign is asked again after the first pause. Each pause is twice the one before, up to the second. */
const FIRST_PAUSE_MS = 5 * SECOND_MS;
const PAUSE_MS_MAX = 10 * MINUTE_MS;

/** How a witness answered last. */
type Standing = Offered["outcome"] | "not_asked";

/** Why a witness did not sign. */
type Failure = Exclude<Offered["outcome"], "cosigned">;

export type WitnessOptions = {
  readonly log: () => Promise<OwnLog>;
  /** A clock that never jumps, in milliseconds. */
  readonly monotonicNow: () => number;
  /** Called where a witness answers otherwise than before. */
  readonly onChange: (witness: Witness, offered: Offered) => void;
};

export type WitnessJob = {
  /** Offers the newest checkpoint to the witness, where it is due and has not signed it. It may be called at any time. */
  run(): Promise<void>;
  /** How often it did not sign since the process started. */
  failures(): Readonly<Record<Failure, number>>;
};

type Checkpoint = { readonly size: number; readonly note: string };

type State = {
  standing: Standing;
  why: string;
  /** Of the newest checkpoint that the witness signed; null until it was looked up. */
  size: number | null;
  /** That checkpoint, where this process knows it. */
  note: string | null;
  /** Since it last signed. */
  failures: number;
  readonly failed: Record<Failure, number>;
  dueAt: number;
  /** Whether it has signed, or said why not, since this process began to ask. */
  hasAnswered: boolean;
};

/** A job for each witness: one that hangs holds up no other. */
export function witnessJob(ctx: Context, witness: Witness, options: WitnessOptions): WitnessJob {
  const { monotonicNow, onChange } = options;
  const state: State = {
    ...{ standing: "not_asked", why: "", failures: 0, dueAt: 0 },
    ...{ size: null, note: null, hasAnswered: false },
    failed: { away: 0, behind: 0, parted: 0 },
  };

  async function sizeSigned(): Promise<number> {
    const [last] = await ctx.store.read(({ cosignatures }) =>
      cosignatures.below(witness.key.name, Number.MAX_SAFE_INTEGER, 1),
    );
    return last?.size ?? 0;
  }

  return {
    async run() {
      const log = await options.log();
      let newest = await log.newest();
      if (newest === null || state.note === newest.note || state.dueAt > monotonicNow()) return;
      // It is asked once all the same: only the witness knows whether it has signed more of the log since, and this ledger is an older one.
      const kept = (await isCosigned(ctx, witness, newest)) ? newest.note : null;
      if (kept !== null && state.hasAnswered) {
        state.note = kept;
        return;
      }
      const signed = state.size ?? (await sizeSigned());
      const offer = (published: Checkpoint) =>
        offerCheckpoint(ctx, log, witness, published, Math.min(signed, published.size));
      let offered = await offer(newest);
      while (offered.outcome === "behind") {
        // Checkpoints are public: somebody else may have offered one that was published since this one was read.
        const later = await log.newest();
        if (later === null || later.size <= newest.size) break;
        newest = later;
        offered = await offer(newest);
      }
      state.hasAnswered ||= offered.outcome !== "away";
      if (offered.outcome === "cosigned") {
        if (newest.note !== kept) await keepCosignature(ctx, witness.key.name, newest.size, offered.line);
        state.size = newest.size;
        state.note = newest.note;
        state.failures = 0;
      } else {
        const pauseMs = Math.min(PAUSE_MS_MAX, FIRST_PAUSE_MS * 2 ** Math.min(state.failures, 20));
        state.failures += 1;
        state.failed[offered.outcome] += 1;
        state.dueAt = monotonicNow() + pauseMs;
      }
      const why = "why" in offered ? offered.why : "";
      const isOther = state.standing !== offered.outcome || state.why !== why;
      const isFirst = state.standing === "not_asked" && offered.outcome === "cosigned";
      state.standing = offered.outcome;
      state.why = why;
      if (isOther && !isFirst) onChange(witness, offered);
    },
    failures: () => state.failed,
  };
}
