import { timeOfId } from "../../core/ids.ts";
import type { SqlDatabase } from "./database.ts";

/** The tables whose rows are ordered by their ids. */
const ORDERED = ["audit_entries", "escalations", "warrants", "webhook_deliveries"] as const;

/** The time in the newest of these ids, epoch milliseconds; -1 where there is none. */
export function newestIdTime(raw: SqlDatabase): number {
  const newest = raw
    .query<{ id: string | null }, []>(
      ORDERED.map((table) => `SELECT max(id) AS id FROM ${table}`).join(" UNION ALL "),
    )
    .all();
  return Math.max(-1, ...newest.map(({ id }) => (id === null ? -1 : timeOfId(id))));
}
