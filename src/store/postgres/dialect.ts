import type { SqlValue } from "../sql/database.ts";
import type { ColumnType } from "./values.ts";

/**
 * Statements in SQLite's dialect as PostgreSQL's. The texts of `store/sql` are written so that little has to be changed: parameters get numbers
 * and types, hints of plans go, and the two functions of JSON have other names.
 */

/** A null has no type: it is written into the text. */
type ValueType = ColumnType | "null";

/** A statement with its values, for `unsafe`. The values of one text have the same types in every call. */
export type Bound = { readonly text: string; readonly params: readonly (bigint | string | Uint8Array)[] };

/** A statement that answers many questions at once: its one parameter after the other is the list of values of a column. */
export type Grouped = {
  readonly text: string;
  readonly columns: readonly { readonly type: ColumnType; readonly values: Bound["params"] }[];
};

export type Translated = {
  /** In SQLite's dialect. */
  readonly text: string;
  bind(values: readonly SqlValue[]): Bound;
  /** Questions that have the same one may be grouped. Null where there is nothing to group by: no values, or no SELECT. */
  signatureOf(values: readonly SqlValue[]): string | null;
  /**
   * The rows, or the first row, that answer each of the questions of one signature. In each row the number of its question, from 1, is
   * the column before those of the statement (`ord`). The rows of a question are in their order; one without an answer has none.
   */
  group(questions: readonly (readonly SqlValue[])[], rows: "all" | "first"): Grouped;
};

/** Text, or the index of a value that stands there; `same` where it is compared so that a null equals a null. */
type Part = string | { readonly index: number; readonly comparison: "same" | "other" | null };

/** What a statement is divided at. Literals, quoted names and comments come first, since nothing in them is replaced. */
const TOKENS = new RegExp(
  [
    /(?<literal>'(?:[^']|'')*'|"(?:[^"]|"")*"|--.*|\/\*[\s\S]*?\*\/)/,
    /(?<gone>\sINDEXED BY \w+|\bCROSS (?=JOIN \w+(?: (?:AS )?\w+)? ON\b)|\bor rollback (?=into\b))/,
    /\bjson_array_length\((?<counted>[\w.]+)\)/,
    /\bIN \(SELECT (?<member>value|CAST\(value AS BIGINT\)) FROM json_each\(\?(?<list>\d*)\)\)/,
    /\bIS (?<not>NOT )?DISTINCT FROM \?(?<compared>\d*)/,
    /\?(?<number>\d*)/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "gi",
);

/** The variants of a text by the types of its values are kept, so each is made once. */
export function toPostgres(statement: string): Translated {
  const parts = partsOf(withOrderedBranches(statement));
  const asksRows = /^\s*select\b/i.test(statement) && parts.some((part) => typeof part !== "string");
  const bound = kept((types) => boundText(parts, types));
  const isOrdered = /\border by\b/i.test(statement);
  const grouped = {
    all: kept((types) => groupedText(parts, types, isOrdered ? IN_ORDER : AS_THEY_COME)),
    first: kept((types) => groupedText(parts, types, FIRST)),
  };
  return {
    text: statement,
    bind(values) {
      const types = values.map(typeOf);
      return {
        text: bound(types),
        params: values.filter((value) => value !== null).map(asksRows ? encodedQuestion : encoded),
      };
    },
    signatureOf(values) {
      const types = values.map(typeOf);
      return asksRows && types.some((type) => type !== "null") ? types.join() : null;
    },
    group(questions, rows) {
      const types = (questions[0] ?? []).map(typeOf);
      return {
        text: grouped[rows](types),
        columns: types.flatMap((type, index) =>
          type === "null"
            ? []
            : [{ type, values: questions.map((question) => encodedQuestion(question[index])) }],
        ),
      };
    },
  };
}

/** The end of several SELECTs whose rows are merged: their order, and how many rows. */
const MERGED = /\sORDER BY (?<order>[^()]+) LIMIT (?<limit>\?\d+)(?: OFFSET (?<offset>\?\d+))?$/;

/**
 * Merged SELECTs of which the first rows are wanted: each gets their order and limit. SQLite takes from each what it needs, in order.
 * PostgreSQL would read all of each, and sort that.
 */
function withOrderedBranches(statement: string): string {
  const [start, end] = aroundUnion(statement);
  const branches = statement.slice(start, end).split(" UNION ALL ");
  const { order, limit, offset } = MERGED.exec(branches.at(-1) ?? "")?.groups ?? {};
  if (branches.length === 1 || order === undefined) return statement;
  const first = `ORDER BY ${order} LIMIT ${limit}${offset === undefined ? "" : ` + ${offset}`}`;
  const ordered = branches.map((branch) => `(${branch.replace(MERGED, "")} ${first})`);
  const whole = MERGED.exec(branches.at(-1) ?? "")?.[0] ?? "";
  return `${statement.slice(0, start)}${ordered.join(" UNION ALL ")}${whole}${statement.slice(end)}`;
}

/** Where what is in the parentheses around the first UNION begins and ends; all of a statement without parentheses around it. */
function aroundUnion(statement: string): readonly [start: number, end: number] {
  const union = statement.indexOf(" UNION ALL ");
  const opened: number[] = [];
  for (let at = 0; at < statement.length; at++) {
    if (statement[at] === "(") opened.push(at + 1);
    if (statement[at] !== ")") continue;
    const start = opened.pop() ?? 0;
    if (start <= union && union < at) return [start, at];
  }
  return [0, statement.length];
}

