import { Database, type SQLQueryBindings, type Statement } from "bun:sqlite";
import { spyOn } from "bun:test";

/** The ways in which a statement is run. */
const WAYS = ["get", "all", "values", "iterate", "run"] as const;

/** A statement that ran: its text, the way in which it was run, and its values. */
export type Ran = {
  readonly text: string;
  readonly way: (typeof WAYS)[number];
  readonly values: readonly SQLQueryBindings[];
};
type Report = (sql: string, ran: Ran) => void;

/**
 * Reports every statement that runs, with its values written in, on connections that are opened from now on: a store prepares
 * its frequent statements when it is opened.
 */
export function watchStatements(report: Report): { end(): void } {
  const prepare = Database.prototype.prepare;
  const preparing = spyOn(Database.prototype, "prepare").mockImplementation(function (
    this: Database,
    ...given
  ) {
    return watched(given[0], Reflect.apply(prepare, this, given), report);
  } as Database["prepare"]);
  return { end: () => preparing.mockRestore() };
}

/** The statement, which says so when it runs. */
function watched(text: string, statement: Statement, report: Report): Statement {
  const real = Object.fromEntries(
    WAYS.map((way) => [way, statement[way] as (...given: unknown[]) => unknown]),
  );
  for (const way of WAYS) {
    Object.assign(statement, {
      [way]: (...values: SQLQueryBindings[]) => {
        const answer = Reflect.apply(real[way]!, statement, values);
        report(statement.toString(), { text, way, values });
        return answer;
      },
    });
  }
  return statement;
}
