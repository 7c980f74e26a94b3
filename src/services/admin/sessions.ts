import type { Agent } from "../../core/agent.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { parseAmount } from "../../core/money.ts";
import type { SpendSession } from "../../core/session.ts";
import { LIST_MAX, parseOrigin, parsePayee, type SessionLimits } from "../../core/session-limits.ts";
import { DAY_MS, parseTime } from "../../core/time.ts";
import { spendSessionRecord } from "../../resources/spend-session.ts";
import type { Put } from "../../store/change.ts";
import type { Audited, Entry } from "../audited.ts";
import type { Context } from "../context.ts";
import { refuseInteger } from "../fields.ts";
import { agentNotFound, FAILURE_BUDGET_MAX, findAgent } from "./agents.ts";
import { type Authority, administer, refuseAuthority } from "./authority.ts";

const LIFETIME_DEFAULT_MS = 7 * DAY_MS;
const LIFETIME_MAX_MS = 5 * 365.25 * DAY_MS;
const WARRANT_LIMIT_MAX = 1_000_000_000;

export type SessionInput = {
  readonly agent_id: string;
  /** The ceiling in the smallest unit of USDC: as much may be held or paid under the session. */
  readonly amount_ceiling: string;
  readonly warrant_limit?: number;
  /** The agent's own failure budget by default. */
  readonly failure_budget?: number;
  /** The most that may be held for one warrant, within an hour and within a day, in the ceiling's unit. */
  readonly per_warrant_max?: string;
  readonly hourly_max?: string;
  readonly daily_max?: string;
  /** Whom it may pay, and the origins that it may verify from and buy from (docs/sessions, "Entries of the lists"). */
  readonly payees?: readonly string[];
  readonly source_origins?: readonly string[];
  /** RFC 3339. By default the session expires in 7 days. */
  readonly expires_at?: string;
};

type SessionRecord = ReturnType<typeof spendSessionRecord>;

/** A new session. The warning says what the session does not limit; null where it limits all. */
type NewSession = SessionRecord & { readonly warning: string | null };

/** Creates an agent's spend session, and revokes the one before it in the same commit. */
export async function createSession(
  ctx: Context,
  authority: Authority,
  input: SessionInput,
): Promise<NewSession | Refusal> {
  const { warrant_limit: warrantLimit = null, failure_budget: failureBudget } = input;
  const refused =
    refuseAuthority(authority, "admin") ??
    (warrantLimit === null ? null : refuseInteger("warrant_limit", warrantLimit, 1, WARRANT_LIMIT_MAX)) ??
    (failureBudget === undefined
      ? null
      : refuseInteger("failure_budget", failureBudget, 1, FAILURE_BUDGET_MAX));
  if (refused) return refused;
  const amountCeiling = parseMost("amount_ceiling", input.amount_ceiling);
  if (isRefusal(amountCeiling)) return amountCeiling;
  const limits = parseLimits(input);
  if (isRefusal(limits)) return limits;
  const expiresAt = parseExpiry(input.expires_at, ctx.now());
  if (isRefusal(expiresAt)) return expiresAt;
  const agent = await ctx.store.read((reader) => findAgent(reader, authority, input.agent_id));
  if (isRefusal(agent)) return agent;
  const id = ctx.newId("spendSession");
  return administer(ctx, authority, "admin", {
    scope: agent,
    needs: { agent: agent.id, agentSession: { from: "agent" } },
    decide: (snapshot, now): Audited<NewSession> => {
      if (!snapshot.agent) return { answer: agentNotFound(agent.id) };
      const row: SpendSession = {
        ...limits,
        id,
        agentId: agent.id,
        amountCeiling,
        amountSpent: 0n,
        amountHeld: 0n,
        heldAt: null,
        warrantLimit,
        warrantCount: 0,
        failureBudget: failureBudget ?? snapshot.agent.failureBudget,
        failureCount: 0,
        expiresAt: expiresAt ?? now + LIFETIME_DEFAULT_MS,
        revokedAt: null,
        createdAt: now,
      };
      const after = spendSessionRecord(row);
      const answer = { ...after, warning: warningOf(snapshot.agent) };
      const put: Put = { kind: "spendSession", before: null, row };
      const entry: Entry = { action: "spend_session.created", subject: id, before: null, after };
      const { agentSession } = snapshot;
      if (!agentSession || agentSession.revokedAt !== null) return { answer, put: [put], entries: [entry] };
      const revoked = revoke(agentSession, now);
      return { answer, put: [revoked.put, put], entries: [revoked.entry, entry] };
    },
  });
}

