import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import type { Credentials, Json, Reply } from "../support/client.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** Release, partial and refund by a person: who may, from which states, and the balance after each. */

let service: ShellService;
let hold: PromiseWithResolvers<void> | null = null;
let arrived: PromiseWithResolvers<void> | null = null;
beforeAll(() => {
  service = startTestShell();
  const { fetchEvidence } = service.ctx;
  Object.assign(service.ctx, {
    async fetchEvidence(...asked: Parameters<typeof fetchEvidence>) {
      arrived?.resolve();
      await hold?.promise;
      return fetchEvidence(...asked);
    },
  });
});
afterAll(() => service?.close());

type Verb = "release" | "partial" | "refund";
const VERBS: readonly Verb[] = ["release", "partial", "refund"];
const BODIES = { release: undefined, partial: { released_bps: 3_333 }, refund: undefined } as const;
const settle = (verb: Verb, id: string, as: Credentials, body: unknown = BODIES[verb]): Promise<Reply> =>
  service.post(`/v1/warrants/${id}/${verb}`, body, { as });
const source_url = "http://source.example/";
const FAILS = { spec: { clauses: [{ kind: "http.status", equals: 500 }] } };

async function escalated(home: TestOrganisation, overrides: object = {}): Promise<Json> {
  const { id } = await service.opened(home, { ...FAILS, ...overrides });
  const reply = await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: home.live.as });
  expect(reply.body.state).toBe("escalated");
  return reply.body;
}

async function disputed(home: TestOrganisation): Promise<Json> {
  const { id } = await escalated(home);
  const { as } = home.people.operator;
  const reply = await service.post(`/v1/console/escalations/${id}/resolve`, { decision: "dispute" }, { as });
  expect(reply.body.warrant.state).toBe("disputed");
  return reply.body.warrant;
}

async function frozen(home: TestOrganisation): Promise<Json> {
  const agent = await home.addAgent();
  const { id } = await service.opened(home, { agent_id: agent.id }, { as: agent.as });
  must(await setAgentStatus(service.ctx, MACHINE, { agent_id: agent.id, status: "killed" }));
  const read = await service.get(`/v1/warrants/${id}`, { as: agent.as });
  expect(read.body.state).toBe("frozen");
  return read.body;
}

describe("what each pays and returns", () => {
  const scenarios: readonly [
    verb: Verb,
    body: unknown,
    amount: string,
    state: string,
    bps: number | null,
    paid: bigint,
  ][] = [
    ["release", undefined, "101", "released", 10_000, 101n],
    ["release", {}, "101", "released", 10_000, 101n],
    ["partial", { released_bps: 1 }, "10000", "partially_released", 1, 1n],
    ["partial", { released_bps: 5_000 }, "101", "partially_released", 5_000, 50n],
    ["partial", { released_bps: 9_999 }, "101", "partially_released", 9_999, 100n],
    ["refund", undefined, "101", "refunded", null, 0n],
  ];
  for (const [verb, body, amount, state, bps, paid] of scenarios) {
    test(`${verb} ${JSON.stringify(body) ?? ""} of ${amount}`, async () => {
      const home = await service.organisation(200_000n);
      const opened = await service.opened(home, { amount });
      const reply = await settle(verb, opened.id, home.people.operator.as, body);
      expect(reply.status).toBe(200);
      expect(reply.headers.get("etag")).toBe('"2"');
      expect(reply.body).toEqual({
        ...opened,
        state,
        version: 2,
        released_bps: bps,
        settled_at: new Date(service.clock.now).toISOString(),
      });
      expect(service.balance(home)).toEqual({ available: 200_000n - paid, held: 0n, paid });
      const trace = await service.get(`/v1/warrants/${opened.id}/trace`, { as: home.live.as });
      expect(trace.body.data[1]).toMatchObject({
        from: "held",
        to: state,
        actor: { kind: "user", id: home.people.operator.id },
      });
    });
  }
});

/** A JSON object of which nothing is sent before `send` is called; `asked` resolves when the server reads it. */
function heldBack(body: object) {
  const asked = Promise.withResolvers<void>();
  const sent = Promise.withResolvers<void>();
  const stream = new ReadableStream({
    async pull(controller) {
      asked.resolve();
      await sent.promise;
      controller.enqueue(new TextEncoder().encode(JSON.stringify(body)));
      controller.close();
    },
  });
  return { stream, asked: asked.promise, send: () => sent.resolve() };
}

