import { UndoneFault } from "../../core/errors.ts";
import { HOUR_MS } from "../../core/time.ts";
import { ConnectionLost, type Session, type Sessions } from "./client.ts";
import { arrayOf } from "./values.ts";

/** The database lacks what this process has committed to it: it was brought back to an earlier time. */
export class OlderLedger extends UndoneFault {
  constructor() {
    super("The database was brought back to an earlier time. Nothing was done.");
  }
}

/** How long the row of a transaction is kept where no later one of its lane has made it unnecessary, by the database's clock. */
export const KEPT_MS_MAX = 24 * HOUR_MS;
/** How long it is looked for, by this process's clock. */
const LOOKED_FOR_MS = 20 * HOUR_MS;

/** What this process knows to be committed: the last transaction of each of its lanes, which the others of that lane came before. */
export type KnownCommits = {
  /** Called when a transaction is committed. */
  committed(lane: number, id: string): void;
  /** The ids of transactions that the database must have. */
  ids(): readonly string[];
  /** @throws OlderLedger where the database lacks one of them */
  verify(session: Session): Promise<void>;
  /** @throws OlderLedger once that was found */
  refuseOlder(): void;
  /** Resolves once that was found. */
  readonly foundOlder: Promise<void>;
};

/** A replica may not have applied yet what it has on disk, and what is in its tables says nothing. It must be asked first. */
const IS_REPLICA = "SELECT 1 WHERE pg_is_in_recovery() = ($1::int8 = 1)";
const MISSING =
  "SELECT id FROM unnest($1::text[]) AS known (id) WHERE NOT EXISTS (SELECT 1 FROM commits WHERE commits.id = known.id)";

/** @param steadyNow a clock that never jumps, in milliseconds */
export function createKnownCommits(steadyNow: () => number): KnownCommits {
  const newest = new Map<number, { readonly id: string; readonly at: number }>();
  const found = Promise.withResolvers<void>();
  let isOlder = false;

  const ids = () =>
    [...newest.values()].filter(({ at }) => steadyNow() - at < LOOKED_FOR_MS).map(({ id }) => id);
  function refuseOlder(): void {
    if (isOlder) throw new OlderLedger();
  }

  return {
    committed: (lane, id) => void newest.set(lane, { id, at: steadyNow() }),
    ids,
    async verify(session) {
      refuseOlder();
      for (let asked = ids(); asked.length > 0; asked = ids()) {
        const [replica = [], missing = []] = await session.exchange([
          { text: IS_REPLICA, params: [1n] },
          { text: MISSING, params: [arrayOf("text", asked)] },
        ]);
        if (replica.length > 0) throw new ConnectionLost("the server is a replica");
        if (missing.length === 0) return;
        // A transaction that a later one of its lane followed meanwhile may have been deleted.
        const isKnown = new Set(ids());
        if (!(missing as readonly { readonly id: string }[]).some(({ id }) => isKnown.has(id))) continue;
        isOlder = true;
        found.resolve();
        refuseOlder();
      }
    },
    refuseOlder,
    foundOlder: found.promise,
  };
}

/** Connections that are verified before they are used. */
export const verified = (sessions: Sessions, known: KnownCommits): Sessions => ({
  health: sessions.health,
  async reserve() {
    const session = await sessions.reserve();
    try {
      await known.verify(session);
    } catch (error) {
      session.release();
      throw error;
    }
    return session;
  },
});

/** Connections that are not given once the ledger was found to be older. */
export const unlessOlder = (sessions: Sessions, known: KnownCommits): Sessions => ({
  health: sessions.health,
  async reserve() {
    known.refuseOlder();
    return sessions.reserve();
  },
});
