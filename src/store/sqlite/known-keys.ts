import type { Database } from "bun:sqlite";
import type { ApiKey } from "../../core/api-key.ts";
import type { Write } from "../batch.ts";

/** How many keys are remembered at most. */
const KNOWN_MAX = 10_000;

/** API keys by the hash of their secret, as they were committed last: by this process or by another. */
export type KnownKeys = {
  of(secretHash: string): ApiKey | Promise<ApiKey | null>;
  /** These writes are in the transaction. */
  written(writes: readonly Write[]): void;
  /** The transaction is on disk. */
  committed(): void;
  /** The transaction was undone. */
  undone(): void;
};

/**
 * @param read reads a key from a snapshot of what is committed
 * @param onOthersCommit another process has committed: a snapshot from before that may not be read from any more
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
  /** Rises whenever a key may have become another. */
  let changes = 0;
  const uncommitted: ApiKey[] = [];

  /** Forgets all keys where another process has committed. It asks once in a turn of the event loop. */
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
    // A key that was written while it was read may be another by now.
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
