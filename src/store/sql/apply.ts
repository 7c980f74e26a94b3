import { type Legs, type PayeeBalance, payeeLegsOf } from "../../core/postings.ts";
import type { SpendSession } from "../../core/session.ts";
import type { State, Warrant } from "../../core/warrant.ts";
import { isBought } from "../../core/x402/content.ts";
import type { Purchase } from "../../core/x402/purchase.ts";
import type { Deletion, Put, Write } from "../change.ts";
import { chainRows } from "./chain-rows.ts";
import { chainTransferDeletions, chainTransferRows, watchWrite } from "./chain-transfer-rows.ts";
import type { Connection, SqlDatabase, Tables } from "./database.ts";
import { capsuleRows, deletionOfUnkept } from "./kept-bodies.ts";
import { messagingRows } from "./messaging-rows.ts";
import { noticeRows } from "./notice-rows.ts";
import { payoutWrites } from "./payout-rows.ts";
import type { Positions } from "./positions.ts";
import { type PreparedWrite, prepareWrites } from "./prepared-write.ts";
import { railRows } from "./rail-rows.ts";
import {
  auditEntryRowOf,
  checkRowOf,
  idempotencyRowOf,
  postingRowOf,
  purchaseRowOf,
  traceRowOf,
  warrantRowOf,
} from "./rows.ts";
import { witnessRows } from "./witness-rows.ts";
import {
  deletionsOf,
  finalRows,
  movesOf,
  operationRows,
  peopleRows,
  purchaseRows,
  spendingRows,
  sumsOf,
} from "./writes.ts";

/** Writes the puts and deletions of a batch, in their order, inside the transaction that decided them. */
export type Apply = (writes: readonly Write[]) => void;

const rowsOf = (tables: Tables) => ({
  ...spendingRows(tables),
  ...peopleRows(tables),
  ...operationRows(tables),
  ...purchaseRows(tables),
  ...capsuleRows(tables),
  ...witnessRows(tables),
  ...chainRows(tables),
  ...railRows(tables),
  ...chainTransferRows(tables),
  ...noticeRows(tables),
  ...messagingRows(tables),
  ...finalRows(tables),
});

function rowWritesOf(raw: SqlDatabase, tables: Tables) {
  const rows = prepareWrites(raw, rowsOf(tables));
  return { ...rows, treasuryWatch: watchWrite(rows.treasuryWatch) };
}

export function createApply({ tables, raw }: Connection, positions: Positions): Apply {
  const moves = prepareWrites(raw, movesOf(tables));
  const deletions = prepareWrites(raw, { ...deletionsOf(tables), ...chainTransferDeletions(tables) });
  const sums = prepareWrites(raw, sumsOf(tables));
  const deleteUnkept = deletionOfUnkept(raw);
  const payouts = payoutWrites(moves, positions);
  const rows = rowWritesOf(raw, tables);
  const writeReferred = notingNew(positions);

  function write(put: Put, figures: Figures): void {
    switch (put.kind) {
      case "warrant":
        writeWarrant(moves, positions, put.before, put.row);
        figures.move(put.before, put.row);
        break;
      case "trace":
        moves.insertTrace(traceRowOf(put.row, positions));
        break;
      case "posting": {
        const row = postingRowOf(put.row, positions);
        figures.post(row.account, moves.insertPosting(row), put.row.legs);
        if (put.row.payee !== null) figures.pay(payouts.openPayee(row.account, put.row.payee), put.row.legs);
        break;
      }
      case "deposit": {
        const { id, asset } = put.row;
        const account = openAccount(moves, positions, positions.ofScope(put.row), asset);
        positions.remember("deposit", id, moves.insertDeposit({ ...put.row, account }));
        break;
      }
      case "correction":
      case "payout":
      case "payoutTransaction":
      case "payoutWait":
        payouts.write(put);
        break;
      case "check":
        moves.insertCheck(checkRowOf(put.row, positions));
        break;
      case "idempotencyKey":
        // Most keys are inserted and finished at once. An insert that may become an update would cost more.
        if (put.before === null) moves.insertIdempotencyKey(idempotencyRowOf(put.row, positions));
        else moves.finishIdempotencyKey(idempotencyRowOf(put.row, positions));
        break;
      case "auditEntry":
        rows.auditEntry(auditEntryRowOf(put.row));
        break;
      case "agent":
        writeReferred("agent", put.before, put.row.id, rows.agent(put.row));
        break;
      case "policy":
      case "verifier":
        writeReferred(put.kind, null, put.row.id, rows[put.kind](put.row));
        break;
      case "spendSession":
        writeReferred("session", put.before, put.row.id, rows.spendSession(put.row));
        figures.hold(put.before, put.row);
        break;
      case "purchase":
        rows.purchase(purchaseRowOf(put.row));
        figures.keep(put.before, put.row);
        if (givesUpContent(put.before, put.row)) deleteUnkept(put.before.responseHash);
        break;
      default:
        rows[put.kind](put.row);
    }
  }

  function remove({ kind, row }: Deletion): void {
    if (kind !== "idempotencyKey") deletions[kind](row);
    if (kind === "capsule" && row.storedHash !== null) deleteUnkept(row.storedHash);
    if (kind === "idempotencyKey") deletions.idempotencyKey({ scope: positions.ofScope(row), key: row.key });
  }

  return (writes) => {
    const figures = new Figures(positions);
    for (const one of writes) {
      if (one.kind === "deletion") remove(one.deletion);
      else write(one.put, figures);
    }
    writeFigures(figures, moves, sums);
  };
}

