import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { auditLedger } from "../../src/store/sqlite/audit.ts";
import { buildFullLedger } from "../support/full-ledger.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";

const { afterAll, beforeAll, describe, test } = onlyEmbedded(import.meta.path);

/**
 * Edits every column of every table that the audit covers, deletes a row and adds one, and expects that the audit finds it and
 * names the row. Tables and columns come from the database itself: one that nobody thought of fails here. The guards are away, as
 * somebody with the file could take them away; that they are there again is another part of the audit (`schema.ts`), and the
 * CHECKs are too.
 */

/** Tables that the audit does not cover in all columns, and why. */
const NOT_COVERED: Readonly<Record<string, string>> = {
  __drizzle_migrations: "compared with the changes of the tables that this version knows (schema.ts)",
  audit_entries: "what people did; money and verdicts do not follow from it",
  api_keys: "credentials; the audit checks whose they are",
  auth_sessions: "who is signed in",
  instances: "settings of the instance",
  imported_tables: "empty where a ledger was always in a file (test/store/audit-imported.test.ts)",
  messaging_accounts: "chats that people have linked; whose decision it was is in the trace",
  messaging_codes: "one-time codes",
  notices: "what people were told; no money follows from it",
  notice_settings: "how people want to be told",
  organisations: "settings of an organisation",
  passkey_approvals: "one-time tokens",
  passkeys: "credentials",
  password_resets: "one-time links",
  planned_notices: "of which escalations people are still to hear",
  push_subscriptions: "the browsers that people are notified by",
  users: "people and their credentials",
  webhook_deliveries: "what was sent; it says what the trace says",
  webhooks: "where events are sent",
};

/** What names a row of each table that is covered: the message has one of these. */
const NAMES: Readonly<Record<string, (row: Row) => readonly unknown[]>> = {
  accounts: ({ asset, position, scope }) => [
    `${scopesAt.get(scope) ?? "none"}, ${asset}`,
    `account of ${asset} in the scope at position ${scope}`,
    `account ${position}:`,
  ],
  agents: ({ id }) => [id],
  capsule_parts: ({ hash }) => [hash],
  capsules: ({ id }) => [id],
  // The same names as its anchor's: one is gone without the other.
  chain_transactions: ({ nonce, wallet }) => [`${nonce} of ${wallet}`],
  // Its treasury's sums are without one that is gone.
  chain_transfers: ({ id, watch }) => [id, `treasury ${watch}`],
  checks: ({ id }) => [id],
  content_sums: ({ bought, scope }) => [
    `content of ${scopesAt.get(scope) ?? "none"}: `,
    `${bought === 1n ? "bought" : "free"} content of the scope at position ${scope}`,
  ],
  contents: ({ hash }) => [hash],
  corrections: ({ id }) => [id],
  cosignatures: ({ witness }) => [witness],
  deposit_senders: ({ address }) => [address],
  deposits: ({ id }) => [id],
  escalations: ({ id }) => [id],
  idempotency_keys: ({ key }) => [JSON.stringify(key)],
  log_anchors: ({ nonce, wallet }) => [`${nonce} of ${wallet}`],
  log_checkpoints: ({ number }) => [`checkpoint ${number}`],
  log_tiles: ({ tile, level }) => [`tile ${tile} of level ${level}`],
  payees: ({ position, account }) => [
    `payee ${position} `,
    `position ${position}`,
    `payees ${position}`,
    `${accountsAt.get(account) ?? "none"}: `,
    `account ${account}:`,
  ],
  payout_transactions: ({ nonce, wallet, payout }) => [
    `${nonce} of ${wallet}`,
    payoutsAt.get(payout) ?? "none",
  ],
  payout_waits: ({ payee }) => [`payee at position ${payee} `],
  payouts: ({ id }) => [id],
  policies: ({ id }) => [id],
  postings: ({ position, cause }) => [
    `posting ${position}`,
    `position ${position}`,
    warrantsAt.get(cause) ?? "none",
    depositsAt.get(cause) ?? "none",
    payoutsAt.get(cause) ?? "none",
    correctionsAt.get(cause) ?? "none",
  ],
  purchases: ({ id }) => [id],
  rail_states: ({ asset, mode }) => [`token of ${asset}, ${mode}`],
  schemas: ({ id }) => [id],
  scopes: ({ position, organisation_id: id }) => [id, `position ${position}`],
  session_totals: ({ session }) => [sessionsAt.get(session) ?? "none", `position ${session}`],
  solvency_statements: ({ number, leaf_index: leaf }) => [
    `statement ${number}`,
    `leaf ${leaf}`,
    // The last entry without its leaf.
    `of ${Number(leaf ?? 0n) + 1} entries`,
  ],
  source_keys: ({ id }) => [id],
  spend_sessions: ({ id }) => [id],
  trace: ({ warrant, leaf_index: leaf }) => [
    warrantsAt.get(warrant) ?? "none",
    `leaf ${leaf}`,
    // The last entry without its leaf.
    `of ${Number(leaf ?? 0n) + 1} entries`,
  ],
  treasury_watches: ({ id }) => [id, "a row of treasury_watches"],
  verifiers: ({ id }) => [id],
  warrant_counts: ({ state }) => [`counted as ${state}`],
  warrants: ({ id }) => [id],
  witnessed_logs: ({ origin }) => [origin],
};

