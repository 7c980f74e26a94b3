import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createPasskeyVerifier } from "../../src/platform/passkeys.ts";
import { createAuthenticator, type Twist } from "../support/authenticator.ts";
import { OPEN_PASSWORDS } from "../support/cheap-passwords.ts";
import type { Json, Reply } from "../support/client.ts";
import { PASSWORD, type Person, type TestOrganisation } from "../support/organisations.ts";
import {
  asserts,
  enrol,
  passkeysOf,
  registers,
  registrationOptions,
  removes,
  type TestPasskey,
} from "../support/passkeys.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** Passkeys: how one is registered, listed and removed, and how one signs in (docs/people, "Passkeys"). */

const HOUR_MS = 3_600_000;

let service: ShellService;
let home: TestOrganisation;
let person: Person;
beforeEach(async () => {
  service = startTestShell();
  home = await service.organisation();
  person = home.people.operator;
});
afterEach(() => service.close());

const auditEntriesOf = () => service.ctx.reader.auditEntries.list(home.id, null, 100);

describe("registration", () => {
  test("asks the browser for a verified person and a passkey that it can find again", async () => {
    const options = await registrationOptions(service, person);
    expect([options.status, options.body]).toEqual([
      200,
      {
        challenge: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
        rp: { id: "localhost", name: "Holdfast" },
        user: {
          id: Buffer.from(person.id).toString("base64url"),
          name: person.email,
          displayName: expect.any(String),
        },
        pubKeyCredParams: [-8, -7, -257].map((alg) => ({ type: "public-key", alg })),
        timeout: 120_000,
        attestation: "none",
        authenticatorSelection: {
          residentKey: "required",
          requireResidentKey: true,
          userVerification: "required",
        },
        excludeCredentials: [],
      },
    ]);
  });

  test("stores the passkey, adds an audit entry, and names it to the next browser", async () => {
    const authenticator = createAuthenticator();
    const reply = await registers(service, person, authenticator);
    const [credential] = authenticator.credentials;
    const passkey = {
      object: "passkey",
      id: credential!.id,
      name: "Laptop",
      counts_for_threshold: true,
      created_at: service.timeIn(0),
      last_used_at: null,
    };
    expect([reply.status, reply.body]).toEqual([201, passkey]);
    expect(await passkeysOf(service, person)).toEqual([passkey]);
    expect(await passkeysOf(service, home.people.admin)).toEqual([]);
    expect(auditEntriesOf()[0]).toMatchObject({
      actor: { kind: "user", id: person.id },
      action: "passkey.registered",
      subject: credential!.id,
      before: null,
      after: { ...passkey, user_id: person.id },
    });
    const { excludeCredentials } = (await registrationOptions(service, person)).body;
    expect(excludeCredentials).toEqual([
      { type: "public-key", id: credential!.id, transports: ["internal"] },
    ]);
  });

  test("a wrong password begins nothing, and a hundred of them are too many", async () => {
    const wrong = () => registrationOptions(service, person, "wrong");
    await service.refuses(home, [401, "not_authenticated"], wrong);
    for (let count = 1; count < 100; count++) expect((await wrong()).status).toBe(401);
    const reply = await service.refuses(home, [429, "rate_limit_exceeded"], () =>
      registrationOptions(service, person),
    );
    expect(reply.headers.get("retry-after")).toBe("900");
  });

  test("an API key and a stranger have no passkeys", async () => {
    for (const [as, refused] of [
      [home.live.as, [403, "user_session_required"]],
      [{}, [401, "not_authenticated"]],
    ] as const) {
      for (const [method, path] of [
        ["POST", "/auth/passkeys/options"],
        ["POST", "/auth/passkeys"],
        ["GET", "/auth/passkeys"],
        ["POST", "/auth/passkeys/x/remove"],
        ["POST", "/auth/passkey/challenge"],
        ["POST", "/auth/passkey/assertion"],
      ] as const) {
        await service.refuses(home, refused, () => service.send(method, path, undefined, { as }));
      }
    }
  });

  const TWISTS: readonly [name: string, twist: Twist, start: string][] = [
    ["without user verification", { userVerified: false }, "response: User verification was required"],
    [
      "from another origin",
      { origin: "https://evil.example" },
      "response: Unexpected registration response origin",
    ],
    ["for another host name", { rpId: "evil.example" }, "response: Unexpected RP ID hash"],
    ["that is a sign-in", { type: "webauthn.get" }, "response: Unexpected registration response type"],
  ];
  for (const [name, twist, start] of TWISTS) {
    test(`one ${name} is refused`, async () => {
      await service.refuses(home, [400, "validation_failed", start], () =>
        registers(service, person, createAuthenticator(), twist),
      );
      expect(await passkeysOf(service, person)).toEqual([]);
    });
  }

  test("a challenge is good for one answer, of the person who asked, within 120 seconds", async () => {
    const authenticator = createAuthenticator();
    const finish = (response: Json, { as }: Person): Promise<Reply> =>
      service.post("/auth/passkeys", { response }, { as, key: null });
    const gone = [400, "validation_failed", "response: answers no challenge"] as const;

    const others = authenticator.create((await registrationOptions(service, home.people.admin)).body);
    await service.refuses(home, gone, () => finish(others, person));
    const own = authenticator.create((await registrationOptions(service, person)).body);
    expect((await finish(own, person)).status).toBe(201);
    await service.refuses(home, gone, () => finish(own, person));
    const late = authenticator.create((await registrationOptions(service, person)).body);
    service.clock.now += 120_000;
    await service.refuses(home, gone, () => finish(late, person));
    const made = authenticator.create({
      ...(await registrationOptions(service, person)).body,
      challenge: "AAAA",
    });
    await service.refuses(home, gone, () => finish(made, person));
  });

  test("a passkey is one person's: whoever else sends it is refused", async () => {
    const { authenticator, credential } = await enrol(service, person);
    const elsewhere = await service.organisation();
    for (const [organisation, other] of [
      [home, home.people.admin],
      [elsewhere, elsewhere.people.owner],
    ] as const) {
      const options = (await registrationOptions(service, other)).body;
      const response = authenticator.create(options, { credential });
      await service.refuses(organisation, [409, "already_exists"], () =>
        service.post("/auth/passkeys", { response }, { as: other.as, key: null }),
      );
    }
    expect(await passkeysOf(service, person)).toHaveLength(1);
  });

  test("nobody has more than 32, however many registrations have begun", async () => {
    for (let count = 0; count < 31; count++) await enrol(service, person);
    const begun = [await registrationOptions(service, person), await registrationOptions(service, person)];
    const [last, tooMany] = begun.map(({ body }) => createAuthenticator().create(body));
    const finish = (response: Json) =>
      service.post("/auth/passkeys", { response }, { as: person.as, key: null });
    expect((await finish(last)).status).toBe(201);
    const full = [400, "validation_failed", "response: you have 32 passkeys already"] as const;
    await service.refuses(home, full, () => finish(tooMany));
    await service.refuses(home, full, () => registrationOptions(service, person));
    expect(await passkeysOf(service, person)).toHaveLength(32);
  });

  describe("finished twice at once, both verified before one is kept", () => {
    const real = createPasskeyVerifier();
    let other: ShellService;
    let house: TestOrganisation;
    let verified: PromiseWithResolvers<void>;
    let waiting: number;
    beforeEach(async () => {
      waiting = 0;
      verified = Promise.withResolvers();
      other = startTestShell({
        passkeys: {
          ...real,
          async verifyRegistration(...from) {
            const credential = await real.verifyRegistration(...from);
            if (waiting > 0 && --waiting === 0) verified.resolve();
            if (waiting > 0) await verified.promise;
            return credential;
          },
        },
      });
      house = await other.organisation();
    });
    afterEach(() => other.close());

    /** What becomes of the two answers. Either may come first. */
    async function finishBoth(answers: readonly (readonly [Person, Json])[]): Promise<readonly string[]> {
      waiting = answers.length;
      const replies = await Promise.all(
        answers.map(([{ as }, response]) => other.post("/auth/passkeys", { response }, { as, key: null })),
      );
      return replies.map(({ status, code }) => `${status} ${code}`).toSorted();
    }
    const kept = async (...people: readonly Person[]) =>
      (await Promise.all(people.map((one) => passkeysOf(other, one)))).flat().length;

    test("a passkey is one person's", async () => {
      const { operator, admin } = house.people;
      const authenticator = createAuthenticator();
      const first = authenticator.create((await registrationOptions(other, operator)).body);
      const [credential] = authenticator.credentials;
      const second = authenticator.create((await registrationOptions(other, admin)).body, {
        credential: credential!,
      });
      const outcomes = await finishBoth([
        [operator, first],
        [admin, second],
      ]);
      expect([outcomes, await kept(operator, admin)]).toEqual([["201 null", "409 already_exists"], 1]);
    });

    test("nobody has more than 32", async () => {
      const { operator } = house.people;
      for (let count = 0; count < 31; count++) await enrol(other, operator);
      const begun = [
        await registrationOptions(other, operator),
        await registrationOptions(other, operator),
      ] as const;
      const outcomes = await finishBoth(
        begun.map(({ body }) => [operator, createAuthenticator().create(body)] as const),
      );
      expect([outcomes, await kept(operator)]).toEqual([["201 null", "400 validation_failed"], 32]);
    });
  });

  test("an attestation with a certificate is refused: the list that it names could be anywhere", async () => {
    const options = (await registrationOptions(service, person)).body;
    const response = createAuthenticator().create(options, { attestation: "tpm" });
    await service.refuses(
      home,
      [400, "validation_failed", "response: The attestation format tpm is not accepted"],
      () => service.post("/auth/passkeys", { response }, { as: person.as, key: null }),
    );
  });

  test("where the base URL allows no passkeys, it says what to set", async () => {
    for (const [baseUrl, rpId] of [
      ["http://127.0.0.1:8080", null],
      ["https://192.0.2.1", null],
      ["https://[2001:db8::1]:8443", null],
      ["http://holdfast.example", null],
      ["https://holdfast.example:8443", "holdfast.example"],
      ["http://holdfast.localhost:9090", "holdfast.localhost"],
    ] as const) {
      const other = startTestShell({ baseUrl });
      try {
        const { people } = await other.organisation();
        const begun = await registrationOptions(other, people.owner);
        const signIn = await other.post("/auth/passkey/sign-in/options", {}, { key: null });
        if (rpId === null) {
          expect([begun.status, begun.code]).toEqual([403, "passkey_unavailable"]);
          expect(begun.body.error.message).toContain("HOLDFAST_BASE_URL");
          expect([signIn.status, signIn.code]).toEqual([403, "passkey_unavailable"]);
        } else {
          expect([begun.body.rp.id, signIn.body.rpId]).toEqual([rpId, rpId]);
          await enrol(other, people.owner, baseUrl);
        }
      } finally {
        await other.close();
      }
    }
  });

  test("within 24 hours of a password reset it does not count for the threshold, then or later", async () => {
    const { reader } = service.ctx;
    const user = reader.users.get(person.id)!;
    await service.ctx.store.execute({
      scope: { organisationId: home.id, mode: "live" },
      needs: { user: user.id },
      decide: ({ user: before }) => ({
        answer: null,
        change: { put: [{ kind: "user", before, row: { ...user, passwordResetAt: service.clock.now } }] },
      }),
    });
    const counts = async () =>
      (await passkeysOf(service, { as: await home.signIn(person) })).map(
        ({ counts_for_threshold }) => counts_for_threshold,
      );
    service.clock.now += 24 * HOUR_MS - 1;
    await enrol(service, { ...person, as: await home.signIn(person) });
    service.clock.now += 1;
    await enrol(service, { ...person, as: await home.signIn(person) });
    expect(await counts()).toEqual([false, true]);
    service.clock.now += 48 * HOUR_MS;
    expect(await counts()).toEqual([false, true]);
  });
});

