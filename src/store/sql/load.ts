import { and, eq, getTableColumns, sql } from "drizzle-orm";
import { heldBetween } from "../../core/session-limits.ts";
import { OLDEST_KNOWN_MAX } from "../followed-indexes.ts";
import { OLDEST_FREE_MAX } from "../needs.ts";
import type { Missing, RowCache } from "../row-cache.ts";
import { indexKeyOf } from "../rows.ts";
import type { IndexName, IndexTable, LoadedKind, LoadedRows } from "../view.ts";
import { chainLookUps } from "./chain-rows.ts";
import { chainTransferLookUps } from "./chain-transfer-rows.ts";
import type { Connection, SqlDatabase, SqlValue, Tables } from "./database.ts";
import { finding, keyed, type LookUpRow, mapped, scopedKey } from "./find-by-key.ts";
import { capsulesSql, SOURCE_KEYS_SQL } from "./kept-bodies.ts";
import { lazily } from "./lazily.ts";
import { ACCOUNT_OF_CHAT_SQL, messagingLookUps } from "./messaging-rows.ts";
import type { Names } from "./names.ts";
import { newestNoticeIn, noticeLookUps } from "./notice-rows.ts";
import { CORRECTION_OF_SQL, payoutLookUps } from "./payout-rows.ts";
import { peopleIndexes } from "./people-indexes.ts";
import type { Positions } from "./positions.ts";
import { railIndexes, railLookUps } from "./rail-rows.ts";
import {
  balanceOf,
  depositOf,
  fieldsOf,
  idempotencyKeyOf,
  purchaseOf,
  traceStepOf,
  withoutDigest,
} from "./rows.ts";
import { selectRows } from "./select-rows.ts";
import { heldUntilIn } from "./session-totals.ts";
import { capsules } from "./tables/capsules.ts";
import * as directory from "./tables/directory.ts";
import * as ledger from "./tables/ledger.ts";
import { purchases } from "./tables/purchases.ts";
import { deliveries, webhooks } from "./tables/webhooks.ts";
import { walletIndexes } from "./wallet-indexes.ts";
import { type StoredWarrant, warrantOf } from "./warrant-rows.ts";
import { witnessLookUps } from "./witness-rows.ts";

/**
 * Loads the missing rows of a batch into the row cache, inside the transaction that decides, so that no row
 * is stale.
 */
export type Load = (missing: Missing, cache: RowCache) => void;

type LookUps = { readonly [Kind in LoadedKind]: LookUpRow<LoadedRows[Kind]> };

const { placeholder } = sql;

function peopleLookUps(tables: Tables) {
  const { authSessions, organisations, passkeyApprovals, passkeys, passwordResets, users } = directory;
  return {
    organisation: finding(() => tables.select().from(organisations).where(keyed(organisations.id)).prepare()),
    user: finding(() => tables.select().from(users).where(keyed(users.id)).prepare()),
    authSession: finding(() =>
      tables.select().from(authSessions).where(keyed(authSessions.tokenHash)).prepare(),
    ),
    passkey: finding(() => tables.select().from(passkeys).where(keyed(passkeys.id)).prepare()),
    passkeyApproval: finding(() =>
      tables.select().from(passkeyApprovals).where(keyed(passkeyApprovals.tokenHash)).prepare(),
    ),
    passwordReset: finding(() =>
      tables.select().from(passwordResets).where(keyed(passwordResets.tokenHash)).prepare(),
    ),
  };
}

