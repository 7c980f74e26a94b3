import {
  amount,
  arrayOf,
  count,
  form,
  integer,
  is,
  object,
  orNull,
  text,
  time,
  type Wire,
} from "../core/form.ts";
import type { SpendSession } from "../core/session.ts";
import { isoTime, isoTimeOrNull } from "../core/time.ts";

/** A spend session: as a part of its agent, and alone. */

export const spendSessionForm = form("SpendSession", () =>
  object({
    id: text,
    amount_ceiling: amount,
    amount_spent: amount,
    warrant_limit: orNull(integer),
    warrant_count: count,
    failure_budget: integer,
    failure_count: count,
    per_warrant_max: orNull(amount),
    hourly_max: orNull(amount),
    daily_max: orNull(amount),
    payees: orNull(arrayOf(text)),
    source_origins: orNull(arrayOf(text)),
    expires_at: time,
  }),
);

export const spendSessionResource = (session: SpendSession): Wire<typeof spendSessionForm> => ({
  id: session.id,
  amount_ceiling: session.amountCeiling.toString(),
  amount_spent: session.amountSpent.toString(),
  warrant_limit: session.warrantLimit,
  warrant_count: session.warrantCount,
  failure_budget: session.failureBudget,
  failure_count: session.failureCount,
  per_warrant_max: session.perWarrantMax?.toString() ?? null,
  hourly_max: session.hourlyMax?.toString() ?? null,
  daily_max: session.dailyMax?.toString() ?? null,
  payees: session.payees,
  source_origins: session.sourceOrigins,
  expires_at: isoTime(session.expiresAt),
});

const spendSessionRecordForm = form("SpendSessionRecord", () =>
  object({
    ...spendSessionForm().properties,
    object: is("spend_session"),
    agent_id: text,
    created_at: time,
    revoked_at: orNull(time),
  }),
);

/** A session alone, as the answer to its creation or revocation. */
export const spendSessionRecord = (session: SpendSession): Wire<typeof spendSessionRecordForm> => ({
  ...spendSessionResource(session),
  object: "spend_session",
  agent_id: session.agentId,
  created_at: isoTime(session.createdAt),
  revoked_at: isoTimeOrNull(session.revokedAt),
});