test("a person who signs out everywhere while an answer is verified enrols and signs nothing", async () => {
  const real = createPasskeyVerifier();
  let meanwhile = async (): Promise<unknown> => null;
  const other = startTestShell({
    passkeys: {
      verifyRegistration: (...from) => meanwhile().then(() => real.verifyRegistration(...from)),
      verifyAssertion: (...from) => meanwhile().then(() => real.verifyAssertion(...from)),
    },
  });
  try {
    const organisation = await other.organisation();
    const { operator } = organisation.people;
    let { as } = operator;
    const passkey = await enrol(other, operator);
    const { id } = await other.opened(organisation);
    meanwhile = () => other.send("DELETE", "/auth/sessions", undefined, { as });
    const attempts = [
      (person: Person) => registers(other, person, createAuthenticator()),
      (person: Person) =>
        asserts(other, person, passkey, { warrant_id: id, version: 1, decision: "release" }),
    ];
    for (const attempt of attempts) {
      as = await organisation.signIn(operator);
      const before = other.allRows(organisation);
      const reply = await attempt({ ...operator, as });
      expect([reply.status, reply.code]).toEqual([401, "not_authenticated"]);
      // Signing out adds an audit entry; nothing else has changed.
      const after: object = { ...other.allRows(organisation), audit_entries: before.audit_entries };
      expect(after).toEqual(before);
    }
  } finally {
    await other.close();
  }
});

