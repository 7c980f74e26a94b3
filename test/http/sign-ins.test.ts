import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { writeSignInFailures } from "../../src/jobs/sign-in-failures.ts";
import { createSignInLog } from "../../src/platform/sign-in-log.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { issuePasswordReset } from "../../src/services/admin/password-resets.ts";
import { createAuthenticator } from "../support/authenticator.ts";
import type { Credentials, Json, Reply } from "../support/client.ts";
import { must, PASSWORD, type Person, type TestOrganisation } from "../support/organisations.ts";
import { registers } from "../support/passkeys.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** The trace of sign-ins, and who ends them (docs/people, "Own account" and "The audit log"; docs/operating, "Sign-ins in the log"). */

const HOUR_MS = 3_600_000;
const AGENT = "Mozilla/5.0 (X11) Firefox/150.0";
const WRONG = "a wrong password";

type Line = { readonly message: string; readonly [field: string]: unknown };
let lines: Line[];
let service: ShellService;
let home: TestOrganisation;
let person: Person;
beforeEach(async () => {
  lines = [];
  const log = (message: string, fields: object = {}) => void lines.push({ message, ...fields });
  service = startTestShell({
    signInLog: createSignInLog({ warning: log, info: log }, () => service.clock.now),
  });
  home = await service.organisation();
  person = home.people.operator;
  lines = [];
});
afterEach(() => service.close());

const tries = (password: string, { email = person.email, at = "203.0.113.7", as = {} }: Json = {}) =>
  service
    .from(at)
    .post("/auth/session", { email, password }, { key: null, as, headers: { "User-Agent": AGENT } });
const cookieOf = (reply: Reply): Credentials => ({ Cookie: reply.headers.get("set-cookie")!.split(";")[0]! });
async function signedIn(more: Json = {}): Promise<Credentials> {
  const reply = await tries(PASSWORD, more);
  expect(reply.status).toBe(201);
  return cookieOf(reply);
}
const counts = async (as: Credentials) => (await service.get("/auth/session", { as })).status === 200;
const listed = async (as: Credentials): Promise<Json[]> =>
  (await service.get("/auth/sessions", { as })).body.data;
const currentOf = async (as: Credentials): Promise<Json> =>
  (await listed(as)).find(({ current }: Json) => current);
const end = (path: string, as: Credentials) => service.send("DELETE", path, undefined, { as, key: null });

const everythingWritten = () =>
  JSON.stringify([lines, service.everything()], (_, value) =>
    typeof value === "bigint" ? String(value) : value,
  );

/** The audit log's entries about sign-ins, oldest first, without those of the people made for the test. */
async function trail(): Promise<Json[]> {
  await writeSignInFailures(service.ctx);
  const { data } = (await service.get("/v1/console/audit-log?limit=100", { as: home.people.owner.as })).body;
  return data
    .filter(({ subject, action }: Json) => subject === person.id && action !== "user.created")
    .toReversed()
    .slice(1);
}

