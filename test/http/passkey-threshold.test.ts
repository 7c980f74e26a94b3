import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { challengeOf } from "../../src/core/passkey.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import type { Twist } from "../support/authenticator.ts";
import type { Json, Reply } from "../support/client.ts";
import { must, type Person, type TestOrganisation } from "../support/organisations.ts";
import {
  approve,
  asserts,
  challenge,
  type Decision,
  enrol,
  passkeysOf,
  removes,
  setThreshold,
  type TestPasskey,
} from "../support/passkeys.ts";
import { type Refused, type ShellService, startTestShell } from "../support/server.ts";

/** The passkey threshold that is set at the moment of the move counts (docs/people, "The threshold"). */

const THRESHOLD = "1000";
const ABOVE = "1001";

let service: ShellService;
let home: TestOrganisation;
let person: Person;
beforeEach(async () => {
  service = startTestShell();
  home = await service.organisation();
  person = home.people.operator;
});
afterEach(() => service.close());

const open = (overrides: object, as = home.live.as): Promise<Reply> =>
  service.post("/v1/warrants", service.body(overrides), { as });
const source_url = "http://source.example/";
const verify = (id: string): Promise<Reply> =>
  service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: home.live.as });
/** A settlement, with a token where there is one. */
const settle = (
  id: string,
  verb: "release" | "partial" | "refund",
  { as, token, key, bps }: { as?: Person["as"]; token?: string; key?: string; bps?: number } = {},
): Promise<Reply> =>
  service.post(`/v1/warrants/${id}/${verb}`, bps === undefined ? undefined : { released_bps: bps }, {
    as: as ?? person.as,
    ...(key && { key }),
    headers: token === undefined ? {} : { "Service-Passkey": token },
  });
const resolve = (id: string, body: object, token?: string): Promise<Reply> =>
  service.post(`/v1/console/escalations/${id}/resolve`, body, {
    as: person.as,
    headers: token === undefined ? {} : { "Service-Passkey": token },
  });
/** A held warrant above the threshold. The threshold is set after the open. */
async function heldAbove(amount = ABOVE, threshold: string | null = THRESHOLD): Promise<Json> {
  await setThreshold(service, home, null);
  const warrant = await service.opened(home, { amount });
  await setThreshold(service, home, threshold);
  return warrant;
}
const approvalsOf = () => service.allRows(home).passkey_approvals as Json[];

describe("opening", () => {
  test("above the threshold, without a passkey in the organisation, an open holds nothing; at the threshold, or with it off, it opens", async () => {
    await setThreshold(service, home, THRESHOLD);
    const reply = await service.refuses(home, [403, "passkey_unavailable"], () => open({ amount: ABOVE }));
    expect(reply.body.error.message).toContain("above the passkey threshold 1000");
    expect((await open({ amount: THRESHOLD })).status).toBe(201);
    await setThreshold(service, home, null);
    expect((await open({ amount: ABOVE })).status).toBe(201);
    await setThreshold(service, home, "0");
    await service.refuses(home, [403, "passkey_unavailable"], () => open({ amount: "1" }));
  });

  test("it opens while anybody in the organisation has a passkey; another organisation's does not count", async () => {
    await setThreshold(service, home, THRESHOLD);
    const elsewhere = await service.organisation();
    await enrol(service, elsewhere.people.owner);
    await service.refuses(home, [403, "passkey_unavailable"], () => open({ amount: ABOVE }));
    const { credential } = await enrol(service, home.people.viewer);
    expect((await open({ amount: ABOVE })).status).toBe(201);
    await removes(service, home.people.viewer, credential.id);
    await service.refuses(home, [403, "passkey_unavailable"], () => open({ amount: ABOVE }));
  });

  test("a passkey that does not count does not help", async () => {
    await setThreshold(service, home, THRESHOLD);
    await enrolUncounted();
    await service.refuses(home, [403, "passkey_unavailable"], () => open({ amount: ABOVE }));
  });

  test("another asset is refused while one is set, passkey or not", async () => {
    const { id: organisation_id } = home;
    must(
      await fundBalance(service.ctx, MACHINE, { organisation_id, mode: "live", amount: "10", asset: "EUR" }),
    );
    await enrol(service, person);
    await setThreshold(service, home, "1000000");
    await service.refuses(
      home,
      [403, "passkey_unavailable", "The organisation's passkey threshold is in USDC"],
      () => open({ amount: "1", asset: "EUR" }),
    );
    await setThreshold(service, home, null);
    expect((await open({ amount: "1", asset: "EUR" })).status).toBe(201);
  });
});

