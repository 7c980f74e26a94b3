import { expect } from "bun:test";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createSession } from "../../src/services/admin/sessions.ts";
import type { Context } from "../../src/services/context.ts";
import { type AnyCommand, createBatch } from "../../src/store/batch.ts";
import { createRowCache } from "../../src/store/row-cache.ts";
import { createLoad } from "../../src/store/sql/load.ts";
import { createNames } from "../../src/store/sql/names.ts";
import { createPositions } from "../../src/store/sql/positions.ts";
import { connect } from "../../src/store/sqlite/open.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import {
  createCaller,
  createStage,
  must,
  open,
  SCRIPTED,
  type Stage,
  settle,
  warrantIn,
} from "../support/stage.ts";

const { afterAll, beforeAll, test } = onlyEmbedded(import.meta.path);

/** What the commands of one batch need is loaded for all of them at once. An engine that waits for each load needs few of them. */

const BATCH = 64;
const LOADS_MAX = 6;

let ctx: TestContext;
let stage: Stage;
beforeAll(async () => {
  ctx = createTestContext(SCRIPTED);
  stage = await createStage(ctx);
});
afterAll(() => ctx.close());

/** The commands that verbs execute first. */
async function commandsOf(acts: readonly ((watched: Stage) => Promise<unknown>)[]): Promise<AnyCommand[]> {
  const commands: AnyCommand[] = [];
  const all = Promise.withResolvers<void>();
  const execute = (command: unknown): Promise<never> => {
    commands.push(command as AnyCommand);
    if (commands.length === acts.length) all.resolve();
    return new Promise(() => {});
  };
  const watched = { ...stage, ctx: { ...ctx, store: { ...ctx.store, execute } as Context["store"] } };
  for (const act of acts) void act(watched);
  await all.promise;
  return commands;
}

/** How often the engine loads for a batch before it decides, and how often while it decides. */
function loadsOf(commands: readonly AnyCommand[]): { readonly before: number; readonly between: number } {
  const connection = connect(`${ctx.folder}/holdfast.db`, { readonly: true });
  const cache = createRowCache();
  const load = createLoad(connection, createPositions(connection.raw), createNames(connection.raw));
  const time = { now: ctx.now(), recordedAt: ctx.now(), steadyAt: ctx.now() };
  const batch = createBatch(cache);
  const loads = { before: 0, between: 0 };
  try {
    for (let found = batch.lacking(commands, time); found; found = batch.lacking(found.commands, time)) {
      load(found.missing, cache);
      loads.before += 1;
    }
    for (const command of commands) {
      for (;;) {
        const decided = batch.decide(command, time);
        if ("answer" in decided) break;
        load(decided.missing, cache);
        loads.between += 1;
      }
    }
    return loads;
  } finally {
    connection.raw.close();
  }
}

test("64 opens of as many agents, each with a session, need a few loads, and none between them", async () => {
  const opens = [];
  for (let index = 0; index < BATCH; index++) {
    const key = await createCaller(stage);
    must(await createSession(ctx, MACHINE, { agent_id: key.agentId, amount_ceiling: "1000" }));
    opens.push((watched: Stage) => open(watched, key, { agent_id: key.agentId }));
  }
  const loads = loadsOf(await commandsOf(opens));
  expect(loads.before).toBeLessThanOrEqual(LOADS_MAX);
  expect(loads.between).toBe(0);
});

test("64 decisions of a person on as many warrants need a few loads, and none between them", async () => {
  const settlements = [];
  for (let index = 0; index < BATCH; index++) {
    const { id } = warrantIn(await open(stage, stage.operator));
    settlements.push((watched: Stage) => settle(watched, stage.operator, id, "release"));
  }
  const loads = loadsOf(await commandsOf(settlements));
  expect(loads.before).toBeLessThanOrEqual(LOADS_MAX);
  expect(loads.between).toBe(0);
});
