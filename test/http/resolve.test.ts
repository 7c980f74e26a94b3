import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sweepDeadlines } from "../../src/jobs/deadlines.ts";
import { createAgent, setAgentStatus, showAgent } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { createKey } from "../../src/services/admin/keys.ts";
import { createOrganisation } from "../../src/services/admin/organisations.ts";
import type { Credentials, Json, Reply } from "../support/client.ts";
import { noFault } from "../support/no-fault.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** Escalations: their list, a person's decision on one, and disputes, which a second person decides. */

let service: ShellService;
beforeAll(() => {
  service = startTestShell();
});
afterAll(() => service?.close());

const resolve = (id: string, body: unknown, as: Credentials, headers = {}): Promise<Reply> =>
  service.post(`/v1/console/escalations/${id}/resolve`, body, { as, headers });

/** An escalation, as the list shows it, of a warrant whose check failed. */
async function escalation(home: TestOrganisation, overrides: object = {}): Promise<Json> {
  const spec = { clauses: [{ kind: "http.status", equals: 500 }] };
  const { id } = await service.opened(home, { spec, ...overrides });
  const source_url = "http://source.example/";
  await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: home.live.as });
  const listed = await service.get("/v1/console/escalations", { as: home.people.viewer.as });
  return listed.body.data.find(({ warrant_id }: Json) => warrant_id === id);
}

test("an escalation has the fields of its record, and open ones come first", async () => {
  const home = await service.organisation();
  const first = await escalation(home);
  expect(first).toEqual({
    id: expect.stringMatching(/^esc_/),
    object: "escalation",
    warrant_id: expect.stringMatching(/^wrt_/),
    check_id: expect.stringMatching(/^chk_/),
    score: 0,
    reason_codes: ["status_mismatch"],
    status: "open",
    decision: null,
    released_bps: null,
    note: null,
    raised_by: null,
    resolved_by: null,
    created_at: new Date(service.clock.now).toISOString(),
    resolved_at: null,
  });
  const second = await escalation(home);
  const third = await escalation(home);
  await resolve(third.id, { decision: "refund" }, home.people.operator.as);
  await resolve(second.id, { decision: "dispute" }, home.people.operator.as);
  const listed = await service.get("/v1/console/escalations", { as: home.people.viewer.as });
  expect(listed.body).toEqual({ object: "list", data: expect.any(Array) });
  expect(listed.body.data.map(({ id, status }: Json) => [id, status])).toEqual([
    [first.id, "open"],
    [second.id, "disputed"],
    [third.id, "resolved"],
  ]);
});

describe("a decision, by the escalation's id and by the warrant's", () => {
  const decisions: readonly [body: Json, state: string, bps: number | null, paid: bigint][] = [
    [{ decision: "release" }, "released", 10_000, 100n],
    [
      { decision: "partial_release", released_bps: 2_550, note: "a quarter" },
      "partially_released",
      2_550,
      25n,
    ],
    [{ decision: "refund", note: "" }, "refunded", null, 0n],
  ];
  for (const [body, state, bps, paid] of decisions) {
    for (const by of ["id", "warrant_id"] as const) {
      test(`${body.decision} by ${by}`, async () => {
        const home = await service.organisation();
        const opened = await escalation(home);
        const reply = await resolve(opened[by], body, home.people.operator.as);
        const read = await service.get(`/v1/warrants/${opened.warrant_id}`, { as: home.live.as });
        expect(reply.status).toBe(200);
        expect(reply.headers.get("etag")).toBe('"4"');
        expect(reply.body).toEqual({
          ...opened,
          status: "resolved",
          decision: body.decision,
          released_bps: body.released_bps ?? null,
          note: body.note ?? null,
          resolved_by: home.people.operator.id,
          resolved_at: new Date(service.clock.now).toISOString(),
          warrant: read.body,
        });
        expect(read.body).toMatchObject({ state, version: 4, released_bps: bps });
        expect(service.balance(home)).toEqual({ available: 1_000_000n - paid, held: 0n, paid });
        for (const id of [opened.id, opened.warrant_id])
          await service.refuses(home, [409, "illegal_transition"], () =>
            resolve(id, body, home.people.owner.as),
          );
      });
    }
  }
});

test("is refused to those who may not, and for an unknown escalation", async () => {
  const home = await service.organisation();
  const other = await service.organisation();
  const { id, warrant_id } = await escalation(home);
  const held = await service.opened(home);
  const decision = { decision: "release" };
  const refused: readonly [status: number, code: string, id: string, as: Credentials][] = [
    [403, "user_session_required", id, home.live.as],
    [403, "insufficient_role", id, home.people.viewer.as],
    [401, "not_authenticated", id, {}],
    [404, "escalation_not_found", id, other.people.owner.as],
    [404, "escalation_not_found", warrant_id, other.people.owner.as],
    [404, "escalation_not_found", id, await home.signIn(home.people.owner, "sandbox")],
    [404, "escalation_not_found", "esc_none", home.people.owner.as],
    [404, "escalation_not_found", held.id, home.people.owner.as],
    [404, "escalation_not_found", "wrt_none", home.people.owner.as],
  ];
  for (const [status, code, target, as] of refused)
    await service.refuses(home, [status, code], () => resolve(target, decision, as));
});

