import type { Organisation } from "../../core/organisation.ts";
import { MODES } from "../../core/roles.ts";
import type { Kept, RowCache } from "../row-cache.ts";
import type { IndexName, LoadedKind } from "../view.ts";
import { type Standing, scopeKey } from "./locks.ts";

/** How many rows and answers of one scope are kept, and of how many scopes. Where there are more, all of them are read again. */
const OF_SCOPE_MAX = 500;
const SCOPES_MAX = 200;

/**
 * The rows of organisations that seldom change and that every command needs, from one batch to the next. They are kept for each scope
 * with its revision, which every commit counts up that changes one of them, whichever instance it is of. A batch reads the revisions
 * when it holds the locks, so what has the same revision is as it was.
 */
export type KeptRows = {
  /** Gives a batch what is kept of the scopes that it has locked. */
  fill(cache: RowCache, locked: ReadonlySet<string>, standing: Standing): void;
  /** Keeps what a batch has read of the scopes that it has locked, where it has changed nothing of it. */
  keep(cache: RowCache, locked: ReadonlySet<string>, standing: Standing): void;
  clear(): void;
};

type OfScope = {
  readonly revision: bigint;
  readonly rows: Map<LoadedKind, Map<string, unknown>>;
  readonly indexes: Map<IndexName, Map<string, unknown>>;
  size: number;
};

/** Whom a row or an answer is about. Without a mode, it is about the whole organisation. */
type About = { readonly organisationId: string; readonly mode?: string };

const organisationOf = (key: string): About => ({ organisationId: key.split("\0")[0] ?? "" });

/** Whom an answer is about, by its question (`indexKeyOf`). What is not in here is read in each batch. */
const OF_ANSWER: { readonly [Name in IndexName]?: (key: string, kept: Kept) => About | null } = {
  countingPasskey: organisationOf,
  enabledWebhooks: (key) => ({ ...organisationOf(key), mode: key.split("\0")[1] ?? "" }),
  newestPolicy: organisationOf,
  newestPolicyNamed: organisationOf,
  // It is asked of an agent that was read.
  newestSession: (agentId, { rows }) =>
    ofRow("agent", rows.find(([kind]) => kind === "agent")?.[1].get(agentId)),
  schemaNamed: organisationOf,
};

/** Whom a row is about; null where it is not there: no revision would say that it was made. */
function ofRow(kind: LoadedKind, row: unknown): About | null {
  if (row == null || kind === "instance") return null;
  return kind === "organisation" ? { organisationId: (row as Organisation).id } : (row as About);
}

export function createKeptRows(): KeptRows {
  const scopes = new Map<string, OfScope>();

  /** What is kept of a scope at this revision. */
  function ofScope(scope: string, revision: bigint): OfScope {
    const known = scopes.get(scope);
    if (known?.revision === revision && known.size < OF_SCOPE_MAX) return known;
    if (scopes.size >= SCOPES_MAX) scopes.clear();
    const made = { revision, rows: new Map(), indexes: new Map(), size: 0 };
    scopes.set(scope, made);
    return made;
  }

  return {
    fill(cache, locked, { revisions }) {
      for (const scope of locked) {
        const known = scopes.get(scope);
        if (known === undefined || known.revision !== revisions.get(scope)) continue;
        for (const [kind, rows] of known.rows)
          for (const [key, row] of rows) cache.loadRow(kind, key, row as never);
        for (const [name, answers] of known.indexes)
          for (const [key, answer] of answers) cache.loadIndex(name, key, answer as never);
      }
    },
    keep(cache, locked, { revisions }) {
      const kept = cache.kept();
      const scopesOf = ({ organisationId, mode }: About): readonly OfScope[] =>
        MODES.filter((of) => mode === undefined || of === mode).flatMap((of) => {
          const scope = scopeKey({ organisationId, mode: of });
          const revision = revisions.get(scope);
          return locked.has(scope) && revision !== undefined ? [ofScope(scope, revision)] : [];
        });
      for (const [kind, rows] of kept.rows)
        for (const [key, row] of rows) {
          const about = ofRow(kind, row);
          for (const scope of about ? scopesOf(about) : []) put(scope, scope.rows, kind, key, row);
        }
      for (const [name, answers] of kept.indexes)
        for (const [key, answer] of answers) {
          const about = OF_ANSWER[name]?.(key, kept) ?? null;
          for (const scope of about ? scopesOf(about) : []) put(scope, scope.indexes, name, key, answer);
        }
    },
    clear: () => scopes.clear(),
  };
}

function put<Name>(
  scope: OfScope,
  tables: Map<Name, Map<string, unknown>>,
  name: Name,
  key: string,
  value: unknown,
): void {
  const table = tables.get(name) ?? new Map<string, unknown>();
  tables.set(name, table);
  if (!table.has(key)) scope.size += 1;
  table.set(key, value);
}
