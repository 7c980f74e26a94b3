import { afterAll, expect, test } from "bun:test";
import fc from "fast-check";
import { isRefusal, type Refusal } from "../../src/core/errors.ts";
import type { Caller } from "../../src/core/roles.ts";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { createPolicy } from "../../src/services/admin/policies.ts";
import { createSession, revokeSession } from "../../src/services/admin/sessions.ts";
import type { Answer } from "../../src/services/intent.ts";
import { expireWarrant } from "../../src/services/warrants/expire.ts";
import { interruptCheck } from "../../src/services/warrants/interrupt.ts";
import { openWarrant } from "../../src/services/warrants/open.ts";
import { resolveEscalation } from "../../src/services/warrants/resolve.ts";
import { settleWarrant } from "../../src/services/warrants/settle.ts";
import { verifyWarrant } from "../../src/services/warrants/verify.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { FOUR_CLAUSES, must, SCRIPTED } from "../support/stage.ts";
import type {
  DecideRequest,
  Expected,
  OpenRequest,
  PlainModel,
  Request,
  Rules,
  VerifyRequest,
} from "./plain-model.ts";
import { createWorld, type Setting, snapshotOf, snapshotOfModel, type World } from "./service.ts";

/**
 * Random histories, run against the service with its store and against a plain model, which must agree after every step.
 * SIMULATION_RUNS=20000 runs for longer; SIMULATION_SEED and SIMULATION_PATH run again what failed.
 */
const RUNS_DEFAULT = 250;
const RUNS = Number(process.env.SIMULATION_RUNS ?? RUNS_DEFAULT);
const SEED = process.env.SIMULATION_SEED;
const PATH = process.env.SIMULATION_PATH;
/** The audit reads the whole database: after so many runs a new one begins. */
const RUNS_OF_A_DATABASE = 5;

const index = fc.nat({ max: 1_000 });
/** An index once in so many times, else null. */
const seldom = (times: number): fc.Arbitrary<number | null> =>
  fc.oneof({ weight: times - 1, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: index });
const who = fc.oneof(
  { weight: 6, arbitrary: fc.record({ key: index }) },
  { weight: 6, arbitrary: fc.record({ role: fc.constantFrom("operator", "admin", "owner") }) },
  { weight: 1, arbitrary: fc.record({ role: fc.constant("viewer") }) },
);
/** A fresh key, or one that was used before. */
const reuse = seldom(12);
const ifMatch = fc.constantFrom(...Array(10).fill(null), "current", "current", "stale");
/** Who decides: people, and now and then a key that may not. */
const decider = fc.oneof(
  { weight: 9, arbitrary: fc.record({ role: fc.constantFrom("operator", "admin", "owner") }) },
  { weight: 1, arbitrary: who },
);
const bps = fc.constantFrom(1, 99, 3_333, 5_000, 9_999);
const code = fc.constantFrom("path_not_found", "value_mismatch", "data_stale");
const minutes = fc.constantFrom(...Array(12).fill(600), 60, 60, 5, 5, 1, 0);

const band = fc.record({
  minScore: fc.constantFrom(0, 0.25, 0.5, 0.75, 1),
  outcome: fc.constantFrom("release", "partial_release", "escalate", "refund"),
  releasedBps: bps,
});
const rules = fc.record(
  {
    bands: fc
      .tuple(fc.array(band, { maxLength: 4 }), band)
      .map(([others, floor]) => [...others, { ...floor, minScore: 0 }])
      .map((bands) =>
        bands.map(({ releasedBps, ...rest }) =>
          rest.outcome === "partial_release" ? { ...rest, releasedBps } : rest,
        ),
      ),
    maxAmount: fc.constantFrom("100", "1000"),
    alwaysRefund: fc.constantFrom(["data_stale"], ["data_stale", "value_mismatch"]),
    alwaysEscalate: fc.constantFrom(["value_mismatch"]),
  },
  { requiredKeys: ["bands"] },
) as fc.Arbitrary<Rules>;

