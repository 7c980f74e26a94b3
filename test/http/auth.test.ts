import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { revokeKey } from "../../src/services/admin/keys.ts";
import { createSignInThrottle } from "../../src/services/auth/throttle.ts";
import { type Credentials, NOBODY, type Reply } from "../support/client.ts";
import { must, PASSWORD, type Person, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestServer, startTestShell } from "../support/server.ts";
import { createTimers } from "../support/timers.ts";
import { until } from "../support/until.ts";

/** Sign-in, cookies and keys (docs/people, "Sign-in" and "Own account"). */

const HOUR_MS = 3_600_000;

let service: ShellService;
let home: TestOrganisation;
beforeEach(async () => {
  service = startTestShell();
  home = await service.organisation();
});
afterEach(() => service.close());

const signIn = (email: string, password: string, more: object = {}, from = service.from("203.0.113.1")) =>
  from.post("/auth/session", { email, password, ...more }, { key: null });
const me = (as: Credentials) => service.get("/auth/session", { as });

describe("signing in", () => {
  test("answers 201 with who it is, and a cookie that no script reads", async () => {
    const { operator } = home.people;
    for (const [mode, expected] of [
      [undefined, "live"],
      ["live", "live"],
      ["sandbox", "sandbox"],
    ] as const) {
      const reply = await signIn(operator.email, PASSWORD, mode && { mode });
      expect(reply.status).toBe(201);
      expect(reply.body).toEqual({
        object: "auth_session",
        user: { id: operator.id, email: operator.email, name: expect.any(String), role: "operator" },
        organisation: { id: home.id, name: home.name },
        mode: expected,
        expires_at: service.timeIn(12 * HOUR_MS),
        second_factor_owed: null,
      });
      const cookie = reply.headers.get("set-cookie")!;
      const [pair, ...attributes] = cookie.split(/; ?/);
      expect(pair).toMatch(/^service_session=[A-Za-z0-9_-]{43}$/);
      const names = attributes.map((attribute) => attribute.toLowerCase());
      expect(names).toContain("httponly");
      expect(names).toContain("samesite=lax");
      expect(names).toContain("path=/");
      expect(names).not.toContain("secure");
      expect(names.some((name) => name.startsWith("domain"))).toBeFalse();
      const session = await me({ Cookie: pair! });
      expect([session.status, session.body]).toEqual([200, reply.body]);
    }
  });

  test("is Secure where the service is reached by https", async () => {
    const secure = startTestShell({ baseUrl: "https://holdfast.example" });
    try {
      const { people } = await secure.organisation();
      const reply = await secure.post("/auth/session", { email: people.owner.email, password: PASSWORD });
      expect(reply.headers.get("set-cookie")).toMatch(/;\s*Secure/i);
    } finally {
      await secure.close();
    }
  });

  test("knows an e-mail whatever its case", async () => {
    expect((await signIn(home.people.owner.email.toUpperCase(), PASSWORD)).status).toBe(201);
  });

  test("answers a wrong password and an unknown e-mail alike", async () => {
    const { email } = home.people.owner;
    const replies = [
      await signIn(email, `${PASSWORD} `),
      await signIn(email, PASSWORD.toUpperCase()),
      await signIn("nobody@example.com", PASSWORD),
    ];
    for (const { status, code, body, headers } of replies) {
      expect([status, code, body.error.message]).toEqual([
        401,
        "not_authenticated",
        replies[0]!.body.error.message,
      ]);
      expect(headers.get("set-cookie")).toBeNull();
    }
  });

  test("refuses invalid bodies", async () => {
    const { email } = home.people.owner;
    for (const [body, start] of [
      [{ password: PASSWORD }, "email: is required"],
      [{ email }, "password: is required"],
      [{ email: "", password: PASSWORD }, "email: "],
      [{ email, password: "" }, "password: "],
      [{ email, password: "x".repeat(257) }, "password: "],
      [{ email: "x".repeat(255), password: PASSWORD }, "email: "],
      [{ email: `\ufeff${email}`, password: PASSWORD }, "email: must be an e-mail address, without control"],
      [{ email: [email], password: PASSWORD }, "email: "],
      [{ email, password: PASSWORD, mode: "test" }, "mode: must be one of sandbox, live"],
      [{ email, password: PASSWORD, role: "owner" }, "role: unknown field"],
      [[], "body: "],
    ] as const) {
      const reply = await service.post("/auth/session", body, { key: null });
      expect([reply.status, reply.code, reply.body.error.message.slice(0, start.length)]).toEqual([
        400,
        "validation_failed",
        start,
      ]);
    }
  });
});

