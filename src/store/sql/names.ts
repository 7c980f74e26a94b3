import type { Mode } from "../../core/roles.ts";
import type { SqlDatabase } from "./database.ts";
import { createRememberedRows } from "./remembered-rows.ts";

/** The ids and other values that positions stand for. Triggers keep them from ever changing. */
type Named = {
  readonly account: { readonly scope: bigint; readonly asset: string };
  readonly agent: { readonly id: string };
  readonly deposit: { readonly id: string };
  readonly payee: { readonly payee: string };
  readonly policy: { readonly id: string; readonly version: bigint; readonly rules_hash: string };
  readonly scope: { readonly organisation_id: string; readonly mode: Mode };
  readonly session: { readonly id: string };
  readonly verifier: { readonly id: string };
};
type Kind = keyof Named;

const LOOK_UPS: Readonly<Record<Kind, string>> = {
  account: "SELECT scope, asset FROM accounts WHERE position = ?",
  agent: "SELECT id FROM agents WHERE position = ?",
  deposit: "SELECT id FROM deposits WHERE position = ?",
  payee: "SELECT payee FROM payees WHERE position = ?",
  policy: "SELECT id, version, rules_hash FROM policies WHERE position = ?",
  scope: "SELECT organisation_id, mode FROM scopes WHERE position = ?",
  session: "SELECT id FROM spend_sessions WHERE position = ?",
  verifier: "SELECT id FROM verifiers WHERE position = ?",
};

/**
 * Finds the ids for the positions in a row, and remembers them; `Positions` does the reverse. A join for each
 * of them would add 10 µs to the reading of a warrant.
 */
export type Names = {
  /** Null where there is no such row. */
  find<K extends Kind>(kind: K, position: bigint): Named[K] | null;
  /** Called when a transaction was undone: a later one may give its positions to other rows. */
  forget(): void;
};

export function createNames(database: SqlDatabase): Names {
  const rows = createRememberedRows<Kind, bigint>(database, LOOK_UPS);
  return {
    find: <K extends Kind>(kind: K, position: bigint) =>
      rows.find(kind, position, position) as Named[K] | null,
    forget: rows.forget,
  };
}
