import { expect } from "bun:test";
import { createRandom } from "../crash/random.ts";
import { ENGINE } from "../support/engine.ts";
import { BEGIN } from "../support/failing-statements.ts";
import type { FailingStatements, Fault } from "../support/statement-faults.ts";

/** Which transaction fails, and for how long. */
export type Where = Omit<Fault, "statement" | "when">;
/** Runs a command with a fault. Answers the SQL that failed; null where the transaction had no such statement. */
export type Each = (fault: Fault) => Promise<string | null>;

/**
 * Where the answer to a statement is lost, the engine on PostgreSQL begins again on another connection, and asks what became of a COMMIT:
 * who asked for the command is told the truth. The embedded engine's COMMIT may be on disk although SQLite reports a failure.
 */
const FINDS_OUT = { embedded: false, postgres: true }[ENGINE];

/** Whether the command is done although a statement has failed. */
export const isDone = ({ when }: Fault, sql: string): boolean =>
  when === "after" && (FINDS_OUT || sql === "COMMIT");

/** What the command answers then. */
export const answerOf = ({ when }: Fault): string =>
  FINDS_OUT && when === "after" ? "done" : "internal_error";

/**
 * On PostgreSQL to try every statement takes minutes. `bun run faults` tries some that are chosen at random: `FAULTS_SEED` chooses the same
 * again, and `FAULTS_MANY=10` ten times as many.
 */
const SEED = Number(process.env.FAULTS_SEED ?? crypto.getRandomValues(new Uint16Array(1))[0]);
export const MANY = Number(process.env.FAULTS_MANY ?? 1);
const BEFORE_MAX = 4 * MANY;
const AFTER_MAX = 2 * MANY;
const RANDOM = createRandom(SEED);

/** For the names of tests. */
export const EVERY = { embedded: "every statement", postgres: `some statements (FAULTS_SEED=${SEED})` }[
  ENGINE
];

/** More than any transaction has. */
const STATEMENTS_MAX = 150;

/**
 * Runs `each` once for every statement of a transaction, which fails before it is done, until there is no further statement.
 * BEGIN and COMMIT also fail after they are done; for the others this is the same as the next one failing.
 */
async function strikeEach(_: FailingStatements, where: Where, each: Each): Promise<void> {
  const struck: string[] = [];
  for (let statement = 1; statement <= STATEMENTS_MAX; statement++) {
    const sql = await each({ ...where, statement, when: "before" });
    if (sql === null) break;
    struck.push(sql);
  }
  // Every statement of the commit has failed once, from the first to the last.
  expect([struck[0], struck.at(-1)]).toEqual([BEGIN, "COMMIT"]);
  expect(struck.length).toBeGreaterThan(3);
  expect(struck.length).toBeLessThan(STATEMENTS_MAX);
  const whenDone = where.lasts ? [] : [1, struck.length];
  for (const statement of whenDone) await each({ ...where, statement, when: "after" });
}

/**
 * Runs `each` for BEGIN and COMMIT, and for some statements between them. The connection is lost after some of these too, which is another
 * fault than the next one failing.
 */
async function strikeSome(statements: FailingStatements, where: Where, each: Each): Promise<void> {
  expect(await each({ ...where, statement: STATEMENTS_MAX, when: "before" })).toBeNull();
  const { counted } = statements;
  expect(counted).toBeGreaterThan(3);
  expect(counted).toBeLessThan(STATEMENTS_MAX);
  const strike = async (when: Fault["when"], most: number) => {
    expect(await each({ ...where, statement: 1, when })).toBe(BEGIN);
    for (let times = 0; times < most; times++)
      await each({ ...where, statement: 2 + RANDOM.below(counted - 2), when });
    expect(await each({ ...where, statement: "COMMIT", when })).toBe("COMMIT");
  };
  await strike("before", BEFORE_MAX);
  if (!where.lasts) await strike("after", AFTER_MAX);
}

export const strikeEvery = { embedded: strikeEach, postgres: strikeSome }[ENGINE];
