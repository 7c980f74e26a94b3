import type { Database, SQLQueryBindings } from "bun:sqlite";
import type { Mode } from "../../core/roles.ts";
import type { Scope } from "../scope.ts";

/** How many positions of one kind are remembered at most. */
const REMEMBERED_MAX = 10_000;

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
  const known = new Map<Kind, Map<string, number>>();
  const statements = new Map<Kind, ReturnType<typeof prepare>>();
  const prepare = (kind: Kind) => database.prepare<{ position: bigint }, SQLQueryBindings[]>(LOOK_UPS[kind]);

  function remember(kind: Kind, key: string, position: number): void {
    let positions = known.get(kind);
    if (positions === undefined) {
      positions = new Map();
      known.set(kind, positions);
    }
    if (positions.size >= REMEMBERED_MAX) positions.clear();
    positions.set(key, position);
  }

  function find(kind: Kind, key: string, ...of: SQLQueryBindings[]): number | null {
    const remembered = known.get(kind)?.get(key);
    if (remembered !== undefined) return remembered;
    let statement = statements.get(kind);
    if (statement === undefined) {
      statement = prepare(kind);
      statements.set(kind, statement);
    }
    const row = statement.get(...of);
    if (row === null) return null;
    const position = Number(row.position);
    remember(kind, key, position);
    return position;
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
    remember,
    forget: () => known.clear(),
  };
}