describe("who signs in", () => {
  test("is in the audit log and the log, with address and program, and the password is in neither", async () => {
    const as = await signedIn({ at: "2001:db8:1:2:3::7" });
    const { id } = await currentOf(as);
    const after = {
      ...{ id, object: "sign_in", user_id: person.id, mode: "live", current: false, by: "password" },
      ...{ address: "2001:db8:1:2::/64", agent: AGENT },
      ...{
        created_at: service.timeIn(0),
        last_used_at: service.timeIn(0),
        expires_at: service.timeIn(12 * HOUR_MS),
      },
    };
    const actor = { kind: "user", id: person.id };
    expect(await trail()).toMatchObject([{ actor, action: "user.signed_in", before: null, after }]);
    // Firewalls want the whole address.
    expect(lines).toEqual([
      {
        ...{ message: "signed in", address: "2001:db8:1:2:3::7", by: "password" },
        ...{ user_id: person.id, sign_in: id, agent: AGENT },
      },
    ]);
    expect(everythingWritten()).not.toContain(`"${PASSWORD}`);
  });

  test("by passkey is there too", async () => {
    const authenticator = createAuthenticator();
    expect((await registers(service, person, authenticator)).status).toBe(201);
    const [credential] = authenticator.credentials;
    const options = async () => (await service.post("/auth/passkey/sign-in/options", {}, { key: null })).body;
    const send = (response: object) => service.post("/auth/passkey/sign-in", { response }, { key: null });
    const wrong = authenticator.get(await options(), credential!, { userVerified: false });
    expect((await send(wrong)).status).toBe(401);
    expect((await send(authenticator.get(await options(), credential!))).status).toBe(201);
    expect(await trail()).toMatchObject(
      [
        { action: "passkey.registered" },
        { action: "user.signed_in", after: { by: "passkey" } },
        { action: "user.sign_in_failed", after: { by: "passkey" } },
      ].filter(({ action }) => action !== "passkey.registered"),
    );
    expect(lines.map(({ message, by, user_id }) => [message, by, user_id])).toEqual([
      ["sign-in failed", "passkey", person.id],
      ["signed in", "passkey", person.id],
    ]);
  });
});

describe("who fails to", () => {
  test("is in the log at once and in the audit log soon, as a stranger, and what they sent is in neither", async () => {
    await tries(WRONG);
    const before = service.everything();
    await tries(WRONG, { email: "nobody@example.com" });
    // An answer that waited for the disk would show that the account exists.
    expect(service.everything()).toEqual(before);
    const failed = (user_id: string | null) => ({
      ...{ message: "sign-in failed", address: "203.0.113.7", by: "password", why: "wrong" },
      ...{ user_id, agent: AGENT },
    });
    expect(lines).toEqual([failed(person.id), failed(null)]);
    const at = service.timeIn(0);
    expect(await trail()).toMatchObject([
      {
        actor: { kind: "stranger", id: "203.0.113.7" },
        action: "user.sign_in_failed",
        subject: person.id,
        before: null,
        after: {
          ...{ failures: 1, addresses: ["203.0.113.7"], agent: AGENT, by: "password", why: "wrong" },
          ...{ first_at: at, last_at: at },
        },
      },
    ]);
    expect(everythingWritten()).not.toMatch(/a wrong password|nobody@example/);
  });

  test("by a signed-in person's password, or a reset link, is there too", async () => {
    const body = { current_password: WRONG, new_password: "another long passphrase" };
    await service.post("/auth/password", body, { as: person.as, key: null });
    await service.post(
      "/auth/password/reset",
      { token: "none", new_password: "another one, long" },
      { key: null },
    );
    expect(lines.map(({ by, why, user_id }) => [by, why, user_id])).toEqual([
      ["password again", "wrong", person.id],
      ["reset link", "wrong", null],
    ]);
    expect(await trail()).toMatchObject([{ action: "user.sign_in_failed", after: { by: "password again" } }]);
  });

  test("writes ten entries of an account in an hour, and one for all others, whatever they send", async () => {
    for (let count = 0; count < 130; count++) await tries(WRONG, { at: `203.0.113.${count % 9}` });
    const first = await trail();
    expect(first.map(({ after }) => after.failures)).toEqual(Array(10).fill(1));
    service.clock.now += HOUR_MS - 1;
    expect(await trail()).toHaveLength(10);
    service.clock.now += 1;
    const all = await trail();
    expect(all).toHaveLength(11);
    const { failures, addresses, first_at, last_at } = all[10]!.after;
    expect([failures, addresses.length, first_at === last_at]).toEqual([120, 5, true]);
    await tries(WRONG);
    expect((await trail()).at(-1)?.after.failures).toBe(1);
  });

  test("and is refused as one too many is there as that", async () => {
    for (let count = 0; count < 100; count++) await tries(WRONG, { email: `${count}@example.com` });
    service.clock.now += 60_000;
    lines = [];
    expect((await tries(PASSWORD)).status).toBe(429);
    const why = "too many failures";
    expect(lines).toMatchObject([{ message: "sign-in failed", why, user_id: person.id, unlogged: 90 }]);
    expect(await trail()).toMatchObject([{ action: "user.sign_in_failed", after: { why } }]);
  });
});

