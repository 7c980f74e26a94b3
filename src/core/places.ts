import type { Mode } from "./roles.ts";

/**
 * The rule by which organisations share places, such as those of the checks that may run at once. Live comes before sandbox.
 * Within a mode organisations take turns. What one takes, and what the sandbox takes, always leaves places to others.
 */

/** Who asks for a place. */
export type Party = { readonly organisationId: string; readonly mode: Mode };

/** How many places are taken. */
export type Tally = {
  /** Whether one more place may go to this party. */
  fits(party: Party): boolean;
  add(party: Party): void;
  remove(party: Party): void;
  of(mode: Mode): number;
};

/** What may be taken of a number of places. Both parts are small where there are few places. */
const partsOf = (max: number) => ({
  /** Of all, or of those of a mode: what one organisation may have. */
  half: Math.ceil(max / 2),
  /** What is left to organisations that have none yet. */
  lastQuarter: Math.floor(max / 4),
});

/**
 * At most `max` places. The sandbox has half of them, and none of the last quarter. An organisation has half of what its mode
 * has. The last quarter of a mode goes only to organisations that have no place in it. So while fewer organisations have a
 * live place than this quarter has places, one that has none finds a place at once, however long the others keep theirs.
 */
export function createTally(max: number): Tally {
  const all = partsOf(max);
  const sandbox = { max: all.half, ...partsOf(all.half) };
  const taken = new Map<string, Record<Mode, number>>();
  const total: Record<Mode, number> = { live: 0, sandbox: 0 };

  function change({ organisationId, mode }: Party, by: 1 | -1): void {
    const own = taken.get(organisationId) ?? { live: 0, sandbox: 0 };
    own[mode] += by;
    total[mode] += by;
    if (own.live + own.sandbox > 0) taken.set(organisationId, own);
    else taken.delete(organisationId);
  }

  return {
    fits({ organisationId, mode }) {
      const own = taken.get(organisationId) ?? { live: 0, sandbox: 0 };
      const free = max - total.live - total.sandbox;
      if (own.live + own.sandbox >= all.half) return false;
      if (mode === "live") return free > (own.live === 0 ? 0 : all.lastQuarter);
      const freeHere = Math.min(sandbox.max - total.sandbox, free - all.lastQuarter);
      return own.sandbox < sandbox.half && freeHere > (own.sandbox === 0 ? 0 : sandbox.lastQuarter);
    },
    add: (party) => change(party, 1),
    remove: (party) => change(party, -1),
    of: (mode) => total[mode],
  };
}

/** The modes, in the order in which they get places. */
const LIVE_FIRST: readonly Mode[] = ["live", "sandbox"];

/** Those who wait, in the order of their turns. */
type Turns<Waiting extends Party> = {
  add(one: Waiting): void;
  /** Whether it still waited. */
  remove(one: Waiting): boolean;
  /** The next one that fits, which waits no more; null where there is none. */
  next(fits: (party: Party) => boolean): Waiting | null;
};

/** An organisation that got its turn is the last of its mode, so a hundred of one stand before nobody's first. */
function createTurns<Waiting extends Party>(): Turns<Waiting> {
  // A Map keeps the order in which its keys were set.
  const queues: Record<Mode, Map<string, Set<Waiting>>> = { live: new Map(), sandbox: new Map() };

  return {
    add(one) {
      const queue = queues[one.mode];
      queue.set(one.organisationId, (queue.get(one.organisationId) ?? new Set()).add(one));
    },
    remove(one) {
      const own = queues[one.mode].get(one.organisationId);
      const waited = own?.delete(one) ?? false;
      if (own?.size === 0) queues[one.mode].delete(one.organisationId);
      return waited;
    },
    next(fits) {
      for (const mode of LIVE_FIRST) {
        for (const [organisationId, own] of queues[mode]) {
          const [first] = own;
          if (first === undefined || !fits(first)) continue;
          own.delete(first);
          queues[mode].delete(organisationId);
          if (own.size > 0) queues[mode].set(organisationId, own);
          return first;
        }
      }
      return null;
    },
  };
}

/** Places and those who wait for them. It knows no time: who has waited too long gives up. */
export type Schedule<Waiting extends Party> = {
  /** Takes a place, where one is free for this party. It passes nobody: of those who wait, none fits. */
  take(party: Party): boolean;
  /** Joins those who wait, where it could not take a place; false where the party has no room there. */
  join(one: Waiting): boolean;
  /** Waits no more; false where it has got its place meanwhile. */
  giveUp(one: Waiting): boolean;
  /** Frees a place, and answers those who get one now. */
  leave(party: Party): readonly Waiting[];
  taken(mode: Mode): number;
  waiting(mode: Mode): number;
};

/**
 * @param max the number of places
 * @param waitingMax how many may wait. They share this room by the same rule
 */
export function createSchedule<Waiting extends Party>(max: number, waitingMax: number): Schedule<Waiting> {
  const places = createTally(max);
  const room = createTally(waitingMax);
  const turns = createTurns<Waiting>();
  return {
    take(party) {
      const fits = places.fits(party);
      if (fits) places.add(party);
      return fits;
    },
    join(one) {
      const fits = room.fits(one);
      if (fits) {
        room.add(one);
        turns.add(one);
      }
      return fits;
    },
    giveUp(one) {
      const waited = turns.remove(one);
      if (waited) room.remove(one);
      return waited;
    },
    leave(party) {
      places.remove(party);
      const served: Waiting[] = [];
      for (let one = turns.next(places.fits); one !== null; one = turns.next(places.fits)) {
        room.remove(one);
        places.add(one);
        served.push(one);
      }
      return served;
    },
    taken: places.of,
    waiting: room.of,
  };
}
