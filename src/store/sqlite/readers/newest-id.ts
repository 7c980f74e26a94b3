import { max } from "drizzle-orm";
import { timeOfId } from "../../../core/ids.ts";
import type { Tables } from "../open.ts";
import { auditEntries } from "../tables/directory.ts";
import { escalations, warrants } from "../tables/ledger.ts";
import { deliveries } from "../tables/webhooks.ts";

/** The tables whose rows are ordered by their ids. */
const ORDERED = [auditEntries, escalations, warrants, deliveries] as const;

export function newestIdTime(tables: Tables): number {
  const newest = ORDERED.map(
    (table) =>
      tables
        .select({ id: max(table.id) })
        .from(table)
        .get()?.id ?? null,
  );
  return Math.max(-1, ...newest.map((id) => (id === null ? -1 : timeOfId(id))));
}
