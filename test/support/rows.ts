import { openTestLedger, TABLES } from "./ledger.ts";

/** How many rows every table of a ledger has. A refusal must not change it. */
export function rowCounts(dataFolder: string): Readonly<Record<string, bigint>> {
  const ledger = openTestLedger(dataFolder);
  try {
    const counted = [...TABLES.keys()].map(
      (table) => `SELECT '${table}' AS "table", count(*) AS n FROM ${table}`,
    );
    const counts = ledger.rows(counted.join(" UNION ALL "));
    return Object.fromEntries(counts.map(({ table, n }) => [table, n as bigint]));
  } finally {
    ledger.close();
  }
}
