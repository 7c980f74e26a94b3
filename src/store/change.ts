import type { AppendedRows, ChangingRows } from "./rows.ts";

/**
 * Everything that a command writes, as data: rows put and rows deleted. All of it is written, or nothing.
 *
 * A changed row carries `before`, the row as the snapshot had it; null for a new row. The engine refuses a
 * Change whose `before` is not the current row, so no row is overwritten unread. Commands do not write
 * balances and counts: these follow from postings and warrants.
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

/** The kinds of rows that may be deleted. All others are history, or other rows refer to them. */
type DeletedKind =
  | "capsule"
  | "depositSender"
  | "idempotencyKey"
  | "messagingAccount"
  | "messagingCode"
  | "passkey"
  | "plannedNotice"
  | "purchase"
  | "pushSubscription";

/** A row to delete, as the snapshot had it. */
export type Deletion = {
  readonly [Kind in DeletedKind]: { readonly kind: Kind; readonly row: ChangingRows[Kind] };
}[DeletedKind];

/** One write of a command. */
export type Write =
  | { readonly kind: "put"; readonly put: Put }
  | { readonly kind: "deletion"; readonly deletion: Deletion };
