import { createSqlReader } from "../../src/store/sql/readers/reader.ts";
import type { SqlReader } from "../../src/store/sql/readers/sql-reader.ts";
import { ledgerFile } from "../../src/store/sqlite/ledger-file.ts";
import { connect } from "../../src/store/sqlite/open.ts";

/** Reads a ledger at once, so that a test can look without waiting. */
export type TestReader = { readonly reader: SqlReader; close(): void };

/** A reader of the ledger in a data folder, on a connection of its own. */
export function openReader(dataFolder: string): TestReader {
  const connection = connect(ledgerFile(dataFolder), { readonly: true });
  return { reader: createSqlReader(connection), close: () => connection.raw.close() };
}
