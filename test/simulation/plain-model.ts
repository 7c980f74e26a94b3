import type { Band, Outcome as PolicyOutcome } from "../../src/core/policy.ts";
import type { Caller } from "../../src/core/roles.ts";
import { PlainMoney } from "./plain-money.ts";

/**
 * Holdfast's rules (docs/concepts, "Concepts") in plain maps. It has no store, makes no ids, and uses no rule of src.
 * Each method says what the answer must be and moves the model on.
 */

export type Rules = {
  readonly bands: readonly Band[];
  readonly maxAmount?: string;
  readonly alwaysRefund?: readonly string[];
  readonly alwaysEscalate?: readonly string[];
};

type State =
  | "held"
  | "verifying"
  | "released"
  | "partially_released"
  | "escalated"
  | "refunded"
  | "expired"
  | "frozen"
  | "disputed";

export type ModelWarrant = {
  readonly id: string;
  readonly amount: bigint;
  readonly asset: string;
  readonly payee: string;
  readonly agentId: string | null;
  /** The agent whose key opened it. */
  readonly openerId: string | null;
  readonly sessionId: string | null;
  readonly policyId: string | null;
  readonly rules: Rules;
  readonly deadline: number;
  state: State;
  version: number;
  releasedBps: number | null;
  settledAt: number | null;
  /** When its check began; the last one, where none runs. */
  checkedAt: number;
  /** Until when it may be verified: the deadline, or later after an interruption. */
  open: number;
};

type ModelAgent = {
  readonly id: string;
  readonly budget: number;
  readonly mustBeNamed: boolean;
  status: "active" | "paused" | "killed";
  failures: number;
};

/** What a session may be limited to besides its ceiling; null where it is not. */
export type ModelLimits = {
  readonly perWarrant: bigint | null;
  readonly hourly: bigint | null;
  readonly daily: bigint | null;
  readonly payees: readonly string[] | null;
  readonly origins: readonly string[] | null;
};

type ModelSession = {
  readonly limits: ModelLimits | null;
  /** Everything that was ever held under it. */
  readonly holds: { readonly at: number; readonly amount: bigint }[];
  readonly id: string;
  readonly agentId: string;
  readonly ceiling: bigint;
  readonly limit: number | null;
  readonly budget: number;
  readonly expiresAt: number;
  spent: bigint;
  count: number;
  failures: number;
  revokedAt: number | null;
};

type ModelPolicy = {
  readonly id: string;
  readonly agentId: string | null;
  readonly name: string;
  readonly rules: Rules;
};

type ModelEscalation = {
  readonly warrantId: string;
  readonly score: number | null;
  readonly reasonCodes: readonly string[];
  status: "open" | "disputed" | "resolved";
  decision: string | null;
  raisedBy: string | null;
};

type ModelKey = { readonly fingerprint: string; warrantId: string | null; answered: boolean };

export type OpenRequest = {
  readonly verb: "open";
  readonly caller: Caller;
  readonly key: string;
  readonly fingerprint: string;
  readonly amount: bigint;
  readonly asset: string;
  readonly payee: string;
  readonly deadline: number;
  readonly agentId: string | null;
  readonly policyId: string | null;
};
export type VerifyRequest = {
  readonly verb: "verify";
  readonly caller: Caller;
  readonly key: string;
  readonly fingerprint: string;
  readonly warrantId: string;
  /** How many of the four clauses pass, and the code that the others fail with. */
  readonly passes: number;
  readonly code: string;
  readonly ifMatch: number | null;
};
export type DecideRequest = {
  readonly verb: "settle" | "resolve";
  readonly caller: Caller;
  readonly key: string;
  readonly fingerprint: string;
  readonly warrantId: string;
  readonly decision: "release" | "partial_release" | "refund" | "dispute";
  readonly releasedBps: number | null;
  readonly ifMatch: number | null;
};
export type Request = OpenRequest | VerifyRequest | DecideRequest;

/** A refusal's code; else the status of an answer, new or replayed; or a check that is under way. */
export type Expected = string | { readonly status: number; readonly replayed: boolean } | "begun";

