import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Reader } from "../../src/store/reader.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** The command line writes to the folder of a running server. What it committed holds from the next request on. */

let service: ShellService;
let home: TestOrganisation;
beforeEach(async () => {
  service = startTestShell();
  home = await service.organisation();
});
afterEach(async () => {
  await service.close();
});

const revoke = (keyId: string) =>
  service.ctx.ledger.change("UPDATE api_keys SET revoked_at = 1 WHERE id = ?", keyId);

const revokedAt = (reader: Reader) =>
  reader.apiKeys.get(home.live.keyId).then((key) => key?.revokedAt ?? null);

test("a key that was revoked beside a read of the same turn is refused at once", async () => {
  expect(await service.ctx.store.read(revokedAt)).toBeNull();
  revoke(home.live.keyId);
  await new Promise(setImmediate);
  const reply = await service.get("/v1/warrants", { as: home.live.as });
  expect([reply.status, reply.code]).toEqual([401, "not_authenticated"]);
});

// On PostgreSQL a read takes more than a turn.
onlyEmbedded(import.meta.path).test(
  "reads of one turn share a snapshot; later reads see what was committed since",
  async () => {
    const { read } = service.ctx.store;
    await new Promise(setImmediate);
    expect(await read(revokedAt)).toBeNull();
    revoke(home.live.keyId);
    expect(await read(revokedAt)).toBeNull();
    await new Promise(setImmediate);
    expect(await read(revokedAt)).toBe(1);
  },
);

test("a snapshot stays as it was while newer ones exist", async () => {
  const { read } = service.ctx.store;
  const first = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const held = read(async (reader) => {
    const before = await revokedAt(reader);
    begun.resolve();
    await first.promise;
    return [before, await revokedAt(reader)];
  });
  await begun.promise;
  await new Promise(setImmediate);
  revoke(home.live.keyId);
  expect(await read(revokedAt)).toBe(1);
  first.resolve();
  expect(await held).toEqual([null, null]);
});

test("a snapshot that was released is not read from any more", async () => {
  const { read } = service.ctx.store;
  const reader = await read((one) => one);
  await new Promise(setImmediate);
  await expect(revokedAt(reader)).rejects.toThrow("was let go");
});

test("a snapshot without a free connection waits until another one is released", async () => {
  const { read } = service.ctx.store;
  const gate = Promise.withResolvers<void>();
  const held: Promise<unknown>[] = [];
  for (let count = 0; count < 8; count++) {
    const begun = Promise.withResolvers<void>();
    held.push(
      read(() => {
        begun.resolve();
        return gate.promise;
      }),
    );
    // Nobody joins its snapshot after the turn in which it has begun.
    await begun.promise;
    await new Promise(setImmediate);
  }
  let answered = false;
  const late = read(revokedAt).finally(() => {
    answered = true;
  });
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
  const answeredBefore = answered;
  gate.resolve();
  expect(answeredBefore).toBeFalse();
  expect(await late).toBeNull();
  await Promise.all(held);
});

test("a read after a command's answer sees what the command wrote", async () => {
  const { execute, read } = service.ctx.store;
  const find = () => read((reader) => reader.organisations.get("org_new"));
  const before = await find();
  const row = {
    id: "org_new",
    name: "New",
    killSwitch: false,
    passkeyThreshold: null,
    hidesSpecs: false,
    secondFactor: false,
    messagingDecisions: false,
    createdAt: 1,
  };
  const answered = execute({
    scope: null,
    needs: {},
    decide: () => ({ answer: true, change: { put: [{ kind: "organisation", before: null, row }] } }),
  });
  const seen = await answered.then(find);
  expect([before, seen]).toEqual([null, row]);
});
