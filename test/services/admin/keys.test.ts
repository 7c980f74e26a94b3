import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { hashSecret, looksLikeApiKey } from "../../../src/core/api-key.ts";
import { type Authority, MACHINE } from "../../../src/services/admin/authority.ts";
import { createKey, listKeys, revokeKey, rotateKey } from "../../../src/services/admin/keys.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../../support/context.ts";
import { type Expected, expectRefused } from "../../support/refused.ts";
import { createCaller, createStage, must, type Stage } from "../../support/stage.ts";

let ctx: TestContext;
let stage: Stage;
let agent_id: string;
let key_id: string;

beforeAll(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx, { mode: "sandbox" });
});
afterAll(() => ctx.close());
beforeEach(async () => {
  const caller = await createCaller(stage);
  agent_id = caller.agentId;
  key_id = caller.keyId;
});
afterEach(() => {
  ctx.clock.now = TEST_NOW;
});

const iso = (time: number): string => new Date(time).toISOString();
const kept = (id: string) => ctx.reader.apiKeys.get(id)!;
const rotate = (overlap_seconds?: number) =>
  rotateKey(ctx, MACHINE, { key_id, ...(overlap_seconds !== undefined && { overlap_seconds }) });

describe("rotateKey", () => {
  test("puts a new key beside the old one, which ends after the overlap", async () => {
    const old = kept(key_id);
    ctx.clock.now += 5_000;
    const { secret, ...rest } = must(await rotate(3_600));
    expect(looksLikeApiKey(secret)).toBeTrue();
    expect(secret).toStartWith("hf_test_");
    expect(rest).toEqual({
      id: rest.id,
      object: "api_key",
      agent_id,
      mode: "sandbox",
      last_four: secret.slice(-4),
      created_at: iso(TEST_NOW + 5_000),
      expires_at: null,
      last_used_at: null,
      revoked_at: null,
      replaces: {
        id: key_id,
        object: "api_key",
        agent_id,
        mode: "sandbox",
        last_four: old.lastFour,
        created_at: iso(old.createdAt),
        expires_at: iso(TEST_NOW + 5_000 + 3_600_000),
        last_used_at: null,
        revoked_at: null,
      },
    });
    expect(ctx.reader.apiKeys.byHash(hashSecret(secret))).toEqual(kept(rest.id));
    expect(kept(key_id)).toEqual({ ...old, expiresAt: TEST_NOW + 5_000 + 3_600_000 });
    expect(ctx.ledger.bytes().includes(secret)).toBeFalse();
  });

  for (const [overlap, seconds] of [
    [undefined, 86_400],
    [0, 0],
    [2_592_000, 2_592_000],
  ] as const) {
    test(`with an overlap of ${overlap ?? "nothing said"}, the old one ends in ${seconds} s`, async () => {
      must(await rotate(overlap));
      expect(kept(key_id).expiresAt).toBe(TEST_NOW + seconds * 1_000);
    });
  }

  test("a key is replaced once, also by two at the same time; the newer one may be replaced in turn", async () => {
    const answers = await Promise.all([rotate(), rotate()]);
    expect(answers.map((answer) => ("refused" in answer ? answer.refused : "rotated"))).toEqual([
      "rotated",
      "api_key_not_active",
    ]);
    const { data } = must(await listKeys(ctx, MACHINE, { agent_id }));
    expect(data).toHaveLength(2);
    const newer = data.at(-1)!;
    expect(newer.id).not.toBe(key_id);
    const third = must(await rotateKey(ctx, MACHINE, { key_id: newer.id }));
    expect(third.replaces.id).toBe(newer.id);
  });

  test("refuses a key that has ended or is being replaced: no new key, and the old one as it was", async () => {
    must(await rotate(60));
    const cases: readonly (readonly [prepare: () => Promise<unknown>, start: string])[] = [
      [async () => {}, `The API key ${key_id} is being replaced already`],
      [
        async () => {
          ctx.clock.now += 60_000;
        },
        `The API key ${key_id} has expired`,
      ],
      [() => revokeKey(ctx, MACHINE, { key_id }), `The API key ${key_id} was revoked`],
    ];
    for (const [prepare, start] of cases) {
      await prepare();
      const before = kept(key_id);
      await expectRefused(ctx, () => rotate(), ["api_key_not_active", start]);
      expect(kept(key_id)).toEqual(before);
    }
  });

  test("refuses unknown keys and overlaps, and writes nothing", async () => {
    const elsewhere: Authority = { ...stage.owner, organisationId: "org_other" };
    const inLive: Authority = { ...stage.owner, mode: "live" };
    const cases: readonly (readonly [() => Promise<unknown>, Expected])[] = [
      [() => rotate(-1), ["validation_failed", "overlap_seconds: must be an integer from 0 to 2592000"]],
      [() => rotate(2_592_001), ["validation_failed", "overlap_seconds: "]],
      [() => rotate(0.5), ["validation_failed", "overlap_seconds: "]],
      [() => rotate(Number.NaN), ["validation_failed", "overlap_seconds: "]],
      [() => rotateKey(ctx, MACHINE, { key_id: "key_none" }), ["api_key_not_found", "There is no API key"]],
      [() => rotateKey(ctx, stage.operator, { key_id }), ["insufficient_role", ""]],
      [() => rotateKey(ctx, elsewhere, { key_id }), ["api_key_not_found", ""]],
      [() => rotateKey(ctx, inLive, { key_id }), ["api_key_not_found", ""]],
    ];
    for (const [verb, expected] of cases) await expectRefused(ctx, verb, expected);
    expect(kept(key_id).expiresAt).toBeNull();
    expect(must(await rotateKey(ctx, stage.admin, { key_id })).agent_id).toBe(agent_id);
  });

  test("a key that is being replaced may still be revoked at once", async () => {
    must(await rotate());
    const revoked = must(await revokeKey(ctx, MACHINE, { key_id }));
    expect(revoked).toMatchObject({ expires_at: iso(TEST_NOW + 86_400_000), revoked_at: iso(TEST_NOW) });
  });
});

