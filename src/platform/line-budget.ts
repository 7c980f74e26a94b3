import { MINUTE_MS } from "../core/time.ts";

/** Bounds the lines of the log that strangers can cause. */
export type LineBudget = {
  /** Null where the line is left out. Else `unlogged`, where lines were left out before: how many. */
  take(network: string): { readonly unlogged?: number } | null;
};

/** Lines in a minute: of one network, and of all. Enough for fail2ban, and too few to fill a disk. */
const OF_NETWORK_MAX = 10;
const IN_ALL_MAX = 300;

/** @param now milliseconds of a clock that never jumps */
export function createLineBudget(now: () => number): LineBudget {
  let minute = Number.NEGATIVE_INFINITY;
  let lines = 0;
  let unlogged = 0;
  const ofNetworks = new Map<string, number>();
  return {
    take(network) {
      if (now() - minute >= MINUTE_MS) {
        minute = now();
        lines = 0;
        ofNetworks.clear();
      }
      const ofNetwork = ofNetworks.get(network) ?? 0;
      if (lines >= IN_ALL_MAX || ofNetwork >= OF_NETWORK_MAX) {
        unlogged += 1;
        return null;
      }
      lines += 1;
      ofNetworks.set(network, ofNetwork + 1);
      const left = unlogged > 0 ? { unlogged } : {};
      unlogged = 0;
      return left;
    },
  };
}
