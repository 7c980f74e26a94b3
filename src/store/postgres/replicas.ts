import type { DatabaseFigures, ReadFallback } from "../../core/database.ts";
import { SECOND_MS } from "../../core/time.ts";
import type { Reader } from "../reader.ts";
import type { FromCopy, Use } from "../store.ts";
import type { PostgresAddress } from "./address.ts";
import type { Heartbeat } from "./heartbeat.ts";
import { inTime, LATE } from "./in-time.ts";
import type { Ask } from "./ledger-rows.ts";
import { createReplica, mustHaveBeat, type Replica, type ReplicaParts } from "./replica.ts";

/** How often the replicas are asked how late they are. */
const ASK_MS = SECOND_MS;
/** How long it is waited for a beat then, and by a piece of work that needs all that was committed before it. */
const FOLLOW_MS_MAX = SECOND_MS / 2;
const CATCH_UP_MS_MAX = 2 * SECOND_MS;

/** Reads that may go to a replica, and go to the primary where no replica has what they need. */
export type Replicas = {
  read<Result>(use: Use<Result>, from?: FromCopy<Result>): Promise<Result>;
  /**
   * Works on a replica that has everything that was committed before the call. Answers null where there is none, or where it fails:
   * then it is work for the primary.
   *
   * @param mustHaveAll fails where the transaction that is open lacks something
   */
  alone<Result>(
    work: (ask: Ask, name: string, mustHaveAll: () => Promise<void>) => Promise<Result>,
  ): Promise<Result | null>;
  /** Begins to follow the replicas, and resolves when it is known how they stand. A read begins it too. */
  start(): Promise<void>;
  figures(): Pick<DatabaseFigures, "readReplicas" | "fallbacks">;
  close(): Promise<void>;
};

/** Where a piece of work reads: all of it there, so that no part of it sees less than one before. */
type Place = { readonly replica: Replica; readonly beat: number };

/** @param primary reads from a snapshot of everything that was committed before */
export function createReplicas(
  addresses: readonly PostgresAddress[],
  parts: ReplicaParts,
  primary: <Result>(use: (reader: Reader) => Result | Promise<Result>) => Promise<Result>,
): Replicas {
  const { process, heartbeat, steadyNow } = parts;
  const replicas = addresses.map((address) => createReplica(address, parts));
  const { start, next, stop } = followed(replicas, parts);
  const fallbacks: Record<ReadFallback, number> = { no_replica: 0, failed: 0, not_found: 0 };
  const places = new WeakMap<object, { place: Promise<Place | null> }>();

  /** A replica that has everything that was committed before the call. */
  async function catchUp(): Promise<Place | null> {
    await start();
    const replica = next();
    if (replica === null) return null;
    const until = steadyNow() + CATCH_UP_MS_MAX;
    // Reads go on where nothing can be committed.
    const beat = await beatIn(heartbeat, CATCH_UP_MS_MAX);
    return beat !== null && (await replica.waitFor(beat, until)) ? { replica, beat } : null;
  }

  /** What a replica answers, as a list of one; null where it is to be read from the primary. */
  async function readPlaced<Result>(use: Use<Result>, work: object): Promise<readonly [Result] | null> {
    const placed = places.get(work) ?? { place: catchUp() };
    places.set(work, placed);
    const place = await placed.place;
    if (place === null) return fallBack("no_replica");
    try {
      return [await place.replica.read((reader) => use(reader, true), place.beat)];
    } catch {
      placed.place = Promise.resolve(null);
      return fallBack("failed");
    }
  }

  async function readNear<Result>(
    use: Use<Result>,
    suffices: (result: Result) => boolean,
  ): Promise<readonly [Result] | null> {
    void start();
    const replica = next();
    if (replica === null) return fallBack("no_replica");
    try {
      const result = await replica.read((reader) => use(reader, true), null);
      return suffices(result) ? [result] : fallBack("not_found");
    } catch {
      return fallBack("failed");
    }
  }

  function fallBack(why: ReadFallback): null {
    fallbacks[why] += 1;
    return null;
  }

  return {
    async read<Result>(use: Use<Result>, from?: FromCopy<Result>): Promise<Result> {
      if (from !== undefined && replicas.length > 0) {
        const found = await ("work" in from ? readPlaced(use, from.work) : readNear(use, from.suffices));
        if (found) return found[0];
      }
      const held = from?.otherwise?.();
      return held ? use(held) : primary((reader) => use(reader));
    },
    async alone(work) {
      if (replicas.length === 0) return null;
      const place = await catchUp();
      if (place === null) return fallBack("no_replica");
      const { replica, beat } = place;
      try {
        return await replica.alone((ask) => work(ask, replica.name, () => mustHaveBeat(ask, process, beat)));
      } catch {
        return fallBack("failed");
      }
    },
    start: () => (replicas.length === 0 ? Promise.resolve() : start()),
    figures: () => ({
      readReplicas: replicas.map((replica) => replica.figures()),
      fallbacks: { ...fallbacks },
    }),
    async close() {
      stop();
      await Promise.all(replicas.map((replica) => replica.close()));
    },
  };
}

/** Asks the replicas again and again how late they are, from the first `start` on. */
function followed(replicas: readonly Replica[], { heartbeat, steadyNow }: ReplicaParts) {
  let started: Promise<void> | null = null;
  let timer: Timer | null = null;
  let stopped = false;
  let turn = 0;

  /** Where the primary does not commit, how late they are follows from the beats before. */
  async function follow(): Promise<void> {
    const beat = (await beatIn(heartbeat, FOLLOW_MS_MAX)) ?? 0;
    const until = steadyNow() + FOLLOW_MS_MAX;
    await Promise.all(replicas.map((replica) => replica.waitFor(beat, until)));
  }

  function followAgain(): void {
    if (stopped) return;
    timer = setTimeout(() => void follow().then(followAgain), ASK_MS);
    timer.unref();
  }

  return {
    start(): Promise<void> {
      started ??= follow().then(followAgain);
      return started;
    },
    /** One of those that are near enough, each in its turn. */
    next(): Replica | null {
      turn += 1;
      const near = replicas.filter((replica) => replica.isInUse());
      return near[turn % near.length] ?? null;
    },
    stop(): void {
      stopped = true;
      if (timer) clearTimeout(timer);
    },
  };
}

/** A beat that comes in time; null where it fails, or takes longer. */
async function beatIn(heartbeat: Heartbeat, ms: number): Promise<number | null> {
  const beat = await inTime(heartbeat.beat(), ms).catch(() => LATE);
  return typeof beat === "number" ? beat : null;
}