describe("listKeys", () => {
  test("lists the keys of one agent, oldest first, those that have ended too, without a secret", async () => {
    const other = await createCaller(stage);
    const { secret, replaces, ...newer } = must(await rotate(0));
    const revoked = must(await revokeKey(ctx, MACHINE, { key_id: newer.id }));
    const { secret: _, ...last } = must(await createKey(ctx, MACHINE, { agent_id }));
    const list = must(await listKeys(ctx, stage.admin, { agent_id }));
    expect(list).toEqual({ object: "list", data: [replaces, revoked, last] });
    expect(JSON.stringify(list)).not.toContain(secret);
    expect(JSON.stringify(list)).not.toContain(hashSecret(secret));
    expect(must(await listKeys(ctx, MACHINE, { agent_id: other.agentId })).data).toHaveLength(1);
  });

  test("lists the keys of all agents of one organisation and mode", async () => {
    const other = await createCaller(stage);
    const scope = { organisation_id: stage.organisationId, mode: stage.mode };
    for (const authority of [MACHINE, stage.admin]) {
      const { data } = must(await listKeys(ctx, authority, scope));
      const ids = data.map(({ id }) => id);
      expect(ids).toEqual(expect.arrayContaining([key_id, other.keyId]));
      expect(ids).toEqual(ids.toSorted());
    }
    expect(must(await listKeys(ctx, MACHINE, { ...scope, mode: "live" })).data).toEqual([]);
    expect(must(await listKeys(ctx, { ...stage.admin, mode: "live" }, scope)).data).toEqual([]);
    const elsewhere = { ...stage.owner, organisationId: "org_other" };
    for (const [authority, expected] of [
      [stage.operator, ["insufficient_role", ""]],
      [other, ["user_session_required", ""]],
      [elsewhere, ["organisation_not_found", ""]],
    ] as const) {
      await expectRefused(ctx, () => listKeys(ctx, authority, scope), expected);
    }
  });

  test("is for admins of the same organisation and mode", async () => {
    const cases: readonly (readonly [Authority, string, Expected])[] = [
      [MACHINE, "agt_none", ["agent_not_found", ""]],
      [stage.operator, agent_id, ["insufficient_role", ""]],
      [{ ...stage.owner, organisationId: "org_other" }, agent_id, ["agent_not_found", ""]],
      [{ ...stage.owner, mode: "live" }, agent_id, ["agent_not_found", ""]],
    ];
    for (const [authority, id, expected] of cases)
      await expectRefused(ctx, () => listKeys(ctx, authority, { agent_id: id }), expected);
  });
});
