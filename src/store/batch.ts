import type { Refusal } from "../core/errors.ts";
import { organisationNotFound } from "../core/organisation.ts";
import type { Change, Write } from "./change.ts";
import { LOOK_UPS, NOTHING } from "./look-ups.ts";
import type { From, NeedName, Needs } from "./needs.ts";
import type { Missing, RowCache } from "./row-cache.ts";
import { INSTANCE_KEY, indexKeyOf } from "./rows.ts";
import type { Scope } from "./scope.ts";
import type { Decision } from "./store.ts";
import type { IndexName, IndexTable, LoadedKind, View } from "./view.ts";

/** A command as an engine handles it. Only the caller knows the type of the snapshot. */
export type AnyCommand = {
  readonly scope: Scope | null;
  readonly needs: Needs;
  readonly decide: (snapshot: never, now: number) => Decision<unknown>;
};

/** The times of a batch, epoch milliseconds. */
export type BatchTime = {
  /** The clock's time. */
  readonly now: number;
  /** The clock's time, or the last commit's where the clock is behind it. */
  readonly recordedAt: number;
  /**
   * The clock's time when the process began to write, and what has passed since by a clock that never jumps:
   * to set the machine's clock neither speeds it up nor stops it.
   */
  readonly steadyAt: number;
};

/** What a command needs and the row cache does not have. Loaded rows may show that more is missing. */
type Lacking = {
  readonly missing: Missing;
  /** Writes of earlier commands that must be applied first, so that the look-ups find them. */
  readonly writes: readonly Write[];
};

/**
 * Decides the commands of one transaction, in memory. The engine loads what is missing, lets each command
 * decide, and writes the changes. Nothing in here waits, so engines with and without waiting reads can both
 * use it.
 */
export type Batch = {
  /**
   * What commands need and the row cache does not have, of all of them at once; null where nothing is missing. What it finds may
   * lead to more, so the commands that lack something are asked again when it is loaded.
   */
  lacking(
    commands: readonly AnyCommand[],
    time: BatchTime,
  ): { readonly missing: Missing; readonly commands: readonly AnyCommand[] } | null;
  /**
   * Decides a command: gives its answer, and later commands see its Change. Where rows are missing, it gives
   * these instead; the engine loads them and tries the same command again, before any other.
   */
  decide(command: AnyCommand, time: BatchTime): { readonly answer: unknown } | Lacking;
  /** The writes since the last call. */
  takeWrites(): readonly Write[];
};

/** A view of the row cache that notes what is missing there. */
function createNotingView(cache: RowCache) {
  let rows = new Map<LoadedKind, Set<string>>();
  let indexes = new Map<IndexName, Map<string, IndexTable[IndexName]["of"]>>();
  let steadyAt = 0;
  let recordedAt = 0;
  let together = 0;
  /** Whether something was missing since this was last set. */
  let isLacking = false;

  const view: View = {
    get steadyAt() {
      return steadyAt;
    },
    get recordedAt() {
      return recordedAt;
    },
    get together() {
      return together;
    },
    row(kind, key) {
      const row = cache.row(kind, key);
      if (row === undefined) {
        isLacking = true;
        const keys = rows.get(kind);
        if (keys) keys.add(key);
        else rows.set(kind, new Set([key]));
      }
      return row;
    },
    index(name, ...of) {
      const key = indexKeyOf(of);
      const gives = cache.index(name, key);
      if (gives === undefined) {
        isLacking = true;
        const asked = indexes.get(name);
        if (asked) asked.set(key, of);
        else indexes.set(name, new Map([[key, of]]));
      }
      return gives;
    },
  };

  return {
    view,
    at(time: BatchTime): void {
      steadyAt = time.steadyAt;
      recordedAt = time.recordedAt;
    },
    /** Notes how many commands share the batch. */
    shared(commands: number): void {
      together = Math.max(together, commands);
    },
    /** Whether the look-ups of some work lacked something. */
    lacksIn(work: () => void): boolean {
      isLacking = false;
      work();
      return isLacking;
    },
    /** What was missing since the last call; null where nothing was. */
    takeMissing(): Missing | null {
      if (rows.size === 0 && indexes.size === 0) return null;
      const missing = { rows, indexes };
      rows = new Map();
      indexes = new Map();
      return missing;
    },
  };
}

