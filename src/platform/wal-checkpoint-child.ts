import { liveAsLongAsParent } from "./child-life.ts";
import { withReserve } from "./descriptors.ts";

/**
 * Copies the ledger's write-ahead log into the ledger's file, in a process of its own. On the main thread this would hold up
 * every request while the disk writes (https://sqlite.org/wal.html, Performance Considerations).
 */
export type WalCheckpointChild = {
  /**
   * Copies the log, and answers how many pages it had. The first call starts the child, and so does the next
   * call after the child has ended. Rejects where the copy failed.
   */
  checkpoint(): Promise<number>;
  /** Ends the child, and resolves when it is gone. */
  stop(): Promise<void>;
};

/** A child that has not answered after this time is killed. */
const CHECKPOINT_MS_MAX = 60_000;

type Answer = { readonly pages: number } | { readonly problem: string };

/** @param command starts this executable so that it calls `runWalCheckpointChild` on the data folder */
export function createWalCheckpointChild(command: readonly string[]): WalCheckpointChild {
  let child: Bun.Subprocess | null = null;
  let waiting: { resolve(pages: number): void; reject(error: Error): void } | null = null;
  let stopped = false;

  function receive(answer: Answer): void {
    if ("pages" in answer) waiting?.resolve(answer.pages);
    else waiting?.reject(new Error(answer.problem));
    waiting = null;
  }

  function start(): Bun.Subprocess {
    return withReserve("this thread", () =>
      Bun.spawn([...command], {
        // The child inherits nothing: no secrets, and no settings.
        env: {},
        stdio: ["ignore", "ignore", "ignore"],
        ipc: receive,
        onExit() {
          child = null;
          receive(stopped ? { pages: 0 } : { problem: "the process that copies the write-ahead log ended" });
        },
      }),
    );
  }

  return {
    checkpoint() {
      if (stopped) return Promise.resolve(0);
      const { promise, ...settle } = Promise.withResolvers<number>();
      waiting = settle;
      const working = child ?? start();
      child = working;
      working.send("checkpoint");
      const timer = setTimeout(() => working.kill("SIGKILL"), CHECKPOINT_MS_MAX);
      return promise.finally(() => clearTimeout(timer));
    },
    async stop() {
      stopped = true;
      // An unfinished copy does no harm: the log still holds everything.
      child?.kill("SIGKILL");
      await child?.exited;
    },
  };
}

/** The hidden command: copies the log whenever its parent asks, until the parent ends. Never resolves. */
export function runWalCheckpointChild(checkpoint: () => number): Promise<never> {
  liveAsLongAsParent();
  process.on("message", () => void process.send?.(attempt(checkpoint)));
  return new Promise(() => {});
}

function attempt(checkpoint: () => number): Answer {
  try {
    return { pages: checkpoint() };
  } catch (error) {
    return { problem: String(error) };
  }
}
