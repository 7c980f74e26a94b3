import type { Write } from "../change.ts";
import type { Store } from "../store.ts";

/** Who is told of what was written, and what other processes have written. */
export type Watchers = {
  readonly ofStore: Pick<Store, "watch" | "newsOfOthers">;
  /** Called with the writes of the open transaction. */
  written(writes: readonly Write[]): void;
  /** Called when the transaction is on disk. */
  committed(): void;
  /** Called when the transaction was undone. */
  undone(): void;
};

export function createWatchers(newsOfOthers: Store["newsOfOthers"]): Watchers {
  const watching = new Set<(writes: readonly Write[]) => void>();
  let uncommitted: Write[] = [];
  return {
    ofStore: {
      watch(onWritten) {
        watching.add(onWritten);
        return () => void watching.delete(onWritten);
      },
      newsOfOthers,
    },
    written(writes) {
      if (watching.size > 0) for (const write of writes) uncommitted.push(write);
    },
    committed() {
      if (uncommitted.length === 0) return;
      const writes = uncommitted;
      uncommitted = [];
      // After the answers: nobody who waits for a commit waits for those who watch.
      setImmediate(() => {
        for (const onWritten of watching) onWritten(writes);
      });
    },
    undone() {
      uncommitted = [];
    },
  };
}
