import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Role } from "../../src/core/roles.ts";
import { app } from "../../src/http/app.ts";
import { ruleOf } from "../../src/http/route.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { setKillSwitch, setSecondFactor } from "../../src/services/admin/switches.ts";
import { resetPasskeys, setUserRole } from "../../src/services/admin/users.ts";
import { signedInBy } from "../../src/services/auth/callers.ts";
import { createAuthenticator } from "../support/authenticator.ts";
import type { Credentials, Reply } from "../support/client.ts";
import { must, PASSWORD, type Person, type TestOrganisation } from "../support/organisations.ts";
import { enrol, passkeysOf, registers, registrationOptions, type TestPasskey } from "../support/passkeys.ts";
import { type ShellService, startTestShell } from "../support/server.ts";
import { together } from "../support/together.ts";

/** Who must prove a passkey, and what they can do until then (docs/people, "The second factor"). */

const OWING = [403, "second_factor_required"] as const;

let service: ShellService;
let home: TestOrganisation;
beforeEach(async () => {
  service = startTestShell();
  home = await service.organisation();
});
afterEach(() => service.close());

const turn = async (on: boolean) =>
  must(await setSecondFactor(service.ctx, MACHINE, { organisation_id: home.id, on }));
const owed = async (as: Credentials) => (await service.get("/auth/session", { as })).body.second_factor_owed;
const mayRead = async (as: Credentials) => (await service.get("/v1/warrants", { as })).code;

async function signInByPasskey({
  authenticator,
  credential,
}: TestPasskey): Promise<Reply & { as: Credentials }> {
  const options = (await service.post("/auth/passkey/sign-in/options", {}, { key: null })).body;
  const response = authenticator.get(options, credential);
  const reply = await service.post("/auth/passkey/sign-in", { response }, { key: null });
  return { ...reply, as: { Cookie: reply.headers.get("set-cookie")?.split(";")[0] ?? "" } };
}

/** How a person has signed in, and whether they have a passkey. */
const STATES = ["password, no passkey", "password, a passkey", "by passkey"] as const;
type State = (typeof STATES)[number];

async function signInAs(person: Person, state: State): Promise<Credentials> {
  const passkey = state === "password, no passkey" ? null : await enrol(service, person);
  return passkey && state === "by passkey" ? (await signInByPasskey(passkey)).as : home.signIn(person);
}

describe("while it is on, each role in each state", () => {
  for (const role of ["viewer", "operator", "admin", "owner"] as const satisfies Role[]) {
    for (const state of STATES) {
      const isAsked = role !== "viewer" && state !== "by passkey";
      const expected = {
        "password, no passkey": "first_passkey",
        "password, a passkey": "passkey",
        "by passkey": null,
      };
      test(`${role}, ${state}: ${isAsked ? "may do nothing else" : "goes on"}`, async () => {
        // The switch goes on after the sign-in: those that there are are asked too.
        const as = await signInAs(home.people[role], state);
        expect([await owed(as), await mayRead(as)]).toEqual([null, null]);
        await turn(true);
        expect(await owed(as)).toBe(isAsked ? expected[state] : null);
        expect(await mayRead(as)).toBe(isAsked ? "second_factor_required" : null);
        const again = await home.signIn(home.people[role]);
        expect(await mayRead(again)).toBe(role === "viewer" ? null : "second_factor_required");
        await turn(false);
        expect([await owed(as), await mayRead(as)]).toEqual([null, null]);
      });
    }
  }
});

test("every route that asks who calls is closed to who owes a passkey, but for seeing and ending the sign-in, and registering", async () => {
  await turn(true);
  const open: string[] = [];
  for (const { method, path, hooks } of app.routes) {
    if (ruleOf(hooks.detail ?? {}).access === null) continue;
    const as = await home.signIn(home.people.owner);
    const body = method === "GET" ? undefined : {};
    const { code } = await service.send(method, path.replaceAll(/:\w+/g, "x"), body, { as });
    if (code !== "second_factor_required") open.push(`${method} ${path}`);
  }
  expect(open.sort()).toEqual([
    "DELETE /auth/session",
    "GET /auth/session",
    "POST /auth/passkeys",
    "POST /auth/passkeys/options",
  ]);
});

test("the answer to a sign-in says what is owed, and the refusal what to do", async () => {
  await turn(true);
  const { operator, viewer } = home.people;
  const signIn = (email: string) =>
    service.post("/auth/session", { email, password: PASSWORD }, { key: null });
  expect((await signIn(operator.email)).body.second_factor_owed).toBe("first_passkey");
  expect((await signIn(viewer.email)).body.second_factor_owed).toBeNull();
  const { body } = await service.refuses(home, OWING, () => service.get("/v1/warrants", { as: operator.as }));
  expect(body.error.message).toContain("register one there");
});

test("who has no passkey registers one, and that proves it", async () => {
  await turn(true);
  const { operator } = home.people;
  const other = await home.signIn(operator);
  await service.refuses(home, [401, "not_authenticated"], () =>
    registrationOptions(service, operator, "wrong"),
  );
  await enrol(service, operator);
  expect([await owed(operator.as), await mayRead(operator.as)]).toEqual([null, null]);
  // Their other sign-in has proved none, and there is one now.
  expect([await owed(other), await mayRead(other)]).toEqual(["passkey", "second_factor_required"]);
});

test("who has one proves that: the password is not enough to register another", async () => {
  const { operator } = home.people;
  const passkey = await enrol(service, operator);
  const as = await home.signIn(operator);
  await turn(true);
  await service.refuses(home, OWING, () => registrationOptions(service, { ...operator, as }));
  const signedIn = await signInByPasskey(passkey);
  expect([signedIn.status, signedIn.body.second_factor_owed]).toEqual([201, null]);
  expect(await mayRead(signedIn.as)).toBeNull();
  const another = await registers(service, { ...operator, as: signedIn.as }, createAuthenticator());
  expect(another.status).toBe(201);
});