describe("guessing", () => {
  let timers: ReturnType<typeof createTimers>;
  let guessed: ShellService;
  let owner: Person;
  beforeEach(async () => {
    timers = createTimers();
    const signInThrottle = createSignInThrottle({ after: timers.after, secret: "test" });
    guessed = startTestShell({ signInThrottle });
    ({ owner } = (await guessed.organisation()).people);
  });
  afterEach(() => guessed.close());

  const tries = (email: string, password: string, address = "203.0.113.1") =>
    guessed.from(address).post("/auth/session", { email, password }, { key: null });
  /** Ten failures, each from another address. */
  async function fail(email: string) {
    for (let host = 1; host <= 10; host++) {
      expect((await tries(email, "wrong", `198.51.100.${host}`)).status).toBe(401);
    }
  }
  /** How long a try waits, and what it is answered then. */
  async function waited(send: () => Promise<Reply>) {
    const sent = send();
    await until("the try waits", () => timers.waits().length > 0);
    const [ms] = timers.waits();
    timers.fire();
    return { ms, reply: await sent };
  }

  test("after ten failures for an account, from wherever, a try waits, and is then judged as ever", async () => {
    for (const email of [owner.email, "nobody@example.com"]) {
      await fail(email);
      const wrong = await waited(() => tries(email, "wrong"));
      expect([wrong.ms, wrong.reply.status, wrong.reply.code]).toEqual([1_000, 401, "not_authenticated"]);
      const next = await waited(() => tries(email, PASSWORD));
      expect([next.ms, next.reply.status]).toEqual([2_000, email === owner.email ? 201 : 401]);
    }
    guessed.clock.now += HOUR_MS;
    expect((await tries(owner.email, PASSWORD, "203.0.113.2")).status).toBe(201);
  });

  test("an account that does not exist is answered as one that does, in every step", async () => {
    const answers: object[][] = [];
    for (const email of [owner.email, "nobody@example.com"]) {
      await fail(email);
      const steps: object[] = [];
      for (let step = 0; step < 7; step++) {
        const { ms, reply } = await waited(() => tries(email, "wrong", "203.0.113.9"));
        steps.push({ ms, status: reply.status, body: { ...reply.body.error, request_id: "" } });
      }
      const held = [tries(email, "wrong"), tries(email, "wrong")];
      await until("two tries wait", () => timers.waits().length === 2);
      const full = await tries(email, "wrong");
      steps.push({
        status: full.status,
        after: full.headers.get("retry-after"),
        message: full.body.error.message,
      });
      timers.fire();
      await Promise.all(held);
      answers.push(steps);
    }
    expect(answers[0]).toEqual(answers[1]!);
    expect(answers[0]?.at(-1)).toMatchObject({ status: 429, after: "1" });
  });

  test("nobody who guesses elsewhere holds up a person where they have signed in before", async () => {
    expect((await tries(owner.email, PASSWORD, "2001:db8:1:2::1")).status).toBe(201);
    await fail(owner.email);
    expect((await tries(owner.email, PASSWORD, "2001:db8:1:2:ffff::9")).status).toBe(201);
    expect(timers.waits()).toEqual([]);
    const elsewhere = await waited(() => tries(owner.email, PASSWORD, "2001:db8:1:3::1"));
    expect(elsewhere.reply.status).toBe(201);
  });

  test("nor do they hold up who is signed in and is asked for the password again", async () => {
    await fail(owner.email);
    const body = { current_password: PASSWORD, new_password: "another long passphrase" };
    const from = guessed.from("203.0.113.3");
    expect((await from.post("/auth/password", body, { as: owner.as, key: null })).status).toBe(204);
    expect(timers.waits()).toEqual([]);
  });

  test("many guesses at once count too", async () => {
    const replies = Promise.all(Array.from({ length: 30 }, () => tries(owner.email, "wrong")));
    await until("two tries wait", () => timers.waits().length === 2);
    timers.fire();
    const statuses = (await replies).map(({ status }) => status);
    // Ten at once, and two that found a place to wait.
    expect(statuses.filter((status) => status === 401)).toHaveLength(12);
    expect(statuses.filter((status) => status === 429)).toHaveLength(18);
  });

  test("right passwords that arrive together do not count against each other", async () => {
    const replies = await Promise.all(Array.from({ length: 30 }, () => tries(owner.email, PASSWORD)));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([201]));
    expect((await tries(owner.email, "wrong")).status).toBe(401);
  });

  test("an e-mail with blanks around it is the same one, and is counted with it", async () => {
    const { email } = owner;
    expect((await tries(` ${email.toUpperCase()} `, PASSWORD, "203.0.113.4")).status).toBe(201);
    for (let count = 0; count < 10; count++)
      expect((await tries(`${" ".repeat(count)}${email}`, "wrong")).status).toBe(401);
    expect((await waited(() => tries(`${email}  `, PASSWORD))).reply.status).toBe(201);
  });

  test("a hundred failures for an address, whichever e-mails were tried", async () => {
    for (let count = 0; count < 100; count++)
      expect((await tries(`nobody-${count}@example.com`, "wrong")).status).toBe(401);
    const reply = await tries("another@example.com", "wrong");
    expect([reply.status, reply.code]).toEqual([429, "rate_limit_exceeded"]);
    expect([reply.headers.get("retry-after"), reply.headers.get("ratelimit-limit")]).toEqual(["900", "100"]);
    guessed.clock.now += 15 * 60_000;
    expect((await tries("another@example.com", "wrong")).status).toBe(401);
  });

  test("a sign-in that succeeds is not counted", async () => {
    for (let count = 0; count < 12; count++) expect((await tries(owner.email, PASSWORD)).status).toBe(201);
  });
});