/** Columns that say nothing, and why. */
const SAYS_NOTHING: Readonly<Record<string, string>> = {
  "capsules.position":
    "an order; another order disagrees with their sums in `bytes_until`, as a test here shows",
  "idempotency_keys.position": "an order that nothing reads",
};

/** Rows that are deleted in the course of things: that one is gone is no disagreement by itself. */
const MAY_GO: Readonly<Record<string, string>> = {
  log_checkpoints: "whoever has kept the newest one can tell that it is gone",
  cosignatures: "nothing refers to it, and the witness has it",
  capsules: "kept for a time and within a quota, the oldest first to go",
  deposit_senders: "removed by the operator; what was credited stays",
  idempotency_keys: "kept for a time",
  payout_waits: "the server finds it again with its next run",
  rail_states: "the server writes it again with its next start",
  witnessed_logs: "nothing refers to it",
};

/** The column by which the rows of a table differ in what follows from them. One row of each kind is edited. */
const KIND: Readonly<Record<string, string>> = {
  agents: "status",
  chain_transfers: "status",
  checks: "outcome",
  corrections: "status",
  escalations: "status",
  idempotency_keys: "status",
  payouts: "status",
  postings: "kind",
  purchases: "phase",
  trace: "to_state",
  warrants: "state",
};

type Row = Readonly<Record<string, bigint | number | string | Uint8Array | null>>;
type Column = { readonly name: string; readonly type: string; readonly notnull: bigint; readonly pk: bigint };

let folder: string;
let raw: Database;
const warrantsAt = new Map<unknown, string>();
const depositsAt = new Map<unknown, string>();
const payoutsAt = new Map<unknown, string>();
const correctionsAt = new Map<unknown, string>();
/** As messages name the balance of an account. */
const accountsAt = new Map<unknown, string>();
const sessionsAt = new Map<unknown, string>();
/** As messages name a scope. */
const scopesAt = new Map<unknown, string>();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-columns-"));
  const full = await buildFullLedger();
  cpSync(full, folder, { recursive: true });
  rmSync(full, { recursive: true });
  raw = new Database(join(folder, "holdfast.db"), { readwrite: true, safeIntegers: true });
  for (const pragma of [
    "journal_mode = MEMORY",
    "synchronous = OFF",
    "foreign_keys = OFF",
    "ignore_check_constraints = ON",
  ])
    raw.run(`PRAGMA ${pragma}`);
  for (const { name } of raw
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    .all())
    raw.run(`DROP TRIGGER ${name}`);
  for (const [map, table] of [
    [warrantsAt, "warrants"],
    [depositsAt, "deposits"],
    [payoutsAt, "payouts"],
    [correctionsAt, "corrections"],
    [sessionsAt, "spend_sessions"],
  ] as const)
    for (const { position, id } of rowsOf(table)) map.set(position, String(id));
  for (const { position, organisation_id, mode } of rowsOf("scopes"))
    scopesAt.set(position, `${organisation_id}, ${mode}`);
  for (const { position, scope, asset } of rowsOf("accounts"))
    accountsAt.set(position, `${scopesAt.get(scope)}, ${asset}`);
});

