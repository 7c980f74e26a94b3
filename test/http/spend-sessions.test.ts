import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createSession, revokeSession, type SessionInput } from "../../src/services/admin/sessions.ts";
import { freshKey, type Json, type Reply } from "../support/client.ts";
import { must, type TestAgent, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** An agent's budget: its refusals, its bounds, what is given back and what counts as a failure (docs/sessions, "Spend sessions"). */

let service: ShellService;
beforeAll(() => {
  service = startTestShell();
});
afterAll(() => service?.close());

const HOUR_MS = 3_600_000;
const MAX = 2n ** 63n - 1n;
/** The source answers 200. */
const PASSES = { clauses: [{ kind: "http.status", equals: 200 }] };
const FAILS = { clauses: [{ kind: "http.status", equals: 500 }] };
const HALF = { clauses: [...PASSES.clauses, ...FAILS.clauses] };
const source_url = "http://source.example/";

const createFor = (agent: TestAgent, input: Partial<SessionInput> = {}) =>
  createSession(service.ctx, MACHINE, { agent_id: agent.id, amount_ceiling: "1000", ...input }).then(must);

const bodyOf = (agent: TestAgent | null, overrides: object = {}): object =>
  service.body({
    deadline: service.timeIn(HOUR_MS),
    ...(agent && { agent_id: agent.id }),
    ...overrides,
  });

const verify = (agent: TestAgent, { id }: Json): Promise<Reply> =>
  service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: agent.as });

/** The agent as the console shows it. */
async function shown(home: TestOrganisation, agent: TestAgent): Promise<Json> {
  const { body } = await service.get("/v1/console/agents", { as: home.people.viewer.as });
  return body.data.find(({ id }: Json) => id === agent.id);
}

/** The limits of a session, in the order in which an open is checked against them. */
const LIMITS = ["revoked", "expired", "failures", "count", "ceiling"] as const;
type Limit = (typeof LIMITS)[number];

const REFUSALS: Readonly<Record<Limit, readonly [code: string, message: RegExp]>> = {
  revoked: ["session_revoked", /^The spend session ses_\w+ was revoked at 20\d\d-.*Z\.$/],
  expired: ["session_expired", /^The spend session ses_\w+ expired at 20\d\d-.*Z\.$/],
  failures: [
    "session_failure_budget_spent",
    /^The spend session ses_\w+ has had 1 failures in a row; its budget is 1\.$/,
  ],
  count: ["session_warrant_limit_reached", /^The spend session ses_\w+ has opened 1 of its 1 warrants\.$/],
  ceiling: [
    "session_ceiling_exceeded",
    /^The spend session ses_\w+ has a ceiling of 100, 100 is spent, and 1 was requested\.$/,
  ],
};

/** An agent whose session has reached exactly these limits. One warrant of 100 was opened under it. */
async function agentAt(home: TestOrganisation, limits: readonly Limit[]): Promise<TestAgent> {
  const agent = await home.addAgent({ failure_budget: 100 });
  const { id } = await createFor(agent, {
    amount_ceiling: limits.includes("ceiling") ? "100" : "1000",
    warrant_limit: limits.includes("count") ? 1 : 10,
    failure_budget: limits.includes("failures") ? 1 : 10,
    expires_at: service.timeIn(limits.includes("expired") ? HOUR_MS / 4 : 24 * HOUR_MS),
  });
  const opened = await service.opened(home, bodyOf(agent, { spec: FAILS }), { as: agent.as });
  if (limits.includes("failures")) expect((await verify(agent, opened)).body.state).toBe("escalated");
  if (limits.includes("expired")) service.clock.now += HOUR_MS / 4;
  if (limits.includes("revoked")) must(await revokeSession(service.ctx, MACHINE, { session_id: id }));
  return agent;
}

