import type { Mode } from "../../core/roles.ts";
import type { Scope } from "../scope.ts";
import type { SqlDatabase, SqlValue } from "./database.ts";
import { createRememberedRows } from "./remembered-rows.ts";

/** The rows that others refer to by position. Triggers keep them from being deleted or moved. */
const LOOK_UPS = {
  account: "SELECT position FROM accounts WHERE scope = ? AND asset = ?",
  agent: "SELECT position FROM agents WHERE id = ?",
  correction: "SELECT position FROM corrections WHERE id = ?",
  deposit: "SELECT position FROM deposits WHERE id = ?",
  payee: "SELECT position FROM payees WHERE account = ? AND payee = ?",
  payout: "SELECT position FROM payouts WHERE id = ?",
  policy: "SELECT position FROM policies WHERE id = ?",
  scope: "SELECT position FROM scopes WHERE organisation_id = ? AND mode = ?",
  session: "SELECT position FROM spend_sessions WHERE id = ?",
  verifier: "SELECT position FROM verifiers WHERE id = ?",
  warrant: "SELECT position FROM warrants WHERE id = ?",
} as const;
type Kind = keyof typeof LOOK_UPS;

/**
 * Finds the positions that stand for ids in rows, and remembers them until a transaction is undone: the next
 * one may give a position to another row.
 */
export type Positions = {
  /** The scope; null where there is no such organisation. */
  scope(organisationId: string, mode: Mode): number | null;
  /** The account of an asset in a scope; null before its first deposit. */
  account(scope: number, asset: string): number | null;
  /** @throws where there is no such row */
  of(kind: Exclude<Kind, "account" | "payee" | "scope">, id: string): number;
  /** A payee's account; null before it is first paid. */
  payee(account: number, payee: string): number | null;
  /**
   * The position of a scope.
   *
   * @throws where there is no such organisation
   */
  ofScope(scope: Scope): number;
  /** Notes the position of a row that was written. Who is asked for it need not read it. */
  remember(kind: Exclude<Kind, "account" | "payee" | "scope">, id: string, position: number): void;
  rememberAccount(scope: number, asset: string, position: number): void;
  rememberPayee(account: number, payee: string, position: number): void;
  /** From now on notes the positions of rows that are written. The answer forgets those. */
  draft(): () => void;
  forget(): void;
};

export function createPositions(database: SqlDatabase): Positions {
  const rows = createRememberedRows<Kind, string>(database, LOOK_UPS);

  function find(kind: Kind, key: string, ...of: SqlValue[]): number | null {
    const row = rows.find(kind, key, ...of) as { readonly position: bigint | number } | null;
    return row && Number(row.position);
  }

  function mustFind(kind: Kind, key: string, ...of: SqlValue[]): number {
    const position = find(kind, key, ...of);
    if (position === null) throw new Error(`the ledger has no ${kind} ${key}`);
    return position;
  }

  return {
    scope: (organisationId, mode) => find("scope", `${organisationId} ${mode}`, organisationId, mode),
    account: (scope, asset) => find("account", `${scope} ${asset}`, scope, asset),
    payee: (account, payee) => find("payee", `${account} ${payee}`, account, payee),
    of: (kind, id) => mustFind(kind, id, id),
    ofScope: ({ organisationId, mode }) =>
      mustFind("scope", `${organisationId} ${mode}`, organisationId, mode),
    remember: (kind, id, position) => rows.remember(kind, id, { position }),
    rememberAccount: (scope, asset, position) => rows.remember("account", `${scope} ${asset}`, { position }),
    rememberPayee: (account, payee, position) => rows.remember("payee", `${account} ${payee}`, { position }),
    draft: rows.draft,
    forget: rows.forget,
  };
}