const commands = {
  open: fc.record({
    do: fc.constant("open"),
    who,
    agent: fc.constantFrom(
      ...Array<"own">(14).fill("own"),
      ...Array<"none">(9).fill("none"),
      "other" as const,
      "unknown" as const,
    ),
    amount: fc.constantFrom(1n, 2n, 99n, 100n, 101n, 250n, 250n, 1_000n, 4_000n, 2n ** 63n - 1n),
    asset: fc.constantFrom("USDC", "USDC", "USDC", "USDC", "USDC", "EURX"),
    policy: seldom(4),
    minutes,
    reuse,
  }),
  verify: fc.record({
    do: fc.constant("verify"),
    who,
    warrant: index,
    passes: fc.constantFrom(0, 1, 2, 3, 4, 4),
    code,
    ifMatch,
    reuse,
    /** The check stays under way until `finish`. */
    hangs: fc.boolean(),
  }),
  decide: fc.record({
    do: fc.constant("decide"),
    verb: fc.constantFrom("settle", "resolve", "resolve"),
    who: decider,
    warrant: index,
    decision: fc.constantFrom("release", "partial_release", "refund", "dispute", "dispute"),
    bps,
    ifMatch,
    reuse,
  }),
  /** The newest requests are the likeliest to be sent again. */
  retry: fc.record({ do: fc.constant("retry"), back: fc.constantFrom(0, 0, 0, 1, 1, 2, 3, 5, 8, 13) }),
  finish: fc.record({ do: fc.constant("finish"), check: index }),
  interrupt: fc.record({ do: fc.constant("interrupt"), check: index }),
  expire: fc.record({ do: fc.constant("expire"), warrant: index }),
  wait: fc.record({ do: fc.constant("wait"), minutes: fc.constantFrom(1, 5, 5, 60, 600) }),
  status: fc.record({
    do: fc.constant("status"),
    agent: index,
    status: fc.constantFrom("active", "active", "paused", "killed"),
  }),
  session: fc.record({
    do: fc.constant("session"),
    agent: index,
    ceiling: fc.constantFrom(100n, 300n, 10_000n, 10_000n, 10_000n),
    limit: fc.option(fc.constantFrom(1, 3)),
    budget: fc.constantFrom(1, 1, 2, 5),
    // A wait can end at the minute that it expires.
    minutes: fc.constantFrom(5, 600, 600, 600),
  }),
  revoke: fc.record({ do: fc.constant("revoke"), session: index }),
  policy: fc.record({
    do: fc.constant("policy"),
    owner: seldom(2),
    name: fc.constantFrom("a", "b"),
    rules,
  }),
  fund: fc.record({
    do: fc.constant("fund"),
    asset: fc.constantFrom("USDC", "EURX"),
    amount: fc.constantFrom(500n, 2n ** 63n - 1n),
  }),
};
type Command = {
  [K in keyof typeof commands]: (typeof commands)[K] extends fc.Arbitrary<infer C> ? C : never;
}[keyof typeof commands];

const WEIGHTS: Readonly<Record<keyof typeof commands, number>> = {
  open: 30,
  verify: 26,
  decide: 16,
  retry: 6,
  finish: 8,
  interrupt: 3,
  expire: 4,
  wait: 4,
  status: 4,
  session: 5,
  revoke: 2,
  policy: 4,
  fund: 2,
};
const command = fc.oneof(
  ...Object.entries(commands).map(([name, arbitrary]) => ({
    weight: WEIGHTS[name as keyof typeof commands],
    arbitrary: arbitrary as fc.Arbitrary<unknown>,
  })),
) as fc.Arbitrary<Command>;

/** Every history begins with something to decide about, half of them with an agent that has a session. */
const firstSteps = (budget: number | null): readonly Command[] => {
  const session = { do: "session", agent: 1, ceiling: 10_000n, limit: null, budget, minutes: 600 };
  const terms = { do: "open", amount: 100n, asset: "USDC", policy: null, minutes: 600, reuse: null };
  const opens = [0, 1, 1, 1].map((key, at) => ({ ...terms, who: { key }, agent: at === 3 ? "none" : "own" }));
  return [...(budget === null ? [] : [session]), ...opens] as readonly Command[];
};

