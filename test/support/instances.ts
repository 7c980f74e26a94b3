import type { Instances } from "../../src/store/instances.ts";

/** An instance of a test, which may die. */
export type TestInstance = Instances & { die(): void };

/**
 * Instances that share one ledger, in one process: the rules of src/store/postgres/instances.ts without a database. The first that is
 * alive has every lease, and what belongs to one at a time.
 */
export function createInstances(count: number): readonly TestInstance[] {
  const claims = new Map<string, Set<number>>();
  const dead = new Set<number>();
  const isFirst = (index: number): boolean =>
    !dead.has(index) && Array.from({ length: index }, (_, before) => before).every((one) => dead.has(one));
  return Array.from({ length: count }, (_, index) => ({
    alone: false,
    join: async () => null,
    isLost: () => dead.has(index),
    lease: () => ({ token: () => (isFirst(index) ? 1 + dead.size : null) }),
    async owning(id, work) {
      const owners = claims.get(id) ?? new Set();
      claims.set(id, owners.add(index));
      try {
        return await work();
      } finally {
        owners.delete(index);
      }
    },
    owned: async (ids) =>
      new Set(ids.filter((id) => [...(claims.get(id) ?? [])].some((owner) => !dead.has(owner)))),
    isMine: () => isFirst(index),
    leave: async () => {},
    die: () => void dead.add(index),
  }));
}