function rulesLookUps(tables: Tables) {
  const { agents, apiKeys, policies, schemas, sourceKeys, spendSessions, verifiers } = directory;
  return {
    agent: finding(() => tables.select(fieldsOf(agents)).from(agents).where(keyed(agents.id)).prepare()),
    apiKey: finding(() => tables.select().from(apiKeys).where(keyed(apiKeys.id)).prepare()),
    policy: finding(() =>
      tables.select(fieldsOf(policies)).from(policies).where(keyed(policies.id)).prepare(),
    ),
    schema: finding(() => tables.select(fieldsOf(schemas)).from(schemas).where(keyed(schemas.id)).prepare()),
    verifier: finding(() =>
      tables.select(fieldsOf(verifiers)).from(verifiers).where(keyed(verifiers.id)).prepare(),
    ),
    sourceKey: finding(() =>
      tables.select(fieldsOf(sourceKeys)).from(sourceKeys).where(keyed(sourceKeys.id)).prepare(),
    ),
    spendSession: finding(() =>
      tables.select(fieldsOf(spendSessions)).from(spendSessions).where(keyed(spendSessions.id)).prepare(),
    ),
  };
}

function ledgerLookUps(tables: Tables, raw: SqlDatabase, positions: Positions, names: Names) {
  const { accounts, deposits, escalations, idempotencyKeys, trace } = ledger;
  return {
    warrant: lazily(() => {
      const statement = raw.prepare<StoredWarrant, [string]>("SELECT * FROM warrants WHERE id = ?");
      return (id: string) => {
        const row = statement.get(id);
        if (row === null) return null;
        positions.remember("warrant", id, Number(row.position));
        return warrantOf(row, names);
      };
    }),
    traceStep: lazily(() => {
      const { warrant, sequence } = trace;
      const statement = tables
        .select(withoutDigest(trace))
        .from(trace)
        .where(and(eq(warrant, placeholder("warrant")), eq(sequence, placeholder("sequence"))))
        .prepare();
      return (rowKey: string) => {
        const [warrantId = "", sequenceText] = rowKey.split(" ");
        const row = statement.get({
          warrant: positions.of("warrant", warrantId),
          sequence: Number(sequenceText),
        });
        return row ? traceStepOf(row, warrantId) : null;
      };
    }),
    deposit: mapped(
      finding(() =>
        tables.select(withoutDigest(deposits)).from(deposits).where(keyed(deposits.id)).prepare(),
      ),
      (row) => depositOf(row, names),
    ),
    ...payoutLookUps(tables, positions, names),
    escalation: finding(() =>
      tables.select(fieldsOf(escalations)).from(escalations).where(keyed(escalations.id)).prepare(),
    ),
    purchase: mapped(
      finding(() => tables.select(fieldsOf(purchases)).from(purchases).where(keyed(purchases.id)).prepare()),
      purchaseOf,
    ),
    idempotencyKey: lazily(() => {
      const { scope, key } = idempotencyKeys;
      const statement = tables
        .select(withoutDigest(idempotencyKeys))
        .from(idempotencyKeys)
        .where(and(eq(scope, placeholder("scope")), keyed(key)))
        .prepare();
      const warrantAt = raw.prepare<{ id: string }, [number]>("SELECT id FROM warrants WHERE position = ?");
      return (rowKey: string) => {
        const { organisationId, mode, rest } = scopedKey(rowKey);
        const scopeOfKey = positions.scope(organisationId, mode);
        const row = scopeOfKey === null ? undefined : statement.get({ scope: scopeOfKey, key: rest });
        if (!row) return null;
        const warrantId = row.warrant === null ? null : (warrantAt.get(row.warrant)?.id ?? null);
        return idempotencyKeyOf({ row, organisationId, mode, warrantId });
      };
    }),
    balance: lazily(() => {
      const { available, held, paid, position } = accounts;
      const statement = tables
        .select({ available, held, paid })
        .from(accounts)
        .where(eq(position, placeholder("position")))
        .prepare();
      return (rowKey: string) => {
        const { organisationId, mode, rest: asset } = scopedKey(rowKey);
        const scope = positions.scope(organisationId, mode);
        const account = scope === null ? null : positions.account(scope, asset);
        const row = account === null ? undefined : statement.get({ position: account });
        return row ? balanceOf(row) : null;
      };
    }),
  };
}