const CLAUSES = 4;
const MAXIMUM = 2n ** 63n - 1n;
const BUILT_IN: Rules = {
  bands: [
    { minScore: 1, outcome: "release" },
    { minScore: 0, outcome: "escalate" },
  ],
};
/** Where every check of the simulation looks, without and with its port, since a list may be written either way. */
const SOURCES = ["http://source.example", "http://source.example:80"];

/** Whether a list has it, exactly or by how it begins; no list has everything. */
const isListed = (list: readonly string[] | null, name: string): boolean =>
  list === null ||
  list.some((entry) => (entry.endsWith("*") ? name.startsWith(entry.slice(0, -1)) : entry === name));

const RANK = { viewer: 0, operator: 1, admin: 2, owner: 3 };

export class PlainModel {
  readonly money = new PlainMoney();
  readonly agents = new Map<string, ModelAgent>();
  readonly sessions: ModelSession[] = [];
  readonly policies: ModelPolicy[] = [];
  readonly warrants = new Map<string, ModelWarrant>();
  readonly escalations: ModelEscalation[] = [];
  readonly keys = new Map<string, ModelKey>();
  killSwitch = false;

  /** `seniors` are the ids of the people from admin up. */
  constructor(private readonly seniors: readonly string[]) {}

  /** The answer that follows from the Idempotency-Key alone. */
  private replay({ key, fingerprint }: Request): Expected | null {
    const known = this.keys.get(key);
    if (!known?.answered || known.fingerprint !== fingerprint) return null;
    return { status: this.statuses.get(key) ?? 0, replayed: true };
  }

  private used({ key, fingerprint }: Request): Expected | null {
    const known = this.keys.get(key);
    if (!known) return null;
    if (known.fingerprint !== fingerprint) return "idempotency_key_reused";
    return known.answered ? null : "idempotency_in_flight";
  }

  private readonly statuses = new Map<string, number>();

  private answer({ key, fingerprint }: Request, status: number): Expected {
    this.keys.set(key, { fingerprint, warrantId: null, answered: true });
    this.statuses.set(key, status);
    return { status, replayed: false };
  }

  /** `id` is the id that the service gave the warrant, where it made one. */
  open(request: OpenRequest, id: string, now: number): Expected {
    const { caller, amount, asset, agentId } = request;
    if (caller.kind === "person" && RANK[caller.role] < RANK.operator) return "insufficient_role";
    const replay = this.replay(request);
    if (replay) return replay;
    if (request.deadline <= now) return "deadline_in_past";
    const used = this.used(request);
    if (used) return used;
    const agent = agentId === null ? null : this.agents.get(agentId);
    if (agentId !== null && !agent) return "agent_not_found";
    const named = this.policies.find((policy) => policy.id === request.policyId);
    if (request.policyId !== null && !named) return "policy_not_found";
    if (this.killSwitch) return "kill_switch_active";
    const own = caller.kind === "key" ? this.agents.get(caller.agentId) : null;
    if (own && agentId !== null && agentId !== own.id) return "agent_key_mismatch";
    if (own?.mustBeNamed && agentId === null) return "agent_id_required";
    if ((own && own.status !== "active") || (agent && agent.status !== "active")) return "agent_not_active";
    const session = agent ? this.sessions.findLast((candidate) => candidate.agentId === agent.id) : undefined;
    const limit = session && this.refuseSession(session, request, now);
    if (limit) return limit;
    if (named && own && !this.mayName(named, own.id)) return "policy_not_allowed";
    const policy = named ?? this.newest(agentId) ?? this.newest(null);
    const { maxAmount } = policy?.rules ?? BUILT_IN;
    if (maxAmount !== undefined && (asset !== "USDC" || amount > BigInt(maxAmount)))
      return "policy_max_amount_exceeded";
    const isSignable = asset === "USDC" && this.money.withPasskey.size > 0;
    if (this.money.isAboveThreshold(amount, asset) && !isSignable) return "passkey_unavailable";
    if (!this.money.hold(asset, amount)) return "insufficient_funds";

    if (session) {
      session.spent += amount;
      session.count += 1;
      session.holds.push({ at: now, amount });
    }
    this.warrants.set(id, {
      id,
      amount,
      asset,
      payee: request.payee,
      agentId,
      openerId: own?.id ?? null,
      sessionId: session?.id ?? null,
      policyId: policy?.id ?? null,
      rules: policy?.rules ?? BUILT_IN,
      deadline: request.deadline,
      state: "held",
      version: 1,
      releasedBps: null,
      settledAt: null,
      checkedAt: 0,
      open: request.deadline,
    });
    return this.answer(request, 201);
  }

