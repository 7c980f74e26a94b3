import { createSchedule, type Party } from "../core/places.ts";
import type { Mode } from "../core/roles.ts";
import { SECOND_MS } from "../core/time.ts";

/** A place that is held until it is left. */
export type Place = { leave(): void };

/**
 * Places for work that takes long, in the memory of the process: checks, and purchases by x402. Who gets one is the rule of
 * core/places.ts.
 */
export type Places = {
  /** A place at once; null where none is free for this party. */
  take(party: Party): Place | null;
  /** Waits for a place; null where none became free in time, where too many wait, and where the caller has gone. */
  wait(party: Party, gone: AbortSignal | null, waitMsMax?: number): Promise<Place | null>;
  figures(mode: Mode): { readonly taken: number; readonly waiting: number };
  /** Lets nobody wait any more. */
  close(): void;
};

export type PlacesOptions = {
  /** Each check may hold a deliverable of 10 MiB twice: as it was sent, and decoded. */
  readonly max?: number;
  readonly waitingMax?: number;
  /** How long one waits at most, where it does not say so itself. */
  readonly waitMsMax?: number;
};

type Waiter = Party & { readonly serve: (place: Place | null) => void };

export function createPlaces({
  max = 256,
  waitingMax = 512,
  waitMsMax = 5 * SECOND_MS,
}: PlacesOptions = {}): Places {
  const schedule = createSchedule<Waiter>(max, waitingMax);
  const waiters = new Set<Waiter>();
  let closed = false;

  function placeOf(party: Party): Place {
    let left = false;
    return {
      leave() {
        if (left) return;
        left = true;
        for (const waiter of schedule.leave(party)) waiter.serve(placeOf(waiter));
      },
    };
  }

  return {
    take: (party) => (schedule.take(party) ? placeOf(party) : null),
    wait({ organisationId, mode }, gone, ownMsMax = waitMsMax) {
      const { promise, resolve } = Promise.withResolvers<Place | null>();
      const waiter: Waiter = {
        organisationId,
        mode,
        serve(place) {
          clearTimeout(timer);
          gone?.removeEventListener("abort", giveUp);
          waiters.delete(waiter);
          resolve(place);
        },
      };
      const giveUp = (): void => {
        if (schedule.giveUp(waiter)) waiter.serve(null);
      };
      const timer = setTimeout(giveUp, ownMsMax);
      if (closed || gone?.aborted) {
        waiter.serve(null);
      } else if (schedule.take(waiter)) {
        waiter.serve(placeOf(waiter));
      } else if (!schedule.join(waiter)) {
        waiter.serve(null);
      } else {
        waiters.add(waiter);
        gone?.addEventListener("abort", giveUp);
      }
      return promise;
    },
    figures: (mode) => ({ taken: schedule.taken(mode), waiting: schedule.waiting(mode) }),
    close() {
      closed = true;
      for (const waiter of [...waiters]) if (schedule.giveUp(waiter)) waiter.serve(null);
    },
  };
}