test("a decision stands on the version that it met: moved before its commit it is version_conflict", async () => {
  const home = await service.organisation();
  const { operator, admin } = home.people;
  for (const verb of VERBS) {
    const { id } = await service.opened(home);
    const body = heldBack(BODIES[verb] ?? {});
    const late = service.post(`/v1/warrants/${id}/${verb}`, body.stream, { as: operator.as });
    await body.asked;
    expect((await settle("refund", id, admin.as)).status).toBe(200);
    body.send();
    expect([(await late).status, (await late).code]).toEqual([409, "version_conflict"]);
    // After a new read it is judged by the state that is there now.
    expect((await settle(verb, id, operator.as)).code).toBe("illegal_transition");
  }
});

test("so does the decision on an escalation, whichever id names it", async () => {
  const home = await service.organisation();
  const { operator, admin } = home.people;
  for (const idOf of [({ id }: Json) => id, ({ warrant_id }: Json) => warrant_id]) {
    const { id } = await service.opened(home, { spec: { clauses: [{ kind: "http.status", equals: 500 }] } });
    await service.post(
      `/v1/warrants/${id}/verify`,
      { source_url: "http://s.example/" },
      { as: home.live.as },
    );
    const { body } = await service.get("/v1/console/escalations", { as: admin.as });
    const escalation = body.data.find(({ warrant_id }: Json) => warrant_id === id);
    const path = `/v1/console/escalations/${idOf(escalation)}/resolve`;
    const decision = heldBack({ decision: "release" });
    const late = service.post(path, decision.stream, { as: operator.as });
    await decision.asked;
    expect((await settle("refund", id, admin.as)).status).toBe(200);
    decision.send();
    expect((await late).code).toBe("version_conflict");
    expect((await service.post(path, { decision: "release" }, { as: operator.as })).code).toBe(
      "illegal_transition",
    );
  }
});

test("a person from operator up settles; a key and a viewer never do; for a stranger it is 404", async () => {
  const home = await service.organisation();
  const other = await service.organisation();
  const { operator, admin, owner, viewer } = home.people;
  for (const verb of VERBS) {
    const { id } = await service.opened(home, { agent_id: home.live.id });
    const refused: readonly [number, string, Credentials][] = [
      [403, "user_session_required", home.live.as],
      [403, "user_session_required", home.sandbox.as],
      [403, "user_session_required", { ...home.live.as, ...owner.as }],
      [403, "insufficient_role", viewer.as],
      [404, "warrant_not_found", other.people.owner.as],
      [404, "warrant_not_found", await home.signIn(owner, "sandbox")],
      [401, "not_authenticated", {}],
    ];
    for (const [status, code, as] of refused)
      await service.refuses(home, [status, code], () => settle(verb, id, as));
    for (const { as } of [operator, admin, owner]) {
      const opened = await service.opened(home);
      expect((await settle(verb, opened.id, as)).status).toBe(200);
    }
  }
});

describe("invalid released_bps", () => {
  const wrong: readonly unknown[] = [0, 10_000, -1, 10_001, 0.5, 5_000.5, "5000", null, true, [5_000], 1e15];
  for (const released_bps of wrong) {
    test(JSON.stringify(released_bps), async () => {
      const home = await service.organisation();
      const { id } = await service.opened(home);
      const refused = [400, "validation_failed", "released_bps: "] as const;
      await service.refuses(home, refused, () =>
        settle("partial", id, home.people.operator.as, { released_bps }),
      );
    });
  }

  test("missing, with another field, and on a route that takes none", async () => {
    const home = await service.organisation();
    const { as } = home.people.operator;
    const { id } = await service.opened(home);
    for (const [verb, body] of [
      ["partial", ""],
      ["partial", {}],
      ["partial", { released_bps: 5_000, note: "x" }],
      ["release", { released_bps: 5_000 }],
      ["refund", { amount: "5" }],
      ["refund", []],
      ["release", null],
    ] as const) {
      await service.refuses(home, [400, "validation_failed"], () => settle(verb, id, as, body));
    }
  });

  test("a share that comes to nothing is refused, and the smallest share that pays a unit is paid", async () => {
    const home = await service.organisation();
    const { as } = home.people.operator;
    const { id } = await service.opened(home, { amount: "3" });
    await service.refuses(home, [400, "validation_failed", "released_bps: 3333 "], () =>
      settle("partial", id, as, { released_bps: 3_333 }),
    );
    const reply = await settle("partial", id, as, { released_bps: 3_334 });
    expect([reply.body.released_bps, service.balance(home)]).toEqual([
      3_334,
      { available: 999_999n, held: 0n, paid: 1n },
    ]);
  });
});