describe("an open that the session forbids holds nothing, leaves no trace, counts nothing and uses up no key", () => {
  for (const [at, limit] of LIMITS.entries()) {
    const [code, message] = REFUSALS[limit];
    const others = LIMITS.slice(at + 1);
    const scenarios: readonly (readonly [string, readonly Limit[]])[] = [
      [`${limit} alone`, [limit]],
      ...(others.length > 0 ? [[`${limit}, before ${others.join(", ")}`, [limit, ...others]] as const] : []),
    ];
    for (const [name, limits] of scenarios) {
      test(`${name}: ${code}`, async () => {
        const home = await service.organisation();
        const agent = await agentAt(home, limits);
        const key = freshKey();
        for (const as of [agent.as, home.people.operator.as]) {
          const reply = await service.refuses(home, [403, code], () =>
            service.post("/v1/warrants", bodyOf(agent, { amount: "1" }), { as, key }),
          );
          expect(reply.body.error.message).toMatch(message);
        }
        // The same key works for an open without the agent, which the session does not limit.
        const unnamed = await service.post("/v1/warrants", bodyOf(null), { as: agent.as, key });
        expect([unnamed.status, unnamed.headers.get("idempotent-replayed")]).toEqual([201, null]);
      });
    }
  }

  test("where no limit is reached, it opens", async () => {
    const home = await service.organisation();
    const agent = await agentAt(home, []);
    await service.opened(home, bodyOf(agent), { as: agent.as });
    expect((await shown(home, agent)).session).toMatchObject({ amount_spent: "200", warrant_count: 2 });
  });

  test("a refusal is decided anew: the same request passes once a new session has room", async () => {
    const home = await service.organisation();
    const agent = await agentAt(home, LIMITS);
    const key = freshKey();
    const body = bodyOf(agent);
    await service.refuses(home, [403, "session_revoked"], () =>
      service.post("/v1/warrants", body, { as: agent.as, key }),
    );
    await createFor(agent);
    const reply = await service.post("/v1/warrants", body, { as: agent.as, key });
    expect([reply.status, reply.headers.get("idempotent-replayed")]).toEqual([201, null]);
  });

  test("an agent that never had a session opens without one, and another's session is not charged", async () => {
    const home = await service.organisation();
    const [free, limited] = [await home.addAgent(), await home.addAgent()];
    await createFor(limited, { amount_ceiling: "0" });
    await service.opened(home, bodyOf(free), { as: free.as });
    expect((await shown(home, free)).session).toBeNull();
    expect((await shown(home, limited)).session).toMatchObject({ amount_spent: "0", warrant_count: 0 });
  });
});

describe("amounts are 64-bit integers, at their bounds too", () => {
  const BEYOND_DOUBLES = 2n ** 53n;
  /** `requested` fits if it is at most what is left. */
  const BOUNDS: readonly (readonly [ceiling: bigint, spent: bigint, requested: bigint])[] = [
    [0n, 0n, 1n],
    [0n, 0n, MAX],
    [1n, 0n, 1n],
    [1n, 0n, 2n],
    [MAX, 0n, MAX],
    [MAX, MAX - 1n, 1n],
    [MAX, MAX - 1n, 2n],
    [MAX, MAX, 1n],
    // The sum would be 2^64 - 2.
    [MAX, MAX, MAX],
    [MAX - 1n, 0n, MAX],
    [BEYOND_DOUBLES + 1n, BEYOND_DOUBLES, 1n],
    [BEYOND_DOUBLES + 1n, BEYOND_DOUBLES, 2n],
    [BEYOND_DOUBLES + 1n, 0n, BEYOND_DOUBLES + 2n],
  ];
  for (const [ceiling, spent, requested] of BOUNDS) {
    const fits = requested <= ceiling - spent;
    test(`${requested} of ${ceiling} with ${spent} spent is ${fits ? "held" : "refused, by the sums"}`, async () => {
      const home = await service.organisation(MAX);
      const agent = await home.addAgent();
      await createFor(agent, { amount_ceiling: String(ceiling) });
      const open = (amount: bigint) =>
        service.post("/v1/warrants", bodyOf(agent, { amount: String(amount) }), { as: agent.as });
      if (spent > 0n) expect((await open(spent)).status).toBe(201);
      if (fits) {
        expect((await open(requested)).status).toBe(201);
      } else {
        const { body } = await service.refuses(home, [403, "session_ceiling_exceeded"], () =>
          open(requested),
        );
        expect(body.error.message).toEndWith(
          `has a ceiling of ${ceiling}, ${spent} is spent, and ${requested} was requested.`,
        );
      }
      const charged = fits ? spent + requested : spent;
      expect((await shown(home, agent)).session).toMatchObject({
        amount_ceiling: String(ceiling),
        amount_spent: String(charged),
        warrant_count: Number(spent > 0n) + Number(fits),
      });
      expect(service.balance(home)).toEqual({ available: MAX - charged, held: charged, paid: 0n });
    });
  }

  test("of the largest warrant the smallest share is paid, and the rest is given back, to the unit", async () => {
    const home = await service.organisation(MAX);
    const agent = await home.addAgent();
    await createFor(agent, { amount_ceiling: String(MAX) });
    const { id } = await service.opened(home, bodyOf(agent, { amount: String(MAX) }), { as: agent.as });
    const as = home.people.operator.as;
    expect((await service.post(`/v1/warrants/${id}/partial`, { released_bps: 1 }, { as })).status).toBe(200);
    const paid = MAX / 10_000n;
    expect((await shown(home, agent)).session.amount_spent).toBe(String(paid));
    await service.opened(home, bodyOf(agent, { amount: String(MAX - paid) }), { as: agent.as });
    expect((await shown(home, agent)).session.amount_spent).toBe(String(MAX));
  });
});

