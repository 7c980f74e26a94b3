import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { hashSecret } from "../../src/core/api-key.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createKey } from "../../src/services/admin/keys.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { createCaller, createStage, must } from "../support/stage.ts";

const { afterAll, beforeAll, test } = onlyEmbedded(import.meta.path);

/** API keys that are remembered: what another process does to them counts from the next request on. */

let ctx: TestContext;
let hash: string;
let other: Database;
beforeAll(async () => {
  ctx = createTestContext();
  const { agentId } = await createCaller(await createStage(ctx));
  hash = hashSecret(must(await createKey(ctx, MACHINE, { agent_id: agentId })).secret);
  other = new Database(`${ctx.folder}/holdfast.db`);
});
afterAll(async () => {
  other.close();
  await ctx.close();
});

const setRevokedAt = (time: number | null) =>
  other.query("UPDATE api_keys SET revoked_at = ? WHERE secret_hash = ?").run(time, hash);
const nextTurn = () => new Promise(setImmediate);

test("a key that is known is there at once", async () => {
  await ctx.store.apiKey(hash);
  expect(ctx.store.apiKey(hash)).toMatchObject({ secretHash: hash, revokedAt: null });
  expect(await ctx.store.apiKey("0".repeat(64))).toBeNull();
});

test("another process revokes it: the next turn knows, also where it reads beside an older snapshot", async () => {
  for (const isJoined of [false, true]) {
    setRevokedAt(null);
    await nextTurn();
    expect(await ctx.store.apiKey(hash)).toMatchObject({ revokedAt: null });
    await nextTurn();
    // A read that began before the revocation, in the turn in which the key is asked for.
    const reading = isJoined ? ctx.store.read((reader) => reader.instance.get()) : null;
    await Promise.resolve();
    setRevokedAt(1_000);
    expect(await ctx.store.apiKey(hash)).toMatchObject({ revokedAt: 1_000 });
    await reading;
    await nextTurn();
    expect(await ctx.store.apiKey(hash)).toMatchObject({ revokedAt: 1_000 });
  }
});
