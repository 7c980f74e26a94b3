import { join } from "node:path";
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from "node:worker_threads";
import { toPostgres } from "../../src/store/postgres/dialect.ts";
import type { SqlDatabase, SqlValue } from "../../src/store/sql/database.ts";

/** How the rows of a statement are wanted. A script is statements without parameters, and answers none; of `beside` nobody waits for the end. */
type Form = "objects" | "values" | "script" | "beside";
/** A statement; without a text the connection is closed. */
export type Asked = {
  readonly number: number;
  readonly url: string;
  readonly text: string | null;
  readonly params: readonly unknown[];
  readonly form: Form;
};
export type Answered = Answer & { readonly number: number };
export type Answer =
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

let last = 0;

function ask(asked: Omit<Asked, "number">): Extract<Answer, { rows: unknown }> {
  thread ??= startThread();
  const { port, signal } = thread;
  last += 1;
  port.postMessage({ ...asked, number: last } satisfies Asked);
  for (;;) {
    const answers = Atomics.load(signal, 0);
    const { message } = (receiveMessageOnPort(port) ?? {}) as { readonly message?: Answered };
    if (message?.number === last) {
      if ("failed" in message) throw new Error(message.failed);
      return message;
    }
    // An answer that came too late for its question is passed over.
    if (message === undefined && Atomics.wait(signal, 0, answers, WAIT_MS_MAX) === "timed-out")
      throw new Error(`PostgreSQL did not answer in ${WAIT_MS_MAX} ms: ${asked.text}`);
  }
}

/** Runs statements without parameters in their turn, and waits for nothing. */
export function runBeside(url: string, text: string): void {
  thread ??= startThread();
  thread.port.postMessage({ number: 0, url, text, params: [], form: "beside" } satisfies Asked);
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