const setting = fc.record({
  mode: fc.constantFrom("sandbox", "live"),
  hasAdmin: fc.boolean(),
  budgets: fc.tuple(fc.constantFrom(1, 2, 50), fc.constantFrom(2, 50, 50)),
  mustBeNamed: fc.constantFrom(false, false, true),
  sessionBudget: fc.constantFrom(null, null, null, 1, 1, 2),
}) as fc.Arbitrary<Setting & { readonly sessionBudget: number | null }>;

/** How often each outcome was met: a simulation that refuses everything agrees with anything. */
const counts = new Map<string, number>();
const met = (outcome: string) => counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
const pick = <T>(items: readonly T[], at: number): T | undefined => items[at % items.length];

type Pending = {
  readonly request: VerifyRequest;
  readonly version: number;
  readonly answer: Promise<Answer | Refusal>;
  readonly release: () => void;
};

/** Runs commands against both, one at a time; checks that hang overlap with what comes after. */
class Run {
  private readonly requests: Request[] = [];
  private readonly bodies = new Map<string, string>();
  private pending: Pending[] = [];
  private readonly model: PlainModel;

  constructor(
    private readonly world: World,
    private readonly ctx: TestContext,
    private readonly gates: Map<string, { begun: () => void; go: Promise<void> }>,
  ) {
    this.model = world.model;
  }

  async step(given: Command): Promise<void> {
    await this.run(given);
    met(`step: ${given.do}`);
    const [found, expected] = [snapshotOf(this.world), snapshotOfModel(this.world)];
    if (!Bun.deepEquals(found, expected, true)) expect(found).toEqual(expected);
  }

  /** Lets every check answer that is still under way. */
  async finishAll(): Promise<void> {
    while (this.pending.length > 0) await this.step({ do: "finish", check: 0 });
    for (const { state } of this.model.warrants.values()) met(`ended ${state}`);
    for (const { status } of this.model.agents.values()) met(`agent ended ${status}`);
  }

  /** After a failure: nothing may wait for ever. */
  abandon(): void {
    for (const { release, answer } of this.pending) {
      release();
      answer.catch(() => {});
    }
  }

