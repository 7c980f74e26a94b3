import type { AppendedRows, ChangingRows } from "./rows.ts";

/**
 * Everything that a command writes, as data: rows put and rows deleted. All of it is written, or nothing.
 *
 * A row that changes carries `before`, the row as the snapshot had it (null: it is new). The engine refuses a Change whose
 * `before` is not the row that is there, so nothing is overwritten unread. Balances and counts follow from postings and
 * warrants; no command writes them.
 */
export type Change = { readonly put: readonly Put[]; readonly deleted?: readonly Deletion[] };

export type Put =
  | {
      readonly [Kind in keyof ChangingRows]: {
        readonly kind: Kind;
        readonly before: ChangingRows[Kind] | null;
        readonly row: ChangingRows[Kind];
      };
    }[keyof ChangingRows]
  | {
      readonly [Kind in keyof AppendedRows]: { readonly kind: Kind; readonly row: AppendedRows[Kind] };
    }[keyof AppendedRows];

/** Kinds of which a row may go again. The others are history, or are referred to. */
type DeletedKind = "idempotencyKey" | "passkey" | "purchase";

/** A row that goes, as the snapshot had it. */
export type Deletion = {
  readonly [Kind in DeletedKind]: { readonly kind: Kind; readonly row: ChangingRows[Kind] };
}[DeletedKind];