describe("one's own sign-ins", () => {
  test("are listed: since when, last used, until when, from where, by what, and which one asks", async () => {
    const [here, there] = [await signedIn(), await signedIn({ at: "203.0.113.8" })];
    service.clock.now += 2 * HOUR_MS;
    expect(await counts(there)).toBeTrue();
    const list = await listed(here);
    expect(list).toHaveLength(3);
    expect(list.map(({ address, current }) => [address, current])).toContainEqual(["203.0.113.7", true]);
    expect(list.find(({ address }) => address === "203.0.113.8")).toEqual({
      id: expect.stringMatching(/^sgn_[0-9a-f]{20}$/),
      ...{ object: "sign_in", user_id: person.id, mode: "live", address: "203.0.113.8", agent: AGENT },
      ...{ current: false, created_at: service.timeIn(-2 * HOUR_MS), last_used_at: service.timeIn(0) },
      expires_at: service.timeIn(12 * HOUR_MS),
    });
    expect(JSON.stringify(list)).not.toContain(there.Cookie!.split("=")[1]!);
    // Those of others are not, nor those that have ended.
    expect(await listed(home.people.viewer.as)).toHaveLength(1);
    service.clock.now += 12 * HOUR_MS - 1;
    expect((await listed(there)).map(({ address }) => address).sort()).toEqual([
      "203.0.113.7",
      "203.0.113.8",
    ]);
  });

  test("are ended one by one, which is in the audit log and the log", async () => {
    const [here, there] = [await signedIn(), await signedIn({ at: "203.0.113.8" })];
    const { id } = await currentOf(there);
    lines = [];
    expect((await end(`/auth/sessions/${id}`, here)).status).toBe(204);
    expect([await counts(there), await counts(here)]).toEqual([false, true]);
    expect((await trail()).at(-1)).toMatchObject({
      ...{ actor: { kind: "user", id: person.id }, action: "user.signed_out", before: { id }, after: null },
    });
    expect(lines).toMatchObject([
      { message: "sign-in ended", why: "signed out", user_id: person.id, ended_by: person.id, sign_in: id },
    ]);
    for (const unknown of [id, "sgn_none", (await currentOf(home.people.viewer.as)).id]) {
      expect((await end(`/auth/sessions/${unknown}`, here)).code).toBe("sign_in_not_found");
    }
    expect(await counts(home.people.viewer.as)).toBeTrue();
    const own = await end(`/auth/sessions/${(await currentOf(here)).id}`, here);
    expect([own.status, await counts(here)]).toEqual([204, false]);
    expect(own.headers.get("set-cookie")).toMatch(/^service_session=;.*Max-Age=0/i);
  });

  test("end with what ends them all, and the log says why", async () => {
    const body = { current_password: PASSWORD, new_password: "another long passphrase" };
    await service.post("/auth/password", body, { as: person.as, key: null });
    expect(lines).toEqual([]);
    const as = cookieOf(await tries(body.new_password));
    await service.post(
      "/auth/password",
      { current_password: body.new_password, new_password: PASSWORD },
      { as, key: null },
    );
    const link = must(await issuePasswordReset(service.ctx, MACHINE, { user_id: person.id }));
    const reset = { token: link.url.split("#")[1], new_password: PASSWORD };
    await service.post("/auth/password/reset", reset, { key: null });
    const last = await signedIn();
    await end("/auth/session", last);
    await end("/auth/sessions", await signedIn());
    const ends = lines.filter(({ message }) => message === "sign-in ended");
    expect(ends.map(({ why, sign_ins }) => [why, sign_ins])).toEqual([
      ["password changed", 1],
      ["password reset", 1],
      ["signed out", 1],
      ["signed out", 1],
    ]);
  });
});