/** A passkey of the operator that was enrolled right after a password reset. */
async function enrolUncounted(): Promise<TestPasskey> {
  await service.ctx.store.execute({
    scope: { organisationId: home.id, mode: "live" },
    needs: { user: person.id },
    decide: ({ user }, now) => ({
      answer: null,
      change: { put: [{ kind: "user", before: user, row: { ...user!, passwordResetAt: now } }] },
    }),
  });
  return enrol(service, person);
}

describe("a check", () => {
  const partial = { bands: [{ minScore: 0, outcome: "partial_release", releasedBps: 100 }] };
  const refund = { bands: [{ minScore: 0, outcome: "refund" }] };

  for (const [name, rules, amount, state, codes] of [
    ["release above it escalates", null, ABOVE, "escalated", ["passkey_required"]],
    [
      "partial release above it escalates, though the share is below",
      partial,
      ABOVE,
      "escalated",
      ["passkey_required"],
    ],
    ["release at it is released", null, THRESHOLD, "released", null],
    ["refund above it is refunded", refund, ABOVE, "refunded", null],
  ] as const) {
    test(`whose policy says ${name}`, async () => {
      if (rules) await home.addPolicy(rules);
      const { id } = await heldAbove(amount);
      const reply = await verify(id);
      expect([reply.status, reply.body.state]).toEqual([200, state]);
      const { data } = (await service.get("/v1/console/escalations", { as: person.as })).body;
      expect(data.map(({ reason_codes }: Json) => reason_codes)).toEqual(codes === null ? [] : [codes]);
      if (codes) expect(service.balance(home)).toMatchObject({ held: BigInt(amount), paid: 0n });
    });
  }

  test("that passed still counts as a clean pass, not as a failure", async () => {
    const agent = home.live.id;
    await setThreshold(service, home, null);
    const { id } = await service.opened(home, { amount: ABOVE, agent_id: agent });
    await setThreshold(service, home, THRESHOLD);
    await verify(id);
    const { data } = (await service.get("/v1/console/agents", { as: person.as })).body;
    expect(data.find((each: Json) => each.id === agent).failure_count).toBe(0);
    const [check] = service.allRows(home).checks as Json[];
    expect([Boolean(check.passed), check.outcome]).toEqual([true, "escalate"]);
  });
});

