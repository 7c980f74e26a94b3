import { openTestLedger, TABLES } from "./ledger.ts";

/** Every row of one organisation, by table: a refusal must not change any of them. */
export type AllRows = Readonly<Record<string, readonly object[]>>;

export type AllRowsReader = {
  of(organisationId: string): AllRows;
  /** The rows of all organisations. */
  all(): AllRows;
  close(): void;
};

/** Tables that are not compared: sign-ins come and go with every caller, and a server's job takes plans of notices away. */
const LEFT_OUT = new Set(["auth_sessions", "planned_notices"]);

/** The positions of an organisation's two scopes. */
const SCOPES = "SELECT position FROM scopes WHERE organisation_id = ?1";

/** The condition that selects an organisation's rows of a table, by its own column or by the warrant or agent of a row. */
function ownedBy(columns: ReadonlySet<string>): string {
  if (columns.has("organisation_id")) return "organisation_id = ?1";
  if (columns.has("scope")) return `scope IN (${SCOPES})`;
  if (columns.has("account")) return `account IN (SELECT position FROM accounts WHERE scope IN (${SCOPES}))`;
  if (columns.has("user_id")) return "user_id IN (SELECT id FROM users WHERE organisation_id = ?1)";
  if (columns.has("warrant_id")) return `warrant_id IN (SELECT id FROM warrants WHERE scope IN (${SCOPES}))`;
  if (columns.has("warrant")) return `warrant IN (SELECT position FROM warrants WHERE scope IN (${SCOPES}))`;
  if (columns.has("agent_id")) return "agent_id IN (SELECT id FROM agents WHERE organisation_id = ?1)";
  return "?1 = '' AND false";
}

export function openAllRows(dataFolder: string): AllRowsReader {
  const ledger = openTestLedger(dataFolder);
  const tables = [...TABLES].filter(([table]) => !LEFT_OUT.has(table));
  return {
    // At any moment a job gives entries of the trace their leaves, and another one writes when API keys were used.
    of: (organisationId) =>
      Object.fromEntries(
        tables.map(([table, columns]) => {
          const byJobs = { leaf_index: undefined, ...(table === "api_keys" && { last_used_at: undefined }) };
          const found = ledger.allRows(table, ownedBy(columns), organisationId);
          return [table, found.map((row) => ({ ...row, ...byJobs }))];
        }),
      ),
    all: () => Object.fromEntries(tables.map(([table]) => [table, ledger.allRows(table)])),
    close: ledger.close,
  };
}
