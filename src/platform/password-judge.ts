import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { SECOND_MS } from "../core/time.ts";

/** What a thread is asked: a password, and words that others know of its owner. */
export type JudgeQuestion = { readonly password: string; readonly known: readonly string[] };

/** In words, why a password is too easy to guess and what would help, never with a part of it; null where it is good enough. */
export type Weakness = string | null;

/** Loading takes most of a second of processor, and a judgement at most a tenth. The rest is for a busy machine. */
const ANSWER_MS_MAX = 15 * SECOND_MS;
/** The dictionaries take 100 MB of memory, so the thread ends when it has had nothing to do for so long. */
const IDLE_MS_MAX = 10 * SECOND_MS;

/** In the executable the thread is an entry point of the build, under its path below src. */
const THREAD = import.meta.dir.startsWith("/$bunfs/")
  ? "/$bunfs/root/platform/password-judge-thread.ts"
  : join(import.meta.dir, "password-judge-thread.ts");

/**
 * Judges passwords by zxcvbn, one after the other, in a thread: it would hold up the server for most of a second.
 * The thread starts with the first password, so no process that judges none loads anything. Throws where the
 * thread fails or does not answer in time.
 */
export function createPasswordJudge(idleMsMax = IDLE_MS_MAX): (question: JudgeQuestion) => Promise<Weakness> {
  let thread: Worker | null = null;
  let idle: Timer | undefined;
  let before: Promise<unknown> = Promise.resolve();

  function end(): void {
    void thread?.terminate();
    thread = null;
  }

  async function ask(question: JudgeQuestion): Promise<Weakness> {
    clearTimeout(idle);
    thread ??= new Worker(THREAD);
    thread.ref();
    try {
      const weakness = await answerOf(thread, question);
      // A process that has nothing else to do ends with it.
      thread.unref();
      idle = setTimeout(end, idleMsMax);
      idle.unref();
      return weakness;
    } catch (error) {
      end();
      throw error;
    }
  }

  return (question) => {
    const judged = before.then(() => ask(question));
    before = judged.catch(() => {});
    return judged;
  };
}

/** What the thread answers. It is asked one thing at a time, so its next message is the answer. */
async function answerOf(thread: Worker, question: JudgeQuestion): Promise<Weakness> {
  const { promise, resolve, reject } = Promise.withResolvers<Weakness>();
  const failed = (): void => reject(new Error("the thread that judges passwords has ended"));
  const timer = setTimeout(() => reject(new Error("a password could not be judged in time")), ANSWER_MS_MAX);
  thread.once("message", resolve);
  thread.once("error", reject);
  thread.once("exit", failed);
  try {
    thread.postMessage(question);
    return await promise;
  } finally {
    clearTimeout(timer);
    thread.off("message", resolve);
    thread.off("error", reject);
    thread.off("exit", failed);
  }
}
