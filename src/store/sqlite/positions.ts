import type { Database, SQLQueryBindings } from "bun:sqlite";
import type { Mode } from "../../core/roles.ts";
import type { Scope } from "../scope.ts";
import { createRememberedRows } from "./remembered-rows.ts";

/** What rows refer to by position. Nothing of it is ever deleted or moved: triggers keep it. */
const LOOK_UPS = {
  account: "SELECT position FROM accounts WHERE scope = ? AND asset = ?",
  agent: "SELECT position FROM agents WHERE id = ?",
  deposit: "SELECT position FROM deposits WHERE id = ?",
  policy: "SELECT position FROM policies WHERE id = ?",
  scope: "SELECT position FROM scopes WHERE organisation_id = ? AND mode = ?",
  session: "SELECT position FROM spend_sessions WHERE id = ?",
  verifier: "SELECT position FROM verifiers WHERE id = ?",
  warrant: "SELECT position FROM warrants WHERE id = ?",
} as const;
type Kind = keyof typeof LOOK_UPS;

/**
 * The positions that stand for ids in the rows of the ledger. They are looked up once and remembered: until a transaction is
 * undone, since the next one may give a position to another row.
 */
export type Positions = {
  /** Null where there is no such organisation. */
  scope(organisationId: string, mode: Mode): number | null;
  /** Of an asset in a scope; null where nothing came in yet. */
  account(scope: number, asset: string): number | null;
  /** @throws where there is no such row */
  of(kind: Exclude<Kind, "account" | "scope">, id: string): number;
  /** The same for a scope. */
  ofScope(scope: Scope): number;
  remember(kind: "deposit" | "warrant", id: string, position: number): void;
  forget(): void;
};

export function createPositions(database: Database): Positions {
  const rows = createRememberedRows<Kind, string>(database, LOOK_UPS);

  function find(kind: Kind, key: string, ...of: SQLQueryBindings[]): number | null {
    const row = rows.find(kind, key, ...of) as { readonly position: bigint | number } | null;
    return row && Number(row.position);
  }

  function mustFind(kind: Kind, key: string, ...of: SQLQueryBindings[]): number {
    const position = find(kind, key, ...of);
    if (position === null) throw new Error(`the ledger has no ${kind} ${key}`);
    return position;
  }

  return {
    scope: (organisationId, mode) => find("scope", `${organisationId} ${mode}`, organisationId, mode),
    account: (scope, asset) => find("account", `${scope} ${asset}`, scope, asset),
    of: (kind, id) => mustFind(kind, id, id),
    ofScope: ({ organisationId, mode }) =>
      mustFind("scope", `${organisationId} ${mode}`, organisationId, mode),
    remember: (kind, id, position) => rows.remember(kind, id, { position }),
    forget: rows.forget,
  };
}