describe("removal", () => {
  test("takes one's own passkey away, and says so in the audit log", async () => {
    const { authenticator, credential } = await enrol(service, person);
    const removed = await removes(service, person, credential.id);
    expect([removed.status, removed.text]).toEqual([204, ""]);
    expect(await passkeysOf(service, person)).toEqual([]);
    expect(auditEntriesOf()[0]).toMatchObject({
      action: "passkey.removed",
      subject: credential.id,
      before: { id: credential.id, user_id: person.id },
      after: null,
    });
    const options = (await service.post("/auth/passkey/sign-in/options", {}, { key: null })).body;
    const response = authenticator.get(options, credential);
    const signIn = await service.post("/auth/passkey/sign-in", { response }, { key: null });
    expect([signIn.status, signIn.headers.get("set-cookie")]).toEqual([401, null]);
  });

  test("whose sign-in ends while the password is compared is refused, and the passkey stays", async () => {
    let meanwhile = async (): Promise<unknown> => null;
    const other = startTestShell({
      passwords: {
        ...OPEN_PASSWORDS,
        verify: (password, hash) => meanwhile().then(() => OPEN_PASSWORDS.verify(password, hash)),
      },
    });
    try {
      const { operator } = (await other.organisation()).people;
      const { credential } = await enrol(other, operator);
      meanwhile = () => other.send("DELETE", "/auth/session", undefined, { as: operator.as });
      const removed = await removes(other, operator, credential.id);
      expect([removed.status, removed.code]).toEqual([401, "not_authenticated"]);
      expect(removed.body.error.message).toStartWith("You were signed out");
      expect(other.ctx.reader.passkeys.get(credential.id)).not.toBeNull();
    } finally {
      await other.close();
    }
  });

  test("of somebody else's passkey, or of an unknown one, is 404", async () => {
    const { credential } = await enrol(service, person);
    const elsewhere = await service.organisation();
    for (const [id, { as }] of [
      [credential.id, home.people.owner],
      [credential.id, elsewhere.people.owner],
      ["none", person],
    ] as const) {
      await service.refuses(home, [404, "passkey_not_found"], () => removes(service, { as }, id));
    }
  });

  test("asks for the password again; wrong ones count as failed sign-ins", async () => {
    const { credential } = await enrol(service, person);
    await service.refuses(home, [400, "validation_failed", "body"], () =>
      service.post(`/auth/passkeys/${credential.id}/remove`, undefined, { as: person.as, key: null }),
    );
    const wrong = () => removes(service, person, credential.id, "wrong");
    await service.refuses(home, [401, "not_authenticated", "The password is wrong."], wrong);
    for (let count = 1; count < 100; count++) expect((await wrong()).status).toBe(401);
    const throttled = await service.refuses(home, [429, "rate_limit_exceeded"], () =>
      removes(service, person, credential.id),
    );
    expect(throttled.headers.get("retry-after")).not.toBeNull();
    expect(await passkeysOf(service, person)).toHaveLength(1);
  });
});