afterAll(() => {
  raw?.close();
  rmSync(folder, { recursive: true, force: true });
});

const audited = (): readonly string[] => auditLedger({ raw, tables: drizzle(raw) }, { checksFile: false });
const rowsOf = (table: string): readonly Row[] =>
  raw.query<Row, []>(`SELECT rowid AS row_number, * FROM ${table} ORDER BY rowid`).all();
const columnsOf = (table: string): readonly Column[] =>
  raw
    .query<Column, [string]>('SELECT name, lower(type) AS type, "notnull", pk FROM pragma_table_info(?)')
    .all(table);

test("capsules in another order are found: their positions say nothing else", () => {
  const [one, other] = rowsOf("capsules").filter(
    ({ organisation_id, mode }, _, all) =>
      organisation_id === all[0]!.organisation_id && mode === all[0]!.mode,
  );
  const place = raw.query("UPDATE capsules SET position = ? WHERE position = ?");
  const swap = () => {
    place.run(-1n, one!.position!);
    place.run(one!.position!, other!.position!);
    place.run(other!.position!, -1n);
  };
  swap();
  const found = audited();
  swap();
  expect(found.filter((message) => message.startsWith(`capsule ${one!.id}: bytes_until`))).not.toEqual([]);
  expect(audited()).toEqual([]);
});

test("every table is covered, or is said not to be", () => {
  const tables = raw
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .all()
    .map(({ name }) => name);
  expect([...Object.keys(NAMES), ...Object.keys(NOT_COVERED)].sort()).toEqual(tables);
  expect(audited()).toEqual([]);
});

/** Sets a column of a row, and expects that the audit names the row. Answers null where it does, else what is wrong. */
function edit(table: string, column: string, row: Row, value: Row[string]): string | null {
  const set = raw.query(`UPDATE ${table} SET "${column}" = ? WHERE rowid = ?`);
  set.run(value, row.row_number!);
  // A position is the row's number.
  const [now] = raw
    .query<{ at: bigint }, [bigint]>(`SELECT rowid AS at FROM ${table} WHERE rowid = ?`)
    .all((isPlace(table, column) ? value : row.row_number) as bigint);
  const wrong = notNamed(table, row, { ...row, [column]: value });
  set.run(row[column]!, now!.at);
  return wrong && `${table}.${column}: ${show(row[column])} → ${show(value)}: ${wrong}`;
}

const isPlace = (table: string, column: string): boolean =>
  column === "position" ||
  ((table === "log_checkpoints" || table === "solvency_statements") && column === "number") ||
  `${table}.${column}` === "payout_waits.payee";

function notNamed(table: string, ...rows: readonly Row[]): string | null {
  const messages = audited();
  const names = rows.flatMap((row) => NAMES[table]?.(row) ?? []);
  if (messages.some((message) => names.some((name) => message.includes(String(name))))) return null;
  return messages.length === 0
    ? "nothing is found"
    : `is not named in ${JSON.stringify(messages.slice(0, 3))}`;
}

const show = (value: unknown): string =>
  String(value instanceof Uint8Array ? value.toHex() : value).slice(0, 60);