  private async run(given: Command): Promise<void> {
    const { ctx, model, world } = this;
    const { organisationId: organisation_id, mode } = world;
    const warrantIds = [...model.warrants.keys()].reverse();
    switch (given.do) {
      case "open": {
        const caller = this.callerOf(given.who);
        const own = caller.kind === "key" ? caller.agentId : world.agentIds[0];
        const agentId = {
          own: own ?? null,
          none: null,
          other: world.agentIds.find((id) => id !== own) ?? null,
          unknown: "agt_unknown",
        }[given.agent];
        const policyIds = model.policies.map(({ id }) => id);
        const policyId =
          given.policy === null
            ? null
            : given.policy % 20 === 0
              ? "pol_unknown"
              : (pick(policyIds, given.policy) ?? null);
        const { amount, asset } = given;
        const body = { amount, asset, agentId, policyId, deadline: ctx.now() + given.minutes * 60_000 };
        return this.send(
          { verb: "open", caller, key: this.keyOf(given.reuse), ...body, fingerprint: textOf(body) },
          false,
        );
      }
      case "verify": {
        const warrantId =
          given.warrant % 40 === 0 ? "wrt_unknown" : (pick(warrantIds, given.warrant) ?? "wrt_unknown");
        const { passes, code } = given;
        const version = this.versionOf(given.ifMatch, warrantId);
        const fingerprint = textOf({ verify: warrantId, passes, code });
        const sent = { caller: this.callerOf(given.who), key: this.keyOf(given.reuse), fingerprint };
        return this.send({ verb: "verify", ...sent, warrantId, passes, code, ifMatch: version }, given.hangs);
      }
      case "decide": {
        const waiting = warrantIds.filter((id) =>
          ["escalated", "frozen", "disputed"].includes(model.warrants.get(id)?.state ?? ""),
        );
        const ids =
          given.verb === "resolve" && waiting.length > 0 && given.warrant % 4 > 0 ? waiting : warrantIds;
        const warrantId = pick(ids, given.warrant) ?? "wrt_unknown";
        const decision = given.verb === "settle" && given.decision === "dispute" ? "release" : given.decision;
        const releasedBps = decision === "partial_release" ? given.bps : null;
        const fingerprint = textOf({ [given.verb]: warrantId, decision, releasedBps });
        const sent = { caller: this.callerOf(given.who), key: this.keyOf(given.reuse), fingerprint };
        const version = this.versionOf(given.ifMatch, warrantId);
        const verb = given.verb as DecideRequest["verb"];
        return this.send(
          {
            verb,
            ...sent,
            warrantId,
            decision: decision as DecideRequest["decision"],
            releasedBps,
            ifMatch: version,
          },
          false,
        );
      }
      case "retry": {
        const request = this.requests.at(-1 - given.back);
        return request && this.send(request, false);
      }
      case "finish":
        return this.finish(pick(this.pending, given.check));
      case "interrupt": {
        const check = pick(this.pending, given.check);
        const warrant = check && ctx.store.reader.warrants.find(check.request.warrantId);
        if (!check || !warrant) return;
        const begun = { ...warrant, version: check.version };
        expect(await interruptCheck(ctx, begun)).toBe(model.interrupt(warrant.id, check.version));
        return;
      }
      case "expire": {
        const warrant = ctx.store.reader.warrants.find(pick(warrantIds, given.warrant) ?? "");
        if (warrant) expect(await expireWarrant(ctx, warrant)).toBe(model.expire(warrant.id, ctx.now()));
        return;
      }
      case "wait":
        ctx.clock.now += given.minutes * 60_000;
        return;
      case "status": {
        const agent_id = pick(world.agentIds, given.agent) ?? "";
        must(await setAgentStatus(ctx, MACHINE, { agent_id, status: given.status }));
        model.setStatus(agent_id, given.status);
        return;
      }
      case "session": {
        const agent_id = pick(world.agentIds, given.agent) ?? "";
        const expiresAt = ctx.now() + given.minutes * 60_000;
        const { ceiling, limit, budget } = given;
        const { id } = must(
          await createSession(ctx, MACHINE, {
            agent_id,
            amount_ceiling: ceiling.toString(),
            ...(limit !== null && { warrant_limit: limit }),
            failure_budget: budget,
            expires_at: new Date(expiresAt).toISOString(),
          }),
        );
        model.addSession({ id, agentId: agent_id, ceiling, limit, budget, expiresAt }, ctx.now());
        return;
      }
      case "revoke": {
        const session = pick(model.sessions, given.session);
        if (!session) return;
        must(await revokeSession(ctx, MACHINE, { session_id: session.id }));
        model.revokeSession(session.id, ctx.now());
        return;
      }
      case "policy": {
        const agentId = given.owner === null ? null : (pick(world.agentIds, given.owner) ?? null);
        const input = {
          organisation_id,
          name: given.name,
          rules: given.rules,
          ...(agentId !== null && { agent_id: agentId }),
        };
        const { id } = must(await createPolicy(ctx, MACHINE, input));
        model.policies.push({ id, agentId, name: given.name, rules: given.rules });
        return;
      }
      case "fund": {
        const { asset, amount } = given;
        const answer = await fundBalance(ctx, MACHINE, {
          organisation_id,
          mode,
          asset,
          amount: amount.toString(),
        });
        const expected = model.fund(asset, amount);
        expect(isRefusal(answer) ? answer.refused : "funded").toBe(
          typeof expected === "string" ? expected : "funded",
        );
      }
    }
  }

  private callerOf(given: { readonly key: number } | { readonly role: string }): Caller {
    const caller =
      "key" in given ? pick(this.world.keys, given.key) : this.world.people[given.role as "owner"];
    if (!caller) throw new Error("nobody");
    return caller;
  }

