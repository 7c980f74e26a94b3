import { primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { digest, int } from "../columns.ts";

/** What this instance has witnessed of other logs, and what witnesses have signed of its own. */

export const witnessedLogs = sqliteTable("witnessed_logs", {
  origin: text("origin").primaryKey(),
  note: text("note").notNull(),
  cosignedAt: int("cosigned_at").notNull(),
  digest: digest("digest"),
});

export const cosignatures = sqliteTable(
  "cosignatures",
  {
    size: int("size").notNull(),
    witness: text("witness").notNull(),
    line: text("line").notNull(),
    digest: digest("digest"),
  },
  (t) => [primaryKey({ columns: [t.size, t.witness] })],
);
