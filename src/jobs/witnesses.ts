import { MINUTE_MS, SECOND_MS } from "../core/time.ts";
import type { Witness } from "../core/witness.ts";
import type { Context } from "../services/context.ts";
import { isCosigned, keepCosignature, type Offered, offerCheckpoint } from "../services/witness/offer.ts";
import type { OwnLog } from "../services/witness/own-log.ts";

/** A witness that does not sign is asked again after so long; twice as long each time, until the second. */
const FIRST_PAUSE_MS = 5 * SECOND_MS;
const PAUSE_MS_MAX = 10 * MINUTE_MS;

/** How a witness answered last. */
type Standing = Offered["outcome"] | "not_asked";

/** Why a witness did not sign. */
type Failure = Exclude<Offered["outcome"], "cosigned">;

export type WitnessesOptions = {
  readonly log: () => Promise<OwnLog>;
  /** A clock that never jumps, in milliseconds. */
  readonly monotonicNow: () => number;
  /** Called where a witness answers otherwise than before. */
  readonly onChange: (witness: Witness, offered: Offered) => void;
};

export type WitnessesJob = {
  /** Offers the newest checkpoint to each witness that has not signed it and is due. It may be called at any time. */
  run(): Promise<void>;
  /** How often each witness, by its name, did not sign since the process started. */
  failures(): ReadonlyMap<string, Readonly<Record<Failure, number>>>;
};

type Checkpoint = { readonly size: number; readonly note: string };

type State = {
  standing: Standing;
  why: string;
  /** Of the newest checkpoint that the witness signed. */
  size: number;
  /** That checkpoint, where this process knows it. */
  note: string | null;
  /** Since it last signed. */
  failures: number;
  readonly failed: Record<Failure, number>;
  dueAt: number;
};

export function witnessesJob(ctx: Context, options: WitnessesOptions): WitnessesJob {
  const { monotonicNow, onChange } = options;
  const { witnesses } = ctx.witness;
  const states = new Map<string, State>();

  async function stateOf({ key: { name } }: Witness): Promise<State> {
    const known = states.get(name);
    if (known) return known;
    const [last] = await ctx.store.read((reader) =>
      reader.cosignatures.below(name, Number.MAX_SAFE_INTEGER, 1),
    );
    const state: State = {
      ...{ standing: "not_asked", why: "", failures: 0, dueAt: 0 },
      ...{ size: last?.size ?? 0, note: null },
      failed: { away: 0, behind: 0, parted: 0 },
    };
    states.set(name, state);
    return state;
  }

  async function offerTo(witness: Witness, log: OwnLog, published: Checkpoint): Promise<void> {
    let newest = published;
    const state = await stateOf(witness);
    if (state.note === newest.note || state.dueAt > monotonicNow()) return;
    if (await isCosigned(ctx, witness, newest)) {
      state.note = newest.note;
      return;
    }
    const offer = () => offerCheckpoint(ctx, log, witness, newest, Math.min(state.size, newest.size));
    let offered = await offer();
    while (offered.outcome === "behind") {
      // Checkpoints are public: somebody else may have offered one that was published since this one was read.
      const later = await log.newest();
      if (later === null || later.size <= newest.size) break;
      newest = later;
      offered = await offer();
    }
    if (offered.outcome === "cosigned") {
      await keepCosignature(ctx, witness.key.name, newest.size, offered.line);
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
  }

  return {
    async run() {
      if (witnesses.length === 0) return;
      const log = await options.log();
      const newest = await log.newest();
      if (newest === null) return;
      // Together, so that one that hangs holds up no other.
      const offers = await Promise.allSettled(witnesses.map((witness) => offerTo(witness, log, newest)));
      const failed = offers.find((offer) => offer.status === "rejected");
      if (failed) throw failed.reason;
    },
    failures: () => new Map([...states].map(([name, { failed }]) => [name, failed])),
  };
}
