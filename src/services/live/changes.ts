import { type Role, roleIsAtLeast } from "../../core/roles.ts";
import type { Scope } from "../../store/scope.ts";
import type { Heard } from "./heard.ts";

/**
 * What changed, by organisation and mode, in the memory of the process: for each name the number of its newest change. Whoever
 * knows the number up to which they have heard gets what came since, however long they were away; where that was forgotten, they
 * are told that anything may have changed. So no reader, however slow, needs a queue.
 */

/** How many organisations and modes are followed, and how many names of each are remembered, or up to twice as many. */
const SCOPES_MAX = 256;
const NAMES_MAX = 200;

type Followed = {
  readonly names: Map<string, { readonly sequence: number; readonly role: Role }>;
  /** Nothing is known of what changed up to this number. */
  forgottenTo: number;
  /** The number of the newest change there. */
  newest: number;
};

/** The names that changed; null where anything may have. */
export type Changed = { readonly names: readonly string[] | null };

export type Changes = ReturnType<typeof createChanges>;

export function createChanges() {
  const followed = new Map<string, Followed>();
  let sequence = 0;
  let hasDropped = false;

  function follow(scope: Scope): Followed {
    const key = keyOf(scope);
    const known = followed.get(key) ?? newlyFollowed();
    followed.delete(key);
    followed.set(key, known);
    const [oldest] = followed.keys();
    if (followed.size > SCOPES_MAX && oldest !== undefined) hasDropped = followed.delete(oldest);
    return known;
  }

  function newlyFollowed(): Followed {
    // It may have been followed before, and what changed since then was not noted.
    if (hasDropped) sequence++;
    return { names: new Map(), forgottenTo: sequence, newest: sequence };
  }

  return {
    /** The number of the newest change. */
    sequence: () => sequence,
    /** Remembers from now on what changes there. Those that were asked for longest ago are forgotten. */
    follow(scope: Scope): void {
      follow(scope);
    },
    /** Answers whether it is followed. */
    note({ scope, names, role }: Heard): boolean {
      const known = followed.get(keyOf(scope));
      if (!known) return false;
      known.newest = ++sequence;
      if (names === null) forgetNames(known, sequence);
      for (const name of names ?? []) {
        // Put at the end, so that the names are in the order of their changes.
        known.names.delete(name);
        known.names.set(name, { sequence, role });
      }
      if (known.names.size > 2 * NAMES_MAX) forgetOldest(known);
      return true;
    },
    /** Anything may have changed everywhere: another process has written. */
    forgetAll(): void {
      sequence++;
      for (const known of followed.values()) {
        forgetNames(known, sequence);
        known.newest = sequence;
      }
    },
    /** The number of the newest change in a scope. */
    newestOf: (scope: Scope): number => follow(scope).newest,
    /** What somebody of this role hears that changed after a number. Without a number anything may have. */
    since(scope: Scope, number: number | null, reader: Role): Changed {
      const known = follow(scope);
      if (number === null || number < known.forgottenTo) return { names: null };
      const names = [...known.names]
        .filter(([, { sequence: at, role }]) => at > number && roleIsAtLeast(reader, role))
        .map(([name]) => name);
      return { names };
    },
  };
}

function forgetNames(known: Followed, sequence: number): void {
  known.names.clear();
  known.forgottenTo = sequence;
}

/** Many at once: to take the oldest out of a map one by one takes long. */
function forgetOldest(known: Followed): void {
  for (const [name, { sequence }] of known.names) {
    if (known.names.size <= NAMES_MAX) return;
    known.names.delete(name);
    known.forgottenTo = sequence;
  }
}

export const keyOf = ({ organisationId, mode }: Scope): string => `${organisationId} ${mode}`;