/** Other values of the same kind: first one that another row has. */
function othersOf(rows: readonly Row[], column: string, value: Row[string]): Row[string][] {
  const others = rows.map((row) => row[column]!).filter((other) => other !== null && !isSame(other, value));
  const changed =
    typeof value === "bigint"
      ? [value === 0n ? 1n : value - 1n, value + 1n, value + 1_000n]
      : typeof value === "string"
        ? /^[[{]/.test(value)
          ? [`${value} `]
          : [`${value.slice(0, -1)}${value.endsWith("x") ? "y" : "x"}`]
        : value instanceof Uint8Array
          ? [value.with(-1, (value.at(-1) ?? 0) ^ 1)]
          : [1n];
  return [...others.slice(0, 1), ...changed];
}

const isSame = (one: unknown, other: unknown): boolean =>
  one instanceof Uint8Array && other instanceof Uint8Array ? Buffer.compare(one, other) === 0 : one === other;

const refuses = (error: unknown): boolean => /UNIQUE|NOT NULL|datatype/.test(String(error));

describe.each(Object.keys(NAMES))("%s", (table) => {
  test("each of its columns", () => {
    const rows = rowsOf(table);
    expect(rows.length).toBeGreaterThan(0);
    const wrong: (string | null)[] = [];
    for (const { name, type, notnull, pk } of columnsOf(table)) {
      if (`${table}.${name}` in SAYS_NOTHING) continue;
      const filled = rows.findLast((row) => row[name] !== null);
      const empty = rows.findLast((row) => row[name] === null);
      let edits = 0;
      const attempt = (row: Row, value: Row[string]): void => {
        try {
          wrong.push(edit(table, name, row, value));
          edits++;
        } catch (error) {
          if (!refuses(error)) throw error;
        }
      };
      if (filled) for (const other of othersOf(rows, name, filled[name]!)) attempt(filled, other);
      if (filled && notnull === 0n && pk === 0n) attempt(filled, null);
      if (empty) attempt(empty, filled?.[name] ?? (type === "integer" ? 1n : "x"));
      for (const row of oneOfEach(table, rows))
        if (row !== filled && row[name] !== null) attempt(row, othersOf([], name, row[name]!)[0]!);
      if (edits === 0) wrong.push(`${table}.${name}: no edit was possible`);
    }
    expect(wrong.filter((problem) => problem !== null)).toEqual([]);
    expect(audited()).toEqual([]);
  }, 120_000);

  test("a row that is gone, and one too many", () => {
    const columns = columnsOf(table).map(({ name }) => `"${name}"`);
    const rows = rowsOf(table).filter((row) => row.count !== 0n && row.bytes !== 0n);
    const row = rows.at(-1)!;
    const names = columns.join(", ");
    const take = raw.query(`DELETE FROM ${table} WHERE rowid = ?`);
    const put = raw.query(
      `INSERT INTO ${table} (rowid, ${names}) VALUES (?, ${columns.map(() => "?").join(", ")})`,
    );
    const values = columnsOf(table).map(({ name }) => row[name]!);
    take.run(row.row_number!);
    const gone = table in MAY_GO ? null : audited().length === 0 ? "a row that is gone is not found" : null;
    put.run(row.row_number!, ...values);
    // The same row again under another key, as far as the unique indexes go.
    const keys = uniqueColumnsOf(table);
    const copy = columnsOf(table).map(({ name }) => (keys.has(name) ? anotherKey(row[name]!) : row[name]!));
    const at = columnsOf(table).findIndex(({ name }) => isPlace(table, name) || name === "number");
    const place = at === -1 ? 1_000_000n : copy[at]!;
    put.run(place, ...copy);
    const added = audited().length === 0 ? "a row too many is not found" : null;
    take.run(place);
    expect([gone, added].filter((problem) => problem !== null)).toEqual([]);
    expect(audited()).toEqual([]);
  }, 30_000);
});

function oneOfEach(table: string, rows: readonly Row[]): readonly Row[] {
  const kind = KIND[table];
  return kind === undefined ? [] : [...new Map(rows.map((row) => [row[kind], row])).values()];
}

const uniqueColumnsOf = (table: string): ReadonlySet<string> =>
  new Set([
    ...columnsOf(table)
      .filter(({ pk }) => pk > 0n)
      .map(({ name }) => name),
    ...raw
      .query<{ name: string }, [string]>(
        `SELECT columns.name FROM pragma_index_list(?) AS indexes, pragma_index_info(indexes.name) AS columns
         WHERE "unique" = 1 AND columns.name IS NOT NULL`,
      )
      .all(table)
      .map(({ name }) => name),
  ]);

const anotherKey = (value: Row[string]): Row[string] =>
  typeof value === "bigint" ? value + 1_000n : typeof value === "string" ? `${value.slice(0, -1)}q` : value;
