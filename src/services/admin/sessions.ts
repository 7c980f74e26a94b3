import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { parseAmount } from "../../core/money.ts";
import type { SpendSession } from "../../core/session.ts";
import { DAY_MS, parseTime } from "../../core/time.ts";
import type { Row } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { spendSessionRecord } from "../resources.ts";
import { recordingAct } from "./acts.ts";
import { agentNotFound, FAILURE_BUDGET_MAX, findAgent } from "./agents.ts";
import { type Authority, administer, refuseAuthority } from "./authority.ts";
import { refuseInteger } from "./fields.ts";

const LIFETIME_DEFAULT_MS = 7 * DAY_MS;
const LIFETIME_MAX_MS = 5 * 365.25 * DAY_MS;
const WARRANT_LIMIT_MAX = 1_000_000_000;

export type SessionInput = {
  readonly agent_id: string;
  /** Units of USDC that may be held or paid under the session. */
  readonly amount_ceiling: string;
  readonly warrant_limit?: number;
  /** Without it, the agent's. */
  readonly failure_budget?: number;
  /** RFC 3339; without it, in 7 days. */
  readonly expires_at?: string;
};

type SessionRecord = ReturnType<typeof spendSessionRecord>;

/** Creates an agent's spend session; the one before it is revoked in the same commit. */
export async function createSession(
  ctx: Context,
  authority: Authority,
  input: SessionInput,
): Promise<SessionRecord | Refusal> {
  const { warrant_limit: warrantLimit = null, failure_budget: failureBudget } = input;
  const now = ctx.now();
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
  const expiresAt = parseExpiry(input.expires_at, now);
  if (isRefusal(expiresAt)) return expiresAt;
  const agent = findAgent(ctx, authority, input.agent_id);
  if (isRefusal(agent)) return agent;
  const id = ctx.newId("spendSession");
  // Two acts of one commit: of the session that ends, and of the one that begins.
  const recordedEnd = recordingAct(ctx, authority, "spend_session.revoked");
  const recorded = recordingAct(ctx, authority, "spend_session.created");
  return administer(ctx, authority, "admin", {
    scope: agent,
    needs: { agentId: agent.id },
    decide: (snapshot) => {
      if (!snapshot.agent) return { answer: agentNotFound(agent.id) };
      const session: SpendSession = {
        id,
        agentId: agent.id,
        amountCeiling,
        amountSpent: 0n,
        warrantLimit,
        warrantCount: 0,
        failureBudget: failureBudget ?? snapshot.agent.failureBudget,
        failureCount: 0,
        expiresAt,
        revokedAt: null,
        createdAt: now,
      };
      const { organisationId } = agent;
      const { session: before } = snapshot;
      const rows: Row[] = [];
      if (before && before.revokedAt === null) {
        const after = { ...before, revokedAt: now };
        const [was, is] = [spendSessionRecord(before), spendSessionRecord(after)];
        rows.push({ kind: "spendSession", row: after }, recordedEnd(organisationId, before.id, was, is));
      }
      const answer = spendSessionRecord(session);
      rows.push({ kind: "spendSession", row: session }, recorded(organisationId, id, null, answer));
      return { answer, change: { rows } };
    },
  });
}

/** Revokes a spend session. One that is revoked already stays as it is. */
export async function revokeSession(
  ctx: Context,
  authority: Authority,
  input: { readonly session_id: string },
): Promise<SessionRecord | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const notFound = refuse("session_not_found", `There is no spend session ${input.session_id}.`);
  const known = ctx.store.reader.agents.session(input.session_id);
  const agent = known ? findAgent(ctx, authority, known.agentId) : null;
  if (!known || !agent || isRefusal(agent)) return notFound;
  const now = ctx.now();
  const recorded = recordingAct(ctx, authority, "spend_session.revoked");
  return administer(ctx, authority, "admin", {
    scope: agent,
    needs: { sessionId: known.id },
    decide: ({ session }) => {
      if (!session) return { answer: notFound };
      if (session.revokedAt !== null) return { answer: spendSessionRecord(session) };
      const after = { ...session, revokedAt: now };
      const answer = spendSessionRecord(after);
      const act = recorded(agent.organisationId, session.id, spendSessionRecord(session), answer);
      return { answer, change: { rows: [{ kind: "spendSession", row: after }, act] } };
    },
  });
}

function parseExpiry(text: string | undefined, now: number): number | Refusal {
  if (text === undefined) return now + LIFETIME_DEFAULT_MS;
  const time = parseTime(text);
  if (time === null)
    return refuseField("expires_at", "must be an ISO 8601 time with a zone, such as 2030-01-31T12:00:00Z");
  if (time <= now) return refuseField("expires_at", "must be in the future");
  return time - now > LIFETIME_MAX_MS ? refuseField("expires_at", "must be at most 5 years ahead") : time;
}
