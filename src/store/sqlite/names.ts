import type { Database } from "bun:sqlite";
import type { Mode } from "../../core/roles.ts";
import { createRememberedRows } from "./remembered-rows.ts";

/** What positions stand for. None of it ever changes: triggers keep it. */
type Named = {
  readonly account: { readonly scope: bigint; readonly asset: string };
  readonly agent: { readonly id: string };
  readonly policy: { readonly id: string; readonly version: bigint; readonly rules_hash: string };
  readonly scope: { readonly organisation_id: string; readonly mode: Mode };
  readonly session: { readonly id: string };
  readonly verifier: { readonly id: string };
};
type Kind = keyof Named;

const LOOK_UPS: Readonly<Record<Kind, string>> = {
  account: "SELECT scope, asset FROM accounts WHERE position = ?",
  agent: "SELECT id FROM agents WHERE position = ?",
  policy: "SELECT id, version, rules_hash FROM policies WHERE position = ?",
  scope: "SELECT organisation_id, mode FROM scopes WHERE position = ?",
  session: "SELECT id FROM spend_sessions WHERE position = ?",
  verifier: "SELECT id FROM verifiers WHERE position = ?",
};

/**
 * The ids that stand for the positions in a row, looked up once and remembered: the other way round than `Positions`. With
 * joins, each of them would add 10 µs to the reading of a warrant.
 */
export type Names = {
  /** Null where there is no such row. */
  find<K extends Kind>(kind: K, position: bigint): Named[K] | null;
  /** A transaction was undone: a position that it gave out may come to stand for another row. */
  forget(): void;
};

export function createNames(database: Database): Names {
  const rows = createRememberedRows<Kind, bigint>(database, LOOK_UPS);
  return {
    find: <K extends Kind>(kind: K, position: bigint) =>
      rows.find(kind, position, position) as Named[K] | null,
    forget: rows.forget,
  };
}
