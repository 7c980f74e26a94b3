import { ENGINE } from "./engine.ts";
import { watchPostgres } from "./failing-in-postgres.ts";
import { watchSqlite } from "./failing-in-sqlite.ts";
import type { FailingStatements } from "./statement-faults.ts";

/** The statement with which a transaction begins that may write. */
export const BEGIN = { embedded: "BEGIN IMMEDIATE", postgres: "BEGIN" }[ENGINE];

export const watchStatements: () => FailingStatements = { embedded: watchSqlite, postgres: watchPostgres }[
  ENGINE
];