  /** The newest policy of an agent; of the organisation where it is null. */
  private newest(agentId: string | null): ModelPolicy | undefined {
    return this.policies.findLast((policy) => policy.agentId === agentId);
  }

  /** A key names the newest version of a name only, and only its agent's own where that has one. */
  private mayName(named: ModelPolicy, agentId: string): boolean {
    const ofName = this.policies.filter(
      ({ name, agentId: owner }) => name === named.name && owner === named.agentId,
    );
    const owner = this.newest(agentId) ? agentId : null;
    return ofName.at(-1) === named && named.agentId === owner;
  }

  private refuseSession(
    session: ModelSession,
    { amount, asset, payee }: OpenRequest,
    now: number,
  ): string | null {
    if (session.revokedAt !== null) return "session_revoked";
    if (session.expiresAt <= now) return "session_expired";
    if (session.failures >= session.budget) return "session_failure_budget_spent";
    if (session.limit !== null && session.count >= session.limit) return "session_warrant_limit_reached";
    if (asset !== "USDC" || session.spent + amount > session.ceiling) return "session_ceiling_exceeded";
    const { limits, holds } = session;
    if (!limits) return null;
    const heldWithin = (minutes: number) =>
      holds.reduce((sum, hold) => (hold.at > now - minutes * 60_000 ? sum + hold.amount : sum), 0n);
    const fits =
      isListed(limits.payees, payee) &&
      amount <= (limits.perWarrant ?? MAXIMUM) &&
      (limits.hourly === null || heldWithin(60) + amount <= limits.hourly) &&
      (limits.daily === null || heldWithin(1_440) + amount <= limits.daily);
    return fits ? null : "session_limit_exceeded";
  }

  private move(warrant: ModelWarrant, state: State): void {
    warrant.state = state;
    warrant.version += 1;
  }

  /** The hold ends: `bps` of it is paid, rounded down, the rest returns to the balance and to the session. */
  private settle(warrant: ModelWarrant, state: State, bps: number, now: number): void {
    const paid = (warrant.amount * BigInt(bps)) / 10_000n;
    this.money.settle(warrant.asset, warrant.amount, paid, warrant.payee);
    const session = this.sessions.find(({ id }) => id === warrant.sessionId);
    if (session) session.spent -= warrant.amount - paid;
    warrant.releasedBps = bps === 0 ? null : bps;
    warrant.settledAt = now;
    this.move(warrant, state);
  }

  private failed(warrant: ModelWarrant): void {
    const agent = this.agents.get(warrant.agentId ?? "");
    const session = this.sessions.find(({ id }) => id === warrant.sessionId);
    if (session) session.failures += 1;
    if (!agent) return;
    agent.failures += 1;
    if (agent.status === "active" && agent.failures >= agent.budget) agent.status = "paused";
  }

  private clean(warrant: ModelWarrant): void {
    const agent = this.agents.get(warrant.agentId ?? "");
    const session = this.sessions.find(({ id }) => id === warrant.sessionId);
    if (session) session.failures = 0;
    if (agent) agent.failures = 0;
  }

  /** Whether the agent that it names was killed, or the one whose key opened it. */
  private isStopped({ agentId, openerId }: ModelWarrant): boolean {
    return [agentId, openerId].some((id) => this.agents.get(id ?? "")?.status === "killed");
  }

  private escalate(warrant: ModelWarrant, score: number | null, reasonCodes: readonly string[]): void {
    this.escalations.push({
      warrantId: warrant.id,
      score,
      reasonCodes,
      status: "open",
      decision: null,
      raisedBy: null,
    });
  }

