import type { Reader } from "../../reader.ts";
import type { SqlReader } from "./sql-reader.ts";

type Reads = Readonly<Record<string, (...asked: unknown[]) => unknown>>;
/** Who reads from a snapshot now. Nobody may once it has ended. */
type Used = { readonly users: number };
/** The reads of one noun are methods of this object, which knows its snapshot. */
type Noun<Snapshot> = { readonly snapshot: Snapshot };

/**
 * Makes the readers of the seam. Each read gives a promise, and fails after its snapshot has ended. The methods are made here once,
 * and the readers inherit them, since every turn of the event loop begins a new snapshot.
 *
 * @param readIn does a read in its snapshot
 */
export function createReaders<Snapshot extends Used>(
  reader: SqlReader,
  readIn: (snapshot: Snapshot, read: () => unknown) => unknown,
): (snapshot: Snapshot) => Reader {
  const nouns = Object.entries(reader as unknown as Readonly<Record<string, Reads>>).map(([noun, reads]) => {
    const methods = Object.entries(reads).map(([name, read]) => [
      name,
      async function (this: Noun<Snapshot>, ...asked: unknown[]) {
        if (this.snapshot.users === 0)
          throw new Error(`${noun}.${name} reads from a snapshot that was let go`);
        return readIn(this.snapshot, () => read(...asked));
      },
    ]);
    return [noun, Object.fromEntries(methods) as object] as const;
  });
  return (snapshot) => {
    const readerOfSnapshot: Record<string, object> = {};
    for (const [noun, methods] of nouns)
      readerOfSnapshot[noun] = Object.assign(Object.create(methods) as object, { snapshot });
    return readerOfSnapshot as unknown as Reader;
  };
}
