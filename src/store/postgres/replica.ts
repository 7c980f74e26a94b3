import type { ReadReplicaFigures, ReadReplicaState } from "../../core/database.ts";
import { SECOND_MS } from "../../core/time.ts";
import type { Reader } from "../reader.ts";
import { nameOfDatabase, type PostgresAddress } from "./address.ts";
import { ConnectionLost, NoAnswer } from "./client.ts";
import type { Heartbeat } from "./heartbeat.ts";
import { type Ask, askOn } from "./ledger-rows.ts";
import {
  type Connected,
  type ConnectionParts,
  createReplicaConnections,
  untilLost,
} from "./replica-connections.ts";

/** How much of what was committed may be missing in what is read from a replica. */
const LAG_MS_MAX = 5 * SECOND_MS;
/** How long a replica may take to say which beat it has. After that it counts as away. */
const ANSWER_MS_MAX = 2 * SECOND_MS;
/** After a replica was silent amid a read, no read goes to it for so long, although it may still say which beat it has. */
const LEFT_MS = 30 * SECOND_MS;
/** How long it is waited before it is asked again whether a beat has come; the longest wait, and the first. */
const AGAIN_MS = { first: 2, max: 50 };
const SEEN = "SELECT number FROM heartbeats WHERE process = ?";
const SEEN_BY_ONE = "SELECT number FROM heartbeats WHERE process = $1::text";
type Seen = { readonly number: bigint };

/** What was read lacks too much. */
class TooLate extends Error {}
const LACKS = "a replica lacks too much of what was committed";

/** A server that copies the primary, and that reads go to while it has nearly everything. */
export type Replica = {
  readonly name: string;
  /** Whether it is near enough, as far as is known. */
  isInUse(): boolean;
  figures(): ReadReplicaFigures;
  /** Asks again and again whether a beat has come, until then, and once at least. Answers whether it has. */
  waitFor(beat: number, untilMs: number): Promise<boolean>;
  /**
   * Reads from a snapshot of the replica.
   *
   * @param least the beat that must be there; null where what is missing may be as much as the bound
   * @throws TooLate where it is not there
   * @throws ConnectionLost as soon as it is known that the replica does not answer
   */
  read<Result>(use: (reader: Reader) => Result | Promise<Result>, least: number | null): Promise<Result>;
  /** Works on a connection of its own. @throws ConnectionLost as `read` does */
  alone<Result>(work: (ask: Ask) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
};

export type ReplicaParts = ConnectionParts & {
  /** This process, among those that use the ledger. */
  readonly process: string;
  readonly heartbeat: Heartbeat;
  readonly steadyNow: () => number;
  /** Called where it stands otherwise than before. */
  readonly onReplica?: (name: string, state: ReadReplicaState) => void;
};

export function createReplica(address: PostgresAddress, parts: ReplicaParts): Replica {
  const { process, heartbeat, replay, patience, steadyNow, onReplica = () => {} } = parts;
  const name = nameOfDatabase(address);
  const connections = createReplicaConnections(address, parts, () => stand("away"));
  let state: ReadReplicaState | null = null;
  let seen = 0;
  let reads = 0;
  let asking: Promise<void> | null = null;
  let leftUntil = Number.NEGATIVE_INFINITY;

  function stand(next: ReadReplicaState): void {
    const now = steadyNow() < leftUntil ? "away" : next;
    if (now !== state) onReplica(name, now);
    state = now;
  }

  const isNear = (): boolean => heartbeat.ageOf(seen) <= LAG_MS_MAX;

  /** Asks which beat it has. */
  async function ask(): Promise<void> {
    const now = connections.now();
    const timer = setTimeout(() => void connections.lose(now, new Error("no answer in time")), ANSWER_MS_MAX);
    try {
      seen = Math.max(seen, await untilLost(now, seenThrough(now, process)));
      if (isNear()) stand("in_use");
    } catch (error) {
      // A table that is not there yet is there later.
      if (error instanceof ConnectionLost) await connections.lose(now, error);
    } finally {
      clearTimeout(timer);
    }
  }

  function askTogether(): Promise<void> {
    // After `close` there is nothing to ask.
    asking ??= ask()
      .catch(() => {})
      .finally(() => {
        asking = null;
      });
    return asking;
  }

  async function answerOf<Result>(now: Connected, asked: Promise<Result>): Promise<Result> {
    try {
      return await untilLost(now, asked);
    } catch (error) {
      if (error instanceof NoAnswer) leftUntil = steadyNow() + LEFT_MS;
      if (error instanceof ConnectionLost) await connections.lose(now, error);
      throw error;
    }
  }

  return {
    name,
    isInUse: () => state === "in_use" && isNear(),
    figures: () => ({ ...{ name, state, reads }, lagMs: seen === 0 ? null : heartbeat.lagAfter(seen) }),
    async waitFor(beat, untilMs) {
      for (let pauseMs = AGAIN_MS.first; ; pauseMs = Math.min(2 * pauseMs, AGAIN_MS.max)) {
        await askTogether();
        const isThere = seen >= beat;
        if (isThere || !connections.isConnected() || steadyNow() + pauseMs > untilMs) {
          if (connections.isConnected() && !isNear()) stand("late");
          return isThere;
        }
        await Bun.sleep(pauseMs);
      }
    },
    async read(use, least) {
      const now = connections.now();
      const statement = replay.connection.raw.query<Seen, [string]>(SEEN);
      const reading = now.snapshots.read(async (reader, askIn) => {
        // In one exchange with what is read first, so that it is said of the very same snapshot.
        const [result, row] = await Promise.all([use(reader), askIn(() => statement.get(process))]);
        const shown = Number(row?.number ?? 0n);
        if (least === null ? heartbeat.ageOf(shown) > LAG_MS_MAX : shown < least) throw new TooLate(LACKS);
        return result;
      });
      const result = await answerOf(now, reading);
      reads += 1;
      return result;
    },
    alone(work) {
      const now = connections.now();
      return answerOf(now, aloneOn(now, work, patience.replicaAuditMs));
    },
    close: connections.close,
  };
}

async function aloneOn<Result>(
  { pool }: Connected,
  work: (ask: Ask) => Promise<Result>,
  answerMsMax: number,
): Promise<Result> {
  const own = await pool.reserve();
  try {
    return await work(askOn(own, answerMsMax));
  } finally {
    own.release();
  }
}

/** The newest beat that a replica has of a process; 0 where it has none. */
async function seenThrough({ sessions }: Connected, process: string): Promise<number> {
  const session = await sessions.reserve();
  try {
    const [rows] = await session.exchange([{ text: SEEN_BY_ONE, params: [process] }]);
    return Number((rows as readonly Seen[] | undefined)?.[0]?.number ?? 0n);
  } finally {
    session.release();
  }
}

/** In a transaction: fails where a beat is not there. */
export async function mustHaveBeat(ask: Ask, process: string, beat: number): Promise<void> {
  const [[number] = []] = await ask(SEEN_BY_ONE, [process]);
  if (Number(number ?? 0n) < beat) throw new TooLate(LACKS);
}
