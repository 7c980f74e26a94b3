import { expect } from "bun:test";
import { sha256 } from "../../src/core/canonical.ts";
import { isRefusal, type Refusal } from "../../src/core/errors.ts";
import type { Caller } from "../../src/core/roles.ts";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createPolicy } from "../../src/services/admin/policies.ts";
import { createSession, revokeSession, type SessionInput } from "../../src/services/admin/sessions.ts";
import { setKillSwitch } from "../../src/services/admin/switches.ts";
import type { Answer } from "../../src/services/idempotency.ts";
import { expireWarrant } from "../../src/services/warrants/expire.ts";
import { interruptCheck } from "../../src/services/warrants/interrupt.ts";
import { openWarrant } from "../../src/services/warrants/open.ts";
import { resolveEscalation } from "../../src/services/warrants/resolve.ts";
import { settleWarrant } from "../../src/services/warrants/settle.ts";
import { verifyWarrant } from "../../src/services/warrants/verify.ts";
import type { TestContext } from "../support/context.ts";
import { FOUR_CLAUSES, must } from "../support/stage.ts";
import { isChain } from "./chain-commands.ts";
import { owing, SETTLING } from "./chain-histories.ts";
import { createChainLaws, expectSettled } from "./chain-laws.ts";
import { runChain } from "./chain-steps.ts";
import type { Command, Step } from "./commands.ts";
import { createMoneyLaws, expectStatement } from "./money-laws.ts";
import { isMoney, sendMoney } from "./money-steps.ts";
import type {
  DecideRequest,
  Expected,
  ModelLimits,
  OpenRequest,
  PlainModel,
  Request,
  VerifyRequest,
} from "./plain-model.ts";
import { type Simulated, snapshotOf, snapshotOfModel } from "./service.ts";
import { createSessionLaws } from "./session-laws.ts";
import type { StoreOrder } from "./store-order.ts";

/** How often each outcome happened. Without this, histories in which everything is refused would count as a success. */
export const counts = new Map<string, number>();
const met = (outcome: string) => counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
const pick = <T>(items: readonly T[], at: number): T | undefined => items[at % items.length];

/** A check waits at the gate of its scripted source. */
export type Gates = Map<string, { begun: () => void; go: Promise<void> }>;

type Pending = {
  readonly request: VerifyRequest;
  readonly version: number;
  readonly answer: Promise<Answer | Refusal>;
  readonly follow: () => void;
  readonly release: () => void;
};

/** Lets the model decide the same command, and compares the answers. */
type Judge = () => Promise<void> | void;
/** A command that was sent to the service. Resolves when it was answered. */
type Sent = Promise<Judge>;
const NOTHING: Judge = () => {};

/**
 * Runs commands against the service and the model. The commands of a burst are all sent before the first is answered, so they
 * share a commit of the service. The model takes them in the order in which they came to the store. A check that hangs overlaps
 * with the commands after it.
 */
export class Run {
  private readonly requests: Request[] = [];
  private readonly bodies = new Map<string, string>();
  private pending: Pending[] = [];
  private readonly model: PlainModel;
  private readonly checkSessions: () => void;
  private readonly checkMoney: () => void;
  private readonly checkChain: () => Promise<void>;

  constructor(
    private readonly simulated: Simulated,
    private readonly ctx: TestContext,
    private readonly gates: Gates,
    private readonly store: StoreOrder,
  ) {
    this.model = simulated.model;
    this.checkSessions = createSessionLaws(simulated);
    this.checkMoney = createMoneyLaws(simulated);
    this.checkChain = createChainLaws(simulated);
  }