  /** Answers whether it expired. */
  expire(id: string, now: number): boolean {
    const warrant = this.warrants.get(id);
    if (warrant?.state !== "held" || warrant.open > now) return false;
    this.settle(warrant, "expired", 0, now);
    this.failed(warrant);
    return true;
  }

  beginVerify(request: VerifyRequest, now: number): Expected {
    const { caller } = request;
    if (caller.kind === "person" && RANK[caller.role] < RANK.operator) return "insufficient_role";
    const first = this.replay(request) ?? this.used(request);
    if (first) return first;
    const warrant = this.warrants.get(request.warrantId);
    if (!warrant) return "warrant_not_found";
    if (request.ifMatch !== null && request.ifMatch !== warrant.version) return "version_conflict";
    const killed = this.isStopped(warrant);
    if (warrant.state !== "held" || killed || this.expire(warrant.id, now)) return "illegal_transition";
    if (caller.kind === "key") {
      if (warrant.agentId !== null && warrant.agentId !== caller.agentId) return "agent_key_mismatch";
      if (this.agents.get(caller.agentId)?.status === "killed") return "agent_not_active";
    }
    const session = this.sessions.find(({ id }) => id === warrant.sessionId);
    const origins = session?.limits?.origins ?? null;
    if (!SOURCES.some((source) => isListed(origins, source))) return "session_limit_exceeded";
    this.move(warrant, "verifying");
    warrant.checkedAt = now;
    this.keys.set(request.key, { fingerprint: request.fingerprint, warrantId: warrant.id, answered: false });
    return "begun";
  }

  /** The check ends; `version` is the warrant's version when it began. */
  completeVerify(request: VerifyRequest, version: number, now: number): Expected {
    const warrant = this.warrants.get(request.warrantId);
    if (warrant?.version !== version) return "version_conflict";
    const clean = request.passes === CLAUSES;
    const codes = clean ? [] : [request.code];
    const policy = this.outcomeOf(warrant.rules, request.passes / CLAUSES, codes);
    let { outcome } = policy;
    const pays = outcome === "release" ? 10_000 : (policy.bps ?? 0);
    if (pays > 0 && this.isStopped(warrant)) {
      outcome = "escalate";
      codes.push("agent_killed");
    } else if (pays > 0 && (warrant.amount * BigInt(pays)) / 10_000n === 0n) {
      outcome = "escalate";
      codes.push("share_too_small");
    } else if (pays > 0 && this.money.isAboveThreshold(warrant.amount, warrant.asset)) {
      outcome = "escalate";
      codes.push("passkey_required");
    }
    if (outcome === "escalate") {
      this.move(warrant, "escalated");
      this.escalate(warrant, (request.passes * 10_000) / CLAUSES, codes);
    } else if (outcome === "refund") this.settle(warrant, "refunded", 0, now);
    else this.settle(warrant, outcome === "release" ? "released" : "partially_released", pays, now);
    if (!clean) this.failed(warrant);
    else if (outcome !== "escalate") this.clean(warrant);
    return this.answer(request, 200);
  }

  private outcomeOf(
    rules: Rules,
    score: number,
    codes: readonly string[],
  ): { outcome: PolicyOutcome; bps?: number } {
    const hits = (always: readonly string[] = []) => codes.some((code) => always.includes(code));
    if (hits(rules.alwaysRefund)) return { outcome: "refund" };
    if (hits(rules.alwaysEscalate)) return { outcome: "escalate" };
    let best: Band | null = null;
    for (const band of rules.bands) {
      if (score >= band.minScore && (best === null || band.minScore > best.minScore)) best = band;
    }
    if (!best) throw new Error("no floor");
    return { outcome: best.outcome, ...(best.releasedBps !== undefined && { bps: best.releasedBps }) };
  }

  /**
   * The check will never answer: the warrant is held again, or frozen where its agent was killed; the key is free. It may be
   * verified for another ten minutes, within an hour after the deadline.
   */
  interrupt(id: string, version: number, now: number): boolean {
    const warrant = this.warrants.get(id);
    if (warrant?.version !== version) return false;
    const until = Math.min(now + 600_000, warrant.deadline + 3_600_000);
    if (warrant.checkedAt < warrant.open) warrant.open = Math.max(warrant.open, until);
    const killed = this.isStopped(warrant);
    this.move(warrant, killed ? "frozen" : "held");
    if (killed) this.escalate(warrant, null, ["agent_killed"]);
    for (const [key, bound] of this.keys)
      if (bound.warrantId === id && !bound.answered) this.keys.delete(key);
    return true;
  }