const band = (minScore: number, outcome: string, more: object = {}) => ({ minScore, outcome, ...more });
/** A clean pass releases, half of one releases a quarter, nothing refunds. */
const RULES = {
  bands: [
    band(1, "release"),
    band(0.5, "partial_release", { releasedBps: 2_500 }),
    band(0, "refund", { label: "none" }),
  ],
};

type Way = {
  readonly spec?: object;
  readonly rules?: object;
  readonly go: (home: TestOrganisation, agent: TestAgent, warrant: Json) => Promise<Reply | object>;
  /** How much of 101 stays spent. */
  readonly stays: number;
  readonly state: string;
  /** The failures of the agent and of its session afterwards; before, each had one. */
  readonly failures: readonly [agent: number, session: number];
};

const byPerson =
  (verb: string, body?: object): Way["go"] =>
  (home, _agent, { id }) =>
    service.post(`/v1/warrants/${id}/${verb}`, body, { as: home.people.operator.as });
const byCheck: Way["go"] = (_home, agent, warrant) => verify(agent, warrant);
const setStatus = (agent: TestAgent, status: "active" | "paused" | "killed") =>
  setAgentStatus(service.ctx, MACHINE, { agent_id: agent.id, status }).then(must);
const escalates = { bands: [band(0, "escalate")] };

/** The end of a warrant, what its session gets back, and whether it counts as a failure (docs/sessions, "Failure budgets"). */
const WAYS: Readonly<Record<string, Way>> = {
  "released by a person": { go: byPerson("release"), stays: 101, state: "released", failures: [1, 1] },
  "refunded by a person": { go: byPerson("refund"), stays: 0, state: "refunded", failures: [1, 1] },
  "partially released by a person": {
    go: byPerson("partial", { released_bps: 2_500 }),
    stays: 25,
    state: "partially_released",
    failures: [1, 1],
  },
  "released by the policy": { go: byCheck, stays: 101, state: "released", failures: [0, 0] },
  "partially released by the policy": {
    spec: HALF,
    go: byCheck,
    stays: 25,
    state: "partially_released",
    failures: [2, 2],
  },
  "refunded by the policy": { spec: FAILS, go: byCheck, stays: 0, state: "refunded", failures: [2, 2] },
  "a clean pass that the policy refunds": {
    rules: { bands: [band(0, "refund")] },
    go: byCheck,
    stays: 0,
    state: "refunded",
    failures: [0, 0],
  },
  "a clean pass that the policy escalates": {
    rules: escalates,
    go: byCheck,
    stays: 101,
    state: "escalated",
    failures: [1, 1],
  },
  "a failing check that the policy escalates": {
    spec: FAILS,
    rules: escalates,
    go: byCheck,
    stays: 101,
    state: "escalated",
    failures: [2, 2],
  },
  "escalated, then partially released by a person": {
    rules: escalates,
    async go(home, agent, warrant) {
      await verify(agent, warrant);
      const resolve = (released_bps: number) =>
        service.post(
          `/v1/console/escalations/${warrant.id}/resolve`,
          { decision: "partial_release", released_bps },
          { as: home.people.operator.as },
        );
      // One basis point of 101 comes to nothing.
      await service.refuses(home, [400, "validation_failed"], () => resolve(1));
      return resolve(100);
    },
    stays: 1,
    state: "partially_released",
    failures: [1, 1],
  },
  "verified too late": {
    async go(_home, agent, warrant) {
      service.clock.now += HOUR_MS;
      expect((await verify(agent, warrant)).code).toBe("illegal_transition");
      return {};
    },
    stays: 0,
    state: "expired",
    failures: [2, 2],
  },
  "frozen with its agent": {
    go: (_home, agent) => setStatus(agent, "killed"),
    stays: 101,
    state: "frozen",
    failures: [1, 1],
  },
  "frozen, thawed and released": {
    async go(_home, agent, warrant) {
      await setStatus(agent, "killed");
      await setStatus(agent, "active");
      return verify(agent, warrant);
    },
    stays: 101,
    state: "released",
    failures: [0, 0],
  },
  // Making the agent active again sets its own count to zero, not that of its session.
  "frozen and thawed": {
    async go(_home, agent) {
      await setStatus(agent, "killed");
      return setStatus(agent, "active");
    },
    stays: 101,
    state: "held",
    failures: [0, 1],
  },
};

