import type { Column, Table } from "drizzle-orm";
import { getTableColumns, type Placeholder, type SQL, sql } from "drizzle-orm";
import type { AuditEntry } from "../../core/audit-entry.ts";
import type { Check } from "../../core/check.ts";
import type { Deposit } from "../../core/deposit.ts";
import { type Balance, CAUSE_OF } from "../../core/postings.ts";
import type { Mode } from "../../core/roles.ts";
import type { TraceEntry, TraceStep } from "../../core/trace.ts";
import type { Warrant } from "../../core/warrant.ts";
import type { Purchase } from "../../core/x402/purchase.ts";
import type { IdempotencyKey, Posting, RecordedOutcome } from "../rows.ts";
import type { Names } from "./names.ts";
import type { Positions } from "./positions.ts";
import { DIGEST } from "./row-digest.ts";
import type * as directory from "./tables/directory.ts";
import type * as ledger from "./tables/ledger.ts";
import { CHAIN_RAIL_OF_MODE, RAIL_OF_MODE } from "./tables/ledger.ts";
import type { purchases } from "./tables/purchases.ts";

/**
 * Turns domain values into rows and back, where the two differ. All other nouns are stored field by field
 * under the same names.
 */

type TraceRow = RowOf<typeof ledger.trace>;
type AuditEntryRow = typeof directory.auditEntries.$inferSelect;
type IdempotencyRow = RowOf<typeof ledger.idempotencyKeys>;
type CheckRow = RowOf<typeof ledger.checks>;
type DepositRow = RowOf<typeof ledger.deposits>;

/** Whose an account is, and of which asset. */
export function ofAccount(account: bigint, names: Names): Pick<Deposit, "organisationId" | "mode" | "asset"> {
  const found = names.find("account", account);
  const scope = found && names.find("scope", found.scope);
  if (!found || !scope) throw new Error(`the account at position ${account} does not exist`);
  return { organisationId: scope.organisation_id, mode: scope.mode, asset: found.asset };
}

/** @throws where its account does not exist */
export const depositOf = ({ position: _, account, ...row }: DepositRow, names: Names): Deposit => ({
  ...row,
  ...ofAccount(BigInt(account), names),
});

export const balanceOf = ({
  available,
  held,
  paid,
}: Pick<typeof ledger.accounts.$inferSelect, "available" | "held" | "paid">): Balance => ({
  available,
  held,
  paid,
});

/** The row of a warrant. It refers to the agent, session, verifier and policy by position. */
export function warrantRowOf(warrant: Warrant, positions: Positions) {
  const { agentId, openedBy, sessionId, verifierId, policyId, traceHead } = warrant;
  const scope = positions.ofScope(warrant);
  const account = positions.account(scope, warrant.asset);
  if (account === null) throw new Error(`there is no account of ${warrant.asset} to hold ${warrant.id} from`);
  if (traceHead === null) throw new Error(`the warrant ${warrant.id} has no trace`);
  return {
    ...warrant,
    scope,
    account,
    traceHead,
    agent: agentId === null ? null : positions.of("agent", agentId),
    openedByAgent: openedBy?.kind === "agent" ? positions.of("agent", openedBy.id) : null,
    openedByUser: openedBy?.kind === "user" ? openedBy.id : null,
    session: sessionId === null ? null : positions.of("session", sessionId),
    verifier: verifierId === null ? null : positions.of("verifier", verifierId),
    policy: policyId === null ? null : positions.of("policy", policyId),
    rulesHash: policyId === null ? warrant.rulesHash : null,
  };
}

export const traceRowOf = (entry: TraceEntry, positions: Positions) => ({
  warrant: positions.of("warrant", entry.warrantId),
  sequence: entry.sequence,
  from: entry.from,
  to: entry.to,
  actorKind: entry.actor.kind,
  actorId: entry.actor.id,
  recordedAt: entry.recordedAt,
  encoding: entry.encoding,
  schemaHashes: entry.schemaHashes,
  checkId: entry.checkId,
  entryHash: entry.entryHash,
  eventId: entry.eventId,
  leafIndex: null,
});

export function traceStepOf(row: TraceRow, warrantId: string): TraceStep {
  const { position: _, warrant: __, leafIndex: ___, actorKind, actorId, ...step } = row;
  return {
    ...step,
    warrantId,
    actor:
      actorKind === "system" || actorId === null
        ? { kind: "system", id: null }
        : { kind: actorKind, id: actorId },
  };
}

export const checkRowOf = (check: Check, positions: Positions) => ({
  ...check,
  warrant: positions.of("warrant", check.warrantId),
});

export const checkOf = ({ position: _, warrant: __, ...check }: CheckRow, warrantId: string): Check => ({
  ...check,
  warrantId,
});

export const auditEntryRowOf = ({ actor, ...entry }: AuditEntry): AuditEntryRow => ({
  ...entry,
  actorKind: actor.kind,
  actorId: actor.id,
});

export const auditEntryOf = ({ actorKind, actorId, ...entry }: AuditEntryRow): AuditEntry => ({
  ...entry,
  actor:
    actorKind === "machine" || actorId === null
      ? { kind: "machine", id: null }
      : { kind: actorKind, id: actorId },
});

