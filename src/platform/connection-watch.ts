import { type ConnectionLimits, sharesOf } from "../core/connection-shares.ts";
import { SECOND_MS } from "../core/time.ts";
import { withReserve } from "./descriptors.ts";
import type { Peer, Sockets } from "./sockets.ts";

/** Counts the server's connections, and closes those above the limits (docs/operating, "A proxy in front"). */
export type ConnectionWatch = {
  /** How many it has closed. */
  readonly closed: () => number;
  stop(): void;
};

export type ConnectionWatchOptions = {
  readonly sockets: Sockets;
  /** The port that the server listens at. */
  readonly port: number;
  readonly limits: ConnectionLimits;
  /** Proxies have no share of their own, since many clients come through one. */
  readonly isTrusted: (address: string) => boolean;
  /** Called where a look closed connections, with how many, and of how many addresses. */
  readonly onClosed: (connections: number, addresses: number) => void;
  readonly onFault: (error: unknown) => void;
};

/** How often it looks. What comes in between is over the limits for as long. */
const EVERY_MS = 100;
/** How soon after it has closed some: whoever is closed comes back at once. */
const AGAIN_MS = 20;
/** A look at very many connections takes longer. It may use this part of the time, but never looks more seldom than the last figure says. */
const PART_OF_TIME = 20;
const EVERY_MS_MAX = SECOND_MS;
/**
 * How many connections may wait to be accepted. Where more come they have to knock again, once a second. Bun lets 512 wait: a
 * stranger who wants all fills that, and an honest client would seldom find room.
 */
const QUEUE = 4_096;
/** This many descriptors are looked at in one turn of the event loop. */
const SLICE = 500;

type Connection = {
  readonly descriptor: number;
  readonly peer: Peer;
  /** Those who share one share: an address, or a /64 of IPv6; null for a trusted proxy. */
  readonly party: string | null;
  look: number;
};

export function watchConnections(options: ConnectionWatchOptions): ConnectionWatch {
  const { sockets, port, limits, onClosed, onFault } = options;
  /** By descriptor, the oldest first. */
  const known = new Map<number, Connection>();
  for (const descriptor of sockets.descriptors()) {
    const isListener = sockets.peerOf(descriptor) === null && sockets.localPortOf(descriptor) === port;
    if (isListener) sockets.setQueue(descriptor, QUEUE);
  }
  let looks = 0;
  let closed = 0;
  let stopped = false;
  let timer: Timer;

  /** Answers after how many milliseconds to look again. */
  async function look(): Promise<number> {
    // Below one share nobody can be above it.
    if (sockets.count() <= limits.each) return EVERY_MS;
    const tookMs = await findConnections(options, known, ++looks);
    const { connections, parties } = stopped ? NONE : closeExcess(sockets, limits, known);
    closed += connections;
    if (connections > 0) onClosed(connections, parties);
    const waitMs = Math.max(connections > 0 ? AGAIN_MS : EVERY_MS, tookMs * PART_OF_TIME);
    return Math.min(waitMs, EVERY_MS_MAX);
  }

  function lookAfter(waitMs: number): void {
    timer = setTimeout(async () => {
      const againMs = await look().catch((error: unknown) => {
        onFault(error);
        return EVERY_MS_MAX;
      });
      if (!stopped) lookAfter(againMs);
    }, waitMs);
  }

  lookAfter(EVERY_MS);
  return {
    closed: () => closed,
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

/** Brings `known` up to date. Answers for how many milliseconds it held the thread. */
async function findConnections(
  { sockets, port, isTrusted }: ConnectionWatchOptions,
  known: Map<number, Connection>,
  look: number,
): Promise<number> {
  let tookMs = 0;
  const descriptors = withReserve("this thread", sockets.descriptors);
  for (let at = 0; at < descriptors.length; at += SLICE) {
    const startedAt = performance.now();
    for (const descriptor of descriptors.slice(at, at + SLICE)) {
      const peer = sockets.peerOf(descriptor);
      if (peer === null) continue;
      const before = known.get(descriptor);
      if (before && isSame(before.peer, peer)) before.look = look;
      else if (sockets.localPortOf(descriptor) === port) {
        // Deleted first, since a new one comes after the older ones.
        known.delete(descriptor);
        known.set(descriptor, { descriptor, peer, party: partyOf(peer.address, isTrusted), look });
      }
    }
    tookMs += performance.now() - startedAt;
    await new Promise(setImmediate);
  }
  for (const connection of known.values()) {
    if (connection.look !== look) known.delete(connection.descriptor);
  }
  return tookMs;
}

const NONE = { connections: 0, parties: 0 };

const isSame = (one: Peer, other: Peer): boolean => one.port === other.port && one.address === other.address;

const partyOf = (address: string, isTrusted: (address: string) => boolean): string | null =>
  isTrusted(address) ? null : address.split(":").slice(0, 4).join(":");

/** The newest go, so that whoever is answered is not cut off by those who come later. */
function closeExcess(
  sockets: Sockets,
  { all, each }: ConnectionLimits,
  known: ReadonlyMap<number, Connection>,
): { connections: number; parties: number } {
  const byParty = Map.groupBy(known.values(), ({ party }) => party);
  const ofProxies = byParty.get(null) ?? [];
  byParty.delete(null);
  const groups = [...byParty.values()];
  const rest = Math.max(0, all - ofProxies.length);
  const shares = sharesOf(
    groups.map(({ length }) => length),
    { all: rest, each },
  );
  const excess = [ofProxies.slice(all), ...groups.map((group, at) => group.slice(shares[at]))];
  let connections = 0;
  for (const { descriptor, peer } of excess.flat()) {
    // Only this thread accepts and closes these, so nothing comes between the look and the call. But it may be another by now.
    const now = sockets.peerOf(descriptor);
    if (now === null || !isSame(now, peer)) continue;
    sockets.shutDown(descriptor);
    connections += 1;
  }
  return { connections, parties: excess.filter(({ length }) => length > 0).length };
}
