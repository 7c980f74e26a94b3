import { inArray } from "drizzle-orm";
import type { State, Warrant } from "../../core/warrant.ts";
import type { Change, Row, Scope } from "../store.ts";
import type { KnownRows } from "./known-rows.ts";
import type { Connection } from "./open.ts";
import { type PreparedWrite, prepareWrites } from "./prepared-write.ts";
import { auditEntryRowOf, purchaseRowOf, traceRowOf } from "./rows.ts";
import * as directory from "./tables/directory.ts";
import * as ledger from "./tables/ledger.ts";
import {
  endsOf,
  finalRows,
  movesOf,
  operationRows,
  peopleRows,
  purchaseRows,
  spendingRows,
} from "./writes.ts";

/** Writes a Change, inside the transaction that decided it. */
export type Apply = (scope: Scope, change: Change) => void;

/** The row as its table has it. */
function rowOf({ kind, row }: Row): Readonly<Record<string, unknown>> {
  if (kind === "auditEntry") return auditEntryRowOf(row);
  return kind === "purchase" ? purchaseRowOf(row) : row;
}

export function createApply({ tables, raw }: Connection, known: KnownRows): Apply {
  const moves = prepareWrites(raw, { ...movesOf(tables), ...endsOf(tables) });
  const rows: Readonly<Record<Row["kind"], PreparedWrite>> = prepareWrites(raw, {
    ...spendingRows(tables),
    ...peopleRows(tables),
    ...operationRows(tables),
    ...purchaseRows(tables),
    ...finalRows(tables),
  });

  const countKeys = ({ organisationId, mode, agentId }: Warrant, state: State) => ({
    organisationId,
    mode,
    agentId: agentId ?? "",
    state,
  });

  function writeWarrant({ before, after }: NonNullable<Change["warrant"]>, traceHead: string): void {
    const row = { ...after, traceHead };
    if (before === null) {
      moves.insertWarrant(row);
    } else {
      moves.moveWarrant(row);
      moves.countOut(countKeys(before, before.state));
    }
    moves.countIn(countKeys(after, after.state));
  }

  return ({ organisationId, mode }, change) => {
    if (change.warrant) {
      if (!change.trace) throw new Error("a warrant moves with a trace entry");
      writeWarrant(change.warrant, change.trace.entryHash);
      moves.insertTrace({ ...traceRowOf(change.trace), position: null });
    }
    if (change.voidsPasswordResetsOf) moves.voidPasswordResets(change.voidsPasswordResetsOf);
    // Checks and escalations refer to the warrant, and a posting to its deposit: the order is theirs.
    for (const row of change.rows ?? []) {
      rows[row.kind](rowOf(row));
      known.forget(row.kind);
      // Whose passkeys count is known with them.
      if (row.kind === "user") known.forget("passkey");
    }
    if (change.endsSignInsOf) moves.endSignIns(change.endsSignInsOf);
    if (change.removesPasskeys && change.removesPasskeys.length > 0) {
      tables
        .delete(directory.passkeys)
        .where(inArray(directory.passkeys.id, [...change.removesPasskeys]))
        .run();
      known.forget("passkey");
    }
    if (change.posting) {
      const { legs, ...posting } = change.posting;
      const rail = ledger.RAIL_OF_MODE[mode];
      moves.insertPosting({ ...posting, ...legs, organisationId, mode, rail, id: null });
    }
    if (change.forgetsPurchase) {
      moves.forgetPurchase(change.forgetsPurchase);
      moves.forgetKey(change.forgetsPurchase);
    }
    if (change.freesKeysOf !== undefined) moves.freeKeys({ warrantId: change.freesKeysOf });
    if (change.idempotency) {
      const { outcome, ...record } = change.idempotency;
      moves.putIdempotencyKey({
        ...record,
        organisationId,
        mode,
        status: outcome?.status ?? null,
        body: outcome?.body ?? null,
        contentHash: outcome?.contentHash ?? null,
      });
    }
  };
}
