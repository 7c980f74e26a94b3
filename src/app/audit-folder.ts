import { openSqliteStore } from "../store/sqlite/store.ts";

/** Audits a data folder, as `holdfast audit` does; a server may be running on it. */
export function auditFolder(dataFolder: string): readonly string[] {
  const store = openSqliteStore(dataFolder);
  return store.reader.audit();
}