  private keyOf(reused: number | null): string {
    const before = reused === null ? undefined : pick(this.requests, reused);
    return before?.key ?? `key ${this.requests.length}`;
  }

  private versionOf(given: string | null, warrantId: string): number | null {
    const version = this.model.warrants.get(warrantId)?.version ?? 1;
    return given === null ? null : given === "current" ? version : version + 1;
  }

  private async send(request: Request, hangs: boolean): Promise<void> {
    this.requests.push(request);
    if (request.verb === "verify") return this.verify(request, hangs);
    if (request.verb === "open") {
      const answer = await this.open(request);
      const id = isRefusal(answer) ? "" : (JSON.parse(answer.body) as { id: string }).id;
      return this.compare(request, answer, this.model.open(request, id, this.ctx.now()));
    }
    return this.compare(request, await this.decide(request), this.model.decide(request, this.ctx.now()));
  }

  private open({ caller, amount, asset, agentId, policyId, deadline, ...intent }: OpenRequest) {
    const named = {
      ...(agentId !== null && { agent_id: agentId }),
      ...(policyId !== null && { policy_id: policyId }),
    };
    const terms = {
      amount: amount.toString(),
      asset,
      payee: "acme",
      deadline: new Date(deadline).toISOString(),
    };
    return openWarrant(this.ctx, caller, { ...terms, spec: { clauses: FOUR_CLAUSES }, ...named }, intent);
  }

  private decide({ verb, caller, warrantId, decision, releasedBps, ifMatch, ...intent }: DecideRequest) {
    const input = { releasedBps, ifMatch };
    return verb === "resolve"
      ? resolveEscalation(this.ctx, caller, { ...input, id: warrantId, decision, note: null }, intent)
      : settleWarrant(this.ctx, caller, { ...input, warrantId, decision: decision as "release" }, intent);
  }

  private async verify(request: VerifyRequest, hangs: boolean): Promise<void> {
    const { caller, warrantId, passes, code: failure, ifMatch: version, ...intent } = request;
    const script = Array.from({ length: 4 }, (_, at) => (at < passes ? null : failure));
    const name = `check ${this.requests.length}`;
    const gate = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<"begun">();
    this.gates.set(name, { begun: () => begun.resolve("begun"), go: gate.promise });
    if (!hangs) gate.resolve();
    const sourceUrl = `http://source.example/?${encodeURIComponent(name)}#${encodeURIComponent(JSON.stringify(script))}`;
    const answer = verifyWarrant(this.ctx, caller, { warrantId, sourceUrl, ifMatch: version }, intent);
    const first = await Promise.race([answer, begun.promise]);
    const expected = this.model.beginVerify(request, this.ctx.now());
    if (expected !== "begun" || first !== "begun") {
      if (first === "begun")
        throw new Error(`the service began a check, and the model says ${textOf(expected)}`);
      return this.compare(request, first, expected);
    }
    const check = {
      request,
      version: this.model.warrants.get(warrantId)?.version ?? 0,
      answer,
      release: gate.resolve,
    };
    this.pending.push(check);
    if (!hangs) await this.finish(check);
  }

  private async finish(check: Pending | undefined): Promise<void> {
    if (!check) return;
    this.pending = this.pending.filter((other) => other !== check);
    check.release();
    const answer = await check.answer;
    this.compare(
      check.request,
      answer,
      this.model.completeVerify(check.request, check.version, this.ctx.now()),
    );
  }

