import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { createKey } from "../../src/services/admin/keys.ts";
import { createOrganisation } from "../../src/services/admin/organisations.ts";
import { issuePasswordReset } from "../../src/services/admin/password-resets.ts";
import { createPolicy } from "../../src/services/admin/policies.ts";
import { createSchema } from "../../src/services/admin/schemas.ts";
import { createUser, removeUser, resetPasskeys, setUserRole } from "../../src/services/admin/users.ts";
import { createVerifier } from "../../src/services/admin/verifiers.ts";
import { type Credentials, type Json, NOBODY } from "../support/client.ts";
import { must, PASSWORD, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";
import { signedIn } from "../support/stage.ts";

/** The audit log: every administrative change, who made it, and how it was before and after (docs/people, "The audit log"). */

let service: ShellService;
let home: TestOrganisation;
beforeEach(async () => {
  service = startTestShell();
  home = await service.organisation();
});
afterEach(() => service.close());

const read = (query = "", as = home.people.admin.as) => service.get(`/v1/console/audit-log${query}`, { as });
const NOW = () => new Date(service.clock.now).toISOString();
/** The entries that a change added, newest first. */
async function entriesOf(change: () => Promise<unknown>): Promise<Json[]> {
  const known = new Set((await read("?limit=100")).body.data.map(({ id }: Json) => id));
  await change();
  return (await read("?limit=100")).body.data.filter(({ id }: Json) => !known.has(id)).toReversed();
}
const machine = { kind: "machine", id: null };
const entry = (
  action: string,
  subject: string,
  before: unknown,
  after: unknown,
  actor: object = machine,
) => ({
  id: expect.stringMatching(/^act_/),
  object: "audit_log_entry",
  actor,
  action,
  subject,
  before,
  after,
  recorded_at: NOW(),
});

const NOTHING_OF = { passkeys: [], sign_ins: [] };

describe("an entry in the commit of", () => {
  test("an organisation and its owner created", async () => {
    const created = must(
      await createOrganisation(service.ctx, {
        name: "New",
        owner_email: "new@audit.example",
        owner_password: PASSWORD,
      }),
    );
    const { organisation, owner } = created;
    const entries = service.ctx.reader.auditEntries.list(organisation.id, null, 10);
    expect(entries.toReversed()).toMatchObject([
      {
        actor: machine,
        action: "organisation.created",
        subject: organisation.id,
        before: null,
        after: organisation,
      },
      { actor: machine, action: "user.created", subject: owner.id, before: null, after: owner },
    ]);
  });

  test("a person created, changed and removed, by a person", async () => {
    const { owner } = home.people;
    const authority = await signedIn(service.ctx, {
      kind: "person",
      userId: owner.id,
      role: "owner",
      organisationId: home.id,
      mode: "live",
    });
    const actor = { kind: "user", id: owner.id };
    let [made, changed, removed]: Json[] = [];
    const entries = await entriesOf(async () => {
      const input = {
        organisation_id: home.id,
        email: "p@audit.example",
        password: PASSWORD,
        role: "viewer",
      } as const;
      made = must(await createUser(service.ctx, authority, input));
      changed = must(await setUserRole(service.ctx, authority, { user_id: made.id, role: "admin" }));
      // Nothing changes, so nothing is written.
      must(await setUserRole(service.ctx, authority, { user_id: made.id, role: "admin" }));
      removed = must(await removeUser(service.ctx, authority, { user_id: made.id }));
    });
    expect(entries).toEqual([
      entry("user.created", made.id, null, made, actor),
      entry("user.role_changed", made.id, made, changed, actor),
      entry("user.removed", made.id, { ...changed, ...NOTHING_OF }, { ...removed, ...NOTHING_OF }, actor),
    ]);
    expect(removed).toEqual({ ...made, role: "admin", removed_at: NOW() });
  });

  test("a person's own changes: password changed, reset by a link, signed out everywhere", async () => {
    const { viewer } = home.people;
    const actor = { kind: "user", id: viewer.id };
    /** What ended sign-ins. */
    const own = (action: string, ended: readonly string[]) =>
      entry(action, viewer.id, { sign_ins: ended }, { sign_ins: [] }, actor);
    const signIns = async (as: Credentials) =>
      (await service.get("/auth/sessions", { as })).body.data.map(({ id }: Json) => id);
    const elsewhere = await home.signIn(viewer);
    const [otherId] = (await service.get("/auth/sessions", { as: viewer.as })).body.data
      .filter(({ current }: Json) => !current)
      .map(({ id }: Json) => id);
    expect(await signIns(elsewhere)).toContain(otherId);
    const post = (path: string, body: object) => service.post(path, body, { as: viewer.as, key: null });
    const changed = await entriesOf(() =>
      post("/auth/password", { current_password: PASSWORD, new_password: "another long one" }),
    );
    expect(changed).toEqual([own("user.password_changed", [otherId])]);
    const left = await signIns(viewer.as);
    let link: Json;
    const issued = await entriesOf(async () => {
      link = must(await issuePasswordReset(service.ctx, MACHINE, { user_id: viewer.id }));
    });
    expect(issued).toEqual([
      entry("user.password_reset_issued", viewer.id, null, {
        user_id: viewer.id,
        expires_at: link.expires_at,
      }),
    ]);
    const out = await entriesOf(() =>
      service.send("DELETE", "/auth/sessions", undefined, { as: viewer.as, key: null }),
    );
    expect(out).toEqual([own("user.signed_out_everywhere", left)]);
    const token = link.url.split("#")[1];
    const reset = await entriesOf(() =>
      post("/auth/password/reset", { token, new_password: "a third long one" }),
    );
    expect(reset).toEqual([own("user.password_reset", [])]);
  });

  test("a policy, a verifier, a schema and a deposit", async () => {
    const { ctx } = service;
    const organisation = { organisation_id: home.id };
    let [policy, schema, verifier, deposit]: Json[] = [];
    const entries = await entriesOf(async () => {
      const rules = { bands: [{ minScore: 0, outcome: "refund" }] };
      policy = must(await createPolicy(ctx, MACHINE, { ...organisation, name: "strict", rules }));
      schema = must(
        await createSchema(ctx, MACHINE, { ...organisation, name: "thing", schema: { type: "object" } }),
      );
      const clause = { type: "http.status", config: { equals: 200 } } as const;
      verifier = must(await createVerifier(ctx, MACHINE, { ...organisation, name: "up", ...clause }));
      deposit = must(await fundBalance(ctx, MACHINE, { ...organisation, mode: "sandbox", amount: "5" }));
    });
    const { schema: _, ...schemaAfter } = schema;
    expect(entries).toEqual([
      entry("policy.created", policy.id, null, policy),
      entry("schema.created", schema.id, null, schemaAfter),
      entry("verifier.created", verifier.id, null, verifier),
      entry("balance.funded", deposit.id, null, deposit),
    ]);
  });

  test("passkeys reset, where there were any", async () => {
    const { operator, viewer } = home.people;
    const passkey = (id: string, userId: string, name: string) => ({
      id,
      organisationId: home.id,
      userId,
      name,
      publicKey: "a-public-key",
      counter: 0,
      transports: [],
      countsForThreshold: true,
      createdAt: service.clock.now,
      lastUsedAt: null,
    });
    await service.ctx.store.execute({
      scope: { organisationId: home.id, mode: "live" },
      needs: {},
      decide: () => ({
        answer: null,
        change: {
          put: [
            { kind: "passkey", before: null, row: passkey("one", operator.id, "phone") },
            { kind: "passkey", before: null, row: passkey("two", operator.id, "laptop") },
            { kind: "passkey", before: null, row: passkey("other", viewer.id, "phone") },
          ],
        },
      }),
    });
    const reset = () => resetPasskeys(service.ctx, { user_id: operator.id });
    const passkeys = [
      { id: "one", name: "phone" },
      { id: "two", name: "laptop" },
    ];
    const first = await entriesOf(async () => expect(must(await reset()).id).toBe(operator.id));
    expect(first).toEqual([entry("passkeys.reset", operator.id, { passkeys }, { passkeys: [] })]);
    const { of } = service.ctx.reader.passkeys;
    expect([of(operator.id), of(viewer.id).map(({ id }) => id)]).toEqual([[], ["other"]]);
    expect(await entriesOf(reset)).toEqual([]);
    // The passkeys of a removed person are deleted too: they would count for the threshold.
    must(await removeUser(service.ctx, MACHINE, { user_id: viewer.id }));
    expect(of(viewer.id)).toEqual([]);
  });
});

describe("GET /v1/console/audit-log", () => {
  test("newest first, page by page, each entry once", async () => {
    const all: Json[] = (await read("?limit=100")).body.data;
    expect(all.length).toBeGreaterThan(8);
    expect(all.map(({ id }) => id)).toEqual(
      all
        .map(({ id }) => id)
        .sort()
        .reverse(),
    );
    for (const limit of [1, 3, all.length - 1, all.length]) {
      const pages: Json[] = [];
      for (let cursor: string | null = ""; cursor !== null; ) {
        const { body } = await read(`?limit=${limit}${cursor && `&starting_after=${cursor}`}`);
        expect(Object.keys(body).sort()).toEqual(["data", "has_more", "next_cursor", "object"]);
        expect(body.object).toBe("list");
        expect(body.has_more).toBe(body.next_cursor !== null);
        expect(body.data.length).toBe(Math.min(limit, all.length - pages.length));
        pages.push(...body.data);
        cursor = body.next_cursor;
      }
      expect(pages).toEqual(all);
    }
    const last = await read(`?starting_after=${all.at(-1).id}`);
    expect(last.body).toEqual({ object: "list", data: [], has_more: false, next_cursor: null });
  });

  test("25 entries by default", async () => {
    for (let count = 0; count < 30; count++)
      must(await createKey(service.ctx, MACHINE, { agent_id: home.live.id }));
    const { body } = await read();
    expect([body.data.length, body.has_more]).toEqual([25, true]);
  });

  test("invalid queries are refused", async () => {
    const other = await service.organisation();
    const foreign = (await read("", other.people.owner.as)).body.data[0].id;
    for (const [query, start] of [
      ["?limit=0", "limit: must be an integer from 1 to 100"],
      ["?limit=101", "limit: "],
      ["?limit=many", "limit: "],
      ["?starting_after=", "starting_after: "],
      ["?starting_after=act_none", "starting_after: there is no such entry"],
      [`?starting_after=${foreign}`, "starting_after: there is no such entry"],
      ["?ending_before=act_none", "ending_before: unknown field"],
    ] as const) {
      const reply = await read(query);
      expect([query, reply.code, reply.body.error.message.slice(0, start.length)]).toEqual([
        query,
        "validation_failed",
        start,
      ]);
    }
  });

  test("is for admins of the organisation, whichever mode they are in", async () => {
    const { viewer, operator, admin, owner } = home.people;
    const sandbox = await home.signIn(admin, "sandbox");
    for (const as of [admin.as, owner.as, sandbox]) expect((await read("", as)).status).toBe(200);
    expect((await read("?limit=100", sandbox)).body).toEqual((await read("?limit=100")).body);
    for (const { as } of [viewer, operator]) expect((await read("", as)).code).toBe("insufficient_role");
    expect((await read("", home.live.as)).code).toBe("user_session_required");
    expect((await read("", NOBODY)).code).toBe("not_authenticated");
    const other = await service.organisation();
    const subjects = (await read("?limit=100", other.people.owner.as)).body.data.map(
      ({ subject }: Json) => subject,
    );
    expect(subjects).not.toContain(home.id);
    expect(subjects).toContain(other.id);
  });
});

describe("GET /v1/console/users", () => {
  const people = (as = home.people.admin.as) => service.get("/v1/console/users", { as });

  test("lists the people, without their passwords or passkeys", async () => {
    must(await removeUser(service.ctx, MACHINE, { user_id: home.people.viewer.id }));
    const { status, body, text } = await people();
    expect(status).toBe(200);
    expect(Object.keys(body).sort()).toEqual(["data", "object"]);
    const { owner, operator, admin } = home.people;
    expect(body.data.map(({ id, email, role }: Json) => [id, email, role])).toEqual(
      expect.arrayContaining([
        [owner.id, owner.email, "owner"],
        [operator.id, operator.email, "operator"],
        [admin.id, admin.email, "admin"],
      ]),
    );
    expect(body.data).toHaveLength(3);
    expect(text).not.toMatch(/hash|password|test:/);
  });

  test("is for admins of the organisation", async () => {
    const { viewer, operator, owner } = home.people;
    expect((await people(owner.as)).status).toBe(200);
    for (const { as } of [viewer, operator]) expect((await people(as)).code).toBe("insufficient_role");
    expect((await people(home.live.as)).code).toBe("user_session_required");
    expect((await people(NOBODY)).code).toBe("not_authenticated");
    const other = await service.organisation();
    const theirs = (await people(other.people.owner.as)).body.data.map(({ id }: Json) => id).sort();
    expect(theirs).toEqual(
      Object.values(other.people)
        .map(({ id }) => id)
        .sort(),
    );
  });
});

test("a role changes with the next request, up and down", async () => {
  const { viewer } = home.people;
  const open = () => service.post("/v1/warrants", service.body(), { as: viewer.as });
  const set = async (role: "viewer" | "operator" | "admin") =>
    must(await setUserRole(service.ctx, MACHINE, { user_id: viewer.id, role }));
  await service.refuses(home, [403, "insufficient_role"], open);
  await set("operator");
  expect((await open()).status).toBe(201);
  expect((await read("", viewer.as)).code).toBe("insufficient_role");
  await set("admin");
  expect((await read("", viewer.as)).status).toBe(200);
  await set("viewer");
  await service.refuses(home, [403, "insufficient_role"], open);
  expect((await service.get("/auth/session", { as: viewer.as })).body.user.role).toBe("viewer");
});

test("a removed person is signed out at once; the agents' keys go on", async () => {
  const { admin } = home.people;
  must(await removeUser(service.ctx, MACHINE, { user_id: admin.id }));
  expect((await service.get("/auth/session", { as: admin.as })).code).toBe("not_authenticated");
  await service.refuses(home, [401, "not_authenticated"], () =>
    service.post("/v1/warrants", service.body(), { as: admin.as }),
  );
  const body = { email: admin.email, password: PASSWORD };
  await service.refuses(home, [401, "not_authenticated"], () =>
    service.post("/auth/session", body, { key: null }),
  );
  await service.opened(home);
});

test("no secret is ever in the log: no password, hash, key or token, of any change", async () => {
  const { ctx } = service;
  const secrets: string[] = [PASSWORD, home.live.secret, home.sandbox.secret];
  const { viewer, operator } = home.people;
  for (const { as } of Object.values(home.people)) secrets.push(as.Cookie!.split("=")[1]!);
  const key = must(await createKey(ctx, MACHINE, { agent_id: home.live.id }));
  const { url } = must(await issuePasswordReset(ctx, MACHINE, { user_id: viewer.id }));
  const token = url.split("#")[1]!;
  const chosen = ["chosen by a link", "chosen by themself"] as const;
  await service.post("/auth/password/reset", { token, new_password: chosen[0] }, { key: null });
  const body = { current_password: PASSWORD, new_password: chosen[1] };
  await service.post("/auth/password", body, { as: operator.as, key: null });
  await service.send("DELETE", "/auth/sessions", undefined, { as: operator.as });
  must(await setUserRole(ctx, MACHINE, { user_id: viewer.id, role: "admin" }));
  must(await removeUser(ctx, MACHINE, { user_id: viewer.id }));
  secrets.push(key.secret, token, ...chosen);
  const hashes = secrets.map((secret) => new Bun.CryptoHasher("sha256").update(secret).digest("hex"));

  const log = JSON.stringify(
    service.ctx.ledger.allRows("audit_entries").map((row) => Object.values(row).map(String)),
  );
  expect(log).toContain("user.password_reset_issued");
  expect(log).toContain(key.id);
  for (const secret of [...secrets, ...hashes]) expect(log).not.toContain(secret);
  expect(log).not.toMatch(/hf_(live|test)_|password_hash|secret|test:/);
});