  async step(given: Step): Promise<void> {
    if (given.do === "owe") {
      for (const one of owing(given)) await this.step(one);
      return;
    }
    if (given.do === "burst") {
      // A check that is let go ends some turns later, after everything that is sent in this turn.
      const order = given.steps.toSorted((a, b) => Number(a.do === "finish") - Number(b.do === "finish"));
      const judges = await this.store.inOrder(order.map((command) => () => this.send(command, true)));
      for (const judge of judges) await judge();
    } else if (isChain(given)) await runChain(given, this.simulated, met);
    else {
      const judge = await this.send(given, false);
      await judge();
    }
    for (const agentId of this.simulated.agentIds) this.model.followStatus(agentId, this.ctx.now());
    met(`step: ${given.do}`);
    const [found, expected] = [snapshotOf(this.simulated), snapshotOfModel(this.simulated)];
    if (!Bun.deepEquals(found, expected, true)) expect(found).toEqual(expected);
    this.checkSessions();
    this.checkMoney();
    if (isChain(given)) await this.checkChain();
  }

  /** Lets every check answer that is still under way. */
  async finishAll(): Promise<void> {
    while (this.pending.length > 0) await this.step({ do: "finish", check: 0 });
    if (this.simulated.treasury) for (const one of SETTLING) await this.step(one);
    expectSettled(this.simulated);
    for (const { state } of this.model.warrants.values()) met(`ended ${state}`);
    for (const { status } of this.model.agents.values()) met(`agent ended ${status}`);
    for (const { status } of this.model.money.payouts) met(`payout ended ${status}`);
    await expectStatement(this.simulated);
  }

  /** For the end of a run that failed: nothing may wait for ever. */
  abandon(): void {
    for (const { release, answer } of this.pending) {
      release();
      answer.catch(() => {});
    }
  }

  /** Every check of a burst hangs, since it is not defined how far a check gets within a turn. */
  private async send(given: Command, isBurst: boolean): Sent {
    if (isMoney(given)) return sendMoney(given, this.simulated, met);
    switch (given.do) {
      case "open":
        return this.sendOpen(this.openRequest(given));
      case "verify":
        return this.sendVerify(this.verifyRequest(given), given.hangs || isBurst);
      case "decide":
        return this.sendDecision(this.decideRequest(given));
      case "retry": {
        const request = this.requests.at(-1 - given.back);
        if (!request) return NOTHING;
        if (request.verb === "open") return this.sendOpen(request);
        return request.verb === "verify" ? this.sendVerify(request, isBurst) : this.sendDecision(request);
      }
      case "finish":
        return this.sendFinish(pick(this.pending, given.check));
      case "wait":
        this.ctx.clock.now += given.minutes * 60_000;
        return NOTHING;
      case "interrupt":
      case "expire":
        return this.sendBySystem(given);
      default:
        return this.sendByAdmin(given);
    }
  }

  private newestWarrants(): readonly string[] {
    return [...this.model.warrants.keys()].reverse();
  }