  /** A person settles directly, or resolves the warrant's escalation. */
  decide(request: DecideRequest, now: number): Expected {
    const { caller, decision } = request;
    if (caller.kind === "key") return "user_session_required";
    if (RANK[caller.role] < RANK.operator) return "insufficient_role";
    const first = this.replay(request) ?? this.used(request);
    if (first) return first;
    const warrant = this.warrants.get(request.warrantId);
    const escalation = this.escalations.findLast(({ warrantId }) => warrantId === request.warrantId);
    if (request.verb === "resolve" && !escalation) return "escalation_not_found";
    if (!warrant) return "warrant_not_found";
    if (request.ifMatch !== null && request.ifMatch !== warrant.version) return "version_conflict";
    if (request.verb === "resolve" && escalation?.status === "resolved") return "illegal_transition";
    const decidable = ["held", "frozen", "escalated", "disputed"];
    const legal = decision === "dispute" ? warrant.state === "escalated" : decidable.includes(warrant.state);
    if (!legal) return "illegal_transition";
    const bps = decision === "release" ? 10_000 : (request.releasedBps ?? 0);
    if (bps > 0 && (warrant.amount * BigInt(bps)) / 10_000n === 0n) return "validation_failed";
    if (decision === "dispute" && !this.seniors.some((id) => id !== caller.userId))
      return "second_person_required";
    if (warrant.state === "disputed") {
      if (RANK[caller.role] < RANK.admin) return "insufficient_role";
      if (escalation?.raisedBy === caller.userId) return "second_person_required";
    }
    if (decision !== "dispute" && this.money.isAboveThreshold(warrant.amount, warrant.asset))
      return this.money.unsigned(caller.userId);
    const waiting = escalation?.status === "resolved" ? undefined : escalation;
    if (decision === "dispute") {
      this.move(warrant, "disputed");
      if (waiting) Object.assign(waiting, { status: "disputed", raisedBy: caller.userId });
    } else {
      const state = {
        release: "released",
        partial_release: "partially_released",
        refund: "refunded",
      } as const;
      this.settle(warrant, state[decision], bps, now);
      if (waiting) Object.assign(waiting, { status: "resolved", decision });
    }
    return this.answer(request, 200);
  }

  setStatus(id: string, status: ModelAgent["status"]): void {
    const agent = this.agents.get(id);
    if (!agent) throw new Error("no agent");
    agent.status = status;
    if (status === "active") agent.failures = 0;
  }

  /**
   * After a change of status, and after all that was sent with it: a killed agent's held warrants freeze, an active one's thaw
   * where they may still be verified.
   */
  followStatus(id: string, now: number): void {
    const status = this.agents.get(id)?.status;
    for (const warrant of this.warrants.values()) {
      if (warrant.agentId !== id && warrant.openerId !== id) continue;
      if (status === "killed" && warrant.state === "held") {
        this.move(warrant, "frozen");
        this.escalate(warrant, null, ["agent_killed"]);
      } else if (status === "active" && warrant.state === "frozen" && warrant.open > now) {
        this.move(warrant, "held");
        const waiting = this.escalations.findLast(({ warrantId }) => warrantId === warrant.id);
        if (waiting) waiting.status = "resolved";
      }
    }
  }

  /** The session before it is revoked. */
  addSession(
    session: Pick<ModelSession, "id" | "agentId" | "ceiling" | "limit" | "budget" | "expiresAt" | "limits">,
    now: number,
  ): void {
    const before = this.sessions.findLast(({ agentId }) => agentId === session.agentId);
    if (before) before.revokedAt ??= now;
    this.sessions.push({ ...session, holds: [], spent: 0n, count: 0, failures: 0, revokedAt: null });
  }

  revokeSession(id: string, now: number): void {
    const session = this.sessions.find((candidate) => candidate.id === id);
    if (session) session.revokedAt ??= now;
  }
}