describe("a person's settlement above it", () => {
  let passkey: TestPasskey;
  beforeEach(async () => {
    passkey = await enrol(service, person);
  });
  const release = ({ id, version }: Json): Decision => ({ warrant_id: id, version, decision: "release" });

  test("needs a signature, and uses it up in the same commit", async () => {
    const warrant = await heldAbove();
    const reply = await service.refuses(home, [403, "passkey_required"], () => settle(warrant.id, "release"));
    expect(reply.body.error.message).toContain("POST /auth/passkey/challenge");
    const asserted = await asserts(service, person, passkey, release(warrant));
    expect([asserted.status, asserted.body]).toEqual([
      201,
      {
        object: "passkey_approval",
        token: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
        expires_at: service.timeIn(120_000),
      },
    ]);
    const { token } = asserted.body;
    expect(Object.values(approvalsOf()[0]).map(String)).not.toContainEqual(expect.stringContaining(token));
    const released = await settle(warrant.id, "release", { token });
    expect([released.status, released.body.state]).toEqual([200, "released"]);
    expect(service.balance(home).paid).toBe(BigInt(ABOVE));
    expect(approvalsOf().map(({ used_at }) => used_at)).toEqual([BigInt(service.clock.now)]);
  });

  test("a share, a refund and a resolution need a token too, each a token of its own", async () => {
    const shared = await heldAbove();
    const share: Decision = { ...release(shared), decision: "partial_release", released_bps: 2_500 };
    const shareToken = await approve(service, person, passkey, share);
    await service.refuses(home, [403, "passkey_required"], () =>
      settle(shared.id, "partial", { bps: 2_500 }),
    );
    const paid = await settle(shared.id, "partial", { bps: 2_500, token: shareToken });
    expect([paid.status, paid.body.released_bps]).toEqual([200, 2_500]);

    const refunded = await heldAbove();
    const refundToken = await approve(service, person, passkey, { ...release(refunded), decision: "refund" });
    await service.refuses(home, [403, "passkey_required"], () => settle(refunded.id, "refund"));
    expect((await settle(refunded.id, "refund", { token: refundToken })).body.state).toBe("refunded");

    const { id } = await heldAbove();
    const escalated = (await verify(id)).body;
    await service.refuses(home, [403, "passkey_required"], () => resolve(id, { decision: "release" }));
    const token = await approve(service, person, passkey, release(escalated));
    const resolved = await resolve(id, { decision: "release" }, token);
    expect([resolved.status, resolved.body.status, resolved.body.warrant.state]).toEqual([
      200,
      "resolved",
      "released",
    ]);
  });

  test("raising a dispute settles nothing and needs no token; deciding it needs one", async () => {
    const { id } = await heldAbove();
    await verify(id);
    const disputed = (await resolve(id, { decision: "dispute" })).body.warrant;
    expect(disputed.state).toBe("disputed");
    const { admin } = home.people;
    await service.refuses(home, [403, "passkey_unavailable"], () => settle(id, "release", { as: admin.as }));
    const token = await approve(service, admin, await enrol(service, admin), release(disputed));
    expect((await settle(id, "release", { as: admin.as, token })).body.state).toBe("released");
  });

  test("at the threshold, or with it off, no token is needed; one that is sent is not used", async () => {
    const warrant = await heldAbove();
    const token = await approve(service, person, passkey, release(warrant));
    await setThreshold(service, home, ABOVE);
    expect((await settle(warrant.id, "release", { token })).status).toBe(200);
    expect(approvalsOf().map(({ used_at }) => used_at)).toEqual([null]);
    const other = await heldAbove(ABOVE, null);
    expect((await settle(other.id, "refund")).status).toBe(200);
  });

  test("of another asset always needs one", async () => {
    const { id: organisation_id } = home;
    must(
      await fundBalance(service.ctx, MACHINE, { organisation_id, mode: "live", amount: "10", asset: "EUR" }),
    );
    const warrant = await service.opened(home, { amount: "1", asset: "EUR" });
    await setThreshold(service, home, THRESHOLD);
    await service.refuses(home, [403, "passkey_required"], () => settle(warrant.id, "release"));
    const token = await approve(service, person, passkey, release(warrant));
    expect((await settle(warrant.id, "release", { token })).status).toBe(200);
  });

  test("a token is good for this decision only, and a refusal does not use it up", async () => {
    const warrant = await heldAbove();
    const other = await heldAbove();
    const half: Decision = { ...release(warrant), decision: "partial_release", released_bps: 5_000 };
    const released = await approve(service, person, passkey, release(warrant));
    const shared = await approve(service, person, passkey, half);
    const { admin } = home.people;
    await enrol(service, admin);
    const required = (start: string): Refused => [
      403,
      "passkey_required",
      `The warrant is above the passkey threshold 1000: ${start}`,
    ];
    for (const [expected, send] of [
      [required("it needs a fresh"), () => settle(warrant.id, "release", { token: "none" })],
      [required("it needs a fresh"), () => settle(warrant.id, "release", { token: released, as: admin.as })],
      [
        required("this signature is for another warrant"),
        () => settle(other.id, "release", { token: released }),
      ],
      [
        required("this signature is for another decision"),
        () => settle(warrant.id, "refund", { token: released }),
      ],
      [
        required("this signature is for another decision"),
        () => settle(warrant.id, "partial", { token: released, bps: 5_000 }),
      ],
      [
        required("this signature is for another share"),
        () => settle(warrant.id, "partial", { token: shared, bps: 5_001 }),
      ],
      [
        required("this signature is for another decision"),
        () => settle(warrant.id, "release", { token: shared }),
      ],
    ] as const) {
      await service.refuses(home, expected, send);
    }
    expect((await settle(warrant.id, "partial", { token: shared, bps: 5_000 })).status).toBe(200);
    // The warrant is settled. The state is checked before the passkey.
    await service.refuses(home, [409, "illegal_transition"], () =>
      settle(warrant.id, "release", { token: released }),
    );
  });

  test("a token is for one version of the warrant: a check in between makes it void", async () => {
    await home.addPolicy({ bands: [{ minScore: 0, outcome: "escalate" }] });
    const warrant = await heldAbove();
    const token = await approve(service, person, passkey, release(warrant));
    const { version } = (await verify(warrant.id)).body;
    expect(version).toBe(3);
    await service.refuses(home, [403, "passkey_required"], () => settle(warrant.id, "release", { token }));
    const fresh = await approve(service, person, passkey, { ...release(warrant), version });
    expect((await settle(warrant.id, "release", { token: fresh })).status).toBe(200);
  });

  test("a token is good for 120 seconds, and once", async () => {
    const warrant = await heldAbove();
    const late = await approve(service, person, passkey, release(warrant));
    service.clock.now += 120_000;
    const reply = await service.refuses(home, [403, "passkey_required"], () =>
      settle(warrant.id, "release", { token: late }),
    );
    expect(reply.body.error.message).toContain("has expired");
    const token = await approve(service, person, passkey, release(warrant));
    service.clock.now += 119_999;
    expect((await settle(warrant.id, "release", { token })).status).toBe(200);
    const second = await heldAbove();
    await service.refuses(home, [403, "passkey_required"], () => settle(second.id, "release", { token }));
  });

  test("a replay needs no new token, and moves nothing again", async () => {
    const warrant = await heldAbove();
    const token = await approve(service, person, passkey, release(warrant));
    const first = await settle(warrant.id, "release", { token, key: "once" });
    const before = service.allRows(home);
    for (const more of [{ token }, {}]) {
      const again = await settle(warrant.id, "release", { ...more, key: "once" });
      expect([again.status, again.text, again.headers.get("idempotent-replayed")]).toEqual([
        200,
        first.text,
        "true",
      ]);
    }
    expect(service.allRows(home)).toEqual(before);
  });

  test("of two settlements at once with one token, one moves", async () => {
    const warrant = await heldAbove();
    const token = await approve(service, person, passkey, release(warrant));
    const replies = await Promise.all([1, 2, 3].map(() => settle(warrant.id, "release", { token })));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    expect(service.balance(home).paid).toBe(BigInt(ABOVE));
  });

  test("a signature is void once its passkey is removed", async () => {
    const warrant = await heldAbove();
    await enrol(service, person);
    const token = await approve(service, person, passkey, release(warrant));
    await removes(service, person, passkey.credential.id);
    const reply = await service.refuses(home, [403, "passkey_required"], () =>
      settle(warrant.id, "release", { token }),
    );
    expect(reply.body.error.message).toContain("was removed");
  });

  test("a person with no passkey that counts is refused, at the settlement and at the challenge", async () => {
    const warrant = await heldAbove();
    const { admin } = home.people;
    const unavailable = [403, "passkey_unavailable"] as const;
    await service.refuses(home, unavailable, () => settle(warrant.id, "release", { as: admin.as }));
    await service.refuses(home, unavailable, () => challenge(service, admin, release(warrant)));
    await removes(service, person, passkey.credential.id);
    const uncounted = await enrolUncounted();
    await service.refuses(home, unavailable, () => settle(warrant.id, "release"));
    await service.refuses(home, unavailable, () => challenge(service, person, release(warrant)));
    const counted = await enrolAfterADay();
    const asked = (await challenge(service, person, release(warrant))).body;
    expect(asked.allowCredentials.map(({ id }: Json) => id)).toEqual([counted.credential.id]);
    const response = uncounted.authenticator.get(asked, uncounted.credential);
    await service.refuses(home, [404, "passkey_not_found"], () =>
      service.post("/auth/passkey/assertion", { response }, { as: person.as }),
    );
  });

  async function enrolAfterADay(): Promise<TestPasskey> {
    service.clock.now += 24 * 3_600_000;
    person = { ...person, as: await home.signIn(person) };
    return enrol(service, person);
  }
});

