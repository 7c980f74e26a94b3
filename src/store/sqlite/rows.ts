import type { Column, Table } from "drizzle-orm";
import { getTableColumns, type Placeholder, type SQL, sql } from "drizzle-orm";
import type { AuditEntry } from "../../core/audit-entry.ts";
import type { Balance } from "../../core/postings.ts";
import type { TraceEntry } from "../../core/trace.ts";
import type { Purchase } from "../../core/x402/purchase.ts";
import type { IdempotencyKey, Posting } from "../rows.ts";
import type * as directory from "./tables/directory.ts";
import type * as ledger from "./tables/ledger.ts";
import type { purchases } from "./tables/purchases.ts";

/**
 * Domain values to rows and back, where the two differ. The other nouns are kept field by field under the same names.
 */

export type WarrantRow = typeof ledger.warrants.$inferSelect;
type TraceRow = typeof ledger.trace.$inferSelect;
type AuditEntryRow = typeof directory.auditEntries.$inferSelect;
type IdempotencyRow = typeof ledger.idempotencyKeys.$inferSelect;
type PostingRow = typeof ledger.postings.$inferSelect;

export const balanceOf = ({ available, held, paid }: typeof ledger.balances.$inferSelect): Balance => ({
  available,
  held,
  paid,
});

export const traceRowOf = (entry: TraceEntry): Omit<TraceRow, "position"> => ({
  warrantId: entry.warrantId,
  sequence: entry.sequence,
  from: entry.from,
  to: entry.to,
  actorKind: entry.actor.kind,
  actorId: entry.actor.id,
  recordedAt: entry.recordedAt,
  payload: entry.payload,
  payloadHash: entry.payloadHash,
  rulesHash: entry.rulesHash,
  previous: entry.previous,
  entryHash: entry.entryHash,
  eventId: entry.event?.id ?? null,
  eventType: entry.event?.type ?? null,
});

export function traceEntryOf(row: TraceRow): TraceEntry {
  const { position: _, actorKind, actorId, eventId, eventType, ...rest } = row;
  return {
    ...rest,
    actor:
      actorKind === "system" || actorId === null
        ? { kind: "system", id: null }
        : { kind: actorKind, id: actorId },
    event: eventId === null || eventType === null ? null : { id: eventId, type: eventType },
  };
}

export const auditEntryRowOf = ({ actor, ...act }: AuditEntry): AuditEntryRow => ({
  ...act,
  actorKind: actor.kind,
  actorId: actor.id,
});

export const auditEntryOf = ({ actorKind, actorId, ...act }: AuditEntryRow): AuditEntry => ({
  ...act,
  actor:
    actorKind === "user" && actorId !== null ? { kind: "user", id: actorId } : { kind: "machine", id: null },
});

type PurchaseRow = typeof purchases.$inferSelect;

export const purchaseRowOf = ({ quote, ...purchase }: Purchase): PurchaseRow => ({
  ...purchase,
  quotedAmount: quote?.amount ?? null,
  quotedAsset: quote?.asset ?? null,
  quotedPayee: quote?.payee ?? null,
  timeoutSeconds: quote?.timeoutSeconds ?? null,
  pays: quote?.pays ?? null,
  chainId: quote?.pays.kind === "exact" ? quote.pays.chainId : null,
  contract: quote?.pays.kind === "exact" ? quote.pays.contract : null,
});

export function purchaseOf(row: PurchaseRow): Purchase {
  const {
    quotedAmount,
    quotedAsset,
    quotedPayee,
    timeoutSeconds,
    pays,
    chainId: _,
    contract: __,
    ...rest
  } = row;
  const isQuoted = quotedAmount !== null && quotedAsset !== null && quotedPayee !== null && pays !== null;
  return {
    ...rest,
    quote: isQuoted
      ? { amount: quotedAmount, asset: quotedAsset, payee: quotedPayee, timeoutSeconds, pays }
      : null,
  };
}

export const idempotencyKeyOf = ({ status, body, contentHash, ...row }: IdempotencyRow): IdempotencyKey => ({
  ...row,
  outcome: status === null || body === null ? null : { status, body, contentHash },
});

export const idempotencyRowOf = ({ outcome, ...row }: IdempotencyKey): IdempotencyRow => ({
  ...row,
  status: outcome?.status ?? null,
  body: outcome?.body ?? null,
  contentHash: outcome?.contentHash ?? null,
});

export const postingRowOf = ({ legs, ...posting }: Posting): Omit<PostingRow, "rail" | "id"> => ({
  ...posting,
  ...legs,
});

/** The columns that a domain value has: of the table's, all but the order of commits. */
export function withoutPosition<T extends Table & { readonly position: Column }>(table: T) {
  const { position: _, ...columns } = getTableColumns(table);
  return columns as Omit<T["_"]["columns"], "position">;
}

/** A named placeholder for every column of a table, under the column's name in code. */
export function placeholdersOf<T extends Table>(table: T): { [K in keyof T["_"]["columns"]]: Placeholder } {
  const names = Object.keys(getTableColumns(table));
  return Object.fromEntries(names.map((name) => [name, sql.placeholder(name)])) as {
    [K in keyof T["_"]["columns"]]: Placeholder;
  };
}

/** The same of a table that orders its rows by commit: SQLite gives each its position. */
export const appendedOf = <T extends Table & { readonly position: Column }>(table: T) => ({
  ...placeholdersOf(table),
  position: sql`NULL`,
});

/** What brings a row up to date: of these columns the values that its insert brought, which met the row that is there. */
export function excludedOf<T extends Table, Name extends string & keyof T["_"]["columns"]>(
  table: T,
  ...names: readonly Name[]
): { [K in Name]: SQL } {
  const columns = getTableColumns(table);
  return Object.fromEntries(
    names.map((name) => [name, sql`excluded.${sql.identifier(columns[name]?.name ?? name)}`]),
  ) as { [K in Name]: SQL };
}
