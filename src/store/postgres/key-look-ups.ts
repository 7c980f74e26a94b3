import type { ApiKey } from "../../core/api-key.ts";
import type { SqlReader } from "../sql/readers/sql-reader.ts";
import type { Session, Sessions } from "./client.ts";
import { type Answers, fetchAnswers, type Lacking, type Replay } from "./replay.ts";

/** Looks up API keys by the hashes of their secrets. */
export type KeyLookUps = {
  /**
   * Reads a key as it was committed last, by any instance.
   *
   * @returns null where there is none
   */
  of(secretHash: string): Promise<ApiKey | null>;
  close(): Promise<void>;
};

type Asked = {
  readonly secretHash: string;
  readonly resolve: (key: ApiKey | null) => void;
  readonly fail: (error: unknown) => void;
};

/**
 * Every request names a key, so those that come while others are looked up are looked up together after these: one statement, without a
 * transaction.
 */
export function createKeyLookUps(sessions: Sessions, replay: Replay, { apiKeys }: SqlReader): KeyLookUps {
  let waiting: Asked[] = [];
  let running: Promise<void> | null = null;

  /** Answers those that wait, as long as there are any. */
  async function work(): Promise<void> {
    const session = await sessions.reserve();
    try {
      for (let asked = take(); asked.length > 0; asked = take()) await answer(session, asked);
    } finally {
      session.release();
    }
  }

  function take(): readonly Asked[] {
    const asked = waiting;
    waiting = [];
    return asked;
  }

  async function answer(session: Session, asked: readonly Asked[]): Promise<void> {
    try {
      const answers: Answers = new Map();
      let left = asked;
      while (left.length > 0) {
        const lacking: Lacking = new Map();
        left = left.filter(({ secretHash, resolve }) => {
          const found = replay.attempt({ answers, lacking }, () => apiKeys.byHash(secretHash));
          if (found) resolve(found.result);
          return found === null;
        });
        if (left.length > 0) await fetchAnswers(session, lacking, answers);
      }
    } catch (error) {
      for (const { fail } of asked) fail(error);
      throw error;
    }
  }

  function start(): void {
    running = work()
      .catch((error: unknown) => {
        for (const { fail } of take()) fail(error);
      })
      .finally(() => {
        running = null;
        if (waiting.length > 0) start();
      });
  }

  return {
    of: (secretHash) =>
      new Promise((resolve, fail) => {
        waiting.push({ secretHash, resolve, fail });
        if (running === null) start();
      }),
    close: async () => void (await running),
  };
}