describe("the signature", () => {
  let passkey: TestPasskey;
  let warrant: Json;
  let decision: Decision;
  beforeEach(async () => {
    passkey = await enrol(service, person);
    warrant = await heldAbove();
    decision = { warrant_id: warrant.id, version: 1, decision: "release" };
  });
  const send = (response: Json, { as }: Pick<Person, "as"> = person): Promise<Reply> =>
    service.post("/auth/passkey/assertion", { response }, { as });

  const TWISTS: readonly [name: string, twist: Twist, start: string][] = [
    ["without user verification", { userVerified: false }, "response: User verification required"],
    [
      "from another origin",
      { origin: "https://evil.example" },
      "response: Unexpected authentication response origin",
    ],
    ["for another host name", { rpId: "evil.example" }, "response: Unexpected RP ID hash"],
    [
      "that is a registration",
      { type: "webauthn.create" },
      "response: Unexpected authentication response type",
    ],
    ["whose counter stands still", { counter: 1 }, "response: Response counter value"],
    ["whose counter goes back", { counter: 0 }, "response: Response counter value"],
  ];
  for (const [name, twist, start] of TWISTS) {
    test(`one ${name} gives no token`, async () => {
      await service.refuses(home, [400, "validation_failed", start], () =>
        asserts(service, person, passkey, decision, twist),
      );
    });
  }

  test("a counter that has signed once signs no more, and when it signed is kept", async () => {
    service.clock.now += 1_000;
    expect((await asserts(service, person, passkey, decision, { counter: 7 })).status).toBe(201);
    expect(await passkeysOf(service, person)).toMatchObject([{ last_used_at: service.timeIn(0) }]);
    await service.refuses(home, [400, "validation_failed", "response: Response counter value"], () =>
      asserts(service, person, passkey, decision, { counter: 7 }),
    );
    expect((await asserts(service, person, passkey, decision, { counter: 8 })).status).toBe(201);
  });

  test("of two answers at once with the same counter, one comes from a copy and gives no token", async () => {
    const asked = [
      await challenge(service, person, decision),
      await challenge(service, person, { ...decision, decision: "refund" }),
    ];
    const answers = asked.map(({ body }) =>
      passkey.authenticator.get(body, passkey.credential, { counter: 7 }),
    );
    const replies = await Promise.all(answers.map((response) => send(response)));
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 400]);
    const refused = replies.find(({ status }) => status === 400);
    expect(refused?.body.error.message).toStartWith("response: its signature counter did not rise");
    expect(approvalsOf()).toHaveLength(1);
  });

  test("a challenge is good for one answer, of the person who asked, within 120 seconds", async () => {
    const gone: Refused = [400, "validation_failed", "response: answers no challenge"];
    const { admin } = home.people;
    const adminPasskey = await enrol(service, admin);
    const ask = async () => (await challenge(service, person, decision)).body;

    const first = passkey.authenticator.get(await ask(), passkey.credential);
    expect((await send(first)).status).toBe(201);
    await service.refuses(home, gone, () => send(first));
    const late = passkey.authenticator.get(await ask(), passkey.credential);
    service.clock.now += 120_000;
    await service.refuses(home, gone, () => send(late));
    const others = adminPasskey.authenticator.get(await ask(), adminPasskey.credential);
    await service.refuses(home, gone, () => send(others, admin));
    const signIn = (await service.post("/auth/passkey/sign-in/options", {})).body;
    const signedIn = passkey.authenticator.get(signIn, passkey.credential);
    await service.refuses(home, gone, () => send(signedIn));
  });

  test("of somebody else's passkey gives no token, and a stolen signature neither", async () => {
    const adminPasskey = await enrol(service, home.people.admin);
    const asked = (await challenge(service, person, decision)).body;
    const foreign = adminPasskey.authenticator.get(asked, adminPasskey.credential);
    await service.refuses(home, [404, "passkey_not_found"], () => send(foreign));
    const again = (await challenge(service, person, decision)).body;
    const { response } = adminPasskey.authenticator.get(again, adminPasskey.credential, { counter: 9 });
    const { id } = passkey.credential;
    await service.refuses(home, [400, "validation_failed", "response: The signature does not verify"], () =>
      send({ id, rawId: id, type: "public-key", response }),
    );
  });

  test("is over who, what, which version and which share, and can be checked again from what is kept", async () => {
    const asked = (
      await challenge(service, person, { ...decision, decision: "partial_release", released_bps: 1 })
    ).body;
    expect((await send(passkey.authenticator.get(asked, passkey.credential))).status).toBe(201);
    const [approval] = approvalsOf();
    const kept = JSON.parse(approval.assertion);
    expect(kept.statement).toEqual({
      type: "holdfast.decision",
      user_id: person.id,
      warrant_id: warrant.id,
      version: 1,
      decision: "partial_release",
      released_bps: 1,
      nonce: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
    });
    const { challenge: signed } = JSON.parse(Buffer.from(kept.client_data_json, "base64url").toString());
    expect([signed, challengeOf(kept.statement)]).toEqual([asked.challenge, asked.challenge]);
    const verified = await service.ctx.passkeys.verifyAssertion(
      {
        id: kept.credential_id,
        rawId: kept.credential_id,
        type: "public-key",
        response: {
          clientDataJSON: kept.client_data_json,
          authenticatorData: kept.authenticator_data,
          signature: kept.signature,
        },
      },
      signed,
      { id: "localhost", origin: "http://localhost:8080" },
      { id: kept.credential_id, publicKey: kept.public_key, counter: 0 },
    );
    expect(verified).toEqual({ counter: 2 });
  });

  test("a decision that cannot be signed is refused before a browser is asked", async () => {
    const elsewhere = await service.organisation();
    const foreign = await service.opened(elsewhere);
    const sandbox = { as: await home.signIn(person, "sandbox") };
    const invalid = (start: string): Refused => [400, "validation_failed", start];
    for (const [as, asked, expected] of [
      [home.people.viewer, decision, [403, "insufficient_role"]],
      [person, { ...decision, warrant_id: foreign.id }, [404, "warrant_not_found"]],
      [sandbox, decision, [404, "warrant_not_found"]],
      [person, { ...decision, version: 2 }, [409, "version_conflict"]],
      [person, { ...decision, version: 0 }, invalid("version: must be")],
      [person, { ...decision, decision: "dispute" }, invalid("decision: must be one of")],
      [person, { ...decision, decision: "partial_release" }, invalid("released_bps: goes with")],
      [person, { ...decision, released_bps: 5 }, invalid("released_bps: goes with")],
      [person, { ...decision, ...{ note: "x" } }, invalid("note: unknown field")],
    ] as const) {
      await service.refuses(home, expected, () => challenge(service, as, asked));
    }
  });
});
