import type { SQL } from "bun";
import { inTime, LATE } from "./in-time.ts";

/** A client of one connection. A statement that gets no answer in time fails, and the next one begins on a new connection. */
export type OneConnection = {
  run<Result>(work: (sql: SQL) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
};

/**
 * No wait rests on the client to end: Bun's waits where packets are lost without a word, and may not end what was under way on a
 * connection that is closed.
 *
 * @param connect makes a client of one connection
 */
export function oneConnection(connect: () => SQL, waitMs: number): OneConnection {
  let client: SQL | null = null;

  /** Nothing that is under way on it is waited for. */
  async function abandon(abandoned: SQL): Promise<void> {
    if (client === abandoned) client = null;
    await inTime(
      abandoned.close({ timeout: 0 }).catch(() => {}),
      waitMs,
    );
  }

  return {
    async run(work) {
      client ??= connect();
      const used = client;
      try {
        const result = await inTime(work(used), waitMs);
        if (result === LATE) throw new Error(`the database has not answered within ${waitMs} ms`);
        return result;
      } catch (error) {
        await abandon(used);
        throw error;
      }
    },
    async close() {
      if (client) await abandon(client);
    },
  };
}