describe("sign-in", () => {
  let passkey: TestPasskey;
  beforeEach(async () => {
    passkey = await enrol(service, person);
  });
  const options = async (): Promise<Json> =>
    (await service.post("/auth/passkey/sign-in/options", {}, { key: null })).body;
  const send = (response: Json, more: object = {}): Promise<Reply> =>
    service.post("/auth/passkey/sign-in", { response, ...more }, { key: null });
  const signs = async (twist?: Twist): Promise<Reply> =>
    send(passkey.authenticator.get(await options(), passkey.credential, twist));
  /** Expects that nobody is signed in, and that the passkey is unchanged. */
  async function refused(attempt: () => Promise<Reply>): Promise<void> {
    const before = service.ctx.reader.passkeys.get(passkey.credential.id);
    const reply = await attempt();
    expect([reply.status, reply.code, reply.headers.get("set-cookie")]).toEqual([
      401,
      "not_authenticated",
      null,
    ]);
    expect(service.ctx.reader.passkeys.get(passkey.credential.id)).toEqual(before);
  }

  test("asks for whichever passkey the person chooses, and signs its owner in", async () => {
    expect(await options()).toEqual({
      challenge: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      rpId: "localhost",
      timeout: 120_000,
      userVerification: "required",
      allowCredentials: [],
    });
    service.clock.now += 1_000;
    const response = passkey.authenticator.get(await options(), passkey.credential);
    const reply = await send(response, { mode: "sandbox" });
    expect([reply.status, reply.body]).toMatchObject([
      201,
      { object: "auth_session", user: { id: person.id, role: "operator" }, mode: "sandbox" },
    ]);
    const cookie = reply.headers.get("set-cookie")!;
    expect(cookie).toMatch(/^service_session=[A-Za-z0-9_-]{43};.*HttpOnly/);
    const me = await service.get("/auth/session", { as: { Cookie: cookie.split(";")[0]! } });
    expect([me.status, me.body]).toEqual([200, reply.body]);
    const [{ last_used_at }] = (await passkeysOf(service, person)) as [Json];
    expect(last_used_at).toBe(service.timeIn(0));
  });

  const TWISTS: readonly [name: string, twist: Twist][] = [
    ["without user verification", { userVerified: false }],
    ["from another origin", { origin: "http://localhost:9090" }],
    ["for another host name", { rpId: "evil.example" }],
    ["that is a registration", { type: "webauthn.create" }],
    ["that names another person", { userHandle: Buffer.from("usr_other").toString("base64url") }],
    ["that names nobody", { userHandle: null }],
    ["whose counter stands still", { counter: 1 }],
    ["whose counter goes back", { counter: 0 }],
  ];
  for (const [name, twist] of TWISTS) {
    test(`one ${name} is refused`, () => refused(() => signs(twist)));
  }

  test("one that is not registered, or whose signature is another's, is refused", async () => {
    const stranger = await enrol(service, home.people.admin);
    const { response } = stranger.authenticator.get(await options(), stranger.credential);
    const { id } = passkey.credential;
    await refused(() =>
      send({
        id,
        rawId: id,
        type: "public-key",
        response: { ...response, userHandle: passkey.credential.userHandle },
      }),
    );
    await refused(async () =>
      send({ ...passkey.authenticator.get(await options(), passkey.credential), id: "none", rawId: "none" }),
    );
  });

  test("a challenge is good once, within 120 seconds, and for signing in only", async () => {
    const response = passkey.authenticator.get(await options(), passkey.credential);
    expect((await send(response)).status).toBe(201);
    await refused(() => send(response));
    const late = passkey.authenticator.get(await options(), passkey.credential);
    service.clock.now += 120_000;
    await refused(() => send(late));
    const registering = (await registrationOptions(service, person)).body;
    await refused(() =>
      send(passkey.authenticator.get({ ...registering, rpId: "localhost" }, passkey.credential)),
    );
  });

  test("of two answers at once with the same counter, one is refused as a copy", async () => {
    const answers = [await options(), await options()].map((asked) =>
      passkey.authenticator.get(asked, passkey.credential, { counter: 7 }),
    );
    const replies = await Promise.all(answers.map((response) => send(response)));
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 401]);
  });

  test("an authenticator without a counter signs in again and again", async () => {
    const authenticator = createAuthenticator();
    expect((await registers(service, home.people.viewer, authenticator, { counter: 0 })).status).toBe(201);
    for (let count = 0; count < 2; count++) {
      const [credential] = authenticator.credentials;
      const reply = await send(authenticator.get(await options(), credential!, { counter: 0 }));
      expect(reply.status).toBe(201);
    }
  });

  test("a hundred failures by passkey from an address are too many, also for a right one", async () => {
    await refused(() => signs({ userVerified: false }));
    for (let count = 1; count < 100; count++) {
      expect((await signs({ userVerified: false })).status).toBe(401);
    }
    const reply = await signs({ counter: 99 });
    expect([reply.status, reply.code, reply.headers.get("retry-after")]).toEqual([
      429,
      "rate_limit_exceeded",
      "900",
    ]);
    const password = await service.post("/auth/session", { email: person.email, password: PASSWORD });
    expect(password.status).toBe(201);
  });

  test("failures by password, of the account and of the address, keep nobody from a passkey", async () => {
    const wrong = { email: person.email, password: "wrong" };
    for (let count = 0; count < 100; count++) await service.post("/auth/session", wrong, { key: null });
    expect((await service.post("/auth/session", wrong, { key: null })).status).toBe(429);
    expect((await signs()).status).toBe(201);
  });

  test("somebody who was removed signs in no more", async () => {
    const user = service.ctx.reader.users.get(person.id)!;
    await service.ctx.store.execute({
      scope: { organisationId: home.id, mode: "live" },
      needs: { user: user.id },
      decide: ({ user: before }) => ({
        answer: null,
        change: { put: [{ kind: "user", before, row: { ...user, removedAt: service.clock.now } }] },
      }),
    });
    await refused(() => signs());
  });
});
