import type { ApiKey } from "../../core/api-key.ts";
import type { SqlReader } from "../sql/readers/sql-reader.ts";
import { ConnectionLost, type Session, type Sessions, sqlStateOf } from "./client.ts";
import { OF_OTHERS } from "./contention.ts";
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

/** How long an answer is waited for. A read may be asked again, on another connection. */
const ANSWER_MS_MAX = 5_000;
/** How often a connection is used before it is given back. */
const ROUNDS_MAX = 100;

type Asked = {
  readonly secretHash: string;
  /** Whether it was asked before: the connection was lost, or another transaction was in the way. */
  readonly isAgain: boolean;
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
    let session: Session;
    try {
      session = await sessions.reserve(Math.min(ANSWER_MS_MAX, sessions.patience.exchangeMs));
    } catch (error) {
      for (const { fail } of take()) fail(error);
      return;
    }
    try {
      for (let rounds = 0; rounds < ROUNDS_MAX && waiting.length > 0; rounds++) await answer(session, take());
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
    let left = asked;
    try {
      const answers: Answers = new Map();
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
      const passes = error instanceof ConnectionLost || OF_OTHERS.has(sqlStateOf(error) ?? "");
      const again = passes ? left.filter(({ isAgain }) => !isAgain) : [];
      waiting = [...again.map((one) => ({ ...one, isAgain: true })), ...waiting];
      for (const one of left) if (!again.includes(one)) one.fail(error);
      throw error;
    }
  }

  function start(): void {
    running = work()
      // Who asked has heard of it, or is asked again.
      .catch(() => {})
      .finally(() => {
        running = null;
        if (waiting.length > 0) start();
      });
  }

  return {
    of: (secretHash) =>
      new Promise((resolve, fail) => {
        waiting.push({ secretHash, isAgain: false, resolve, fail });
        if (running === null) start();
      }),
    close: async () => void (await running),
  };
}