  private openRequest(given: Extract<Command, { do: "open" }>): OpenRequest {
    const { ctx, model, simulated } = this;
    const caller = this.callerOf(given.who);
    const own = caller.kind === "key" ? caller.agentId : simulated.agentIds[0];
    const agentId = {
      own: own ?? null,
      none: null,
      other: simulated.agentIds.find((id) => id !== own) ?? null,
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
    const payee = simulated.payeeOf(given.payee);
    const body = { amount, asset, payee, agentId, policyId, deadline: ctx.now() + given.minutes * 60_000 };
    return { verb: "open", caller, key: this.keyOf(given.reuse), ...body, fingerprint: hashOf(body) };
  }

  private verifyRequest(given: Extract<Command, { do: "verify" }>): VerifyRequest {
    const warrantId =
      given.warrant % 40 === 0
        ? "wrt_unknown"
        : (pick(this.newestWarrants(), given.warrant) ?? "wrt_unknown");
    const { passes, code } = given;
    const ifMatch = this.versionOf(given.ifMatch, warrantId);
    const fingerprint = hashOf({ verify: warrantId, passes, code });
    const sent = { caller: this.callerOf(given.who), key: this.keyOf(given.reuse), fingerprint };
    return { verb: "verify", ...sent, warrantId, passes, code, ifMatch };
  }

  private decideRequest(given: Extract<Command, { do: "decide" }>): DecideRequest {
    const warrantIds = this.newestWarrants();
    const waiting = warrantIds.filter((id) =>
      ["escalated", "frozen", "disputed"].includes(this.model.warrants.get(id)?.state ?? ""),
    );
    const ids =
      given.verb === "resolve" && waiting.length > 0 && given.warrant % 4 > 0 ? waiting : warrantIds;
    const warrantId = pick(ids, given.warrant) ?? "wrt_unknown";
    const decision = given.verb === "settle" && given.decision === "dispute" ? "release" : given.decision;
    const releasedBps = decision === "partial_release" ? given.bps : null;
    const fingerprint = hashOf({ [given.verb]: warrantId, decision, releasedBps });
    const sent = { caller: this.callerOf(given.who), key: this.keyOf(given.reuse), fingerprint };
    return {
      verb: given.verb as DecideRequest["verb"],
      ...sent,
      warrantId,
      decision: decision as DecideRequest["decision"],
      releasedBps,
      ifMatch: this.versionOf(given.ifMatch, warrantId),
    };
  }

  private async sendBySystem(given: Extract<Command, { do: "interrupt" | "expire" }>): Sent {
    const { ctx, model } = this;
    if (given.do === "expire") {
      const warrant = ctx.reader.warrants.find(pick(this.newestWarrants(), given.warrant) ?? "");
      if (!warrant) return NOTHING;
      const answer = await expireWarrant(ctx, warrant);
      return () => expect(answer).toBe(model.expire(warrant.id, ctx.now()));
    }
    const check = pick(this.pending, given.check);
    const warrant = check && ctx.reader.warrants.find(check.request.warrantId);
    if (!check || !warrant) return NOTHING;
    const answer = await interruptCheck(ctx, { ...warrant, version: check.version });
    return () => expect(answer).toBe(model.interrupt(warrant.id, check.version, ctx.now()));
  }

  private async sendByAdmin(
    given: Extract<Command, { do: "status" | "session" | "revoke" | "policy" | "switch" }>,
  ): Sent {
    const { ctx, model, simulated } = this;
    const { organisationId: organisation_id } = simulated;
    switch (given.do) {
      case "status": {
        const agent_id = pick(simulated.agentIds, given.agent) ?? "";
        const answer = await setAgentStatus(ctx, MACHINE, { agent_id, status: given.status });
        return () => {
          must(answer);
          model.setStatus(agent_id, given.status);
        };
      }
      case "session": {
        const agent_id = pick(simulated.agentIds, given.agent) ?? "";
        const expiresAt = ctx.now() + given.minutes * 60_000;
        const { ceiling, limit, budget, limits } = given;
        const answer = await createSession(ctx, MACHINE, {
          agent_id,
          amount_ceiling: ceiling.toString(),
          ...(limit !== null && { warrant_limit: limit }),
          failure_budget: budget,
          expires_at: new Date(expiresAt).toISOString(),
          ...inputOf(limits),
        });
        return () => {
          const { id } = must(answer);
          model.addSession({ id, agentId: agent_id, ceiling, limit, budget, expiresAt, limits }, ctx.now());
        };
      }
      case "revoke": {
        const session = pick(model.sessions, given.session);
        if (!session) return NOTHING;
        const answer = await revokeSession(ctx, MACHINE, { session_id: session.id });
        return () => {
          must(answer);
          model.revokeSession(session.id, ctx.now());
        };
      }
      case "policy": {
        const agentId = given.owner === null ? null : (pick(simulated.agentIds, given.owner) ?? null);
        const input = {
          organisation_id,
          name: given.name,
          rules: given.rules,
          ...(agentId !== null && { agent_id: agentId }),
        };
        const answer = await createPolicy(ctx, MACHINE, input);
        return () => {
          const { id } = must(answer);
          model.policies.push({ id, agentId, name: given.name, rules: given.rules });
        };
      }
      case "switch": {
        const answer = await setKillSwitch(ctx, MACHINE, { organisation_id, on: given.on });
        return () => {
          must(answer);
          model.killSwitch = given.on;
        };
      }
    }
  }

  private callerOf(given: { readonly key: number } | { readonly role: string }): Caller {
    const caller =
      "key" in given ? pick(this.simulated.keys, given.key) : this.simulated.people[given.role as "owner"];
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

  private async sendOpen(request: OpenRequest): Sent {
    this.requests.push(request);
    const { caller, amount, asset, payee, agentId, policyId, deadline, ...idempotency } = request;
    const named = {
      ...(agentId !== null && { agent_id: agentId }),
      ...(policyId !== null && { policy_id: policyId }),
    };
    const terms = {
      amount: amount.toString(),
      asset,
      payee,
      deadline: new Date(deadline).toISOString(),
    };
    const input = { ...terms, spec: { clauses: FOUR_CLAUSES }, ...named };
    const answer = await openWarrant(this.ctx, caller, input, idempotency);
    return () => {
      const id = isRefusal(answer) ? "" : (JSON.parse(answer.body) as { id: string }).id;
      this.compare(request, answer, this.model.open(request, id, this.ctx.now()));
    };
  }

  private async sendDecision(request: DecideRequest): Sent {
    this.requests.push(request);
    const { verb, caller, warrantId, decision, releasedBps, ifMatch, ...idempotency } = request;
    const input = { releasedBps, ifMatch };
    const answer = await (verb === "resolve"
      ? resolveEscalation(this.ctx, caller, { ...input, id: warrantId, decision, note: null }, idempotency)
      : settleWarrant(
          this.ctx,
          caller,
          { ...input, warrantId, decision: decision as "release" },
          idempotency,
        ));
    return () => this.compare(request, answer, this.model.decide(request, this.ctx.now()));
  }

  private async sendVerify(request: VerifyRequest, hangs: boolean): Sent {
    this.requests.push(request);
    const { caller, warrantId, passes, code: failure, ifMatch, ...idempotency } = request;
    const script = Array.from({ length: 4 }, (_, at) => (at < passes ? null : failure));
    const name = `check ${this.requests.length}`;
    const gate = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<"begun">();
    this.gates.set(name, { begun: () => begun.resolve("begun"), go: gate.promise });
    if (!hangs) gate.resolve();
    const sourceUrl = `http://source.example/?${encodeURIComponent(name)}#${encodeURIComponent(JSON.stringify(script))}`;
    const { result: answer, follow } = this.store.lasting(() =>
      verifyWarrant(this.ctx, caller, { warrantId, sourceUrl, ifMatch }, idempotency),
    );
    const first = await Promise.race([answer, begun.promise]);
    return async () => {
      const expected = this.model.beginVerify(request, this.ctx.now());
      if (expected !== "begun" || first !== "begun") {
        if (first === "begun")
          throw new Error(`the service began a check, and the model says ${textOf(expected)}`);
        return this.compare(request, first, expected);
      }
      const version = this.model.warrants.get(warrantId)?.version ?? 0;
      const check = { request, version, answer, follow, release: gate.resolve };
      this.pending.push(check);
      if (hangs) return;
      const judge = await this.sendFinish(check);
      await judge();
    };
  }

  private async sendFinish(check: Pending | undefined): Sent {
    if (!check) return NOTHING;
    const { request, version } = check;
    this.pending = this.pending.filter((other) => other !== check);
    check.follow();
    check.release();
    const answer = await check.answer;
    return () => this.compare(request, answer, this.model.completeVerify(request, version, this.ctx.now()));
  }

  /** Compares refusals and answers. A new answer shows the warrant as it is now, a replay shows the original answer. */
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

const inputOf = (limits: ModelLimits | null): Partial<SessionInput> => ({
  ...(limits?.perWarrant != null && { per_warrant_max: `${limits.perWarrant}` }),
  ...(limits?.hourly != null && { hourly_max: `${limits.hourly}` }),
  ...(limits?.daily != null && { daily_max: `${limits.daily}` }),
  ...(limits?.payees && { payees: limits.payees }),
  ...(limits?.origins && { source_origins: limits.origins }),
});

const hashOf = (value: unknown): string => sha256(textOf(value));

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, item: unknown) => (typeof item === "bigint" ? `${item}n` : item));
