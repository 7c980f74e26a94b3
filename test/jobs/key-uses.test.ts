import { afterEach, beforeEach, describe, expect, type Mock, spyOn, test } from "bun:test";
import { type RunningServer, startServer } from "../../src/app.ts";
import { type Config, readConfig } from "../../src/config.ts";
import { writeKeyUses } from "../../src/jobs/key-uses.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createKey, revokeKey } from "../../src/services/admin/keys.ts";
import { callerOfApiKey } from "../../src/services/auth/callers.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../support/context.ts";
import { databaseSecrets } from "../support/database-settings.ts";
import { withCommands } from "../support/failing-commands.ts";
import { openTestLedger } from "../support/ledger.ts";
import { newLedgerFolder, removeLedgerFolder } from "../support/new-ledger.ts";
import { testSettings } from "../support/server.ts";
import { createCaller, createStage, must } from "../support/stage.ts";

/** A job writes when each key was last used: once a run, however often it was used. */

let ctx: TestContext;
let commits: number;
let isBroken: boolean;
let keys: readonly { readonly id: string; readonly secret: string }[];

beforeEach(async () => {
  const base = createTestContext();
  commits = 0;
  isBroken = false;
  ctx = withCommands(base, (_, go) => {
    commits += 1;
    return isBroken ? Promise.reject(new Error("the disk is full")) : go();
  });
  const { agentId } = await createCaller(await createStage(ctx));
  const newKey = async () => must(await createKey(ctx, MACHINE, { agent_id: agentId }));
  keys = await Promise.all([newKey(), newKey()]);
  commits = 0;
});
afterEach(() => ctx.close());

const call = (index: number) => callerOfApiKey(ctx, keys[index]!.secret);
const lastUses = () => keys.map(({ id }) => ctx.reader.apiKeys.get(id)?.lastUsedAt);

test("a key is written once a run, with its last use; a key that was not used is not written", async () => {
  for (let count = 0; count < 50; count++) {
    ctx.clock.now += 10;
    expect((await call(0))?.keyId).toBe(keys[0]!.id);
  }
  expect([commits, lastUses()]).toEqual([0, [null, null]]);
  await writeKeyUses(ctx);
  expect([commits, lastUses()]).toEqual([1, [TEST_NOW + 500, null]]);
  await writeKeyUses(ctx);
  expect(commits).toBe(1);
});

test("a use that could not be written is written by the next run, unless the key was used again", async () => {
  await call(0);
  await call(1);
  isBroken = true;
  const run = expect(writeKeyUses(ctx)).rejects.toThrow("the disk is full");
  ctx.clock.now += 7_000;
  await call(1);
  await run;
  isBroken = false;
  await writeKeyUses(ctx);
  expect(lastUses()).toEqual([TEST_NOW, TEST_NOW + 7_000]);
});

test("writing a use leaves the rest of the key, and never goes back", async () => {
  await call(0);
  const [use] = ctx.keyUses.take();
  must(await revokeKey(ctx, MACHINE, { key_id: keys[0]!.id }));
  ctx.keyUses.putBack([{ ...use!, at: TEST_NOW }]);
  await writeKeyUses(ctx);
  ctx.keyUses.putBack([{ ...use!, at: TEST_NOW - 1_000 }]);
  await writeKeyUses(ctx);
  expect(ctx.reader.apiKeys.get(keys[0]!.id)).toMatchObject({
    lastUsedAt: TEST_NOW,
    revokedAt: TEST_NOW,
  });
});

test("of many keys, every one is written", async () => {
  const { agentId } = ctx.reader.apiKeys.get(keys[0]!.id)!;
  keys = await Promise.all(
    Array.from({ length: 250 }, async () => must(await createKey(ctx, MACHINE, { agent_id: agentId }))),
  );
  for (const [index] of keys.entries()) await call(index);
  await writeKeyUses(ctx);
  expect(new Set(lastUses())).toEqual(new Set([TEST_NOW]));
});

test("a call with an ended key, or with a text that is not a key, is not a use", async () => {
  must(await revokeKey(ctx, MACHINE, { key_id: keys[0]!.id }));
  expect([await call(0), await callerOfApiKey(ctx, `${keys[1]!.secret}x`)]).toEqual([null, null]);
  expect(ctx.keyUses.take()).toEqual([]);
});

describe("a running server", () => {
  let folder: string;
  let config: Config;
  let timers: Mock<typeof setInterval>;
  let server: RunningServer;
  let id: string;
  let since: number;
  function lastUse(): number | null | undefined {
    const { reader, close } = openTestLedger(folder);
    const key = reader.apiKeys.get(id);
    close();
    return key?.lastUsedAt;
  }
  beforeEach(async () => {
    folder = newLedgerFolder();
    config = must(readConfig(testSettings(folder), {}));
    timers = spyOn(globalThis, "setInterval");
    server = must(await startServer(config, databaseSecrets(folder)));
    const { agentId } = await createCaller(await createStage(server.ctx));
    const key = must(await createKey(server.ctx, MACHINE, { agent_id: agentId }));
    ({ id } = key);
    since = Date.now();
    const headers = { Authorization: `Bearer ${key.secret}` };
    expect((await fetch(`${server.url}/v1/warrants`, { headers })).status).toBe(200);
    expect(lastUse()).toBeNull();
  });
  afterEach(() => {
    timers.mockRestore();
    removeLedgerFolder(folder);
  });

  test("writes when a key was last used every ten seconds", async () => {
    // Another job of ten seconds may be among them.
    const due = timers.mock.calls.filter(([, everyMs]) => everyMs === 10_000);
    for (const [run] of due) (run as () => void)();
    // This commit comes after the commit of the use.
    await createCaller(await createStage(server.ctx));
    expect(lastUse()).toBeGreaterThanOrEqual(since);
    await server.stop();
  });

  test("that stops writes the uses that no run has written yet", async () => {
    await server.stop();
    expect(lastUse()).toBeGreaterThanOrEqual(since);
  });
});
