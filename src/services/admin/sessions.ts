import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { parseAmount } from "../../core/money.ts";
import type { SpendSession } from "../../core/session.ts";
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
  /** RFC 3339. By default the session expires in 7 days. */
  readonly expires_at?: string;
};

type SessionRecord = ReturnType<typeof spendSessionRecord>;

/** Creates an agent's spend session, and revokes the one before it in the same commit. */
export async function createSession(
  ctx: Context,
  authority: Authority,
  input: SessionInput,
): Promise<SessionRecord | Refusal> {
  const { warrant_limit: warrantLimit = null, failure_budget: failureBudget } = input;
  const refused =
    refuseAuthority(authority, "admin") ??
    (warrantLimit === null ? null : refuseInteger("warrant_limit", warrantLimit, 1, WARRANT_LIMIT_MAX)) ??
    (failureBudget === undefined
      ? null
      : refuseInteger("failure_budget", failureBudget, 1, FAILURE_BUDGET_MAX));
  if (refused) return refused;
  const amountCeiling = parseAmount(input.amount_ceiling);
  if (amountCeiling === null)
    return refuseField("amount_ceiling", "must be a string of digits, at most 9223372036854775807");
  const expiresAt = parseExpiry(input.expires_at, ctx.now());
  if (isRefusal(expiresAt)) return expiresAt;
  const agent = await ctx.store.read((reader) => findAgent(reader, authority, input.agent_id));
  if (isRefusal(agent)) return agent;
  const id = ctx.newId("spendSession");
  return administer(ctx, authority, "admin", {
    scope: agent,
    needs: { agent: agent.id, agentSession: { from: "agent" } },
    decide: (snapshot, now): Audited<SessionRecord> => {
      if (!snapshot.agent) return { answer: agentNotFound(agent.id) };
      const row: SpendSession = {
        id,
        agentId: agent.id,
        amountCeiling,
        amountSpent: 0n,
        warrantLimit,
        warrantCount: 0,
        failureBudget: failureBudget ?? snapshot.agent.failureBudget,
        failureCount: 0,
        expiresAt: expiresAt ?? now + LIFETIME_DEFAULT_MS,
        revokedAt: null,
        createdAt: now,
      };
      const answer = spendSessionRecord(row);
      const put: Put = { kind: "spendSession", before: null, row };
      const entry: Entry = { action: "spend_session.created", subject: id, before: null, after: answer };
      const { agentSession } = snapshot;
      if (!agentSession || agentSession.revokedAt !== null) return { answer, put: [put], entries: [entry] };
      const revoked = revoke(agentSession, now);
      return { answer, put: [revoked.put, put], entries: [revoked.entry, entry] };
    },
  });
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