function operationLookUps(tables: Tables, raw: SqlDatabase) {
  return {
    // A ledger has exactly one instance.
    instance: lazily(() => {
      const instances = selectRows(raw, getTableColumns(directory.instances), "");
      return () => instances()[0] ?? null;
    }),
    capsule: finding(() =>
      tables.select(fieldsOf(capsules)).from(capsules).where(keyed(capsules.id)).prepare(),
    ),
    webhook: finding(() => tables.select().from(webhooks).where(keyed(webhooks.id)).prepare()),
    delivery: finding(() => tables.select().from(deliveries).where(keyed(deliveries.id)).prepare()),
  };
}

type Asked = SqlValue[];
type Ask<Name extends IndexName> = (of: IndexTable[Name]["of"]) => IndexTable[Name]["gives"];
type Indexes = { readonly [Name in IndexName]: Ask<Name> };

/** Each index as SQL. A test checks the query plan of every statement (test/store/read-plans.test.ts). */
function indexesOf(raw: SqlDatabase): Indexes {
  const first = (text: string) =>
    lazily(() => {
      const statement = raw.prepare<{ key: string }, Asked>(text);
      return (of: Asked): string | null => statement.get(...of)?.key ?? null;
    });
  const all = (text: string) =>
    lazily(() => {
      const statement = raw.prepare<{ key: string }, Asked>(text);
      return (of: Asked): readonly string[] => statement.all(...of).map(({ key }) => key);
    });
  const isThere = (text: string) => {
    const find = first(text);
    return (of: Asked): boolean => find(of) !== null;
  };
  return {
    newestSession: first(
      "SELECT id AS key FROM spend_sessions WHERE agent_id = ? ORDER BY position DESC LIMIT 1",
    ),
    ...totalsIn(raw),
    escalationOrWarrant: first(
      "SELECT id AS key FROM escalations WHERE id = ?1 OR warrant_id = ?1 ORDER BY status = 'resolved', rowid DESC LIMIT 1",
    ),
    depositReferenced: first(
      `SELECT deposits.id AS key FROM deposits JOIN accounts ON accounts.position = account
         JOIN scopes ON scopes.position = scope
       WHERE organisation_id = ? AND mode = ? AND asset = ? AND reference = ?`,
    ),
    correctionOf: first(CORRECTION_OF_SQL),
    unresolvedEscalation: first(
      "SELECT id AS key FROM escalations WHERE warrant_id = ? AND status <> 'resolved'",
    ),
    purchaseOfWarrant: first("SELECT id AS key FROM purchases WHERE warrant_id = ?"),
    enabledWebhooks: all(
      "SELECT id AS key FROM webhooks WHERE organisation_id = ? AND mode = ? AND disabled = 0 ORDER BY id",
    ),
    newestPolicy: first(
      "SELECT id AS key FROM policies WHERE organisation_id = ? AND agent_id IS NOT DISTINCT FROM ? ORDER BY position DESC LIMIT 1",
    ),
    newestPolicyNamed: first(
      "SELECT id AS key FROM policies WHERE organisation_id = ? AND agent_id IS NOT DISTINCT FROM ? AND name = ? ORDER BY version DESC LIMIT 1",
    ),
    schemaNamed: first("SELECT id AS key FROM schemas WHERE organisation_id = ? AND name = ?"),
    keyHeldBy: lazily(() => {
      const statement = raw.prepare<{ organisation_id: string; mode: string; key: string }, Asked>(
        `SELECT organisation_id, mode, key FROM idempotency_keys LEFT JOIN scopes ON scopes.position = scope
         WHERE holder = ? AND status IS NULL`,
      );
      return (of: Asked) => {
        const row = statement.get(...of);
        return row && `${row.organisation_id} ${row.mode} ${row.key}`;
      };
    }),
    contentBytes: contentBytesIn(raw),
    // By rowid: in the order of commits.
    oldestFree: all(
      `SELECT id AS key FROM purchases
       WHERE organisation_id = ? AND mode = ? AND content_bytes > 0 AND warrant_id IS NULL
       ORDER BY rowid LIMIT ${OLDEST_FREE_MAX}`,
    ),
    sourceKeysOf: all(SOURCE_KEYS_SQL),
    oldestCapsules: oldestCapsulesIn(all(capsulesSql("position", String(OLDEST_KNOWN_MAX)))),
    newestCapsule: first(capsulesSql("position DESC", "1")),
    ...walletIndexes(raw),
    ...railIndexes(raw),
    ...peopleIndexes({ first, all, isThere }),
    newestNotice: lazily(() => newestNoticeIn(raw)),
    accountOfChat: first(ACCOUNT_OF_CHAT_SQL),
  };
}

