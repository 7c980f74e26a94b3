import { afterEach, beforeEach, expect, test } from "bun:test";
import { createTestContext, type TestContext } from "../support/context.ts";

/** Reads that share snapshots, and what they wait for. */

let ctx: TestContext;
beforeEach(() => {
  ctx = createTestContext();
});
afterEach(() => ctx.close());

const turn = () => new Promise(setImmediate);

/** Holds a snapshot of its own until it is let go. */
async function hold() {
  const begun = Promise.withResolvers<void>();
  const letGo = Promise.withResolvers<void>();
  const ended = ctx.store.read(() => {
    begun.resolve();
    return letGo.promise;
  });
  await begun.promise;
  // Nobody joins a snapshot after its turn.
  await turn();
  await turn();
  return {
    letGo: () => {
      letGo.resolve();
      return ended;
    },
  };
}

test("where every connection is in use, one that comes free serves all who wait, at once", async () => {
  const held = [];
  for (let connection = 0; connection < 8; connection++) held.push(await hold());
  let reading = 0;
  const all = Promise.withResolvers<void>();
  const waiting = Array.from({ length: 100 }, () =>
    ctx.store.read(() => {
      reading += 1;
      if (reading === 100) all.resolve();
      // Each ends when all of them read.
      return all.promise;
    }),
  );
  await turn();
  expect(reading).toBe(0);
  await held.pop()?.letGo();
  await Promise.all(waiting);
  for (const snapshot of held) await snapshot.letGo();
});
