import type { Update } from "../../core/messaging.ts";
import { MINUTE_MS } from "../../core/time.ts";

/** Which updates of the bot are worked on, in process memory: each once, those of a chat in their order, and none too often. */
export type Intake = {
  /**
   * Begins to work on an update, after the earlier ones of its chat. `full`: there is no place for it now, so it should be sent
   * again. Else why nothing is done, or null.
   *
   * @param isLinked whether the chat is somebody's; strangers' chats have fewer places
   */
  take(update: Update, isLinked: boolean, work: () => Promise<void>): "full" | string | null;
  /** What is being worked on now. */
  underWay(): readonly Promise<void>[];
  /** Takes no more. Resolves when nothing is under way. */
  close(): Promise<void>;
};

/** How many updates are remembered: the bot API sends one again where it got no answer. */
const REMEMBERED_MAX = 10_000;
const UNDER_WAY_MAX = 64;
/** How many updates a minute are worked on: of a linked chat, of a stranger's, and of all strangers together. */
const LINKED_MAX = 30;
const STRANGER_MAX = 5;
const STRANGERS_MAX = 60;

type ChatUpdate = Exclude<Update, { readonly kind: "ignored" }>;

/**
 * @param monotonicNow a clock that never jumps, in milliseconds
 * @param onFault is called with an error of the work
 */
export function createIntake(monotonicNow: () => number, onFault: (error: unknown) => void): Intake {
  const seen = new Set<number>();
  /** The last work of each chat that has any under way. */
  const tails = new Map<string, Promise<void>>();
  const underWay = new Set<Promise<void>>();
  const counts = minuteCounts(monotonicNow);
  let closed = false;

  /** Whether the chat, or all strangers, have sent too much in this minute. */
  function isTooMuch({ chatId }: ChatUpdate, isLinked: boolean): boolean {
    const own = counts.add(chatId);
    if (isLinked) return own > LINKED_MAX;
    return own > STRANGER_MAX || counts.add(STRANGERS) > STRANGERS_MAX;
  }

  function begin(chatId: string, work: () => Promise<void>): void {
    const before = tails.get(chatId) ?? Promise.resolve();
    const working = before.then(work).catch(onFault);
    tails.set(chatId, working);
    underWay.add(working);
    void working.then(() => {
      underWay.delete(working);
      if (tails.get(chatId) === working) tails.delete(chatId);
    });
  }

  return {
    take(update, isLinked, work) {
      if (closed || underWay.size >= UNDER_WAY_MAX) return "full";
      if (seen.has(update.id)) return "known already";
      seen.add(update.id);
      const [oldest] = seen;
      if (seen.size > REMEMBERED_MAX && oldest !== undefined) seen.delete(oldest);
      if (update.kind === "ignored") return update.why;
      if (isTooMuch(update, isLinked)) return "too many in a minute";
      begin(update.chatId, work);
      return null;
    },
    underWay: () => [...underWay],
    async close() {
      closed = true;
      while (underWay.size > 0) await Promise.allSettled(underWay);
    },
  };
}

/** Not the id of a chat. */
const STRANGERS = "strangers";

/** Counts what came in this minute, by name. Who is not linked may come in any number, and each minute forgets them. */
function minuteCounts(monotonicNow: () => number) {
  let minute = Number.NEGATIVE_INFINITY;
  let counts = new Map<string, number>();
  return {
    add(name: string): number {
      const current = Math.floor(monotonicNow() / MINUTE_MS);
      if (current !== minute) {
        minute = current;
        counts = new Map();
      }
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      return count;
    },
  };
}