describe("signing in again", () => {
  test("ends the old cookie of that browser, in the same organisation and in another", async () => {
    const old = await signedIn();
    const next = await signedIn({ as: old });
    expect([await counts(old), await counts(next)]).toEqual([false, true]);
    expect((await trail()).at(-1)).toMatchObject({ action: "user.signed_out", before: { mode: "live" } });
    expect(lines.at(-1)).toMatchObject({ message: "sign-in ended", why: "signed in again" });
    const { viewer } = (await service.organisation()).people;
    const other = await signedIn({ email: viewer.email, as: next });
    expect([await counts(next), await counts(other)]).toEqual([false, true]);
    // The end is in the log of the organisation whose person it was.
    expect((await trail()).at(-1)).toMatchObject({ action: "user.signed_out", subject: person.id });
  });

  test("leaves it where the sign-in fails, where a page of elsewhere sends it, and the cookies of other browsers", async () => {
    const old = await signedIn();
    expect((await tries(WRONG, { as: old })).status).toBe(401);
    await signedIn({ as: { ...old, "Sec-Fetch-Site": "cross-site" } });
    await signedIn();
    expect(await counts(old)).toBeTrue();
  });
});

describe("an admin", () => {
  const path = (id: string, signIn = "") => `/auth/users/${id}/sessions${signIn && `/${signIn}`}`;

  test("lists and ends the sign-ins of people below admin, one or all", async () => {
    const { admin } = home.people;
    const there = await signedIn();
    const { body } = await service.get(path(person.id), { as: admin.as });
    expect(body.data).toHaveLength(2);
    expect(body.data.every(({ current }: Json) => !current)).toBeTrue();
    const { id } = await currentOf(there);
    lines = [];
    const one = await end(path(person.id, id), admin.as);
    expect([one.status, one.body]).toEqual([
      200,
      { object: "sign_ins_ended", user_id: person.id, sign_ins: [id] },
    ]);
    expect([await counts(there), await counts(person.as)]).toEqual([false, true]);
    expect((await trail()).at(-1)).toMatchObject({
      ...{ actor: { kind: "user", id: admin.id }, action: "user.sign_ins_ended", subject: person.id },
      ...{ before: { sign_ins: [id] }, after: { sign_ins: [] } },
    });
    expect(lines).toMatchObject([
      { message: "sign-in ended", why: "ended", ended_by: admin.id, sign_in: id },
    ]);
    expect((await end(path(person.id, id), admin.as)).code).toBe("sign_in_not_found");
    expect((await end(path(person.id), admin.as)).body.sign_ins).toHaveLength(1);
    expect(await counts(person.as)).toBeFalse();
    const known = (await trail()).length;
    expect((await end(path(person.id), admin.as)).body.sign_ins).toEqual([]);
    expect(await trail()).toHaveLength(known);
  });

  test("does not for admins and owners, nor for other organisations; an owner does", async () => {
    const { admin, owner, operator } = home.people;
    const far = (await service.organisation()).people.viewer;
    for (const [as, id, code] of [
      [admin.as, owner.id, "insufficient_role"],
      [admin.as, admin.id, "insufficient_role"],
      [operator.as, home.people.viewer.id, "insufficient_role"],
      [home.live.as, home.people.viewer.id, "user_session_required"],
      [owner.as, far.id, "user_not_found"],
      [owner.as, "usr_none", "user_not_found"],
    ] as const) {
      expect((await service.get(path(id), { as })).code).toBe(code);
      expect((await end(path(id), as)).code).toBe(code);
    }
    expect((await end(path(admin.id), owner.as)).status).toBe(200);
    expect([await counts(admin.as), await counts(owner.as), await counts(far.as)]).toEqual([
      false,
      true,
      true,
    ]);
  });
});
