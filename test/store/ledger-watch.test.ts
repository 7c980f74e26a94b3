import { expect, test } from "bun:test";
import { HOUR_MS } from "../../src/core/time.ts";
import {
  type Answer,
  ConnectionLost,
  type Session,
  type Statement,
} from "../../src/store/postgres/client.ts";
import { UnfitFault, watchLedger } from "../../src/store/postgres/ledger-watch.ts";

/** A connection to a server that is a replica, or that lacks these transactions. */
function connectionTo({ isReplica = false, lacks = [] as readonly string[] }) {
  const of = (rows: readonly unknown[]) => rows as unknown as Answer;
  let hasEnded = false;
  const session: Session = {
    async exchange([, asked]) {
      const [ids] = (asked as Statement).params as readonly [{ readonly serializedValues: string }];
      const missing = lacks.filter((id) => ids.serializedValues.includes(`"${id}"`));
      return [of(isReplica ? [{}] : []), of(missing.map((id) => ({ id })))];
    },
    release() {},
    end() {
      hasEnded = true;
    },
  };
  return { session, hasEnded: () => hasEnded };
}

test("the newest transaction of each lane and of the log must be there, for 20 hours", async () => {
  let now = 0;
  const watch = watchLedger(() => now);
  await watch.verify(connectionTo({ lacks: ["any"] }).session);
  for (const [lane, id] of [
    [0, "a"],
    [0, "b"],
    [1, "c"],
    ["log", "d"],
  ] as const)
    watch.committed(lane, id);
  expect(watch.ids()).toEqual(["b", "c", "d"]);
  await watch.verify(connectionTo({ lacks: ["a"] }).session);
  now = 20 * HOUR_MS - 1;
  watch.committed(1, "e");
  expect(watch.ids()).toEqual(["b", "e", "d"]);
  now += 1;
  expect(watch.ids()).toEqual(["e"]);
  await expect(watch.verify(connectionTo({ lacks: ["e"] }).session)).rejects.toThrow(UnfitFault);
  expect((await watch.unfit).message).toContain("brought back to an earlier time");
  expect(() => watch.refuseUnfit()).toThrow(UnfitFault);
});

test("what may be looked for is needed until it is decided, and is not asked for", () => {
  const watch = watchLedger(() => 0);
  for (const id of ["a", "b", "c"]) watch.sends(id);
  expect([watch.ids(), watch.needed()]).toEqual([[], ["a", "b", "c"]]);
  watch.decided("a");
  watch.committed(0, "b");
  expect([watch.ids(), watch.needed()]).toEqual([["b"], ["b", "c"]]);
});

test("a connection to a replica is closed, so that nobody gets it again", async () => {
  const watch = watchLedger(() => 0);
  watch.committed(0, "a");
  const replica = connectionTo({ isReplica: true, lacks: ["a"] });
  await expect(watch.verify(replica.session)).rejects.toThrow(ConnectionLost);
  expect(replica.hasEnded()).toBe(true);
  const primary = connectionTo({});
  await watch.verify(primary.session);
  expect(primary.hasEnded()).toBe(false);
});
