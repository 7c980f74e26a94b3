import type { Database } from "bun:sqlite";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import { checks, escalations, postings, trace } from "../tables/ledger.ts";
import type { StoredWarrant } from "../warrant-rows.ts";
import { type AuditedRow, grouped, rowsOf } from "./rows.ts";

/** How many warrants are read from one snapshot: while it is held, the write-ahead log cannot be cut. */
const SLICE = 1_000;

/** What belongs to a warrant, as it was read with it. */
export type Belongings = {
  readonly trace: readonly AuditedRow<typeof trace>[];
  readonly checks: readonly AuditedRow<typeof checks>[];
  readonly postings: readonly AuditedRow<typeof postings>[];
  readonly escalations: readonly AuditedRow<typeof escalations>[];
};

type Slice = readonly { readonly row: StoredWarrant; readonly belongings: Belongings }[];

/** The next warrants with all that belongs to them, from one snapshot. */
export function readSlice(database: Database, after: bigint): Slice {
  database.run("BEGIN");
  try {
    const rows = database
      .query<StoredWarrant, [bigint, number]>(
        "SELECT * FROM warrants WHERE position > ? ORDER BY position LIMIT ?",
      )
      .all(after, SLICE);
    const last = rows.at(-1)?.position ?? after;
    const of = <T extends SQLiteTable>(table: T, where: string, column: string) =>
      grouped(rowsOf(database, table, where, after, last), ({ raw }) => raw[column]);
    const inSlice = (column: string) => `WHERE ${column} > ? AND ${column} <= ?`;
    const steps = of(trace, `${inSlice("warrant")} ORDER BY warrant, sequence`, "warrant");
    const checked = of(checks, inSlice("warrant"), "warrant");
    const posted = of(postings, `${inSlice("cause")} AND kind <> 'deposit' ORDER BY cause, kind`, "cause");
    const raised = of(
      escalations,
      `WHERE warrant_id IN (SELECT id FROM warrants ${inSlice("position")})`,
      "warrant_id",
    );
    return rows.map((row) => ({
      row,
      belongings: {
        trace: steps.get(row.position) ?? [],
        checks: checked.get(row.position) ?? [],
        postings: posted.get(row.position) ?? [],
        escalations: raised.get(row.id) ?? [],
      },
    }));
  } finally {
    database.run("ROLLBACK");
  }
}
