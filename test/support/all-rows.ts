import { Database } from "bun:sqlite";
import { join } from "node:path";

/** Every row of one organisation, by table: a refusal must not change any of them. */
export type AllRows = Readonly<Record<string, readonly object[]>>;

export type AllRowsReader = {
  of(organisationId: string): AllRows;
  /** The rows of all organisations. */
  all(): AllRows;
  close(): void;
};

/** Tables that are not compared: sign-ins come and go with every caller, and a server's job takes plans of notices away. */
const LEFT_OUT = new Set(["auth_sessions", "__drizzle_migrations", "planned_notices"]);

/** The positions of an organisation's two scopes. */
const SCOPES = "SELECT position FROM scopes WHERE organisation_id = ?1";

export function openAllRows(dataFolder: string): AllRowsReader {
  const database = new Database(join(dataFolder, "holdfast.db"), { readonly: true, safeIntegers: true });
  const rows = (sql: string, ...values: string[]): object[] =>
    database.query<object, string[]>(sql).all(...values);
  const tables = database
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .all()
    .map(({ name }) => name)
    .filter((name) => !LEFT_OUT.has(name) && !name.startsWith("sqlite_"));
  const ofOrganisation = new Map(
    tables.map((table) => [table, `SELECT * FROM "${table}" ${ownedBy(table)}`]),
  );

  /** The condition that selects an organisation's rows of a table, by its own column or by the warrant or agent of a row. */
  function ownedBy(table: string): string {
    const columns = rows(`PRAGMA table_info("${table}")`).map((column) => (column as { name: string }).name);
    if (columns.includes("organisation_id")) return "WHERE organisation_id = ?1";
    if (columns.includes("scope")) return `WHERE scope IN (${SCOPES})`;
    if (columns.includes("account"))
      return `WHERE account IN (SELECT position FROM accounts WHERE scope IN (${SCOPES}))`;
    if (columns.includes("user_id"))
      return "WHERE user_id IN (SELECT id FROM users WHERE organisation_id = ?1)";
    if (columns.includes("warrant_id"))
      return `WHERE warrant_id IN (SELECT id FROM warrants WHERE scope IN (${SCOPES}))`;
    if (columns.includes("warrant"))
      return `WHERE warrant IN (SELECT position FROM warrants WHERE scope IN (${SCOPES}))`;
    if (columns.includes("agent_id"))
      return "WHERE agent_id IN (SELECT id FROM agents WHERE organisation_id = ?1)";
    return "WHERE ?1 = ?1 AND 0";
  }

  return {
    // At any moment a job gives entries of the trace their leaves, and another one writes when API keys were used.
    of: (organisationId) =>
      Object.fromEntries(
        tables.map((table) => {
          const byJobs = { leaf_index: undefined, ...(table === "api_keys" && { last_used_at: undefined }) };
          const found = rows(ofOrganisation.get(table)!, organisationId);
          return [table, found.map((row) => ({ ...row, ...byJobs }))];
        }),
      ),
    all: () => Object.fromEntries(tables.map((table) => [table, rows(`SELECT * FROM "${table}"`)])),
    close: () => database.close(),
  };
}
