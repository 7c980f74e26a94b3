import type { Database } from "bun:sqlite";
import { DIGEST, digestedColumns, digestOfStored } from "../../sql/row-digest.ts";
import { inSnapshot } from "./rows.ts";
import { BY_ROW, type Did, inSlice, type Slice, slicesOf } from "./slices.ts";

/** A row as the driver read it. */
export type Row = Readonly<Record<string, unknown>>;

/** How a message names a row of each table whose rows have digests. */
const WHAT: Readonly<Record<string, (row: Row, database: Database) => string>> = {
  accounts: ({ asset, scope }) => `the account of ${asset} in the scope at position ${scope}`,
  agents: ({ id }) => `agent ${id}`,
  capsules: ({ id }) => `capsule ${id}`,
  chain_transactions: ({ nonce, wallet, chain_id: chain }) =>
    `transaction ${nonce} of ${wallet} on eip155:${chain}`,
  chain_transfers: ({ id }) => `transfer ${id}`,
  checks: ({ id }) => `check ${id}`,
  content_sums: ({ scope, bought }) =>
    `the ${bought === 1n ? "bought" : "free"} content of the scope at position ${scope}`,
  corrections: ({ id }) => `correction ${id}`,
  cosignatures: ({ witness, size }) => `the cosignature of ${witness} at ${size} leaves`,
  deposit_senders: ({ mode, address }) => `the sender ${address} of deposits, ${mode}`,
  deposits: ({ id }) => `deposit ${id}`,
  escalations: ({ id }) => `escalation ${id}`,
  idempotency_keys: ({ key }) => `idempotency key ${JSON.stringify(key)}`,
  imported_tables: ({ name }) => `how far ${name} came from PostgreSQL`,
  log_anchors: ({ nonce, wallet, chain_id: chain }) => `anchor ${nonce} of ${wallet} on eip155:${chain}`,
  log_checkpoints: ({ number }) => `checkpoint ${number}`,
  payout_transactions: ({ nonce, wallet, chain_id: chain }) =>
    `the payout by transaction ${nonce} of ${wallet} on eip155:${chain}`,
  payout_waits: ({ payee }) => `what the payee at position ${payee} waits for`,
  payouts: ({ id }) => `payout ${id}`,
  policies: ({ id }) => `policy ${id}`,
  purchases: ({ id }) => `purchase ${id}`,
  rail_states: ({ mode, asset }) => `the state of the token of ${asset}, ${mode}`,
  schemas: ({ id }) => `schema ${id}`,
  session_totals: ({ session, held_at: heldAt }, database) =>
    `session ${idAt(database, "spend_sessions", session)}: its running total at ${heldAt}`,
  solvency_statements: ({ number }) => `statement ${number}`,
  source_keys: ({ id }) => `source key ${id}`,
  spend_sessions: ({ id }) => `session ${id}`,
  trace: ({ warrant, sequence }, database) =>
    `warrant ${idAt(database, "warrants", warrant)}: its trace entry ${sequence}`,
  treasury_watches: ({ id }) => `treasury ${id}`,
  verifiers: ({ id }) => `verifier ${id}`,
  warrant_counts: ({ scope, agent, state }) =>
    `the warrants counted as ${state} of the agent at position ${agent} in the scope at position ${scope}`,
  warrants: ({ id }) => `warrant ${id}`,
  witnessed_logs: ({ origin }) => `the witnessed log ${origin}`,
};

/** The tables whose rows have digests. */
export const DIGESTED: readonly string[] = Object.keys(WHAT);

/** How a message names a row. */
export const nameOf = (database: Database, table: string, row: Row): string =>
  WHAT[table]?.(row, database) ?? `${table} ${row.position}`;

const idAt = (database: Database, table: string, position: unknown): string =>
  database
    .query<{ id: string }, [bigint]>(`SELECT id FROM ${table} WHERE position = ?`)
    .get(position as bigint)?.id ?? `at position ${position}`;

const ROWS_AT_ONCE = 2_000;

/** Checks that each row is as Holdfast wrote it last: by its digest, which is of all columns that nothing else covers. */
export function* auditDigests(database: Database, did: Did): Generator<string> {
  for (const table of DIGESTED) {
    const columns = digestedColumns(table, columnsOf(database, table));
    for (const slice of slicesOf(database, table, BY_ROW, ROWS_AT_ONCE, did))
      yield* inSnapshot(database, () => [...auditSlice(database, table, columns, slice)]);
  }
}

function* auditSlice(
  database: Database,
  table: string,
  columns: readonly string[],
  { after, last }: Slice<bigint>,
): Generator<string> {
  const named = ["rowid AS row_number", ...[...columns, DIGEST].map((column) => `"${column}"`)];
  const rows = database.query<Row, [bigint, bigint]>(
    `SELECT ${named.join(", ")} FROM ${table} WHERE ${inSlice("rowid")}`,
  );
  for (const row of rows.iterate(after, last)) {
    const found = row[DIGEST];
    if (found === null) yield `${nameAt(database, table, row)}: its row has no digest`;
    else if (found !== digestOfStored(table, columns, row))
      yield `${nameAt(database, table, row)}: its row is not as it was recorded, by its digest`;
  }
}

/** A digest may be of few columns, so what names the row is read where it is needed. */
function nameAt(database: Database, table: string, { row_number: at }: Row): string {
  const row = database.query<Row, [bigint]>(`SELECT * FROM ${table} WHERE rowid = ?`).get(at as bigint);
  return row === null ? `${table} ${at}` : nameOf(database, table, row);
}

const columnsOf = (database: Database, table: string): readonly string[] =>
  database
    .query<{ name: string }, [string]>("SELECT name FROM pragma_table_info(?)")
    .all(table)
    .map(({ name }) => name);
