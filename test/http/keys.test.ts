import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { writeKeyUses } from "../../src/jobs/key-uses.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createKey, revokeKey, rotateKey } from "../../src/services/admin/keys.ts";
import type { Json } from "../support/client.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** API keys as their callers and the console see them: rotation, expiry, last use (docs/people, "Keys"). */

let service: ShellService;
let home: TestOrganisation;
beforeAll(() => {
  service = startTestShell();
});
afterAll(() => service?.close());
beforeEach(async () => {
  home = await service.organisation();
});

const bearer = (secret: string) => ({ Authorization: `Bearer ${secret}` });
const iso = (time: number): string => new Date(time).toISOString();
const listed = async (as = home.people.admin.as): Promise<Json[]> =>
  (await service.get("/v1/console/keys", { as })).body.data;

test("a rotated key and the new one both call until the overlap is over, then the new one alone", async () => {
  const { keyId, as } = home.live;
  const { secret } = must(await rotateKey(service.ctx, MACHINE, { key_id: keyId, overlap_seconds: 60 }));
  service.clock.now += 59_999;
  for (const each of [as, bearer(secret)]) await service.opened(home, {}, { as: each });

  service.clock.now += 1;
  const { body } = await service.get("/v1/warrants", { as: bearer(secret) });
  const { id } = body.data[0];
  const source_url = "http://source.example/";
  const refused = [401, "not_authenticated"] as const;
  await service.refuses(home, refused, () => service.post("/v1/warrants", service.body(), { as }));
  await service.refuses(home, refused, () => service.get(`/v1/warrants/${id}`, { as }));
  await service.refuses(home, refused, () =>
    service.post(`/v1/warrants/${id}/verify`, { source_url }, { as }),
  );
  const verified = await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: bearer(secret) });
  expect([verified.status, verified.body.state]).toEqual([200, "released"]);
});

test("without an overlap the old key ends at once, and a cookie beside it does not help", async () => {
  const { keyId, as } = home.live;
  must(await rotateKey(service.ctx, MACHINE, { key_id: keyId, overlap_seconds: 0 }));
  const both = { ...home.people.owner.as, ...as };
  await service.refuses(home, [401, "not_authenticated"], () =>
    service.post("/v1/warrants", service.body(), { as: both }),
  );
});

test("the old and the new key of an agent are one agent: each verifies what the other opened", async () => {
  const { id, keyId, as } = home.live;
  const opened = await service.opened(home, { agent_id: id }, { as });
  const { secret } = must(await rotateKey(service.ctx, MACHINE, { key_id: keyId }));
  const reply = await service.post(
    `/v1/warrants/${opened.id}/verify`,
    { source_url: "http://source.example/" },
    { as: bearer(secret) },
  );
  expect(reply.body.state).toBe("released");
});

test("the last use is kept in memory and written by a job: a request writes nothing for it", async () => {
  const { keyId, as } = home.live;
  const find = async () => (await listed()).find(({ id }) => id === keyId);
  const first = service.clock.now;
  const before = service.allRows(home);
  await service.get("/v1/warrants", { as });
  expect(service.allRows(home)).toEqual(before);
  expect((await find()).last_used_at).toBeNull();
  await writeKeyUses(service.ctx);
  expect((await find()).last_used_at).toBe(iso(first));

  service.clock.now += 5_000;
  // A request that is refused is a use of the key too.
  await service.get("/v1/console/keys", { as });
  await service.get("/v1/warrants", { as: bearer(`${home.live.secret}x`) });
  await writeKeyUses(service.ctx);
  expect((await find()).last_used_at).toBe(iso(first + 5_000));

  service.clock.now += 5_000;
  must(await revokeKey(service.ctx, MACHINE, { key_id: keyId }));
  expect((await service.get("/v1/warrants", { as })).status).toBe(401);
  await writeKeyUses(service.ctx);
  expect(await find()).toMatchObject({
    last_used_at: iso(first + 5_000),
    revoked_at: iso(first + 10_000),
  });
});

test("the console lists the keys of the mode, for admins: last four and last use, never the secret", async () => {
  const other = await service.organisation();
  const { secret, ...key } = must(await createKey(service.ctx, MACHINE, { agent_id: home.live.id }));
  const reply = await service.get("/v1/console/keys", { as: home.people.admin.as });
  expect(reply.status).toBe(200);
  expect(reply.body).toEqual({
    object: "list",
    data: [
      {
        id: home.live.keyId,
        object: "api_key",
        agent_id: home.live.id,
        mode: "live",
        last_four: home.live.secret.slice(-4),
        created_at: key.created_at,
        expires_at: null,
        last_used_at: null,
        revoked_at: null,
      },
      key,
    ],
  });
  for (const hidden of [secret, home.live.secret]) expect(reply.text).not.toContain(hidden.slice(0, -4));
  expect(reply.text).not.toMatch(/hf_(live|test)_|secret|hash/i);

  const ids = async (as: typeof home.people.owner.as) => (await listed(as)).map(({ id }) => id);
  expect(await ids(await home.signIn(home.people.owner, "sandbox"))).toEqual([home.sandbox.keyId]);
  expect(await ids(other.people.owner.as)).toEqual([other.live.keyId]);

  const { viewer, operator } = home.people;
  for (const [as, status, code] of [
    [viewer.as, 403, "insufficient_role"],
    [operator.as, 403, "insufficient_role"],
    [home.live.as, 403, "user_session_required"],
    [{}, 401, "not_authenticated"],
  ] as const)
    await service.refuses(home, [status, code], () => service.get("/v1/console/keys", { as }));
  const { as } = home.people.admin;
  expect((await service.get("/v1/console/keys?offset=1", { as })).code).toBe("validation_failed");
});
