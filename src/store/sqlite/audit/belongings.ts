import type { Database } from "bun:sqlite";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import { checks, escalations, postings, trace } from "../tables/ledger.ts";
import type { StoredWarrant } from "../warrant-rows.ts";
import { type AuditedRow, grouped, rowsOf } from "./rows.ts";
import { inSlice, type Slice } from "./slices.ts";

/** The rows that belong to a warrant, from the same snapshot. */
export type Belongings = {
  readonly trace: readonly AuditedRow<typeof trace>[];
  readonly checks: readonly AuditedRow<typeof checks>[];
  readonly postings: readonly AuditedRow<typeof postings>[];
  readonly escalations: readonly AuditedRow<typeof escalations>[];
};

type WarrantsRead = {
  readonly warrants: readonly { readonly row: StoredWarrant; readonly belongings: Belongings }[];
  /** Positions of warrants that do not exist, although rows of these tables refer to them. */
  readonly missing: readonly { readonly position: unknown; readonly table: string }[];
};

/**
 * A slice of the warrants with everything that belongs to them. One query for each warrant would take 17
 * times as long.
 */
export function readWarrants(database: Database, { after, last }: Slice<bigint>): WarrantsRead {
  const rows = database
    .query<StoredWarrant, [bigint, bigint]>(
      `SELECT * FROM warrants WHERE ${inSlice("position")} ORDER BY position`,
    )
    .all(after, last);
  const of = <T extends SQLiteTable>(table: T, rest: string, column: string) =>
    grouped(rowsOf(database, table, `WHERE ${rest}`, after, last), ({ raw }) => raw[column]);
  const steps = of(trace, `${inSlice("warrant")} ORDER BY warrant, sequence`, "warrant");
  const checked = of(checks, inSlice("warrant"), "warrant");
  const posted = of(postings, `${inSlice("cause")} AND kind <> 'deposit' ORDER BY cause, kind`, "cause");
  const raised = of(
    escalations,
    `warrant_id IN (SELECT id FROM warrants WHERE ${inSlice("position")})`,
    "warrant_id",
  );
  const found = new Set<unknown>(rows.map(({ position }) => position));
  const strays = (table: string, groups: ReadonlyMap<unknown, unknown>) =>
    [...groups.keys()].filter((position) => !found.has(position)).map((position) => ({ position, table }));
  return {
    warrants: rows.map((row) => ({
      row,
      belongings: {
        trace: steps.get(row.position) ?? [],
        checks: checked.get(row.position) ?? [],
        postings: posted.get(row.position) ?? [],
        escalations: raised.get(row.id) ?? [],
      },
    })),
    missing: [...strays("trace", steps), ...strays("checks", checked), ...strays("postings", posted)],
  };
}
