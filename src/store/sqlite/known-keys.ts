import type { Database } from "bun:sqlite";
import type { ApiKey } from "../../core/api-key.ts";
import type { Write } from "../change.ts";

/** How many keys are remembered at most. */
const KNOWN_MAX = 10_000;

/** The API keys as they were last committed, by this process or another, under the hash of their secret. */
export type KnownKeys = {
  of(secretHash: string): ApiKey | Promise<ApiKey | null>;
  /** Called with the writes of the open transaction. */
  written(writes: readonly Write[]): void;
  /** Called when the transaction is on disk. */
  committed(): void;
  /** Called when the transaction was undone. */
  undone(): void;
};

/**
 * @param read reads a committed key from a snapshot
 * @param onOthersCommit is called when another process has committed: no later read may use an older snapshot
 */
export function createKnownKeys(
  writer: Database,
  read: (secretHash: string) => Promise<ApiKey | null>,
  onOthersCommit: () => void,
): KnownKeys {
  const dataVersion = writer.query<{ data_version: bigint }, []>("PRAGMA data_version");
  const known = new Map<string, ApiKey>();
  let version: bigint | undefined;
  let isCurrent = false;
  /** Rises whenever a key may have changed. */
  let changes = 0;
  const uncommitted: ApiKey[] = [];

  /** Forgets all keys when another process has committed. It checks that once in a turn of the event loop. */
  function refresh(): void {
    if (isCurrent) return;
    const current = dataVersion.get()?.data_version;
    isCurrent = true;
    setImmediate(() => {
      isCurrent = false;
    });
    if (current === version) return;
    version = current;
    changes += 1;
    known.clear();
    onOthersCommit();
  }

  async function readAndRemember(secretHash: string): Promise<ApiKey | null> {
    const readAt = changes;
    const key = await read(secretHash);
    // A key that changed during the read may be outdated, so it is not remembered.
    if (key && readAt === changes) remember(key);
    return key;
  }

  function remember(key: ApiKey): void {
    if (known.size >= KNOWN_MAX) known.clear();
    known.set(key.secretHash, key);
  }

  return {
    of(secretHash) {
      refresh();
      return known.get(secretHash) ?? readAndRemember(secretHash);
    },
    written(writes) {
      for (const write of writes) {
        if (write.kind === "put" && write.put.kind === "apiKey") uncommitted.push(write.put.row);
      }
    },
    committed() {
      if (uncommitted.length === 0) return;
      changes += 1;
      for (const key of uncommitted.splice(0)) remember(key);
    },
    undone() {
      uncommitted.length = 0;
    },
  };
}