describe("from which states", () => {
  const legal: Readonly<Record<string, (home: TestOrganisation) => Promise<Json>>> = {
    held: (home) => service.opened(home),
    escalated: (home) => escalated(home),
    frozen,
    disputed,
  };
  for (const [state, make] of Object.entries(legal)) {
    for (const verb of VERBS) {
      test(`${verb} from ${state}`, async () => {
        const home = await service.organisation();
        const { id, version } = await make(home);
        // A dispute is decided by another person, from admin up.
        const { as, id: userId } = state === "disputed" ? home.people.admin : home.people.operator;
        const reply = await settle(verb, id, as);
        expect([reply.status, reply.body.version]).toEqual([200, version + 1]);
        expect(service.balance(home).held).toBe(0n);
        const listed = await service.get("/v1/console/escalations", { as });
        const waited = state !== "held";
        expect(listed.body.data).toHaveLength(waited ? 1 : 0);
        if (waited) {
          const decision = verb === "partial" ? "partial_release" : verb;
          const released_bps = verb === "partial" ? 3_333 : null;
          expect(listed.body.data[0]).toMatchObject({
            status: "resolved",
            decision,
            released_bps,
            resolved_by: userId,
          });
        }
      });
    }
  }

  const settled: Readonly<Record<string, (home: TestOrganisation) => Promise<string>>> = {
    released: (home) => settledBy(home, "release"),
    partially_released: (home) => settledBy(home, "partial"),
    refunded: (home) => settledBy(home, "refund"),
    async expired(home) {
      const { id } = await service.opened(home, { deadline: service.timeIn(1_000) });
      service.clock.now += 1_000;
      await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: home.live.as });
      service.clock.now -= 1_000;
      return id;
    },
  };
  async function settledBy(home: TestOrganisation, verb: Verb): Promise<string> {
    const { id } = await service.opened(home);
    await settle(verb, id, home.people.operator.as);
    return id;
  }
  for (const [state, make] of Object.entries(settled)) {
    test(`nothing moves a warrant that is ${state}`, async () => {
      const home = await service.organisation();
      const id = await make(home);
      expect((await service.get(`/v1/warrants/${id}`, { as: home.live.as })).body.state).toBe(state);
      for (const { as } of [home.people.operator, home.people.owner]) {
        for (const verb of VERBS)
          await service.refuses(home, [409, "illegal_transition"], () => settle(verb, id, as));
        await service.refuses(home, [409, "illegal_transition"], () =>
          service.post(`/v1/warrants/${id}/verify`, { source_url }, { as }),
        );
      }
    });
  }

  test("nothing moves a warrant that is being verified", async () => {
    const home = await service.organisation();
    const { as } = home.people.owner;
    const { id } = await service.opened(home);
    [hold, arrived] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const running = service.post(`/v1/warrants/${id}/verify`, { source_url }, { as });
    await arrived.promise;
    for (const verb of VERBS)
      await service.refuses(home, [409, "illegal_transition"], () => settle(verb, id, as));
    hold.resolve();
    hold = null;
    expect((await running).body.state).toBe("released");
  });

  test("a warrant that waits for a person is not verified again", async () => {
    const home = await service.organisation();
    for (const make of [(at: TestOrganisation) => escalated(at), disputed, frozen]) {
      const { id } = await make(home);
      await service.refuses(home, [409, "illegal_transition"], () =>
        service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: home.people.owner.as }),
      );
    }
  });
});
