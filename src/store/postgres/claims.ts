import type { SQL } from "bun";
import type { OneConnection } from "./one-connection.ts";

/** The rows that say what this instance works on. */
export type Claims = {
  /** Claims the work, does it, and lets it go. Those of many requests share a statement. */
  during<Result>(id: string, work: () => Promise<Result>): Promise<Result>;
  has(id: string): boolean;
  /** What this process works on goes over to a new instance, whose row was inserted in this transaction. */
  moveTo(tx: SQL, instance: string): Promise<void>;
  /** Lets go what could not be let go before. */
  flush(): Promise<void>;
};

/**
 * @param instance the id of this instance; null where it has none
 * @param notBegun makes the error for work that cannot begin
 */
export function createClaims(
  connection: OneConnection,
  instance: () => string | null,
  notBegun: (cause?: unknown) => Error,
): Claims {
  /** How many pieces of work go on, by what they move. */
  const going = new Map<string, number>();
  /** What certainly has a row, and what may have one, since the answer to a statement was lost. */
  let certain = new Set<string>();
  let possible = new Set<string>();
  let running: Promise<void> = Promise.resolve();
  let next: Promise<void> | null = null;

  async function write(): Promise<void> {
    const added = [...going.keys()].filter((id) => !certain.has(id));
    const deleted = [...new Set([...certain, ...possible])].filter((id) => !going.has(id));
    if (added.length === 0 && deleted.length === 0) return;
    const owner = instance();
    if (owner === null) throw notBegun();
    for (const id of [...added, ...deleted]) {
      possible.add(id);
      certain.delete(id);
    }
    const [inserted] = await connection.run((sql) =>
      Promise.all([
        sql`
          INSERT INTO claims (id, instance)
          SELECT id, ${owner}::text FROM unnest(${sql.array(added, "TEXT")}::text[]) AS id
          WHERE EXISTS (SELECT 1 FROM instances_running WHERE id = ${owner}::text AND seen_until > clock_timestamp())
          ON CONFLICT (id, instance) DO UPDATE SET instance = excluded.instance RETURNING id`.execute(),
        sql`
          DELETE FROM claims
          WHERE instance = ${owner}::text AND id = ANY(${sql.array(deleted, "TEXT")}::text[])`.execute(),
      ]),
    );
    // Another instance has begun meanwhile in this process: all claims were moved there.
    if (instance() !== owner) return;
    for (const id of deleted) possible.delete(id);
    if (inserted.length < added.length) throw notBegun();
    for (const id of added) {
      possible.delete(id);
      certain.add(id);
    }
  }

  /** Resolves when the rows say what was so at the call. One statement is under way at a time; what comes meanwhile shares the next. */
  function flush(): Promise<void> {
    next ??= running
      .catch(() => {})
      .then(() => {
        next = null;
        running = write();
        return running;
      });
    return next;
  }

  function leave(id: string): void {
    const others = (going.get(id) ?? 1) - 1;
    if (others > 0) going.set(id, others);
    else going.delete(id);
    // Where this fails, the next beat of the instance does it.
    if (others === 0) flush().catch(() => {});
  }

  return {
    has: (id) => going.has(id),
    flush,
    async during(id, work) {
      going.set(id, (going.get(id) ?? 0) + 1);
      try {
        if (!certain.has(id)) {
          await flush().catch((cause: unknown) => {
            throw notBegun(cause);
          });
        }
        if (!certain.has(id)) throw notBegun();
        return await work();
      } finally {
        leave(id);
      }
    },
    async moveTo(tx, owner) {
      const ids = [...going.keys()];
      await tx`
        INSERT INTO claims (id, instance)
        SELECT id, ${owner}::text FROM unnest(${tx.array(ids, "TEXT")}::text[]) AS id`;
      certain = new Set(ids);
      possible = new Set();
    },
  };
}
