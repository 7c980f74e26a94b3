import { spyOn } from "bun:test";
import type { ReservedSQL, SQL } from "bun";
import * as client from "../../src/store/postgres/client.ts";
import type { FailingStatements, Fault } from "./statement-faults.ts";

/** What a connection is in the middle of. */
type Under = "read" | "write" | null;

/** A statement that the client was given, and sends when it is told to. */
type Prepared = SQL.Query<unknown>;

/**
 * Between the engine and Bun's client, in the ledgers that are opened from now on. The failures are real ones: the server is sent another
 * statement, which it refuses; or the connection is closed, once the server has answered, and nobody hears that.
 */
export function watchPostgres(): FailingStatements {
  let fault: Fault | null = null;
  let text: string | null = null;
  let transaction = 0;
  let statement = 0;
  let counted = 0;
  let struck: string | null = null;

  /**
   * Whether this statement, which is about to be sent, is to fail. Where the engine undoes a transaction and begins it again, such as with
   * more locks, this is the same one. A server takes every ROLLBACK.
   */
  function isDue(under: Under, sql: string): boolean {
    if (text !== null) return under === "read" && sql === text && struck === null;
    if (!fault || under !== "write" || sql === "ROLLBACK") return false;
    statement += 1;
    if (transaction === fault.transaction) counted = statement;
    if (struck !== null) return fault.lasts ?? false;
    return transaction === fault.transaction && [statement, sql].includes(fault.statement);
  }

  function watched(connection: ReservedSQL): ReservedSQL {
    let under: Under = null;
    let lost: Promise<never> | null = null;

    function send(sql: string, prepared: () => Prepared, asLists: boolean): Promise<unknown> {
      const execute = (query: Prepared) => (asLists ? query.values() : query).execute();
      if (lost) return lost;
      if (sql === "BEGIN") under = "write";
      else if (sql.startsWith("BEGIN")) under = "read";
      const isStruck = isDue(under, sql);
      if (sql === "COMMIT" && under === "write") [transaction, statement] = [transaction + 1, 0];
      if (sql === "COMMIT" || sql === "ROLLBACK") under = null;
      if (!isStruck) return execute(prepared());
      const isAnswered = fault?.when === "after" && struck === null;
      struck ??= sql;
      if (!isAnswered) return execute(refused(connection));
      lost = execute(prepared()).then(() => losing(connection));
      return lost;
    }

    const given = (sql: string, prepared: () => Prepared) => {
      let asLists = false;
      const query = {
        values() {
          asLists = true;
          return query;
        },
        execute: () => send(sql, prepared, asLists),
      };
      return query;
    };
    return Object.assign(
      (strings: TemplateStringsArray) => given(strings.join(""), () => connection(strings)),
      {
        unsafe: (sql: string, params: unknown[]) => given(sql, () => connection.unsafe(sql, params)),
        release: () => connection.release(),
        close: (options: { timeout: number }) => connection.close(options),
      },
    ) as unknown as ReservedSQL;
  }

  const { createSessions } = client;
  const creating = spyOn(client, "createSessions").mockImplementation((pool, patience) =>
    createSessions({ reserve: () => pool.reserve().then(watched) as never }, patience),
  );

  async function striking<T>(run: () => Promise<T>) {
    [transaction, statement, counted, struck] = [1, 0, 0, null];
    try {
      const result = await run();
      return { result, sql: struck };
    } finally {
      [fault, text] = [null, null];
    }
  }

  return {
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
    restore: () => creating.mockRestore(),
  };
}

/** A statement that the server refuses as where its disk fails. The transaction has failed then. */
const refused = (connection: ReservedSQL): Prepared =>
  connection`DO $$ BEGIN RAISE EXCEPTION 'injected' USING ERRCODE = 'io_error'; END $$`;

/** Closes a connection, and fails as what is asked on such a one. */
async function losing(connection: ReservedSQL): Promise<never> {
  void connection.close({ timeout: 0 });
  await connection`SELECT 1`;
  throw new Error("a connection that was closed has answered");
}