/** The running totals of sessions. */
function totalsIn(raw: SqlDatabase): Pick<Indexes, "heldUntil" | "heldSince"> {
  const heldUntil = heldUntilIn(raw);
  return {
    heldUntil: ([sessionId, at]) => heldUntil(sessionId, at),
    // By halving the time: a session may have held a million times within the window.
    heldSince([sessionId, after, until, before, amount]) {
      let [earliest, latest] = [after, until];
      while (latest - earliest > 1) {
        const middle = Math.floor((earliest + latest) / 2);
        const held = heldBetween(BigInt(before), heldUntil(sessionId, middle));
        if (held < BigInt(amount)) earliest = middle;
        else latest = middle;
      }
      return latest;
    },
  };
}

const oldestCapsulesIn =
  (idsOf: (of: Asked) => readonly string[]): Ask<"oldestCapsules"> =>
  (of) => {
    const ids = idsOf([...of]);
    return { ids, isAll: ids.length < OLDEST_KNOWN_MAX, isShortened: false };
  };

/** The sum of what is stored of a scope, bought or free. */
const contentBytesIn = (raw: SqlDatabase): Ask<"contentBytes"> =>
  lazily(() => {
    const statement = raw.prepare<{ bytes: bigint }, Asked>(
      `SELECT bytes FROM content_sums JOIN scopes ON scopes.position = scope
       WHERE organisation_id = ? AND mode = ? AND bought = ?`,
    );
    return ([organisationId, mode, of]) =>
      Number(statement.get(organisationId, mode, of === "bought" ? 1 : 0)?.bytes ?? 0);
  });

/** Looks up one row, or asks one index, for the row cache. */
export type LoadOne = {
  row<Kind extends LoadedKind>(kind: Kind, key: string, cache: RowCache): void;
  index<Name extends IndexName>(name: Name, of: IndexTable[Name]["of"], cache: RowCache): void;
};

export function createLoadOne({ tables, raw }: Connection, positions: Positions, names: Names): LoadOne {
  const lookUps: LookUps = {
    ...peopleLookUps(tables),
    ...rulesLookUps(tables),
    ...ledgerLookUps(tables, raw, positions, names),
    ...operationLookUps(tables, raw),
    ...witnessLookUps(tables),
    ...chainLookUps(tables),
    ...railLookUps(tables, positions, names),
    ...chainTransferLookUps(tables),
    ...noticeLookUps(tables),
    ...messagingLookUps(tables),
  };
  const indexes = indexesOf(raw);
  return {
    row<Kind extends LoadedKind>(kind: Kind, key: string, cache: RowCache): void {
      const lookUp: LookUpRow<LoadedRows[Kind]> = lookUps[kind];
      cache.loadRow(kind, key, lookUp(key));
    },
    index<Name extends IndexName>(name: Name, of: IndexTable[Name]["of"], cache: RowCache): void {
      const ask: Ask<Name> = indexes[name];
      cache.loadIndex(name, indexKeyOf(of), ask(of));
    },
  };
}

export function createLoad(connection: Connection, positions: Positions, names: Names): Load {
  const one = createLoadOne(connection, positions, names);
  return (missing, cache) => {
    for (const [kind, keys] of missing.rows) for (const key of keys) one.row(kind, key, cache);
    for (const [name, asked] of missing.indexes)
      for (const of of asked.values()) one.index(name, of as never, cache);
  };
}
