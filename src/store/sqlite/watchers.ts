import type { Database } from "bun:sqlite";
import type { Write } from "../change.ts";
import type { Store } from "../store.ts";

/** Who is told of what was written, and whether another process has written. */
export type Watchers = {
  readonly ofStore: Pick<Store, "watch" | "othersHaveCommitted">;
  /** Called with the writes of the open transaction. */
  written(writes: readonly Write[]): void;
  /** Called when the transaction is on disk. */
  committed(): void;
  /** Called when the transaction was undone. */
  undone(): void;
};

/** @param onOthersCommit is called when another process has committed: no later read may use an older snapshot */
export function createWatchers(writer: Database, onOthersCommit: () => void): Watchers {
  const dataVersion = writer.query<{ data_version: bigint }, []>("PRAGMA data_version");
  const watching = new Set<(writes: readonly Write[]) => void>();
  let version: bigint | undefined;
  let uncommitted: Write[] = [];
  return {
    ofStore: {
      watch(onWritten) {
        watching.add(onWritten);
        return () => void watching.delete(onWritten);
      },
      othersHaveCommitted() {
        const current = dataVersion.get()?.data_version;
        const isOthers = version !== undefined && current !== version;
        version = current;
        if (isOthers) onOthersCommit();
        return isOthers;
      },
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
