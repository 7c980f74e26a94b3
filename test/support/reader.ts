import { ledgerFile } from "../../src/store/sqlite/ledger-file.ts";
import { connect } from "../../src/store/sqlite/open.ts";
import { createSqliteReader } from "../../src/store/sqlite/readers/reader.ts";
import type { SqliteReader } from "../../src/store/sqlite/readers/sqlite-reader.ts";

/** Reads a ledger at once, so that a test can look without waiting. */
export type TestReader = { readonly reader: SqliteReader; close(): void };

/** A reader of the ledger in a data folder, on a connection of its own. */
export function openReader(dataFolder: string): TestReader {
  const connection = connect(ledgerFile(dataFolder), { readonly: true });
  return { reader: createSqliteReader(connection), close: () => connection.raw.close() };
}
