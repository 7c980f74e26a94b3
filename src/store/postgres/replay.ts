import { drizzle } from "drizzle-orm/bun-sqlite";
import type { Connection, SqlDatabase, SqlValue } from "../sql/database.ts";
import type { Session, Statement } from "./client.ts";
import { type Translated, toPostgres } from "./dialect.ts";
import { arrayOf, listOf, type ObjectRow, objectOf } from "./values.ts";
import type { WriteBuffer } from "./write-buffer.ts";

/** How the rows of a statement are wanted: the first as an object, all as objects, or all as lists of values. */
type Form = "get" | "all" | "values";

/** A statement in one of the forms, and whether several of its questions may be asked together. */
type Question = {
  readonly number: number;
  readonly form: Form;
  readonly statement: Translated;
  readonly isAlone: boolean;
};

/** A statement that some work needs the answer of. */
export type Asked = {
  readonly key: string;
  readonly question: Question;
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
  let questions = 0;
  let given: Parameters<Replay["attempt"]>[0] | null = null;

  const questionOf = (form: Form, text: string): Question => ({
    ...{ number: questions++, form, statement: toPostgres(text) },
    // What gives several rows in an order, or limits them by a value.
    isAlone: /\b(?:LIMIT|OFFSET) \?/i.test(text) || (form !== "get" && /\border by\b/i.test(text)),
  });

  function ask(question: Question, values: readonly SqlValue[]): unknown {
    if (given === null) throw new Error("a statement reads outside of a snapshot");
    const key = `${question.number} ${values.map(keyOf).join("\0")}`;
    const answer = given.answers.get(key);
    if (answer !== undefined) return answer;
    given.lacking.set(key, { key, question, values });
    throw UNANSWERED;
  }

  function write(text: string, values: readonly SqlValue[]) {
    if (!given?.writes) throw new Error("a statement writes outside of a transaction");
    return { changes: 1, lastInsertRowid: given.writes.add(text, values) };
  }

  const asking = (form: Form, text: string) => {
    let question: Question | null = null;
    return (...values: SqlValue[]) => {
      question ??= questionOf(form, text);
      return ask(question, values);
    };
  };
  const prepare = (text: string) => ({
    ...{ get: asking("get", text), all: asking("all", text), values: asking("values", text) },
    run: (...values: SqlValue[]) => write(text, values),
  });
  const queries = new Map<string, ReturnType<typeof prepare>>();
  function query(text: string) {
    const known = queries.get(text) ?? prepare(text);
    queries.set(text, known);
    return known;
  }
  // Drizzle prepares what it asks ad hoc at each call, so its statements are found by their text.
  const raw = { prepare: query, query } as unknown as SqlDatabase;
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

/** Fetches the answers of statements, in one round trip. Questions of one statement with other values are asked together. */
export async function fetchAnswers(
  { exchange }: Pick<Session, "exchange">,
  lacking: Lacking,
  answers: Answers,
  before: readonly Statement[] = [],
): Promise<void> {
  const groups = new Map<string, [Asked, ...Asked[]]>();
  for (const asked of lacking.values()) {
    const key = groupOf(asked);
    const group = groups.get(key);
    if (group) group.push(asked);
    else groups.set(key, [asked]);
  }
  const together = [...groups.values()];
  const rows = await exchange([...before, ...together.map(statementOf)]);
  for (const [at, group] of together.entries()) keep(group, rows[before.length + at] ?? [], answers);
}

/** Those of one group are asked together. */
function groupOf({ key, question: { isAlone, number, statement }, values }: Asked): string {
  const signature = isAlone ? null : statement.signatureOf(values);
  return signature === null ? key : `${number} ${signature}`;
}

function statementOf(group: readonly [Asked, ...Asked[]]): Statement {
  const [{ question, values }] = group;
  const { statement, form } = question;
  const asLists = form === "values";
  if (group.length === 1) return { ...statement.bind(values), asLists };
  const { text, columns } = statement.group(
    group.map((one) => one.values),
    form === "get" ? "first" : "all",
  );
  return { text, params: columns.map(({ type, values: list }) => arrayOf(type, list)), asLists };
}

function keep(group: readonly [Asked, ...Asked[]], rows: readonly unknown[], answers: Answers): void {
  const [{ question, key }] = group;
  const { form } = question;
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