describe("signing out, and running out", () => {
  test("DELETE answers 204, removes the cookie from the browser, and ends the sign-in", async () => {
    const { as } = home.people.operator;
    const other = await home.signIn(home.people.operator);
    const reply = await service.send("DELETE", "/auth/session", undefined, { as, key: null });
    expect([reply.status, reply.text]).toEqual([204, ""]);
    expect(reply.headers.get("set-cookie")).toMatch(/^service_session=;.*Max-Age=0/i);
    for (const method of ["GET", "DELETE"]) {
      const dead = await service.send(method, "/auth/session", undefined, { as });
      expect([method, dead.status, dead.code]).toEqual([method, 401, "not_authenticated"]);
    }
    await service.refuses(home, [401, "not_authenticated"], () =>
      service.post("/v1/warrants", service.body(), { as }),
    );
    expect((await me(other)).status).toBe(200);
  });

  test("without a cookie, or with a key, there is no sign-in to end", async () => {
    const nobody = await service.send("DELETE", "/auth/session", undefined, { as: NOBODY });
    const key = await service.send("DELETE", "/auth/session", undefined, { as: home.live.as });
    expect([nobody.code, key.code]).toEqual(["not_authenticated", "user_session_required"]);
    expect((await me(home.live.as)).code).toBe("user_session_required");
  });

  test("12 hours from the last use, and 7 days at most", async () => {
    const { as } = home.people.viewer;
    service.clock.now += 12 * HOUR_MS - 1;
    expect((await me(as)).status).toBe(200);
    service.clock.now += 12 * HOUR_MS;
    expect((await me(as)).code).toBe("not_authenticated");

    const used = await home.signIn(home.people.viewer);
    const signedInAt = service.clock.now;
    for (let hours = 0; hours < 7 * 24 - 11; hours += 11) {
      service.clock.now += 11 * HOUR_MS;
      const { status, body } = await me(used);
      expect([hours, status]).toEqual([hours, 200]);
      expect(Date.parse(body.expires_at)).toBeLessThanOrEqual(signedInAt + 7 * 24 * HOUR_MS);
    }
    service.clock.now = signedInAt + 7 * 24 * HOUR_MS;
    expect((await me(used)).code).toBe("not_authenticated");
  });
});

test("a use renews a sign-in once an hour at most, so that reads do not write", async () => {
  const { as } = home.people.viewer;
  const expiry = async () => (await me(as)).body.expires_at;
  const first = await expiry();
  service.clock.now += HOUR_MS - 1;
  expect(await expiry()).toBe(first);
  service.clock.now += 1;
  expect(await expiry()).toBe(service.timeIn(12 * HOUR_MS));
});

describe("a cookie on an unsafe method counts from our own pages only, or from a program", () => {
  const BASE = "http://localhost:8080";
  const scenarios: readonly [headers: Record<string, string>, honoured: boolean][] = [
    [{}, true],
    [{ Origin: BASE }, true],
    [{ "Sec-Fetch-Site": "same-origin" }, true],
    [{ "Sec-Fetch-Site": "same-origin", Origin: BASE }, true],
    [{ "Sec-Fetch-Site": "cross-site" }, false],
    [{ "Sec-Fetch-Site": "same-site" }, false],
    [{ "Sec-Fetch-Site": "nonsense" }, false],
    [{ Origin: "https://evil.example" }, false],
    [{ Origin: "null" }, false],
    [{ Origin: "http://localhost:8081" }, false],
    [{ Origin: "https://localhost:8080" }, false],
    [{ Origin: `${BASE}.evil.example` }, false],
    [{ Origin: BASE, "Sec-Fetch-Site": "cross-site" }, false],
    [{ Origin: "https://evil.example", "Sec-Fetch-Site": "same-origin" }, false],
  ];
  for (const [headers, honoured] of scenarios) {
    test(`${JSON.stringify(headers)}: ${honoured ? "honoured" : "401"}`, async () => {
      const { as } = home.people.owner;
      const open = () => service.post("/v1/warrants", service.body(), { as, headers });
      if (honoured) expect((await open()).status).toBe(201);
      else await service.refuses(home, [401, "not_authenticated"], open);
      // Reading is safe, and a key needs no page.
      expect((await service.get("/v1/warrants", { as, headers })).status).toBe(200);
      const key = await service.post("/v1/warrants", service.body(), { as: home.live.as, headers });
      expect(key.status).toBe(201);
    });
  }
});