/** A session is charged for what names its agent alone. An agent that need not be named may leave it out. */
const warningOf = ({ id, mustBeNamed }: Agent): string | null =>
  mustBeNamed
    ? null
    : `The agent's keys may open warrants without naming it (agent_id), and this session does not limit those. To close that: holdfast agents update ${id} --must-be-named on`;

function parseLimits(input: SessionInput): SessionLimits | Refusal {
  const perWarrantMax = mostIfGiven("per_warrant_max", input.per_warrant_max);
  if (isRefusal(perWarrantMax)) return perWarrantMax;
  const hourlyMax = mostIfGiven("hourly_max", input.hourly_max);
  if (isRefusal(hourlyMax)) return hourlyMax;
  const dailyMax = mostIfGiven("daily_max", input.daily_max);
  if (isRefusal(dailyMax)) return dailyMax;
  const payees = listIfGiven("payees", input.payees, parsePayee);
  if (isRefusal(payees)) return payees;
  const sourceOrigins = listIfGiven("source_origins", input.source_origins, parseOrigin);
  if (isRefusal(sourceOrigins)) return sourceOrigins;
  return { perWarrantMax, hourlyMax, dailyMax, payees, sourceOrigins };
}

const parseMost = (field: string, text: unknown): bigint | Refusal =>
  parseAmount(text) ?? refuseField(field, "must be a string of digits, at most 9223372036854775807");

const mostIfGiven = (field: string, text: string | undefined): bigint | null | Refusal =>
  text === undefined ? null : parseMost(field, text);

function listIfGiven(
  field: string,
  entries: readonly string[] | undefined,
  parse: (path: string, entry: unknown) => string | Refusal,
): readonly string[] | null | Refusal {
  if (entries === undefined) return null;
  if (entries.length === 0 || entries.length > LIST_MAX)
    return refuseField(field, `must be 1 to ${LIST_MAX} entries`);
  const parsed: string[] = [];
  for (const [index, entry] of entries.entries()) {
    const one = parse(`${field}.${index}`, entry);
    if (isRefusal(one)) return one;
    parsed.push(one);
  }
  return parsed;
}

/** The revocation of a session: the row to write, its audit entry, and the session as the answer shows it. */
function revoke(
  before: SpendSession,
  now: number,
): { readonly put: Put; readonly entry: Entry; readonly record: SessionRecord } {
  const row = { ...before, revokedAt: now };
  const record = spendSessionRecord(row);
  return {
    put: { kind: "spendSession", before, row },
    entry: {
      action: "spend_session.revoked",
      subject: before.id,
      before: spendSessionRecord(before),
      after: record,
    },
    record,
  };
}

/** Revokes a spend session. A revoked session stays as it is. */
export async function revokeSession(
  ctx: Context,
  authority: Authority,
  input: { readonly session_id: string },
): Promise<SessionRecord | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const notFound = refuse("session_not_found", `There is no spend session ${input.session_id}.`);
  const agent = await ctx.store.read(async (reader) => {
    const known = await reader.agents.session(input.session_id);
    return known && findAgent(reader, authority, known.agentId);
  });
  if (!agent || isRefusal(agent)) return notFound;
  return administer(ctx, authority, "admin", {
    scope: agent,
    needs: { spendSession: input.session_id },
    decide: ({ spendSession: before }, now): Audited<SessionRecord> => {
      if (!before) return { answer: notFound };
      if (before.revokedAt !== null) return { answer: spendSessionRecord(before) };
      const { put, entry, record } = revoke(before, now);
      return { answer: record, put: [put], entries: [entry] };
    },
  });
}

/** When the session is to expire, epoch milliseconds; null where it is not said. */
function parseExpiry(text: string | undefined, now: number): number | null | Refusal {
  if (text === undefined) return null;
  const time = parseTime(text);
  if (time === null)
    return refuseField("expires_at", "must be an ISO 8601 time with a zone, such as 2030-01-31T12:00:00Z");
  if (time <= now) return refuseField("expires_at", "must be in the future");
  return time - now > LIFETIME_MAX_MS ? refuseField("expires_at", "must be at most 5 years ahead") : time;
}
