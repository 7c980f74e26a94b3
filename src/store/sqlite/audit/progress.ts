import type { Database } from "bun:sqlite";
import { sizeOfLog } from "../../sql/log.ts";
import { DIGESTED } from "./digests.ts";
import { referencesOf } from "./references.ts";

/** The tables that are read whole, in slices, besides those whose references are. */
const TABLES = [
  "postings",
  "deposits",
  "chain_transfers",
  "payouts",
  "corrections",
  "warrants",
  "log_checkpoints",
  "purchases",
  "contents",
  "capsules",
  "capsule_parts",
  "idempotency_keys",
  "log_anchors",
  "chain_transactions",
  "payout_transactions",
  "solvency_statements",
] as const;

/** How many rows an audit reads. A row counts once for each part that reads it; what belongs to a warrant counts with the warrant. */
export function rowsToAudit(database: Database): number {
  const tables = [...TABLES, ...DIGESTED, ...referencesOf(database).map(({ table }) => table)];
  const counts = tables.map((table) =>
    Number(database.query<{ rows: bigint }, []>(`SELECT count(*) AS rows FROM "${table}"`).get()?.rows ?? 0n),
  );
  return counts.reduce((sum, rows) => sum + rows, sizeOfLog(database)());
}
