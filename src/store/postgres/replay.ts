import { drizzle } from "drizzle-orm/bun-sqlite";
import type { Connection, SqlDatabase, SqlValue } from "../sql/database.ts";
import type { Session, Statement } from "./client.ts";
import { type Translated, toPostgres } from "./dialect.ts";
import { arrayOf, listOf, type ObjectRow, objectOf } from "./values.ts";
import type { WriteBuffer } from "./write-buffer.ts";

/** How the rows of a statement are wanted: the first as an object, all as objects, or all as lists of values. */
type Form = "get" | "all" | "values";

/** A statement that some work needs the answer of. */
export type Asked = {
  readonly key: string;
  readonly statement: Translated;
  readonly form: Form;
  readonly values: readonly SqlValue[];
};

/** What the server has answered in one snapshot, or in one transaction, by `Asked.key`. */
export type Answers = Map<string, unknown>;

/**
 * A database in which the statements of `store/sql` run as they are, although they do not wait. Each gets its answer from those that
 * were fetched before. Where one is missing, the work ends, the answer is fetched, and the same work begins again. So it must do
 * nothing but read, and write by `run`, which fills a buffer.
 */
export type Replay = {
  readonly connection: Connection;
  /**
   * Does work as far as the answers go.
   *
   * @param writes takes what the work writes; without it, it may not write
   * @returns null where an answer is missing, which is added to `lacking`
   */
  attempt<Result>(
    given: { readonly answers: Answers; readonly lacking: Lacking; readonly writes?: WriteBuffer },
    work: () => Result,
  ): { readonly result: Result } | null;
};

/** The statements whose answers are missing, by their keys. */
export type Lacking = Map<string, Asked>;

/** Thrown to end work whose answer is missing. Nobody looks at it, so it has no stack. */
const UNANSWERED = Symbol("unanswered");

export function createReplay(): Replay {
  const statements = new Map<string, Translated>();
  let given: Parameters<Replay["attempt"]>[0] | null = null;

  function translated(text: string): Translated {
    let statement = statements.get(text);
    if (statement === undefined) {
      statement = toPostgres(text);
      statements.set(text, statement);
    }
    return statement;
  }

  function ask(text: string, form: Form, values: readonly SqlValue[]): unknown {
    if (given === null) throw new Error("a statement reads outside of a snapshot");
    const key = `${form} ${text} ${values.map(keyOf).join("\0")}`;
    const answer = given.answers.get(key);
    if (answer !== undefined) return answer;
    given.lacking.set(key, { key, form, values, statement: translated(text) });
    throw UNANSWERED;
  }

  function write(text: string, values: readonly SqlValue[]) {
    if (!given?.writes) throw new Error("a statement writes outside of a transaction");
    return { changes: 1, lastInsertRowid: given.writes.add(text, values) };
  }

  const prepare = (text: string) => ({
    get: (...values: SqlValue[]) => ask(text, "get", values),
    all: (...values: SqlValue[]) => ask(text, "all", values),
    values: (...values: SqlValue[]) => ask(text, "values", values),
    run: (...values: SqlValue[]) => write(text, values),
  });
  const raw = { prepare, query: prepare } as unknown as SqlDatabase;
  return {
    connection: { raw, tables: drizzle(raw as never) },
    attempt(asked, work) {
      const outer = given;
      given = asked;
      try {
        return { result: work() };
      } catch (error) {
        if (error === UNANSWERED) return null;
        throw error;
      } finally {
        given = outer;
      }
    },
  };
}

/** The values as text, so that no two lists of them have the same. */
function keyOf(value: SqlValue): string {
  if (typeof value === "string") return `t${value}`;
  return value instanceof Uint8Array ? `b${value.toHex()}` : `i${value}`;
}

/** So few questions cost less one by one than together. */
const GROUPED_MIN = 2;

/** Fetches the answers of statements, in one round trip. Questions of one statement with other values are asked together. */
export async function fetchAnswers(
  { exchange }: Pick<Session, "exchange">,
  lacking: Lacking,
  answers: Answers,
  before: readonly Statement[] = [],
): Promise<readonly unknown[]> {
  const groups = Map.groupBy(lacking.values(), groupOf);
  const asked = [...groups.values()].flatMap((group) =>
    group.length >= GROUPED_MIN ? [group] : group.map((one) => [one]),
  );
  const rows = await exchange([...before, ...asked.map(statementOf)]);
  for (const [at, group] of asked.entries()) keep(group, rows[before.length + at] ?? [], answers);
  return rows.slice(0, before.length);
}

/** Those of one group are asked together. What gives several rows in an order, or limits them by a value, is asked alone. */
function groupOf({ key, statement, form, values }: Asked): string {
  const { text } = statement;
  const isAlone = /\b(?:LIMIT|OFFSET) \?/i.test(text) || (form !== "get" && /\border by\b/i.test(text));
  const signature = isAlone ? null : statement.signatureOf(values);
  return signature === null ? key : `${form} ${signature} ${text}`;
}

function statementOf(group: readonly Asked[]): Statement {
  const [{ statement, form, values }] = group as [Asked];
  const asLists = form === "values";
  if (group.length === 1) return { ...statement.bind(values), asLists };
  const { text, columns } = statement.group(
    group.map((one) => one.values),
    form === "get" ? "first" : "all",
  );
  return { text, params: columns.map(({ type, values: list }) => arrayOf(type, list)), asLists };
}

function keep(group: readonly Asked[], rows: readonly unknown[], answers: Answers): void {
  const [{ form, key }] = group as [Asked];
  if (group.length === 1) {
    const found = rows.map((row) =>
      form === "values" ? listOf(row as unknown[]) : objectOf(row as ObjectRow),
    );
    answers.set(key, form === "get" ? (found[0] ?? null) : found);
    return;
  }
  const found: unknown[][] = group.map(() => []);
  for (const row of rows) {
    if (form === "values") {
      const [ord, ...list] = listOf(row as unknown[]);
      found[Number(ord) - 1]?.push(list);
    } else {
      const { ord, ...object } = objectOf(row as ObjectRow);
      found[Number(ord) - 1]?.push(object);
    }
  }
  for (const [at, asked] of group.entries())
    answers.set(asked.key, form === "get" ? (found[at]?.[0] ?? null) : found[at]);
}