type PurchaseRow = RowOf<typeof purchases>;

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

/** An idempotency key's row with its scope and the id of its warrant. */
type FoundKey = {
  readonly row: IdempotencyRow;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly warrantId: string | null;
};

export const idempotencyKeyOf = ({ row, organisationId, mode, warrantId }: FoundKey): IdempotencyKey => ({
  organisationId,
  mode,
  key: row.key,
  fingerprint: row.fingerprint,
  holder: row.holder,
  outcome: outcomeOf(row, warrantId),
  createdAt: row.createdAt,
});

function outcomeOf(row: IdempotencyRow, warrantId: string | null): RecordedOutcome | null {
  const { status, body, contentHash, version, encoding } = row;
  if (status === null) return null;
  if (body !== null) return { kind: "body", status, body, contentHash };
  if (warrantId === null || version === null || encoding === null)
    throw new Error(`the key ${JSON.stringify(row.key)} has an outcome that says nothing`);
  return { kind: "warrant", status, warrantId, version, encoding };
}

export function idempotencyRowOf(idempotencyKey: IdempotencyKey, positions: Positions) {
  const { key, fingerprint, holder, outcome, createdAt } = idempotencyKey;
  const body = outcome?.kind === "body" ? outcome : null;
  const warrant = outcome?.kind === "warrant" ? outcome : null;
  return {
    ...{ scope: positions.ofScope(idempotencyKey), key, fingerprint, holder, createdAt },
    status: outcome?.status ?? null,
    body: body?.body ?? null,
    contentHash: body?.contentHash ?? null,
    warrant: warrant === null ? null : positions.of("warrant", warrant.warrantId),
    version: warrant?.version ?? null,
    encoding: warrant?.encoding ?? null,
  };
}

/** The account of an asset that something moves. The deposit has created it already. */
export function accountOf(
  of: Pick<Posting, "organisationId" | "mode" | "asset">,
  positions: Positions,
): number {
  const account = positions.account(positions.ofScope(of), of.asset);
  if (account === null) throw new Error(`a posting needs an account of ${of.asset} to move`);
  return account;
}

/** The rail as rows name it, by its mode. */
export const railNameOf = ({ mode, rail }: Pick<Posting, "mode" | "rail">) =>
  (rail === "evm" ? CHAIN_RAIL_OF_MODE : RAIL_OF_MODE)[mode];

export const postingRowOf = (posting: Posting, positions: Positions) => ({
  account: accountOf(posting, positions),
  kind: posting.kind,
  rail: railNameOf(posting),
  cause: positions.of(CAUSE_OF[posting.kind], posting.causeId),
  ...posting.legs,
  recordedAt: posting.recordedAt,
});

/** The columns of a table that domain values have: all but `position` and the digest. */
export function fieldsOf<T extends Table>(table: T) {
  const { position: _, digest: __, ...columns } = getTableColumns(table) as Readonly<Record<string, Column>>;
  return columns as Omit<T["_"]["columns"], "position" | "digest">;
}

/** All columns of a table but the digest, which only the audit reads. */
export function withoutDigest<T extends Table>(table: T) {
  const { digest: _, ...columns } = getTableColumns(table) as Readonly<Record<string, Column>>;
  return columns as Omit<T["_"]["columns"], "digest">;
}

/** A row of a table without its digest. */
export type RowOf<T extends Table> = Omit<T["$inferSelect"], "digest">;

/** A named placeholder for every column of a table, under the column's name in code. */
export function placeholdersOf<T extends Table>(table: T): { [K in keyof T["_"]["columns"]]: Placeholder } {
  const names = Object.keys(getTableColumns(table));
  return Object.fromEntries(names.map((name) => [name, sql.placeholder(name)])) as {
    [K in keyof T["_"]["columns"]]: Placeholder;
  };
}

/**
 * The placeholders of a table whose rows are ordered by commit. The position is a literal NULL, so that SQLite
 * chooses it. With a parameter SQLite would prepare for a given position, and for undoing the insert.
 */
export const appendedOf = <T extends Table & { readonly position: Column }>(table: T) => ({
  ...placeholdersOf(table),
  position: sql`NULL`,
});

/** The digest that an update gives a row. Its values must then be those of the whole row. */
export const digestOf = <T extends Table & { readonly digest: Column }>({ digest }: T) => ({
  digest: sql`${sql.param(sql.placeholder(DIGEST), digest)}`,
});

/** The SET clause of an upsert: these columns and the digest get the values of the row that could not be inserted. */
export function excludedOf<T extends Table, Name extends string & keyof T["_"]["columns"]>(
  table: T,
  ...names: readonly Name[]
): { [K in Name]: SQL } {
  const columns = getTableColumns(table);
  const all = DIGEST in columns ? [...names, DIGEST] : names;
  return Object.fromEntries(
    all.map((name) => [name, sql`excluded.${sql.identifier(columns[name]?.name ?? name)}`]),
  ) as { [K in Name]: SQL };
}

/** What an update sets: each of these columns to the value of its name. */
export const given = <Name extends string>(...names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, sql`${sql.placeholder(name)}`])) as Record<Name, SQL>;
