import { join } from "node:path";
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from "node:worker_threads";
import { toPostgres } from "../../src/store/postgres/dialect.ts";
import type { SqlDatabase, SqlValue } from "../../src/store/sql/database.ts";

/** How the rows of a statement are wanted. A script is statements without parameters, and answers none; of `beside` nobody waits for the end. */
type Form = "objects" | "values" | "script" | "beside";
/** A statement; without a text the connection is closed. */
export type Asked = {
  readonly url: string;
  readonly text: string | null;
  readonly params: readonly unknown[];
  readonly form: Form;
};
export type Answered =
  | { readonly rows: readonly unknown[]; readonly count: number }
  | { readonly failed: string };
export type ThreadData = { readonly port: MessagePort; readonly signal: Int32Array };

/** As long as any test may take. */
const WAIT_MS_MAX = 30_000;

/**
 * PostgreSQL for tests that look into a ledger without waiting, as they look into the embedded engine's file: another thread asks
 * the server, and this one stands still meanwhile.
 */
let thread: { readonly port: MessagePort; readonly signal: Int32Array } | null = null;

function startThread(): NonNullable<typeof thread> {
  const { port1, port2 } = new MessageChannel();
  const signal = new Int32Array(new SharedArrayBuffer(4));
  const workerData: ThreadData = { port: port2, signal };
  new Worker(join(import.meta.dir, "sync-sql-thread.ts"), { workerData, transferList: [port2] }).unref();
  return { port: port1, signal };
}

function ask(asked: Asked): Extract<Answered, { rows: unknown }> {
  thread ??= startThread();
  const { port, signal } = thread;
  Atomics.store(signal, 0, 0);
  port.postMessage(asked);
  if (Atomics.wait(signal, 0, 0, WAIT_MS_MAX) === "timed-out")
    throw new Error(`PostgreSQL did not answer in ${WAIT_MS_MAX} ms: ${asked.text}`);
  const { message } = receiveMessageOnPort(port) as { readonly message: Answered };
  if ("failed" in message) throw new Error(message.failed);
  return message;
}

/** Runs statements without parameters in their turn, and waits for nothing. */
export function runBeside(url: string, text: string): void {
  thread ??= startThread();
  thread.port.postMessage({ url, text, params: [], form: "beside" } satisfies Asked);
}

/** Runs statements without parameters, such as those that make the tables. */
export function runScript(url: string, text: string): void {
  ask({ url, text, params: [], form: "script" });
}

/** A connection of its own to a database, with statements in SQLite's dialect. */
export function openSyncSql(url: string): { readonly raw: SqlDatabase; close(): void } {
  function run(statement: string, form: Form, values: readonly SqlValue[]) {
    const { text, params } = toPostgres(statement).bind(values);
    return ask({ url, text, params, form });
  }
  const prepare = (text: string) => ({
    get: (...values: SqlValue[]) => run(text, "objects", values).rows[0] ?? null,
    all: (...values: SqlValue[]) => run(text, "objects", values).rows,
    values: (...values: SqlValue[]) => run(text, "values", values).rows,
    run: (...values: SqlValue[]) => ({ changes: run(text, "objects", values).count, lastInsertRowid: 0 }),
  });
  return {
    raw: { prepare, query: prepare } as unknown as SqlDatabase,
    close: () => void ask({ url, text: null, params: [], form: "script" }),
  };
}
