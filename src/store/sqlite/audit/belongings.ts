import type { Database } from "bun:sqlite";
import { CAUSE_OF, type Legs, type PaidBy, POSTING_KINDS } from "../../../core/postings.ts";
import { literals } from "../../sql/columns.ts";
import { checks, escalations } from "../../sql/tables/ledger.ts";
import type { StoredStep } from "../../sql/trace-rows.ts";
import type { StoredWarrant } from "../../sql/warrant-rows.ts";
import { type AuditedRow, grouped, rowsOf } from "./rows.ts";
import { inSlice, type Slice } from "./slices.ts";

/** A row of `postings` as the driver reads it. */
export type StoredPosting = Legs & {
  readonly cause: bigint;
  readonly account: bigint;
  readonly kind: string;
  readonly rail: string;
  readonly recorded_at: bigint;
};

/** The kinds of postings that no warrant causes, as texts of an IN list. */
export const OTHER_CAUSES = literals(POSTING_KINDS.filter((kind) => CAUSE_OF[kind] !== "warrant"));

/** The rows that belong to a warrant, from the same snapshot. */
export type Belongings = {
  readonly trace: readonly StoredStep[];
  readonly checks: readonly AuditedRow<typeof checks>[];
  readonly postings: readonly StoredPosting[];
  readonly escalations: readonly AuditedRow<typeof escalations>[];
  /** Whether it is of a purchase that was never paid. */
  readonly isUnpaid: boolean;
  /** Who pays its payee: the wallet, where its purchase is `exact`. */
  readonly paidBy: PaidBy;
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
  const all = <Row>(sql: string) => database.query<Row, [bigint, bigint]>(sql).all(after, last);
  const rows = all<StoredWarrant>(`SELECT * FROM warrants WHERE ${inSlice("position")} ORDER BY position`);
  const steps = byWarrant(
    all<StoredStep>(`SELECT warrant, sequence, from_state, to_state, actor_kind, actor_id, recorded_at, encoding, schema_hashes, check_id,
       entry_hash, event_id FROM trace WHERE ${inSlice("warrant")} ORDER BY warrant, sequence`),
    ({ warrant }) => warrant,
  );
  const checked = byWarrant(
    [...rowsOf(database, checks, `WHERE ${inSlice("warrant")} ORDER BY warrant`, after, last)],
    ({ raw }) => raw.warrant as bigint,
  );
  const posted = byWarrant(
    all<StoredPosting>(
      `SELECT cause, account, kind, rail, available, held, paid, funding, payable, submitted, recorded_at FROM postings
       WHERE ${inSlice("cause")} AND kind NOT IN (${OTHER_CAUSES}) ORDER BY cause, kind`,
    ),
    ({ cause }) => cause,
  );
  const bought = all<{ id: string; known: string | null; contract: string | null }>(
    `SELECT warrant_id AS id, known, contract FROM purchases
     WHERE warrant_id IN (SELECT id FROM warrants WHERE ${inSlice("position")})`,
  );
  const unpaidIds = new Set(bought.flatMap(({ id, known }) => (known === "unpaid" ? [id] : [])));
  const byWalletIds = new Set(bought.flatMap(({ id, contract }) => (contract === null ? [] : [id])));
  const raised = grouped(
    rowsOf(
      database,
      escalations,
      `WHERE warrant_id IN (SELECT id FROM warrants WHERE ${inSlice("position")})`,
      after,
      last,
    ),
    ({ raw }) => raw.warrant_id,
  );
  const warrants = rows.map((row) => ({
    row,
    belongings: {
      trace: steps.of(row.position),
      checks: checked.of(row.position),
      postings: posted.of(row.position),
      escalations: raised.get(row.id) ?? [],
      isUnpaid: unpaidIds.has(row.id),
      paidBy: byWalletIds.has(row.id) ? ("wallet" as const) : ("ledger" as const),
    },
  }));
  const strays = (table: string, positions: readonly unknown[]) =>
    positions.map((position) => ({ position, table }));
  return {
    warrants,
    missing: [
      ...strays("trace", steps.strays()),
      ...strays("checks", checked.strays()),
      ...strays("postings", posted.strays()),
    ],
  };
}

/** Rows in the order of their warrants, which are asked for in that order too. */
function byWarrant<Row>(rows: readonly Row[], warrantOf: (row: Row) => bigint) {
  const strays = new Set<bigint>();
  let at = 0;
  const skipTo = (isThere: (warrant: bigint) => boolean): void => {
    for (let row = rows[at]; row !== undefined && !isThere(warrantOf(row)); row = rows[++at])
      strays.add(warrantOf(row));
  };
  return {
    of(position: bigint): readonly Row[] {
      skipTo((warrant) => warrant >= position);
      const start = at;
      for (let row = rows[at]; row !== undefined && warrantOf(row) === position; row = rows[at]) at++;
      return rows.slice(start, at);
    },
    /** The positions of warrants that have rows here, and that nobody asked for: no such warrant exists. */
    strays(): readonly bigint[] {
      skipTo(() => false);
      return [...strays];
    },
  };
}
