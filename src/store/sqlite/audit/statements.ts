import type { Database } from "bun:sqlite";
import { sha256 } from "../../../core/canonical.ts";
import { hexOf } from "../../sql/columns.ts";
import { expectSame } from "./rows.ts";
import { BY_ROW, type Did, inSlice, slicesOf } from "./slices.ts";

type Kept = { readonly number: bigint; readonly note: string; readonly hash: Uint8Array };

/** A note has up to 160 KiB. */
const STATEMENTS_AT_ONCE = 100;

/**
 * Checks that the statements of solvency are numbered 1, 2, 3 and so on, and that the log has each as it was signed. Their signatures,
 * and what they say, are checked where the keys are (`services/solvency/audit.ts`).
 */
export function* auditStatements(database: Database, did: Did): Generator<string> {
  let expected = 1n;
  for (const { after, last } of slicesOf(database, "solvency_statements", BY_ROW, STATEMENTS_AT_ONCE, did)) {
    const kept = database
      .query<Kept, [bigint, bigint]>(
        `SELECT number, note, entry_hash AS hash FROM solvency_statements WHERE ${inSlice("rowid")} ORDER BY number`,
      )
      .all(after, last);
    for (const { number, note, hash } of kept) {
      if (number !== expected)
        yield `statement ${number}: comes after ${expected - 1n}; none is ever deleted`;
      yield* expectSame(`statement ${number}: its hash`, hexOf(hash), sha256(note));
      expected = number + 1n;
    }
  }
}
