import { Database, type Statement } from "bun:sqlite";
import type { FailingStatements, Fault } from "./statement-faults.ts";

/** Makes statements of the embedded engine fail, in the ledgers that are opened from now on. */
export type FailingInSqlite = FailingStatements & {
  /** Connections that write, in the order of their first transaction. */
  readonly writers: readonly Database[];
};

const METHODS = ["get", "all", "values", "run"] as const;
type Method = (...given: unknown[]) => unknown;

export function watchSqlite(): FailingInSqlite {
  const writers: Database[] = [];
  let fault: Fault | null = null;
  let text: string | null = null;
  let transaction = 0;
  let statement = 0;
  let counted = 0;
  let struck: string | null = null;

  /** Whether this statement, which is about to run, is to fail. */
  function isDue(database: Database, sql: string): boolean {
    const begins = sql === "BEGIN IMMEDIATE";
    if (begins && !writers.includes(database)) writers.push(database);
    const writes = writers.includes(database);
    if (text !== null) return !writes && sql === text && struck === null;
    if (!fault || !writes) return false;
    if (begins) [transaction, statement] = [transaction + 1, 0];
    statement++;
    if (transaction === fault.transaction) counted = statement;
    if (struck !== null) return fault.lasts ?? false;
    return transaction === fault.transaction && [statement, sql].includes(fault.statement);
  }

  function watch<Prepared extends Statement>(database: Database, sql: string, prepared: Prepared): Prepared {
    if (watched.has(prepared)) return prepared;
    watched.add(prepared);
    // Bun gives every statement methods of its own.
    const own = prepared as unknown as Record<(typeof METHODS)[number], Method>;
    for (const name of METHODS) {
      const method = own[name].bind(prepared);
      own[name] = (...given) => {
        if (!isDue(database, sql)) return method(...given);
        const after = fault?.when === "after" && struck === null;
        struck ??= sql;
        if (after) method(...given);
        throw new Error(`injected: ${sql}`);
      };
    }
    return prepared;
  }

  const watched = new WeakSet<object>();
  const { prepare, query, run } = Database.prototype;
  Database.prototype.prepare = function (this: Database, sql: string, ...rest: never[]) {
    return watch(this, sql, prepare.call(this, sql, ...rest));
  } as typeof prepare;
  Database.prototype.query = function (this: Database, sql: string) {
    return watch(this, sql, query.call(this, sql));
  } as typeof query;
  Database.prototype.run = function (this: Database, sql: string, ...rest: never[]) {
    // Only prepared statements are counted.
    if (text === null || !isDue(this, sql)) return run.call(this, sql, ...rest);
    struck ??= sql;
    throw new Error(`injected: ${sql}`);
  } as typeof run;

  async function striking<T>(run: () => Promise<T>) {
    [transaction, statement, counted, struck] = [0, 0, 0, null];
    try {
      const result = await run();
      return { result, sql: struck };
    } finally {
      [fault, text] = [null, null];
    }
  }

  return {
    writers,
    during(next, run) {
      fault = next;
      return striking(run);
    },
    get counted() {
      return counted;
    },
    whileReading(sql, run) {
      text = sql;
      return striking(run);
    },
    restore() {
      Object.assign(Database.prototype, { prepare, query, run });
    },
  };
}
