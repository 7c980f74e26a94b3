import { UndoneFault } from "../../core/errors.ts";
import { HOUR_MS } from "../../core/time.ts";
import type { NewerLedger } from "../sql/ledger-version.ts";
import { ConnectionLost, type Session, type Sessions } from "./client.ts";
import { arrayOf } from "./values.ts";

/** The database lacks what this process has committed to it: it was brought back to an earlier time. */
class OlderLedger extends Error {
  constructor() {
    super("the database was brought back to an earlier time: it lacks what was committed to it");
  }
}

/** Why a process must not go on with the ledger that it has opened. */
export type Unfit = OlderLedger | NewerLedger;

/** For what is asked of it then. */
export class UnfitFault extends UndoneFault {
  constructor(cause: Unfit) {
    super("This instance stops, and nothing was done.", { cause });
  }
}

/** How long the row of a transaction is kept where no later one of its lane has made it unnecessary, by the database's clock. */
export const KEPT_MS_MAX = 24 * HOUR_MS;
/** How long it is looked for, by this process's clocks: the one that never jumps stands still while a machine sleeps. */
const LOOKED_FOR_MS = 20 * HOUR_MS;

/**
 * Whether a process may go on with the ledger that it has opened. It knows the last transaction of each of its lanes, which the others of
 * that lane came before: where the database lacks it, the ledger is an older one.
 */
export type LedgerWatch = {
  /** Called before a transaction is committed. It may be looked for until `decided` or `committed` is called. */
  sends(id: string): void;
  /** Called when it is not looked for any more. */
  decided(id: string): void;
  /** Called when a transaction is committed. */
  committed(lane: number | "log", id: string): void;
  /** The ids of transactions that the database must have. */
  ids(): readonly string[];
  /** These, and those that may be looked for. */
  needed(): readonly string[];
  /** @throws UnfitFault where the database lacks one of them */
  verify(session: Session): Promise<void>;
  /** Called where the ledger is found to be of a newer version, which this process may not write to. The fault to answer with. */
  foundNewer(found: NewerLedger): UnfitFault;
  /** @throws UnfitFault once it must not go on */
  refuseUnfit(): void;
  /** Resolves once it must not go on. */
  readonly unfit: Promise<Unfit>;
};

/** A replica may not have applied yet what it has on disk, and what is in its tables says nothing. It must be asked first. */
const IS_REPLICA = "SELECT 1 WHERE pg_is_in_recovery() = ($1::int8 = 1)";
const MISSING =
  "SELECT id FROM unnest($1::text[]) AS known (id) WHERE NOT EXISTS (SELECT 1 FROM commits WHERE commits.id = known.id)";

/** @param steadyNow a clock that never jumps, in milliseconds */
export function watchLedger(steadyNow: () => number): LedgerWatch {
  const underWay = new Set<string>();
  const newest = new Map<
    number | "log",
    { readonly id: string; readonly at: number; readonly wallAt: number }
  >();
  const { promise, resolve } = Promise.withResolvers<Unfit>();
  let why: Unfit | null = null;

  function end(found: Unfit): UnfitFault {
    why ??= found;
    resolve(why);
    return new UnfitFault(why);
  }
  const ids = () =>
    [...newest.values()]
      .filter(({ at, wallAt }) => Math.max(steadyNow() - at, Date.now() - wallAt) < LOOKED_FOR_MS)
      .map(({ id }) => id);
  function refuseUnfit(): void {
    if (why) throw new UnfitFault(why);
  }

  return {
    sends: (id) => void underWay.add(id),
    decided: (id) => void underWay.delete(id),
    committed(lane, id) {
      newest.set(lane, { id, at: steadyNow(), wallAt: Date.now() });
      underWay.delete(id);
    },
    ids,
    needed: () => [...ids(), ...underWay],
    async verify(session) {
      refuseUnfit();
      for (let asked = ids(); asked.length > 0; asked = ids()) {
        const [replica = [], missing = []] = await session.exchange([
          { text: IS_REPLICA, params: [1n] },
          { text: MISSING, params: [arrayOf("text", asked)] },
        ]);
        if (replica.length > 0) {
          // Else the pool would give it to the next who asks.
          session.end();
          throw new ConnectionLost("the server is a replica");
        }
        if (missing.length === 0) return;
        // A transaction that a later one of its lane followed meanwhile may have been deleted.
        const known = new Set(ids());
        if ((missing as readonly { readonly id: string }[]).some(({ id }) => known.has(id)))
          throw end(new OlderLedger());
      }
    },
    foundNewer: end,
    refuseUnfit,
    unfit: promise,
  };
}

/** Connections that are verified before they are used. */
export const verified = (sessions: Sessions, watch: LedgerWatch): Sessions => ({
  health: sessions.health,
  patience: sessions.patience,
  async reserve(exchangeMs) {
    const session = await sessions.reserve(exchangeMs);
    try {
      await watch.verify(session);
    } catch (error) {
      session.release();
      throw error;
    }
    return session;
  },
});

/** Connections that are not given once the process must not go on. */
export const whileFit = (sessions: Sessions, watch: LedgerWatch): Sessions => ({
  health: sessions.health,
  patience: sessions.patience,
  async reserve(exchangeMs) {
    watch.refuseUnfit();
    return sessions.reserve(exchangeMs);
  },
});
