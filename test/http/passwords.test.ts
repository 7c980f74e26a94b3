import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Role } from "../../src/core/roles.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { issuePasswordReset } from "../../src/services/admin/password-resets.ts";
import { removeUser } from "../../src/services/admin/users.ts";
import { createSignInThrottle } from "../../src/services/auth/throttle.ts";
import { OPEN_PASSWORDS } from "../support/cheap-passwords.ts";
import { type Credentials, NOBODY } from "../support/client.ts";
import { must, PASSWORD, type Person, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";
import { signedIn } from "../support/stage.ts";
import { createTimers } from "../support/timers.ts";

/** A password changed, or reset by a one-time link, and signing out everywhere (docs/people, "Own account" and "Lost password"). */

const HOUR_MS = 3_600_000;
const NEW = "a new password, longer";

let service: ShellService;
let home: TestOrganisation;
let person: Person;
beforeEach(async () => {
  service = startTestShell();
  home = await service.organisation();
  person = home.people.operator;
});
afterEach(() => service.close());

const signIn = async (password: string, email = person.email) =>
  (await service.from("203.0.113.9").post("/auth/session", { email, password }, { key: null })).status;
const isSignedIn = async (as: Credentials) => (await service.get("/auth/session", { as })).status === 200;
const hashOf = ({ id }: Person) => service.ctx.reader.users.get(id)?.passwordHash;

describe("POST /auth/password", () => {
  const change = (body: unknown, as: Credentials = person.as) =>
    service.post("/auth/password", body, { as, key: null });

  test("changes it: the old password no longer works, other sign-ins end, this one stays", async () => {
    const [other, sandbox] = [await home.signIn(person), await home.signIn(person, "sandbox")];
    const reply = await change({ current_password: PASSWORD, new_password: NEW });
    expect([reply.status, reply.text, reply.headers.get("set-cookie")]).toEqual([204, "", null]);
    expect([await isSignedIn(person.as), await isSignedIn(other), await isSignedIn(sandbox)]).toEqual([
      true,
      false,
      false,
    ]);
    expect([await signIn(PASSWORD), await signIn(NEW)]).toEqual([401, 201]);
    expect(await isSignedIn(home.people.admin.as)).toBeTrue();
  });

  test("where it is refused, nothing changes", async () => {
    const other = await home.signIn(person);
    for (const [body, as, expected] of [
      [{ current_password: "wrong", new_password: NEW }, person.as, [401, "not_authenticated"]],
      [{ current_password: PASSWORD, new_password: NEW }, NOBODY, [401, "not_authenticated"]],
      [{ current_password: PASSWORD, new_password: NEW }, home.live.as, [403, "user_session_required"]],
      [
        { current_password: PASSWORD, new_password: "12345678901" },
        person.as,
        [400, "validation_failed", "new_password: must be a string of 12 to 256"],
      ],
      [
        { current_password: PASSWORD, new_password: "x".repeat(257) },
        person.as,
        [400, "validation_failed", "new_password: "],
      ],
      [{ new_password: NEW }, person.as, [400, "validation_failed", "current_password: is required"]],
      [{ current_password: PASSWORD }, person.as, [400, "validation_failed", "new_password: is required"]],
      [
        { current_password: PASSWORD, new_password: NEW, email: "x@y.z" },
        person.as,
        [400, "validation_failed", "email: unknown field"],
      ],
    ] as const) {
      await service.refuses(home, expected, () => change(body, as));
    }
    expect([await isSignedIn(person.as), await isSignedIn(other), await signIn(PASSWORD)]).toEqual([
      true,
      true,
      201,
    ]);
  });

  test("a stolen cookie cannot guess: after ten wrong passwords it waits, and a hundred are too many", async () => {
    const guess = (current_password: string) => change({ current_password, new_password: NEW });
    for (let count = 0; count < 100; count++) expect((await guess("wrong")).status).toBe(401);
    const reply = await service.refuses(home, [429, "rate_limit_exceeded"], () => guess(PASSWORD));
    expect(reply.headers.get("retry-after")).toBe("900");
    // Sign-ins use the same window, so they are refused at this address too.
    const body = { email: person.email, password: PASSWORD };
    expect((await service.post("/auth/session", body, { key: null })).status).toBe(429);
    service.clock.now += HOUR_MS / 4;
    expect((await guess(PASSWORD)).status).toBe(204);
  });

  test("of two changes at once by one sign-in, one is made", async () => {
    const replies = await Promise.all(
      [0, 1].map((index) => change({ current_password: PASSWORD, new_password: `${NEW} ${index}` })),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([204, 401]);
    expect(hashOf(person)).toBe(`test:${NEW} ${replies.findIndex(({ status }) => status === 204)}`);
    expect(await isSignedIn(person.as)).toBeTrue();
  });

  test("of two changes at once by two sign-ins, one is made", async () => {
    const other = await home.signIn(person);
    const replies = await Promise.all(
      [person.as, other].map((as, index) =>
        change({ current_password: PASSWORD, new_password: `${NEW} ${index}` }, as),
      ),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([204, 401]);
    const winner = replies.findIndex(({ status }) => status === 204);
    expect(hashOf(person)).toBe(`test:${NEW} ${winner}`);
    expect([await isSignedIn(person.as), await isSignedIn(other)]).toEqual([winner === 0, winner === 1]);
  });
});

test("a sign-in that ends while its new password is hashed changes nothing", async () => {
  let meanwhile = async (): Promise<unknown> => null;
  const other = startTestShell({
    passwords: {
      ...OPEN_PASSWORDS,
      hash: (password) => meanwhile().then(() => `test:${password}`),
    },
  });
  try {
    const organisation = await other.organisation();
    const { as } = organisation.people.operator;
    meanwhile = () => other.send("DELETE", "/auth/session", undefined, { as });
    const { id } = organisation.people.operator;
    const before = other.ctx.reader.users.get(id);
    const body = { current_password: PASSWORD, new_password: NEW };
    const reply = await other.post("/auth/password", body, { as, key: null });
    expect([reply.status, reply.body.error.message]).toEqual([
      401,
      "The password was changed meanwhile. Sign in again.",
    ]);
    expect(other.ctx.reader.users.get(id)).toEqual(before);
  } finally {
    await other.close();
  }
});

describe("POST /auth/password/reset", () => {
  const reset = (token: string, new_password = NEW, from = service.from("203.0.113.7")) =>
    from.post("/auth/password/reset", { token, new_password }, { key: null });
  const issue = async (to: Person = person) => {
    const made = must(await issuePasswordReset(service.ctx, MACHINE, { user_id: to.id }));
    expect(made).toEqual({
      object: "password_reset",
      user_id: to.id,
      url: expect.stringMatching(/^http:\/\/localhost:8080\/reset-password#[A-Za-z0-9_-]{43}$/),
      expires_at: service.timeIn(HOUR_MS),
    });
    return made.url.split("#")[1]!;
  };

  test("sets a new password once: all sign-ins end, and the time of the reset is stored", async () => {
    const other = await home.signIn(person, "sandbox");
    const token = await issue();
    service.clock.now += HOUR_MS - 1;
    const reply = await reset(token);
    expect([reply.status, reply.text, reply.headers.get("set-cookie")]).toEqual([204, "", null]);
    expect([await isSignedIn(person.as), await isSignedIn(other)]).toEqual([false, false]);
    expect([await signIn(PASSWORD), await signIn(NEW)]).toEqual([401, 201]);
    expect(service.ctx.reader.users.get(person.id)?.passwordResetAt).toBe(service.clock.now);
    expect(await isSignedIn(home.people.admin.as)).toBeTrue();
    await service.refuses(home, [401, "not_authenticated"], () => reset(token, `${NEW} again`));
    expect(await signIn(NEW)).toBe(201);
  });

  test("clears the failures of the account that came before", async () => {
    const timers = createTimers();
    const signInThrottle = createSignInThrottle({ after: timers.after, secret: "test" });
    const other = startTestShell({ signInThrottle });
    try {
      const { email, id } = (await other.organisation()).people.viewer;
      const signsIn = (password: string) =>
        other.from("203.0.113.8").post("/auth/session", { email, password }, { key: null });
      for (let count = 0; count < 10; count++) expect((await signsIn("wrong")).status).toBe(401);
      const made = must(await issuePasswordReset(other.ctx, MACHINE, { user_id: id }));
      const body = { token: made.url.split("#")[1], new_password: NEW };
      expect((await other.post("/auth/password/reset", body, { key: null })).status).toBe(204);
      expect([(await signsIn(NEW)).status, timers.waits()]).toEqual([201, []]);
    } finally {
      await other.close();
    }
  });

  test("unknown, used, void and expired links are refused in the same way, and nothing changes", async () => {
    const messages = new Set<string>();
    const useless = async (token: string) => {
      const { body } = await service.refuses(home, [401, "not_authenticated"], () => reset(token));
      messages.add(body.error.message);
    };
    const first = await issue();
    await useless("x".repeat(43));
    await useless(`${first} `);
    const second = await issue();
    await useless(first);
    expect((await reset(second)).status).toBe(204);
    await useless(second);
    const late = await issue();
    service.clock.now += HOUR_MS;
    await useless(late);
    expect(messages.size).toBe(1);
    expect(hashOf(person)).toBe(`test:${NEW}`);
  });

  test("a link ends with a change of the password, and with the removal of its person", async () => {
    const before = await issue();
    const body = { current_password: PASSWORD, new_password: NEW };
    expect((await service.post("/auth/password", body, { as: person.as, key: null })).status).toBe(204);
    await service.refuses(home, [401, "not_authenticated"], () => reset(before, `${NEW} 2`));
    const removed = await issue();
    must(await removeUser(service.ctx, MACHINE, { user_id: person.id }));
    await service.refuses(home, [401, "not_authenticated"], () => reset(removed, `${NEW} 3`));
    expect(hashOf(person)).toBe(`test:${NEW}`);
  });

  test("one person's link does not change other people", async () => {
    const [mine, theirs] = [await issue(), await issue(home.people.viewer)];
    expect((await reset(mine)).status).toBe(204);
    expect(hashOf(home.people.viewer)).toBe(`test:${PASSWORD}`);
    expect(await isSignedIn(home.people.viewer.as)).toBeTrue();
    expect((await reset(theirs)).status).toBe(204);
  });

  test("of two resets at once with one link, one succeeds", async () => {
    const token = await issue();
    const replies = await Promise.all([0, 1, 2].map((index) => reset(token, `${NEW} ${index}`)));
    expect(replies.map(({ status }) => status).sort()).toEqual([204, 401, 401]);
    expect(hashOf(person)).toBe(`test:${NEW} ${replies.findIndex(({ status }) => status === 204)}`);
  });

  test("an invalid body does not use up the link", async () => {
    const token = await issue();
    for (const [body, start] of [
      [{ token }, "new_password: is required"],
      [{ new_password: NEW }, "token: is required"],
      [{ token: "", new_password: NEW }, "token: "],
      [{ token: "x".repeat(257), new_password: NEW }, "token: "],
      [{ token, new_password: "short" }, "new_password: "],
      [{ token, new_password: NEW, user_id: person.id }, "user_id: unknown field"],
    ] as const) {
      await service.refuses(home, [400, "validation_failed", start], () =>
        service.post("/auth/password/reset", body, { key: null }),
      );
    }
    expect((await reset(token)).status).toBe(204);
  });

  test("a hundred useless links from an address, then 429; other addresses go on", async () => {
    const token = await issue();
    for (let count = 0; count < 100; count++) expect((await reset(`none-${count}`)).status).toBe(401);
    await service.refuses(home, [429, "rate_limit_exceeded"], () => reset(token));
    expect((await reset(token, NEW, service.from("203.0.113.8"))).status).toBe(204);
  });
});

describe("DELETE /auth/sessions", () => {
  const signOutEverywhere = (as: Credentials) =>
    service.send("DELETE", "/auth/sessions", undefined, { as, key: null });

  test("ends all sign-ins of the person, in both modes, and takes the cookie back", async () => {
    const others = [await home.signIn(person), await home.signIn(person, "sandbox")];
    const reply = await signOutEverywhere(person.as);
    expect([reply.status, reply.text]).toEqual([204, ""]);
    expect(reply.headers.get("set-cookie")).toMatch(/^service_session=;.*Max-Age=0/i);
    for (const as of [person.as, ...others]) {
      expect(await isSignedIn(as)).toBeFalse();
      await service.refuses(home, [401, "not_authenticated"], () =>
        service.post("/v1/warrants", service.body(), { as }),
      );
    }
    for (const { as } of [home.people.viewer, home.people.admin]) expect(await isSignedIn(as)).toBeTrue();
    // With the password one can sign in again.
    expect(await isSignedIn(await home.signIn(person))).toBeTrue();
    const before = service.allRows(home);
    expect((await signOutEverywhere(person.as)).code).toBe("not_authenticated");
    expect(service.allRows(home)).toEqual(before);
  });

  test("works only for the signed-in person, from the service's own pages", async () => {
    expect((await signOutEverywhere(home.live.as)).code).toBe("user_session_required");
    expect((await signOutEverywhere(NOBODY)).code).toBe("not_authenticated");
    const foreign = await service.send("DELETE", "/auth/sessions", undefined, {
      as: person.as,
      headers: { Origin: "https://evil.example" },
    });
    expect(foreign.code).toBe("not_authenticated");
    expect(await isSignedIn(person.as)).toBeTrue();
  });
});

describe("a request from a page of another origin is 401", () => {
  const hostile = { "Sec-Fetch-Site": "cross-site", Origin: "https://evil.example" };
  const body = { current_password: PASSWORD, new_password: NEW };
  test("POST /auth/password", async () => {
    await service.refuses(home, [401, "not_authenticated"], () =>
      service.post("/auth/password", body, { as: person.as, headers: hostile, key: null }),
    );
    expect(await signIn(PASSWORD)).toBe(201);
  });
});

describe("whom a reset link may be made for", () => {
  const ROLES: readonly Role[] = ["viewer", "operator", "admin", "owner"];
  const MAY: Readonly<Record<Role, readonly Role[]>> = {
    viewer: [],
    operator: [],
    admin: ["viewer", "operator"],
    owner: ["viewer", "operator", "admin"],
  };
  for (const by of ROLES) {
    test(`${by}: ${MAY[by].join(", ") || "nobody"}`, async () => {
      const authority = await signedIn(service.ctx, {
        kind: "person",
        userId: home.people[by].id,
        role: by,
        organisationId: home.id,
        mode: "live",
      });
      for (const role of ROLES) {
        const before = service.allRows(home);
        const made = await issuePasswordReset(service.ctx, authority, { user_id: home.people[role].id });
        if (MAY[by].includes(role)) expect(made).toMatchObject({ object: "password_reset" });
        else {
          expect(made).toMatchObject({ refused: "insufficient_role" });
          expect(service.allRows(home)).toEqual(before);
        }
      }
      const stranger = (await service.organisation()).people.viewer;
      expect(await issuePasswordReset(service.ctx, authority, { user_id: stranger.id })).toMatchObject({
        refused: MAY[by].length > 0 ? "user_not_found" : "insufficient_role",
      });
    });
  }
});