test("an escalation of the other mode is 404, and the message says where it is, to nobody but its organisation", async () => {
  const [home, other] = [await service.organisation(), await service.organisation()];
  const { id } = await escalation(home);
  const decideAs = async (as: Credentials) => {
    const { status, code, body } = await resolve(id, { decision: "refund" }, as);
    return [status, code, body.error.message];
  };
  const operatorIn = (house: TestOrganisation) => house.signIn(house.people.operator, "sandbox");
  const notFound = "There is no such escalation.";
  expect(await decideAs(await operatorIn(home))).toEqual([
    ...[404, "escalation_not_found"],
    `${notFound} Your organisation has ${id} in live; this request is sandbox.`,
  ]);
  for (const as of [await operatorIn(other), other.people.operator.as])
    expect(await decideAs(as)).toEqual([404, "escalation_not_found", notFound]);
});

describe("invalid decisions", () => {
  const wrong: readonly [body: unknown, start: string][] = [
    [undefined, ""],
    [{}, "decision: "],
    [{ decision: "approve" }, "decision: must be one of release, partial_release, refund, dispute"],
    [{ decision: null }, "decision: "],
    [{ decision: "release", released_bps: 5_000 }, "released_bps: "],
    [{ decision: "refund", released_bps: null }, "released_bps: "],
    [{ decision: "partial_release" }, "released_bps: "],
    [{ decision: "partial_release", released_bps: 0 }, "released_bps: "],
    [{ decision: "partial_release", released_bps: 10_000 }, "released_bps: "],
    [{ decision: "partial_release", released_bps: "5000" }, "released_bps: "],
    [{ decision: "partial_release", released_bps: 99 }, "released_bps: 99 "],
    [{ decision: "release", note: 7 }, "note: "],
    [{ decision: "release", note: "x".repeat(2_001) }, "note: "],
    [{ decision: "release", reason: "x" }, "reason: unknown field"],
  ];
  for (const [body, start] of wrong) {
    test(JSON.stringify(body)?.slice(0, 60) ?? "nothing", async () => {
      const home = await service.organisation();
      const { id } = await escalation(home);
      await service.refuses(home, [400, "validation_failed", start], () =>
        resolve(id, body, home.people.operator.as),
      );
    });
  }
});

describe("a dispute", () => {
  test("is raised by one person and decided by a second, from admin up", async () => {
    const home = await service.organisation();
    const { admin, operator, owner } = home.people;
    const { id, warrant_id } = await escalation(home);
    const raised = await resolve(id, { decision: "dispute", note: "look at row 7" }, admin.as);
    expect(raised.body).toMatchObject({
      status: "disputed",
      decision: null,
      raised_by: admin.id,
      resolved_by: null,
      resolved_at: null,
      note: "look at row 7",
      warrant: { state: "disputed", version: 4, settled_at: null },
    });
    expect(service.balance(home).held).toBe(100n);

    const direct = (verb: string, as: Credentials) =>
      service.post(`/v1/warrants/${warrant_id}/${verb}`, undefined, { as });
    const refused: readonly [number, string, () => Promise<Reply>][] = [
      [403, "second_person_required", () => resolve(id, { decision: "release" }, admin.as)],
      [403, "second_person_required", () => resolve(warrant_id, { decision: "refund" }, admin.as)],
      [403, "second_person_required", () => direct("release", admin.as)],
      [403, "insufficient_role", () => resolve(id, { decision: "release" }, operator.as)],
      [403, "insufficient_role", () => direct("refund", operator.as)],
      [403, "user_session_required", () => direct("refund", home.live.as)],
      [409, "illegal_transition", () => resolve(id, { decision: "dispute" }, owner.as)],
    ];
    for (const [status, code, send] of refused) await service.refuses(home, [status, code], send);

    const decided = await resolve(id, { decision: "release" }, owner.as);
    expect(decided.body).toMatchObject({
      status: "resolved",
      raised_by: admin.id,
      resolved_by: owner.id,
      note: "look at row 7",
      warrant: { state: "released", version: 5 },
    });
  });

  test("is not raised where nobody else could decide it", async () => {
    const password = "correct horse battery staple";
    const { organisation } = must(
      await createOrganisation(service.ctx, {
        name: "Alone",
        owner_email: "alone@example.com",
        owner_password: password,
      }),
    );
    const [organisation_id, mode] = [organisation.id, "live"] as const;
    must(await fundBalance(service.ctx, MACHINE, { organisation_id, mode, amount: "100" }));
    const agent = must(await createAgent(service.ctx, MACHINE, { organisation_id, mode, name: "agent" }));
    const key = must(await createKey(service.ctx, MACHINE, { agent_id: agent.id }));
    const signedIn = await service.post("/auth/session", { email: "alone@example.com", password });
    const as = { Cookie: signedIn.headers.get("set-cookie")!.split(";")[0]! };
    const spec = { clauses: [{ kind: "http.status", equals: 500 }] };
    const opened = await service.post("/v1/warrants", service.body({ spec }), {
      as: { Authorization: `Bearer ${key.secret}` },
    });
    const path = `/v1/warrants/${opened.body.id}`;
    await service.post(`${path}/verify`, { source_url: "http://source.example/" }, { as });
    const dispute = await resolve(opened.body.id, { decision: "dispute" }, as);
    expect(dispute.code).toBe("second_person_required");
    expect((await service.get(path, { as })).body).toMatchObject({ state: "escalated", version: 3 });
    expect((await resolve(opened.body.id, { decision: "refund" }, as)).status).toBe(200);
  });

  test("is not raised about a warrant that is held or frozen", async () => {
    const home = await service.organisation();
    const agent = await home.addAgent();
    const { id } = await service.opened(home, { agent_id: agent.id }, { as: agent.as });
    must(await setAgentStatus(service.ctx, MACHINE, { agent_id: agent.id, status: "killed" }));
    await service.refuses(home, [409, "illegal_transition"], () =>
      resolve(id, { decision: "dispute" }, home.people.operator.as),
    );
    const refunded = await resolve(id, { decision: "refund" }, home.people.operator.as);
    expect(refunded.body).toMatchObject({
      check_id: null,
      score: null,
      reason_codes: ["agent_killed"],
      status: "resolved",
    });
  });
});

