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

/**
 * Whether one more fits that has `own` already, where `free` of `max` are left. The last quarter is for those that have few: of
 * it nobody has more than a sixteenth of what is free, but for the first one.
 */
const leavesEnough = (own: number, free: number, max: number): boolean =>
  free > 0 && (own === 0 || free > Math.floor(max / 4) || own < Math.floor(free / 16));

/**
 * At most `max` places. An organisation has half of what its mode may have. The sandbox may have half of all; of the last
 * quarter of all it has none, but for an organisation's first, down to the last eighth. So however long others keep theirs, an
 * organisation without a live place finds one at once, as long as fewer than a sixteenth of `max` organisations have any.
 */
export function createTally(max: number): Tally {
  const half = Math.ceil(max / 2);
  const ofSandbox = Math.ceil(half / 2);
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
      if (own.live + own.sandbox >= half) return false;
      if (mode === "live") return leavesEnough(own.live, free, max);
      const kept = Math.floor(max / (own.sandbox === 0 ? 8 : 4));
      const freeHere = Math.min(half - total.sandbox, free - kept);
      return own.sandbox < ofSandbox && leavesEnough(own.sandbox, freeHere, half);
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
