import { Database, type Statement } from "bun:sqlite";
import { spyOn } from "bun:test";

/** The ways in which a statement is run. */
const WAYS = ["get", "all", "values", "iterate", "run"] as const;

/**
 * Reports every statement that runs, with its values written in, on connections that are opened from now on: a store prepares
 * its frequent statements when it is opened.
 */
export function watchStatements(ran: (sql: string) => void): { end(): void } {
  const prepare = Database.prototype.prepare;
  const preparing = spyOn(Database.prototype, "prepare").mockImplementation(function (
    this: Database,
    ...given
  ) {
    return watched(Reflect.apply(prepare, this, given), ran);
  } as Database["prepare"]);
  return { end: () => preparing.mockRestore() };
}

/** The statement, which says so when it runs. */
function watched(statement: Statement, ran: (sql: string) => void): Statement {
  const real = Object.fromEntries(
    WAYS.map((way) => [way, statement[way] as (...given: unknown[]) => unknown]),
  );
  for (const way of WAYS) {
    Object.assign(statement, {
      [way]: (...given: unknown[]) => {
        const answer = Reflect.apply(real[way]!, statement, given);
        ran(statement.toString());
        return answer;
      },
    });
  }
  return statement;
}