function partsOf(statement: string): readonly Part[] {
  const parts: Part[] = [];
  let at = 0;
  // As in SQLite, a parameter without a number has the one after the largest before it.
  let last = 0;
  const indexOf = (number: string) => {
    const chosen = number === "" ? last + 1 : Number(number);
    last = Math.max(last, chosen);
    return chosen - 1;
  };
  for (const match of statement.matchAll(TOKENS)) {
    const { literal, gone, counted, member = "", list, not, compared, number } = match.groups ?? {};
    if (literal !== undefined) continue;
    parts.push(statement.slice(at, match.index));
    at = match.index + match[0].length;
    if (gone !== undefined) continue;
    if (counted !== undefined) parts.push(`CAST(json_array_length(CAST(${counted} AS json)) AS int8)`);
    else if (list !== undefined)
      parts.push(
        `= ANY(ARRAY(SELECT ${member} FROM json_array_elements_text(CAST(`,
        { index: indexOf(list), comparison: null },
        " AS json)) AS value))",
      );
    else if (compared !== undefined)
      parts.push({ index: indexOf(compared), comparison: not === undefined ? "other" : "same" });
    else parts.push({ index: indexOf(number ?? ""), comparison: null });
  }
  return [...parts, statement.slice(at)];
}

/** PostgreSQL uses no index for IS NOT DISTINCT FROM. Whether a value is null is known here. */
function rendered(parts: readonly Part[], valueAt: (index: number) => string | null): string {
  const written = parts.map((part) => {
    if (typeof part === "string") return part;
    const value = valueAt(part.index);
    if (part.comparison === null) return value ?? "NULL";
    if (part.comparison === "same") return value === null ? "IS NULL" : `= ${value}`;
    return value === null ? "IS NOT NULL" : `IS DISTINCT FROM ${value}`;
  });
  return written.join("");
}

/** The numbers of the parameters that stand for values: nulls have none. */
const numbersOf = (types: readonly ValueType[]): readonly (number | null)[] => {
  let last = 0;
  return types.map((type) => (type === "null" ? null : ++last));
};

function boundText(parts: readonly Part[], types: readonly ValueType[]): string {
  const numbers = numbersOf(types);
  return rendered(parts, (index) => {
    const number = numbers[index];
    return number == null ? null : `$${number}::${types[index]}`;
  });
}

/** How the rows of each question are taken from its answer `s`. Across a join PostgreSQL keeps no order that is not said at its end. */
type Taking = {
  readonly select: string;
  readonly limit: string;
  readonly columns: string;
  readonly order: string;
};
const FIRST: Taking = { select: "*", limit: " LIMIT 1", columns: "r.*", order: "" };
const AS_THEY_COME: Taking = { ...FIRST, limit: "" };
const IN_ORDER: Taking = {
  select: "s, row_number() OVER () AS number",
  limit: "",
  columns: "(r.s).*",
  order: " ORDER BY q.ord, r.number",
};

function groupedText(
  parts: readonly Part[],
  types: readonly ValueType[],
  { select, limit, columns, order }: Taking,
): string {
  const numbers = numbersOf(types);
  const given = types.filter((type) => type !== "null");
  const lists = given.map((type, at) => `$${at + 1}::${type}[]`).join(", ");
  const names = given.map((_, at) => `p${at + 1}`).join(", ");
  const statement = rendered(parts, (index) => (numbers[index] == null ? null : `q.p${numbers[index]}`));
  const questions = `unnest(${lists}) WITH ORDINALITY AS q(${names}, ord)`;
  const answer = `SELECT ${select} FROM (${statement}) AS s${limit}`;
  return `SELECT q.ord, ${columns} FROM ${questions} CROSS JOIN LATERAL (${answer}) AS r${order}`;
}

/** Makes each text once. */
function kept(make: (types: readonly ValueType[]) => string): (types: readonly ValueType[]) => string {
  const texts = new Map<string, string>();
  return (types) => {
    const signature = types.join();
    const text = texts.get(signature) ?? make(types);
    texts.set(signature, text);
    return text;
  };
}

function typeOf(value: unknown): ValueType {
  switch (typeof value) {
    case "bigint":
    case "boolean":
    case "number":
      return "int8";
    case "string":
      return "text";
  }
  if (value === null) return "null";
  if (value instanceof Uint8Array) return "bytea";
  throw new Error(`a statement was given ${typeof value}, which is no value of a column`);
}

/** No text in PostgreSQL has U+0000, so what is looked up by one is found by none: ids, keys and names have no U+FFFD either. */
function encodedQuestion(value: unknown): bigint | string | Uint8Array {
  const sent = encoded(value);
  return typeof sent === "string" ? sent.replaceAll("\0", "\u{fffd}") : sent;
}

/** @throws where a number is not whole, or infinite: the tables have whole numbers alone */
function encoded(value: unknown): bigint | string | Uint8Array {
  if (typeof value === "number" || typeof value === "boolean") return BigInt(value);
  return value as bigint | string | Uint8Array;
}
