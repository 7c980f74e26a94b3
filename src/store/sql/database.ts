import type { Database, SQLQueryBindings, Statement } from "bun:sqlite";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";

/** What a statement can be given. */
export type SqlValue = SQLQueryBindings;

/**
 * A prepared statement, with SQLite's parameters (`?`, `?1`). Whole numbers are read as bigints, and bytes as a `Uint8Array`. Of
 * its methods only `get`, `all`, `values` and `run` are used.
 */
export type SqlStatement<Row, Asked extends SqlValue[]> = Statement<Row, Asked>;

/** What readers, look-ups and writes need of an engine. Each engine has it, so the statements are written once. */
export type SqlDatabase = Pick<Database, "prepare" | "query">;

export type Tables = BunSQLiteDatabase;

/** A connection: drizzle's view of it, and the statements that are written by hand. */
export type Connection = { readonly tables: Tables; readonly raw: SqlDatabase };
