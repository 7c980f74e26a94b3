import type { State, Warrant } from "../../core/warrant.ts";
import type { Write } from "../batch.ts";
import type { Deletion, Put } from "../change.ts";
import type { Connection } from "./open.ts";
import { type PreparedWrite, prepareWrites } from "./prepared-write.ts";
import { auditEntryRowOf, idempotencyRowOf, postingRowOf, purchaseRowOf, traceRowOf } from "./rows.ts";
import { RAIL_OF_MODE } from "./tables/ledger.ts";
import {
  deletionsOf,
  finalRows,
  movesOf,
  operationRows,
  peopleRows,
  purchaseRows,
  spendingRows,
} from "./writes.ts";

/** Writes what the commands of a batch put and deleted, in their order, inside the transaction that decided it. */
export type Apply = (writes: readonly Write[]) => void;

export function createApply({ tables, raw }: Connection): Apply {
  const moves = prepareWrites(raw, movesOf(tables));
  const deletions: Readonly<Record<Deletion["kind"], PreparedWrite>> = prepareWrites(
    raw,
    deletionsOf(tables),
  );
  const rows = prepareWrites(raw, {
    ...spendingRows(tables),
    ...peopleRows(tables),
    ...operationRows(tables),
    ...purchaseRows(tables),
    ...finalRows(tables),
  });

  function write(put: Put): void {
    switch (put.kind) {
      case "warrant":
        if (put.before === null) moves.insertWarrant(put.row);
        else moves.moveWarrant(put.row);
        break;
      case "trace":
        moves.insertTrace({ ...traceRowOf(put.row), position: null });
        break;
      case "posting":
        moves.insertPosting({ ...postingRowOf(put.row), rail: RAIL_OF_MODE[put.row.mode], id: null });
        break;
      case "idempotencyKey":
        moves.putIdempotencyKey(idempotencyRowOf(put.row));
        break;
      case "auditEntry":
        rows.auditEntry(auditEntryRowOf(put.row));
        break;
      case "purchase":
        rows.purchase(purchaseRowOf(put.row));
        break;
      default:
        rows[put.kind](put.row);
    }
  }

  return (writes) => {
    const counts = new StateCounts();
    for (const one of writes) {
      if (one.kind === "deletion") deletions[one.deletion.kind](one.deletion.row);
      else {
        write(one.put);
        if (one.put.kind === "warrant") counts.move(one.put.before, one.put.row);
      }
    }
    for (const change of counts.changes()) {
      if (change.count > 0) moves.countUp(change);
      else moves.countDown(change);
    }
  };
}

/** How the numbers of warrants by state and agent change: each is written once a batch. */
class StateCounts {
  private readonly byKey = new Map<string, Count>();

  move(before: Warrant | null, after: Warrant): void {
    if (before) this.add(before, before.state, -1);
    this.add(after, after.state, 1);
  }

  changes(): readonly Count[] {
    return [...this.byKey.values()].filter(({ count }) => count !== 0);
  }

  private add({ organisationId, mode, agentId }: Warrant, state: State, count: number): void {
    const key = `${organisationId} ${mode} ${agentId} ${state}`;
    const known = this.byKey.get(key);
    if (known) known.count += count;
    else this.byKey.set(key, { organisationId, mode, agentId: agentId ?? "", state, count });
  }
}

type Count = Pick<Warrant, "organisationId" | "mode"> & { agentId: string; state: State; count: number };