describe("a warrant of 101 under a session with one failure", () => {
  for (const [name, { spec = PASSES, rules = RULES, go, stays, state, failures }] of Object.entries(WAYS)) {
    test(`${name}: ${stays} stays spent, and its count`, async () => {
      const home = await service.organisation();
      const agent = await home.addAgent({ failure_budget: 9 });
      await home.addPolicy(RULES, { agent_id: agent.id, name: "first" });
      await createFor(agent, { amount_ceiling: "101", failure_budget: 9 });
      const failed = await service.opened(home, bodyOf(agent, { spec: FAILS }), { as: agent.as });
      await verify(agent, failed);
      await home.addPolicy(rules, { agent_id: agent.id, name: "then" });
      const warrant = await service.opened(home, bodyOf(agent, { amount: "101", spec }), { as: agent.as });
      // At the ceiling every open is refused, until something returns.
      await service.refuses(home, [403, "session_ceiling_exceeded"], () =>
        service.post("/v1/warrants", bodyOf(agent, { amount: "1" }), { as: agent.as }),
      );
      await go(home, agent, warrant);
      const { body } = await service.get(`/v1/warrants/${warrant.id}`, { as: agent.as });
      expect(body.state).toBe(state);
      const after = await shown(home, agent);
      expect(after.session).toMatchObject({ amount_spent: String(stays), warrant_count: 2 });
      expect([after.failure_count, after.session.failure_count]).toEqual([...failures]);
    });
  }

  test("what returns goes to the session that it was opened under, also when that is over; the new one is untouched", async () => {
    const home = await service.organisation();
    const agent = await home.addAgent({ failure_budget: 9 });
    const old = await createFor(agent, { amount_ceiling: "300" });
    const warrants = [];
    for (let count = 0; count < 3; count++)
      warrants.push(await service.opened(home, bodyOf(agent, { spec: FAILS }), { as: agent.as }));
    const fresh = await createFor(agent, { amount_ceiling: "300" });
    await service.opened(home, bodyOf(agent), { as: agent.as });
    const [refunded, shared, escalated] = warrants;
    const as = home.people.operator.as;
    await service.post(`/v1/warrants/${refunded.id}/refund`, undefined, { as });
    await service.post(`/v1/warrants/${shared.id}/partial`, { released_bps: 3_333 }, { as });
    await verify(agent, escalated);
    const { session } = service.ctx.reader.agents;
    expect(session(old.id)).toMatchObject({ amountSpent: 133n, warrantCount: 3, failureCount: 1 });
    expect(session(fresh.id)).toMatchObject({ amountSpent: 100n, warrantCount: 1, failureCount: 0 });
    // It is given back once: a second settlement of the same warrant moves nothing.
    await service.refuses(home, [409, "illegal_transition"], () =>
      service.post(`/v1/warrants/${refunded.id}/refund`, undefined, { as }),
    );
  });

  test("what returns makes room under the ceiling, never under the limit of warrants", async () => {
    const home = await service.organisation();
    const agent = await home.addAgent();
    await createFor(agent, { amount_ceiling: "100", warrant_limit: 2 });
    for (let count = 0; count < 2; count++) {
      const { id } = await service.opened(home, bodyOf(agent), { as: agent.as });
      await service.post(`/v1/warrants/${id}/refund`, undefined, { as: home.people.operator.as });
    }
    await service.refuses(home, [403, "session_warrant_limit_reached"], () =>
      service.post("/v1/warrants", bodyOf(agent), { as: agent.as }),
    );
    expect((await shown(home, agent)).session).toMatchObject({ amount_spent: "0", warrant_count: 2 });
  });
});