test("a frozen warrant thaws when its agent is active again, and its escalation with it", async () => {
  const home = await service.organisation();
  const { id } = await service.opened(home, { agent_id: home.live.id });
  for (const status of ["killed", "active"] as const)
    must(await setAgentStatus(service.ctx, MACHINE, { agent_id: home.live.id, status }));
  const read = await service.get(`/v1/warrants/${id}`, { as: home.live.as });
  expect(read.body).toMatchObject({ state: "held", version: 3 });
  const listed = await service.get("/v1/console/escalations", { as: home.people.viewer.as });
  expect(listed.body.data).toMatchObject([
    { warrant_id: id, status: "resolved", decision: null, resolved_by: null },
  ]);
  await service.refuses(home, [409, "illegal_transition"], () =>
    resolve(id, { decision: "refund" }, home.people.operator.as),
  );
});

test("what was frozen past its deadline stays frozen, for a person, and is no failure", async () => {
  const home = await service.organisation();
  const agent = await home.addAgent({ failure_budget: 1 });
  const opened = (seconds: number) =>
    service.opened(home, { agent_id: agent.id, deadline: service.timeIn(seconds * 1_000) }, { as: agent.as });
  const late = await opened(60);
  const inTime = await opened(600);
  const setTo = (status: "killed" | "active") =>
    setAgentStatus(service.ctx, MACHINE, { agent_id: agent.id, status });
  must(await setTo("killed"));
  service.clock.now += 60_000;
  must(await setTo("active"));
  await sweepDeadlines(service.ctx, noFault);
  const stateOf = async ({ id }: { id: string }) =>
    (await service.get(`/v1/warrants/${id}`, { as: agent.as })).body.state;
  expect([await stateOf(late), await stateOf(inTime)]).toEqual(["frozen", "held"]);
  const read = must(await showAgent(service.ctx, MACHINE, { agent_id: agent.id }));
  expect(read).toMatchObject({ status: "active", failure_count: 0 });
  expect((await resolve(late.id, { decision: "refund" }, home.people.operator.as)).status).toBe(200);
});

test("If-Match comes before the state: a stale version of a resolved escalation is version_conflict", async () => {
  const home = await service.organisation();
  const { id } = await escalation(home);
  const { as } = home.people.operator;
  await service.refuses(home, [409, "version_conflict"], () =>
    resolve(id, { decision: "refund" }, as, { "If-Match": '"2"' }),
  );
  expect((await resolve(id, { decision: "refund" }, as, { "If-Match": '"3"' })).status).toBe(200);
  await service.refuses(home, [409, "version_conflict"], () =>
    resolve(id, { decision: "refund" }, as, { "If-Match": '"3"' }),
  );
  await service.refuses(home, [409, "illegal_transition"], () =>
    resolve(id, { decision: "refund" }, as, { "If-Match": '"4"' }),
  );
});
