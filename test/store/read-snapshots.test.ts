import { expect } from "bun:test";
import { createTestContext, type TestContext } from "../support/context.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { createCaller, createStage, open, SCRIPTED, verify, warrantIn } from "../support/stage.ts";

const { afterEach, beforeEach, test } = onlyEmbedded(import.meta.path);

/** Reads that share snapshots, and what they wait for. */

/** How many connections reads have. */
const CONNECTIONS = 8;

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
  for (let connection = 0; connection < CONNECTIONS; connection++) held.push(await hold());
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

test("a check that waits for its source holds no snapshot, so more of them than there are connections hold up no read", async () => {
  const gate = Promise.withResolvers<void>();
  let fetching = 0;
  const begun = Promise.withResolvers<void>();
  const checking = createTestContext({
    ...SCRIPTED,
    fetchEvidence: async (...asked) => {
      fetching += 1;
      if (fetching === CONNECTIONS + 1) begun.resolve();
      await gate.promise;
      return SCRIPTED.fetchEvidence(...asked);
    },
  });
  const stage = await createStage(checking, { funds: "1000" });
  const agent = await createCaller(stage);
  const checks = [];
  for (let count = 0; count <= CONNECTIONS; count++) {
    const { id } = warrantIn(await open(stage, agent));
    checks.push(verify(stage, agent, id));
    // Each reads in turns of its own, and so from snapshots of its own.
    await turn();
  }
  await begun.promise;
  const organisation = await checking.store.read((reader) => reader.organisations.get(stage.organisationId));
  expect(organisation?.id).toBe(stage.organisationId);
  gate.resolve();
  for (const check of checks) expect(warrantIn(await check).state).toBe("released");
  await checking.close();
});
