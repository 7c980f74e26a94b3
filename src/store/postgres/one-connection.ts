import type { SQL } from "bun";

/** A client of one connection. A statement that gets no answer in time fails, and the next one begins on a new connection. */
export type OneConnection = {
  run<Result>(work: (sql: SQL) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
};

/**
 * Bun's client waits without end where packets are lost without a word, so that every wait has a timer here.
 *
 * @param connect makes a client of one connection
 */
export function oneConnection(connect: () => SQL, waitMs: number): OneConnection {
  let client: SQL | null = null;

  /** Nothing that is under way on it is waited for: it fails at once. */
  async function abandon(abandoned: SQL): Promise<void> {
    if (client === abandoned) client = null;
    await abandoned.close({ timeout: 0 }).catch(() => {});
  }

  return {
    async run(work) {
      client ??= connect();
      const used = client;
      const timer = setTimeout(() => void abandon(used), waitMs);
      try {
        return await work(used);
      } catch (error) {
        await abandon(used);
        throw error;
      } finally {
        clearTimeout(timer);
      }
    },
    async close() {
      if (client) await abandon(client);
    },
  };
}
