import { NO_BALANCE, NOTHING_PAID, payeeLegsOf } from "../core/postings.ts";
import type { Deletion, Put, Write } from "./change.ts";
import { FOLLOWED, type Written } from "./followed-indexes.ts";
import { balanceRowKey, type Posting, payeeRowKey, rowKeyOf } from "./rows.ts";
import type { IndexName, IndexTable, LoadedKind, LoadedRows } from "./view.ts";

/**
 * How many rows of one kind, or answers of one index, are kept. Where there are more, all of that kind are
 * forgotten and read again.
 */
const KEPT_MAX = 10_000;

/**
 * The kinds and indexes that are kept from one transaction to the next: those that seldom change and that
 * every command needs. All others are kept for one batch only.
 */
const KEPT_ROWS: ReadonlySet<LoadedKind> = new Set([
  "agent",
  "apiKey",
  "instance",
  "organisation",
  "policy",
  "schema",
  "verifier",
  "webhook",
]);
const KEPT_INDEXES: ReadonlySet<IndexName> = new Set([
  "countingPasskey",
  "enabledWebhooks",
  "newestPolicy",
  "newestPolicyNamed",
  "newestSession",
  "schemaNamed",
]);

/** Whether a write can change the answers of an index; or to which questions, by their keys (`indexKeyOf`). */
type Touched = boolean | readonly string[];

/** For each kind of row that an index depends on: what a write of it touches. */
type Touches = { readonly [Kind in LoadedKind]?: (written: Written<LoadedRows[Kind]>) => Touched };

const always = () => true;
/** Questions about what a row had before, and has now. */
const about =
  <Row>(askedOf: (row: Row) => readonly (string | null)[]) =>
  ({ before, after }: Written<Row>): readonly string[] =>
    [before, after].flatMap((row) => (row === null ? [] : askedOf(row))).filter((key) => key !== null);
const madeOrDeleted = ({ before, after }: Written<unknown>): boolean => before === null || after === null;

/**
 * The kinds of rows that each index depends on. After a write that can change its answers, they are read
 * again.
 */
const TOUCHED_BY: { readonly [Name in Exclude<IndexName, keyof typeof FOLLOWED>]: Touches } = {
  newestSession: { spendSession: madeOrDeleted },
  // Asked of the time before this batch alone, and what is held now is later.
  heldUntil: {},
  heldSince: {},
  escalationOrWarrant: { escalation: about(({ id, warrantId }) => [id, warrantId]) },
  depositReferenced: { deposit: always },
  correctionOf: { correction: always },
  newestPayout: { payout: madeOrDeleted },
  transactionOfPayout: { payoutTransaction: madeOrDeleted },
  sentSince: { payout: always, payoutTransaction: madeOrDeleted },
  unresolvedEscalation: { escalation: about(({ warrantId }) => [warrantId]) },
  purchaseOfWarrant: { purchase: ({ before, after }) => before?.warrantId !== after?.warrantId },
  enabledWebhooks: { webhook: always },
  newestPolicy: { policy: always },
  newestPolicyNamed: { policy: always },
  schemaNamed: { schema: always },
  countingPasskey: { passkey: madeOrDeleted, user: always },
  keyHeldBy: { idempotencyKey: about(({ holder }) => [holder]) },
  oldestFree: { purchase: ({ before, after }) => before?.contentBytes !== after?.contentBytes },
  sourceKeysOf: { sourceKey: always },
  newestTransaction: { chainTransaction: madeOrDeleted },
  anyOrganisation: { organisation: madeOrDeleted },
  userByEmail: { user: always },
  otherOwner: { user: always },
  secondPerson: { user: always },
  passkeysOf: { passkey: madeOrDeleted },
  sessionsOf: { authSession: always },
  peopleOf: { user: always },
  newestNotice: { notice: madeOrDeleted },
  accountOfChat: { messagingAccount: madeOrDeleted },
  unusedResetsOf: { passwordReset: always },
  pushSubscriptionsOf: { pushSubscription: madeOrDeleted },
  pushSubscriptionAt: { pushSubscription: madeOrDeleted },
};

/** What the indexes that depend on a kind of row do when one is written. */
type RuleOf<Rule> = { readonly index: IndexName; readonly rule: Rule };