  /** The same refusal, or the same answer: a new one says what the warrant is now, a replay what was said before. */
  private compare(request: Request, answer: Answer | Refusal, expected: Expected): void {
    const outcome = isRefusal(answer)
      ? answer.refused
      : `${answer.status}${answer.replayed ? " replayed" : ""}`;
    met(`${request.verb}: ${outcome}`);
    const wanted =
      typeof expected === "string" ? expected : `${expected.status}${expected.replayed ? " replayed" : ""}`;
    expect(`${request.verb}: ${outcome}`).toBe(`${request.verb}: ${wanted}`);
    if (isRefusal(answer)) return;
    if (answer.replayed) {
      expect(answer.body).toBe(this.bodies.get(request.key) ?? "");
      return;
    }
    this.bodies.set(request.key, answer.body);
    const body = JSON.parse(answer.body) as { warrant?: object; id: string; decision?: string };
    const shown = (body.warrant ?? body) as {
      id: string;
      state: string;
      version: number;
      released_bps: number | null;
    };
    const warrant = this.model.warrants.get(shown.id);
    expect([shown.state, shown.version, shown.released_bps]).toEqual([
      warrant?.state ?? "",
      warrant?.version ?? 0,
      warrant?.releasedBps ?? null,
    ]);
  }
}

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, item: unknown) => (typeof item === "bigint" ? `${item}n` : item));

/** The context that runs share, with a source that answers when its gate opens. */
function createSimulation() {
  const gates = new Map<string, { begun: () => void; go: Promise<void> }>();
  const ctx = createTestContext({
    ...SCRIPTED,
    fetchEvidence: async (url) => {
      const gate = gates.get(decodeURIComponent(new URL(url).search.slice(1)));
      gate?.begun();
      await gate?.go;
      return SCRIPTED.fetchEvidence(url);
    },
  });
  return { ctx, gates, runs: 0 };
}

let simulation = createSimulation();
afterAll(() => simulation.ctx.close());

test(`${RUNS} random histories: the service and a plain model agree after every step`, async () => {
  const histories = fc.asyncProperty(
    setting,
    // Unbiased: small numbers are no edge cases here, they would only make all histories alike.
    fc.noBias(fc.array(command, { minLength: 15, maxLength: 45, size: "max" })),
    async (given, steps) => {
      if (simulation.runs === RUNS_OF_A_DATABASE) {
        const { ctx } = simulation;
        simulation = createSimulation();
        await ctx.close();
      }
      simulation.runs += 1;
      simulation.gates.clear();
      const { ctx, gates } = simulation;
      const run = new Run(await createWorld(ctx, given), ctx, gates);
      try {
        for (const step of [...firstSteps(given.sessionBudget), ...steps]) await run.step(step);
        await run.finishAll();
        expect(ctx.store.reader.audit()).toEqual([]);
      } catch (error) {
        // What is wrong in this database may not be found again in the runs that shrink it.
        run.abandon();
        simulation = createSimulation();
        throw error;
      }
    },
  );
  await fc.assert(histories, {
    numRuns: RUNS,
    ...(SEED !== undefined && { seed: Number(SEED) }),
    ...(PATH !== undefined && { path: PATH }),
  });
}, 600_000);

test.skipIf(RUNS < RUNS_DEFAULT)("the histories met what they are for", () => {
  const ended = ["held", "released", "partially_released", "refunded", "expired", "escalated", "frozen"];
  const outcomes = {
    open: [
      ...["201", "201 replayed", "deadline_in_past", "idempotency_key_reused", "agent_key_mismatch"],
      ...["agent_id_required", "agent_not_active", "agent_not_found", "policy_max_amount_exceeded"],
      ...["session_ceiling_exceeded", "session_expired", "session_revoked", "insufficient_funds"],
    ],
    verify: ["200", "200 replayed", "agent_key_mismatch", "illegal_transition", "version_conflict"],
    settle: ["200", "illegal_transition", "validation_failed", "version_conflict", "user_session_required"],
    resolve: ["200", "escalation_not_found", "illegal_transition"],
  };
  const familiar = [
    ...ended.map((state) => `ended ${state}`),
    ...["active", "paused", "killed"].map((status) => `agent ended ${status}`),
    ...Object.entries(outcomes).flatMap(([verb, names]) => names.map((name) => `${verb}: ${name}`)),
  ];
  expect(familiar.filter((outcome) => !counts.has(outcome))).toEqual([]);
});
