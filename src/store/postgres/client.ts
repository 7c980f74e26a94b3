import type { ReservedSQL, SQL } from "bun";
import { inTime, LATE } from "./in-time.ts";

/** One statement, with its parameters as Bun's client takes them. */
export type Statement = {
  readonly text: string;
  readonly params: readonly unknown[];
  /** Whether its rows are wanted as lists of values, and not as objects. */
  readonly asLists?: boolean;
};

/** The rows of a statement, how many rows it read or wrote, and which command the server says it was. */
export type Answer = readonly unknown[] & { readonly count: number; readonly command: string };

/** A connection of our own for a while. */
export type Session = {
  /**
   * Sends statements together, in one round trip, and answers all of them. Where one fails, the failure of the first that did is
   * thrown, once the server has answered all.
   *
   * @throws ConnectionLost where the connection ended, or the server did not answer in time: what was sent may have been done
   */
  exchange(statements: readonly Statement[]): Promise<readonly Answer[]>;
  /** Gives the connection back. */
  release(): void;
  /** Closes it, so that nobody gets it again. */
  end(): void;
};

/** The connection ended before an answer came. */
export class ConnectionLost extends Error {}
/** It was ended, since no answer came in time. */
export class NoAnswer extends ConnectionLost {}

/** How long the server is waited for, in milliseconds. */
export type Patience = {
  /**
   * How long it may take for one exchange. It ends a statement itself sooner (`statement_timeout`), so that a longer silence means that no
   * answer will come: packets that are lost without a word would else be waited for without end.
   */
  readonly exchangeMs: number;
  /** How long it is asked what became of a transaction. */
  readonly unknownMs: number;
  /** How long a replica may take for one exchange. What was asked there is then asked of the primary. */
  readonly replicaMs: number;
  /** The same of one statement of an audit, which may count all rows of a table. */
  readonly replicaAuditMs: number;
};

export const PATIENCE: Patience = {
  exchangeMs: 20_000,
  unknownMs: 10_000,
  replicaMs: 10_000,
  replicaAuditMs: 120_000,
};

/** A statement without parameters must be a template: as text it would end the exchange of those before it. */
const TEMPLATES: Readonly<Record<string, (sql: ReservedSQL) => SQL.Query<unknown>>> = {
  BEGIN: (sql) => sql`BEGIN`,
  "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY": (sql) =>
    sql`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`,
  COMMIT: (sql) => sql`COMMIT`,
  ROLLBACK: (sql) => sql`ROLLBACK`,
};

export const BEGIN: Statement = { text: "BEGIN", params: [] };
export const BEGIN_SNAPSHOT: Statement = {
  text: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
  params: [],
};
export const COMMIT: Statement = { text: "COMMIT", params: [] };
export const ROLLBACK: Statement = { text: "ROLLBACK", params: [] };

/** Sends the last statements of a transaction with its COMMIT. @throws where it was undone */
export async function commitWith(
  { exchange }: Pick<Session, "exchange">,
  statements: readonly Statement[],
): Promise<void> {
  const answers = await exchange([...statements, COMMIT]);
  // A failed transaction ends without an error.
  if (answers.at(-1)?.command !== "COMMIT")
    throw new Error("PostgreSQL undid a transaction instead of committing it");
}

/** The SQLSTATE of a failure; null where the server said nothing. */
export const sqlStateOf = (error: unknown): string | null => {
  const { errno } = error as { readonly errno?: unknown };
  return error instanceof Error && typeof errno === "string" ? errno : null;
};

/**
 * Failures by which a connection ends: the server stops, was killed, cannot be reached, or has waited too long for the next statement. One
 * that only reads is of a server that is not, or not yet, the one to write to. Other engines than PostgreSQL say by 40003 that they do
 * not know what became of a COMMIT.
 */
const ENDS_CONNECTION = /^(?:08|57P|25P03|25006|40003)/;
/** What the client says by itself tells nothing of what the server has done, whatever it is. */
const isLost = (error: unknown): boolean => {
  const state = sqlStateOf(error);
  return state === null || ENDS_CONNECTION.test(state);
};

/** What the last exchange with the server was like. */
export type Health = { isReachable: boolean; roundTripMs: number | null };

/** The connections to a server. */
export type Sessions = {
  readonly health: Readonly<Health>;
  readonly patience: Patience;
  /**
   * @param exchangeMs how long its exchanges may take, where that is less than usual
   * @throws ConnectionLost where there is none to be had
   */
  reserve(exchangeMs?: number): Promise<Session>;
};

/** How long Bun's client may take to say that a connection which was closed has ended. */
const CLOSE_MS = 1_000;

export function createSessions(pool: Pick<SQL, "reserve">, patience: Patience): Sessions {
  const health: Health = { isReachable: true, roundTripMs: null };
  return {
    ...{ health, patience },
    async reserve(exchangeMs = patience.exchangeMs) {
      const reserved = pool.reserve();
      const sql = await inTime(reserved, exchangeMs).catch((error: unknown) => {
        health.isReachable = false;
        throw new ConnectionLost("no connection to PostgreSQL", { cause: error });
      });
      if (sql !== LATE) return sessionOn(sql, health, exchangeMs);
      // It may come yet, and nobody waits for it any more.
      reserved.then((late) => late.release()).catch(() => {});
      throw new ConnectionLost("no connection to PostgreSQL was free in time");
    },
  };
}

function sessionOn(sql: ReservedSQL, health: Health, exchangeMs: number): Session {
  let ended = false;

  /** Nothing that is under way on it is waited for. */
  function end(): void {
    if (ended) return;
    ended = true;
    void Promise.resolve(sql.close({ timeout: 0 })).catch(() => {});
  }

  return {
    async exchange(statements) {
      if (ended) throw new ConnectionLost("the connection to PostgreSQL has ended");
      const answered = Promise.allSettled(statements.map((statement) => send(sql, statement)));
      const sentAt = performance.now();
      let answers = await inTime(answered, exchangeMs);
      const isLate = answers === LATE;
      if (answers === LATE) {
        end();
        answers = await inTime(answered, CLOSE_MS);
      }
      health.roundTripMs = performance.now() - sentAt;
      health.isReachable = !ended;
      if (answers === LATE) throw new NoAnswer("PostgreSQL did not answer, nor did its connection end");
      const at = answers.findIndex(({ status }) => status === "rejected");
      if (at < 0) return answers.map((answer) => (answer as PromiseFulfilledResult<Answer>).value);
      const { reason } = answers[at] as PromiseRejectedResult;
      if (!ended && !isLost(reason)) throw withoutValues(reason, statements[at]);
      end();
      health.isReachable = false;
      if (isLate) throw new NoAnswer("PostgreSQL did not answer in time", { cause: reason });
      throw new ConnectionLost("the connection to PostgreSQL was lost", { cause: reason });
    },
    release() {
      if (ended) return;
      ended = true;
      sql.release();
    },
    end,
  };
}

/** The failure with the statement's text, which is the code's own. Its details would show the values of a row in the log. */
const withoutValues = (failure: object, statement: Statement | undefined): object =>
  Object.assign(failure, { statement: statement?.text, detail: undefined, where: undefined });

function send(sql: ReservedSQL, { text, params, asLists = false }: Statement): Promise<Answer> {
  const template = TEMPLATES[text];
  const query = template ? template(sql) : sql.unsafe(text, params as unknown[]);
  return (asLists ? query.values() : query).execute() as unknown as Promise<Answer>;
}