/** The rules of indexes, by the kinds of rows that these depend on. */
function byKind<Rule>(rules: object): ReadonlyMap<string, readonly RuleOf<Rule>[]> {
  const found = new Map<string, readonly RuleOf<Rule>[]>();
  for (const [index, ofKinds] of Object.entries(rules) as [IndexName, Record<string, Rule>][]) {
    for (const [kind, rule] of Object.entries(ofKinds))
      found.set(kind, [...(found.get(kind) ?? []), { index, rule }]);
  }
  return found;
}

const TOUCHES_OF = byKind<(written: Written<never>) => Touched>(TOUCHED_BY);
const FOLLOWS_OF = byKind<(answers: Table, written: Written<never>) => void>(FOLLOWED);

const isTouched = (touched: Touched): touched is true | readonly string[] =>
  touched === true || (touched !== false && touched.length > 0);

/** Whether a write can change what is kept from one transaction to the next. */
export function changesKept(write: Write): boolean {
  const { kind, row } = write.kind === "put" ? write.put : write.deletion;
  if (KEPT_ROWS.has(kind as LoadedKind)) return true;
  const before = write.kind === "put" ? beforeOf(write.put) : row;
  const written = { before, after: write.kind === "put" ? row : null } as Written<never>;
  return (TOUCHES_OF.get(kind) ?? []).some(
    ({ index, rule }) => KEPT_INDEXES.has(index) && isTouched(rule(written)),
  );
}

/** The row before a put; null where it is made, as of those that are never changed. */
const beforeOf = (put: Put): unknown => ("before" in put ? put.before : null);

/** What is missing: keys of rows by their kind, and questions by the name of the index. */
export type Missing = {
  readonly rows: ReadonlyMap<LoadedKind, ReadonlySet<string>>;
  readonly indexes: ReadonlyMap<IndexName, ReadonlyMap<string, IndexTable[IndexName]["of"]>>;
};

/**
 * The rows that commands have read or written. Each command of a batch sees what the earlier ones wrote,
 * before it is in the database. Rows that seldom change are kept from one transaction to the next. They are
 * never stale: only this process's Changes and other processes' commits can change them, and the engine
 * notices both.
 */
export type RowCache = {
  /** A row; null where it does not exist, undefined where it was not loaded. */
  row<Kind extends LoadedKind>(kind: Kind, key: string): LoadedRows[Kind] | null | undefined;
  index<Name extends IndexName>(name: Name, key: string): IndexTable[Name]["gives"] | undefined;
  loadRow<Kind extends LoadedKind>(kind: Kind, key: string, row: LoadedRows[Kind] | null): void;
  loadIndex<Name extends IndexName>(name: Name, key: string, gives: IndexTable[Name]["gives"]): void;
  put(put: Put): void;
  remove(deletion: Deletion): void;
  /** Whether a put or a removal that is not written yet could change what the database gives for these. */
  isBehind(missing: Missing): boolean;
  /** Notes that the database has everything that was put and removed. */
  written(): void;
  /** The rows that are there, and the answers of indexes, of those kinds that are kept from one transaction to the next. */
  kept(): Kept;
  /** A batch is on disk. Forgets all rows but those that are kept. */
  endBatch(): void;
  /** A batch was undone, or another process has committed. Forgets everything. */
  clear(): void;
};

/** Rows by their kind and key, and answers of indexes by their name and the question (`indexKeyOf`). */
export type Kept = {
  readonly rows: readonly (readonly [kind: LoadedKind, rows: ReadonlyMap<string, unknown>])[];
  readonly indexes: readonly (readonly [name: IndexName, answers: ReadonlyMap<string, unknown>])[];
};

type Table = Map<string, unknown>;

function tableOf<Name>(tables: Map<Name, Table>, name: Name): Table {
  let table = tables.get(name);
  if (table === undefined) {
    table = new Map();
    tables.set(name, table);
  }
  return table;
}

function forgetUnkept<Name>(tables: ReadonlyMap<Name, Table>, kept: ReadonlySet<Name>): void {
  for (const [name, table] of tables) {
    if (table.size > (kept.has(name) ? KEPT_MAX : 0)) table.clear();
  }
}