/** Notes the position of a new row that later ones of the same batch may refer to. */
const notingNew =
  (positions: Positions) =>
  (
    kind: "agent" | "policy" | "session" | "verifier",
    before: unknown,
    id: string,
    position: number,
  ): void => {
    if (before === null) positions.remember(kind, id, position);
  };

function writeWarrant(
  moves: Prepared<typeof movesOf>,
  positions: Positions,
  before: Warrant | null,
  row: Warrant,
): void {
  if (before === null) {
    positions.remember("warrant", row.id, moves.insertWarrant(warrantRowOf(row, positions)));
  } else moves.moveWarrant({ ...warrantRowOf(row, positions), position: positions.of("warrant", row.id) });
}

/** The account of an asset in a scope. The first deposit creates it. */
function openAccount(
  moves: Prepared<typeof movesOf>,
  positions: Positions,
  scope: number,
  asset: string,
): number {
  const account = positions.account(scope, asset);
  if (account !== null) return account;
  const nothing = { available: 0n, held: 0n, paid: 0n, funding: 0n, payable: 0n, submitted: 0n, posted: 0 };
  const opened = moves.insertAccount({ ...nothing, scope, asset });
  positions.rememberAccount(scope, asset, opened);
  return opened;
}

function writeFigures(
  figures: Figures,
  moves: Prepared<typeof movesOf>,
  sums: Prepared<typeof sumsOf>,
): void {
  for (const moved of figures.accounts.values()) moves.moveAccount(moved);
  for (const moved of figures.payees.values()) moves.movePayee(moved);
  for (const moved of figures.counts.values()) {
    if (moved.count > 0) moves.countUp(moved);
    else if (moved.count < 0) moves.countDown(moved);
  }
  for (const total of figures.totals.values()) sums.sessionTotal(total);
  for (const kept of figures.contents.values())
    if (kept.bytes !== 0) sums[kept.bytes > 0 ? "addContent" : "subtractContent"](kept);
}

/** Statements that were prepared from those that a function gives. */
type Prepared<Statements extends (tables: never) => object> = Readonly<
  Record<keyof ReturnType<Statements>, PreparedWrite>
>;

/** A content is deleted with the last purchase or capsule that keeps it, so every stored one has such a keeper. */
const givesUpContent = (
  before: Purchase | null,
  after: Purchase,
): before is Purchase & { readonly responseHash: string } =>
  before !== null && before.responseHash !== null && before.contentBytes > 0 && after.contentBytes === 0;

type MovedAccount = { account: number; posted: number } & { -readonly [Leg in keyof Legs]: bigint };
type MovedPayee = { position: number } & { -readonly [Part in keyof PayeeBalance]: bigint };
type SessionTotal = { session: number; heldAt: number; total: bigint };
type MovedContent = { scope: number; bought: boolean; bytes: number };
type MovedCount = { scope: number; agent: number; state: State; count: number };

/**
 * Figures that follow from rows: balances from postings, counts from warrants, running totals from sessions, and sums of content
 * from purchases. A batch writes each of them once.
 */
class Figures {
  readonly accounts = new Map<number, MovedAccount>();
  readonly payees = new Map<number, MovedPayee>();
  readonly counts = new Map<string, MovedCount>();
  readonly contents = new Map<string, MovedContent>();
  readonly totals = new Map<string, SessionTotal>();

  constructor(private readonly positions: Positions) {}

  post(account: number, posted: number, legs: Legs): void {
    const moved = this.accounts.get(account);
    if (moved === undefined) {
      this.accounts.set(account, { account, posted, ...legs });
      return;
    }
    moved.posted = posted;
    moved.available += legs.available;
    moved.held += legs.held;
    moved.paid += legs.paid;
    moved.funding += legs.funding;
    moved.payable += legs.payable;
    moved.submitted += legs.submitted;
  }

  pay(position: number, legs: Legs): void {
    const { payable, submitted, paidOut } = payeeLegsOf(legs);
    const moved = this.payees.get(position);
    if (moved === undefined) {
      this.payees.set(position, { position, payable, submitted, paidOut });
      return;
    }
    moved.payable += payable;
    moved.submitted += submitted;
    moved.paidOut += paidOut;
  }

  move(before: Warrant | null, after: Warrant): void {
    const { agentId } = after;
    const scope = this.positions.ofScope(after);
    const agent = agentId === null ? 0 : this.positions.of("agent", agentId);
    if (before) this.count(scope, agent, before.state, -1);
    this.count(scope, agent, after.state, 1);
  }

  /** Keeps the running total of a session that has windows. All holds of a batch count at one time. */
  hold(
    before: SpendSession | null,
    { id, heldAt, amountHeld: total, hourlyMax, dailyMax }: SpendSession,
  ): void {
    const hasWindows = hourlyMax !== null || dailyMax !== null;
    if (!hasWindows || heldAt === null || !before || before.amountHeld === total) return;
    this.totals.set(id, { session: this.positions.of("session", id), heldAt, total });
  }

  keep(before: Purchase | null, after: Purchase): void {
    const scope = this.positions.ofScope(after);
    if (before) this.content(scope, isBought(before), -before.contentBytes);
    this.content(scope, isBought(after), after.contentBytes);
  }

  private content(scope: number, bought: boolean, bytes: number): void {
    const key = `${scope} ${bought}`;
    const moved = this.contents.get(key);
    if (moved) moved.bytes += bytes;
    else this.contents.set(key, { scope, bought, bytes });
  }

  private count(scope: number, agent: number, state: State, count: number): void {
    const key = `${scope} ${agent} ${state}`;
    const moved = this.counts.get(key);
    if (moved) moved.count += count;
    else this.counts.set(key, { scope, agent, state, count });
  }
}
