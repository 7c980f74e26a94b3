/** Only the operator of the machine copies a ledger: this has no caller to check. */

export type CopyResource = {
  readonly object: "copy";
  /** A data folder, or the name of a database without its user and password. */
  readonly from: string;
  readonly to: string;
  readonly instance_id: string;
  readonly rows: number;
  /** The texts in which U+FFFD stands for a U+0000, by their columns. */
  readonly replaced: readonly { readonly table: string; readonly column: string; readonly texts: number }[];
  readonly audit: "ok";
};