test("of two registrations of a first passkey, from two sign-ins that owe it, one counts", async () => {
  await turn(true);
  const { operator } = home.people;
  const people = [operator, { ...operator, as: await home.signIn(operator) }];
  const prepared = [];
  for (const person of people) {
    const options = await registrationOptions(service, person);
    prepared.push({ person, response: createAuthenticator().create(options.body) });
  }
  const replies = await Promise.all(
    prepared.map(({ person, response }) =>
      service.post("/auth/passkeys", { response }, { as: person.as, key: null }),
    ),
  );
  // Either may come first: each hashes and verifies on a thread of its own.
  const outcomes = replies.map(({ status, code }) => `${status} ${code}`);
  expect(outcomes.toSorted()).toEqual(["201 null", "403 second_factor_required"]);
  const winner = prepared[outcomes.indexOf("201 null")]!.person;
  expect(await passkeysOf(service, winner)).toHaveLength(1);
});

test("a viewer who becomes an operator is asked from the next request on, and no more as a viewer", async () => {
  await turn(true);
  const { viewer } = home.people;
  const become = async (role: Role) =>
    must(await setUserRole(service.ctx, MACHINE, { user_id: viewer.id, role }));
  expect(await mayRead(viewer.as)).toBeNull();
  await become("operator");
  expect([await owed(viewer.as), await mayRead(viewer.as)]).toEqual([
    "first_passkey",
    "second_factor_required",
  ]);
  await become("viewer");
  expect(await mayRead(viewer.as)).toBeNull();
});

test("a person whose lost passkeys were reset registers one anew", async () => {
  const { operator } = home.people;
  await enrol(service, operator);
  await turn(true);
  const as = await home.signIn(operator);
  expect(await owed(as)).toBe("passkey");
  must(await resetPasskeys(service.ctx, { user_id: operator.id }));
  expect(await owed(as)).toBe("first_passkey");
  await enrol(service, { ...operator, as });
  expect(await mayRead(as)).toBeNull();
});

test("API keys go on, and so do strangers and those who sign out", async () => {
  await turn(true);
  await service.opened(home);
  expect((await service.post("/bench/run", {}, { as: home.people.owner.as })).code).toBe("validation_failed");
  const { as } = home.people.owner;
  expect((await service.send("DELETE", "/auth/session", undefined, { as })).status).toBe(204);
  expect((await service.get("/auth/session", { as })).status).toBe(401);
});

test("a request that is queued behind the switch moves nothing", async () => {
  const { operator, owner } = home.people;
  const warrant = await service.opened(home);
  const [, released] = await together(
    () => turn(true),
    () => service.post(`/v1/warrants/${warrant.id}/release`, undefined, { as: operator.as }),
  );
  expect(released.code).toBe("second_factor_required");
  expect(service.ctx.reader.warrants.find(warrant.id)?.state).toBe("held");
  await turn(false);
  const caller = (await signedInBy(service.ctx, owner.as.Cookie?.split("=")[1] ?? ""))?.caller;
  if (!caller) throw new Error("the owner is not signed in");
  const [, switched] = await together(
    () => turn(true),
    () => setKillSwitch(service.ctx, caller, { organisation_id: home.id, on: true }),
  );
  expect(switched).toMatchObject({ refused: "second_factor_required" });
});

describe("the switch", () => {
  const set = (by: Parameters<typeof setSecondFactor>[1], on = true) =>
    setSecondFactor(service.ctx, by, { organisation_id: home.id, on });

  test("is for owners, in the audit log, and written once", async () => {
    const callerOf = async ({ as }: Person) => {
      const found = await signedInBy(service.ctx, as.Cookie?.split("=")[1] ?? "");
      return found!.caller;
    };
    expect(await set(await callerOf(home.people.admin))).toMatchObject({ refused: "insufficient_role" });
    const key = { kind: "key", keyId: home.live.keyId, agentId: home.live.id } as const;
    expect(await set({ ...key, organisationId: home.id, mode: "live" })).toMatchObject({
      refused: "user_session_required",
    });
    const owner = await callerOf(home.people.owner);
    expect(must(await set(owner)).second_factor).toBeTrue();
    const entries = () => service.ctx.reader.auditEntries.list(home.id, null, 100);
    const [newest] = entries();
    expect(newest).toMatchObject({
      action: "second_factor.changed",
      actor: { kind: "user", id: owner.userId },
      before: { second_factor: false },
      after: { second_factor: true },
    });
    const count = entries().length;
    must(await set(MACHINE));
    expect(entries()).toHaveLength(count);
    // The owner has proved no passkey, so only who does can turn it off; or the operator of the machine.
    expect(await set(await callerOf(home.people.owner), false)).toMatchObject({
      refused: "second_factor_required",
    });
    expect(must(await set(MACHINE, false)).second_factor).toBeFalse();
  });

  test("does not go on where no passkey can be used, which would lock everybody out; it goes off there", async () => {
    const other = startTestShell({ baseUrl: "http://192.0.2.1:8080" });
    try {
      const { id } = await other.organisation();
      const turned = (on: boolean) => setSecondFactor(other.ctx, MACHINE, { organisation_id: id, on });
      expect(await turned(true)).toMatchObject({ refused: "passkey_unavailable" });
      expect(must(await turned(false)).second_factor).toBeFalse();
    } finally {
      await other.close();
    }
  });
});