/** Adds a posting to its balance. Answers whether the balance is loaded. */
function movePosting(balances: Table | undefined, { organisationId, mode, asset, legs }: Posting): boolean {
  const key = balanceRowKey(organisationId, mode, asset);
  const balance = balances?.get(key) as LoadedRows["balance"] | null | undefined;
  if (balance === undefined) return false;
  const { available, held, paid } = balance ?? NO_BALANCE;
  balances?.set(key, {
    available: available + legs.available,
    held: held + legs.held,
    paid: paid + legs.paid,
  });
  return true;
}

/** Adds a posting to the balance of its payee. Answers whether that is loaded, or no payee's is moved. */
function movePayee(balances: Table | undefined, posting: Posting): boolean {
  const { organisationId, mode, asset, payee } = posting;
  if (payee === null) return true;
  const key = payeeRowKey(organisationId, mode, asset, payee);
  const balance = balances?.get(key) as LoadedRows["payeeBalance"] | null | undefined;
  if (balance === undefined) return false;
  const before = balance ?? NOTHING_PAID;
  const legs = payeeLegsOf(posting.legs);
  balances?.set(key, {
    payable: before.payable + legs.payable,
    submitted: before.submitted + legs.submitted,
    paidOut: before.paidOut + legs.paidOut,
  });
  return true;
}

export function createRowCache(): RowCache {
  const rows = new Map<LoadedKind, Table>();
  const indexes = new Map<IndexName, Table>();
  /** Kinds and indexes of which the database lacks a write that the cache does not have either. */
  const behind = new Set<LoadedKind | IndexName>();

  /** Forgets the answers of indexes that this write can change, but those that follow it. */
  function touch(kind: string, before: unknown, after: unknown): void {
    const written = { before, after } as Written<never>;
    for (const { index, rule } of FOLLOWS_OF.get(kind) ?? []) {
      const answers = indexes.get(index);
      if (answers) rule(answers, written);
      behind.add(index);
    }
    for (const { index, rule } of TOUCHES_OF.get(kind) ?? []) {
      const touched = rule(written);
      if (!isTouched(touched)) continue;
      if (touched === true) indexes.get(index)?.clear();
      else for (const key of touched) indexes.get(index)?.delete(key);
      behind.add(index);
    }
  }

  /** Sets a row that a command writes. Its `before` must be the row that is there. */
  function write(kind: LoadedKind, key: string, before: unknown, after: unknown): void {
    const known = rows.get(kind)?.get(key);
    if (before === null ? known != null : known !== before)
      throw new Error(`a Change writes the ${kind} ${key} from another row than the one that was read`);
    tableOf(rows, kind).set(key, after);
    touch(kind, before, after);
  }

  return {
    row: (kind, key) => rows.get(kind)?.get(key) as never,
    index: (name, key) => indexes.get(name)?.get(key) as never,
    loadRow: (kind, key, row) => void tableOf(rows, kind).set(key, row),
    loadIndex: (name, key, gives) => void tableOf(indexes, name).set(key, gives),
    put(put) {
      switch (put.kind) {
        case "posting":
          if (!movePosting(rows.get("balance"), put.row)) behind.add("balance");
          if (!movePayee(rows.get("payeeBalance"), put.row)) behind.add("payeeBalance");
          return;
        case "trace":
          behind.add("traceStep");
          return;
        case "auditEntry":
        case "capsulePart":
        case "check":
        case "content":
        case "logAnchor":
          return;
        case "deposit":
        case "policy":
        case "schema":
        case "verifier":
          write(put.kind, put.row.id, null, put.row);
          return;
        default:
          write(put.kind, rowKeyOf(put.kind, put.row), put.before, put.row);
      }
    },
    remove: ({ kind, row }) => write(kind, rowKeyOf(kind, row), row, null),
    isBehind: (missing) =>
      behind.size > 0 && [...missing.rows.keys(), ...missing.indexes.keys()].some((name) => behind.has(name)),
    written: () => behind.clear(),
    kept: () => ({
      rows: [...rows].filter(([kind]) => KEPT_ROWS.has(kind)),
      indexes: [...indexes].filter(([name]) => KEPT_INDEXES.has(name)),
    }),
    endBatch() {
      forgetUnkept(rows, KEPT_ROWS);
      forgetUnkept(indexes, KEPT_INDEXES);
    },
    clear() {
      rows.clear();
      indexes.clear();
      behind.clear();
    },
  };
}