export function createBatch(cache: RowCache): Batch {
  const { view, at, shared, lacksIn, takeMissing } = createNotingView(cache);
  let writes: Write[] = [];
  /** What the command that is tried again has found so far. */
  let found: FoundSoFar = {};

  function apply(change: Change): void {
    for (const put of change.put) {
      cache.put(put);
      writes.push({ kind: "put", put });
    }
    for (const deletion of change.deleted ?? []) {
      cache.remove(deletion);
      writes.push({ kind: "deletion", deletion });
    }
  }

  function takeWrites(): readonly Write[] {
    const taken = writes;
    writes = [];
    cache.written();
    return taken;
  }

  return {
    lacking(asked, time) {
      at(time);
      shared(asked.length);
      const commands = asked.filter(({ scope, needs }) => lacksIn(() => lookUp(view, scope, needs, {})));
      const missing = takeMissing();
      return missing && { missing, commands };
    },
    decide(command, time) {
      at(time);
      const refused = lookUp(view, command.scope, command.needs, found);
      const missing = takeMissing();
      if (missing) return { missing, writes: cache.isBehind(missing) ? takeWrites() : [] };
      const snapshot = found;
      found = {};
      if (refused) return { answer: refused };
      snapshot.recordedAt = time.recordedAt;
      const decision = command.decide(snapshot as never, time.now);
      // An async `decide` would finish after its transaction. Its type forbids it; this check is for code
      // that circumvents the type.
      if ("then" in decision)
        throw new TypeError("a command decides at once: its decide may not return a promise");
      if (decision.change) {
        checkMoves(decision.change);
        apply(decision.change);
      }
      return { answer: decision.answer };
    },
    takeWrites,
  };
}

type FoundSoFar = Record<string, unknown>;

/** Adds what the needs find to `found`. A need whose rows are missing stays undefined, and the view has noted them. */
function lookUp(view: View, scope: Scope | null, needs: Needs, found: FoundSoFar): Refusal | null {
  found.instance ??= view.row("instance", INSTANCE_KEY);
  if (scope !== null) {
    found.organisation ??= view.row("organisation", scope.organisationId);
    if (found.organisation === null) return organisationNotFound();
  }
  for (const name in needs) find(view, scope ?? NO_SCOPE, needs, name as NeedName, found);
  return null;
}

/** A command without an organisation finds only rows that belong to none. */
const NO_SCOPE: Scope = { organisationId: "", mode: "live" };

function find(view: View, scope: Scope, needs: Needs, name: NeedName, found: FoundSoFar): unknown {
  const known = found[name];
  if (known !== undefined) return known;
  const ask = needs[name];
  if (ask === undefined) throw new Error(`a need follows from ${name}, which the command does not name`);
  let row: unknown;
  if (ask === null) row = nothing(name);
  else if (typeof ask === "object" && "from" in ask) {
    const source = find(view, scope, needs, (ask as From<NeedName>).from, found);
    row =
      source === undefined
        ? undefined
        : source === null
          ? nothing(name)
          : LOOK_UPS[name](view, scope, ask as never, source);
  } else row = LOOK_UPS[name](view, scope, ask as never, null);
  found[name] = row;
  return row;
}

const nothing = (name: NeedName): unknown => NOTHING[name] ?? null;

/** A warrant never moves without its trace entry, nor an entry without its warrant. */
function checkMoves({ put }: Change): void {
  let moves = 0;
  let entries = 0;
  for (const one of put) {
    if (one.kind === "warrant") {
      moves += 1;
      if (one.row.version !== (one.before?.version ?? 0) + 1)
        throw new Error("a warrant moves one version at a time");
    } else if (one.kind === "trace") entries += 1;
  }
  if (moves !== entries) throw new Error("a warrant moves with one trace entry");
}