describe("keys", () => {
  test("the bearer counts where a cookie is sent too, even if the bearer is bad", async () => {
    const { as: cookie } = home.people.owner;
    const { secret } = home.live;
    const bad: readonly string[] = [
      "Bearer nobody",
      "Bearer ",
      "Bearer",
      "Basic dXNlcjpwYXNz",
      secret,
      `Bearer ${secret} ${secret}`,
      `Bearer ${secret}x`,
      `Bearer ${secret.toLowerCase()}`,
      `Bearer ${secret.replace("hf_live_", "hf_test_")}`,
      `Bearer ${"x".repeat(5_000)}`,
      "",
    ];
    for (const authorization of bad) {
      const as = { ...cookie, Authorization: authorization };
      const reply = await service.get("/v1/warrants", { as });
      // A header without a value may be lost on the way.
      if (authorization !== "")
        expect([authorization.slice(0, 40), reply.code]).toEqual([
          authorization.slice(0, 40),
          "not_authenticated",
        ]);
    }
    const both = await service.get("/v1/console/agents", { as: { ...cookie, ...home.live.as } });
    expect(both.code).toBe("user_session_required");
  });

  test("each single mistyped character is recognised", async () => {
    const { secret } = home.live;
    for (let index = 0; index < secret.length; index++) {
      const other = secret[index] === "a" ? "b" : "a";
      const typed = secret.slice(0, index) + other + secret.slice(index + 1);
      const reply = await service.get("/v1/warrants", { as: { Authorization: `Bearer ${typed}` } });
      expect([index, reply.code]).toEqual([index, "not_authenticated"]);
    }
    expect((await service.get("/v1/warrants", { as: { Authorization: `bearer ${secret}` } })).status).toBe(
      200,
    );
  });

  test("a revoked key is 401 at once", async () => {
    const { as, keyId } = home.live;
    expect((await service.get("/v1/warrants", { as })).status).toBe(200);
    must(await revokeKey(service.ctx, MACHINE, { key_id: keyId }));
    expect((await service.get("/v1/warrants", { as })).code).toBe("not_authenticated");
    await service.refuses(home, [401, "not_authenticated"], () =>
      service.post("/v1/warrants", service.body(), { as }),
    );
  });

  test("their prefix says the mode, and their warrants are in it", async () => {
    expect(home.live.secret).toMatch(/^hf_live_[0-9A-Za-z]{36}$/);
    expect(home.sandbox.secret).toMatch(/^hf_test_[0-9A-Za-z]{36}$/);
    const { id } = await service.opened(home, {}, { as: home.sandbox.as });
    expect((await service.get(`/v1/warrants/${id}`, { as: home.live.as })).status).toBe(404);
    expect(service.balance(home).held).toBe(0n);
    expect(service.balance(home, "sandbox").held).toBe(100n);
  });
});

test("unknown and malformed cookies are 401", async () => {
  const cookies = [
    "service_session=",
    "service_session=x",
    `service_session=${"a".repeat(43)}`,
    "session=x",
    "; ;=;",
    "service_session=%00",
  ];
  for (const cookie of cookies) {
    const reply = await service.get("/v1/warrants", { as: { Cookie: cookie } });
    expect([cookie, reply.code]).toEqual([cookie, "not_authenticated"]);
  }
  const { as } = home.people.viewer;
  const among = await service.get("/v1/warrants", { as: { Cookie: `a=b; ${as.Cookie}; c=d` } });
  expect(among.status).toBe(200);
});

test("through the real server: a password is hashed also for an unknown e-mail", async () => {
  const server = await startTestServer();
  try {
    const timeOf = async (email: string): Promise<number> => {
      const startedAt = performance.now();
      const reply = await server.post("/auth/session", { email, password: "wrong" }, { key: null });
      expect(reply.status).toBe(401);
      return performance.now() - startedAt;
    };
    await timeOf("warm@example.com");
    // argon2 takes tens of milliseconds, where a look-up alone takes less than one.
    expect(await timeOf("nobody@example.com")).toBeGreaterThan(8);
  } finally {
    await server.close();
  }
});
