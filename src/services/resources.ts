import type { Agent } from "../core/agent.ts";
import type { ApiKey } from "../core/api-key.ts";
import type { AuditEntry } from "../core/audit-entry.ts";
import { sha256 } from "../core/canonical.ts";
import type { Check } from "../core/check.ts";
import type { ClauseResult, Evaluation } from "../core/clauses/evidence.ts";
import type { Deposit } from "../core/deposit.ts";
import type { Escalation } from "../core/escalation.ts";
import type { NamedSchema } from "../core/named-schema.ts";
import type { Organisation } from "../core/organisation.ts";
import type { Policy } from "../core/policy.ts";
import type { Balance } from "../core/postings.ts";
import type { Mode } from "../core/roles.ts";
import type { SpendSession } from "../core/session.ts";
import { isoTime, isoTimeOrNull } from "../core/time.ts";
import type { TraceEntry } from "../core/trace.ts";
import type { User } from "../core/user.ts";
import type { SavedVerifier } from "../core/verifier.ts";
import type { State, Warrant } from "../core/warrant.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../core/webhook.ts";

/** Wire shapes of the resources (interface.md, Resources and their fields): snake case, ISO times, digit strings. */

export const warrantResource = (warrant: Warrant) => ({
  id: warrant.id,
  object: "warrant" as const,
  state: warrant.state,
  version: warrant.version,
  amount: warrant.amount.toString(),
  asset: warrant.asset,
  released_bps: warrant.releasedBps,
  payee: warrant.payee,
  spec_hash: warrant.specHash,
  spec: warrant.spec,
  agent_id: warrant.agentId,
  verifier_id: warrant.verifierId,
  policy_id: warrant.policyId,
  policy_version: warrant.policyVersion,
  deadline: isoTime(warrant.deadline),
  opened_at: isoTime(warrant.openedAt),
  settled_at: isoTimeOrNull(warrant.settledAt),
  created_at: isoTime(warrant.openedAt),
});

/**
 * How a warrant is written into an answer, by the number that its Idempotency-Key keeps: a replay writes the answer again, the
 * same to the byte. A new form of the resource gets a number of its own, and the old ones stay.
 */
export const WARRANT_ENCODINGS: Readonly<Record<number, (warrant: Warrant) => object>> = {
  1: warrantResource,
};
export const WARRANT_ENCODING = 1;

export const traceResource = (entry: TraceEntry) => ({
  to: entry.to,
  from: entry.from,
  actor: entry.actor,
  recorded_at: isoTime(entry.recordedAt),
  payload_hash: entry.payloadHash,
  rules_hash: entry.rulesHash,
  chain_ref: null,
});

/** What a receipt shows of a check: each clause's result, not what was observed; the source's origin, not its path. */
const receiptCheck = (check: Check) => ({
  id: check.id,
  source_origin: new URL(check.sourceUrl).origin,
  source_url_hash: sha256(check.sourceUrl),
  http_status: check.httpStatus,
  bytes: check.bytes,
  score: check.score,
  passed: check.passed,
  reason_codes: check.reasonCodes,
  evidence_hash: check.evidenceHash,
  details: check.details.map(({ kind, passed, reason_code }) => ({ kind, passed, reason_code })),
  outcome: check.outcome,
  evaluated_at: isoTime(check.evaluatedAt),
});

/** The public receipt of a settled warrant (decisions.md, Trace, log, receipts). */
export const receiptResource = (
  warrant: Warrant,
  checks: readonly Check[],
  trace: readonly TraceEntry[],
) => ({
  object: "receipt" as const,
  mode: warrant.mode,
  warrant: {
    id: warrant.id,
    state: warrant.state,
    amount: warrant.amount.toString(),
    asset: warrant.asset,
    released_bps: warrant.releasedBps,
    payee: warrant.payee,
    spec_hash: warrant.specHash,
    spec: warrant.spec,
    policy_version: warrant.policyVersion,
    rules_hash: warrant.rulesHash,
    opened_at: isoTime(warrant.openedAt),
    settled_at: isoTimeOrNull(warrant.settledAt),
  },
  checks: checks.map(receiptCheck),
  trace: trace.map((entry) => ({
    ...traceResource(entry),
    sequence: entry.sequence,
    payload: JSON.parse(entry.payload) as unknown,
    entry_hash: entry.entryHash,
  })),
  anchor: null,
  signature: null,
});

export const escalationResource = (escalation: Escalation) => ({
  id: escalation.id,
  object: "escalation" as const,
  warrant_id: escalation.warrantId,
  check_id: escalation.checkId,
  score: escalation.score,
  reason_codes: escalation.reasonCodes,
  status: escalation.status,
  decision: escalation.decision,
  released_bps: escalation.releasedBps,
  note: escalation.note,
  raised_by: escalation.raisedBy,
  resolved_by: escalation.resolvedBy,
  created_at: isoTime(escalation.createdAt),
  resolved_at: isoTimeOrNull(escalation.resolvedAt),
});

/** The bench's answer: the engine's scale, a score from 0 to 1. */
export const checkResultResource = (evaluation: Evaluation) => ({
  passed: evaluation.passed,
  score: evaluation.score,
  reason_codes: evaluation.reasonCodes,
  evidence_hash: evaluation.evidenceHash,
  evaluated_at: isoTime(evaluation.evaluatedAt),
  details: evaluation.details as readonly ClauseResult[],
});

export const policyResource = (policy: Policy) => ({
  id: policy.id,
  object: "policy" as const,
  agent_id: policy.agentId,
  name: policy.name,
  version: policy.version,
  rules: policy.rules,
  rules_hash: policy.rulesHash,
  created_at: isoTime(policy.createdAt),
});

export const verifierResource = (verifier: SavedVerifier) => ({
  id: verifier.id,
  object: "verifier" as const,
  type: verifier.type,
  name: verifier.name,
  config: verifier.config,
  created_at: isoTime(verifier.createdAt),
});

export const schemaResource = (schema: NamedSchema) => ({
  id: schema.id,
  object: "schema" as const,
  name: schema.name,
  schema: schema.schema,
  schema_hash: schema.schemaHash,
  created_at: isoTime(schema.createdAt),
});

const spendSessionResource = (session: SpendSession) => ({
  id: session.id,
  amount_ceiling: session.amountCeiling.toString(),
  amount_spent: session.amountSpent.toString(),
  warrant_limit: session.warrantLimit,
  warrant_count: session.warrantCount,
  failure_budget: session.failureBudget,
  failure_count: session.failureCount,
  expires_at: isoTime(session.expiresAt),
});

/** A session on its own, as who created or revoked it sees it. */
export const spendSessionRecord = (session: SpendSession) => ({
  ...spendSessionResource(session),
  object: "spend_session" as const,
  agent_id: session.agentId,
  created_at: isoTime(session.createdAt),
  revoked_at: isoTimeOrNull(session.revokedAt),
});

export type AgentDetails = {
  readonly policy: Policy | null;
  readonly session: SpendSession | null;
  readonly countsByState: Readonly<Partial<Record<State, number>>>;
};

/** An agent on its own, as the audit log keeps it: all that an administrator sets. */
export const agentRecord = (agent: Agent) => ({
  id: agent.id,
  object: "agent" as const,
  mode: agent.mode,
  name: agent.name,
  identity: agent.identity,
  status: agent.status,
  failure_budget: agent.failureBudget,
  failure_count: agent.failureCount,
  must_be_named: agent.mustBeNamed,
  created_at: isoTime(agent.createdAt),
});

export const agentResource = (agent: Agent, { policy, session, countsByState }: AgentDetails) => ({
  ...agentRecord(agent),
  policy: policy && { agentId: policy.agentId, name: policy.name, version: policy.version },
  session: session && spendSessionResource(session),
  warrants: {
    total: Object.values(countsByState).reduce((sum, count) => sum + count, 0),
    by_state: countsByState,
  },
});

export const apiKeyResource = (key: ApiKey) => ({
  id: key.id,
  object: "api_key" as const,
  agent_id: key.agentId,
  mode: key.mode,
  last_four: key.lastFour,
  created_at: isoTime(key.createdAt),
  expires_at: isoTimeOrNull(key.expiresAt),
  last_used_at: isoTimeOrNull(key.lastUsedAt),
  revoked_at: isoTimeOrNull(key.revokedAt),
});

export const organisationResource = (organisation: Organisation) => ({
  id: organisation.id,
  object: "organisation" as const,
  name: organisation.name,
  kill_switch: organisation.killSwitch,
  passkey_threshold: organisation.passkeyThreshold?.toString() ?? null,
  created_at: isoTime(organisation.createdAt),
});

export const userResource = (user: User) => ({
  id: user.id,
  object: "user" as const,
  organisation_id: user.organisationId,
  email: user.email,
  name: user.name,
  role: user.role,
  created_at: isoTime(user.createdAt),
  removed_at: isoTimeOrNull(user.removedAt),
});

/** An entry of the audit log: who did what to which thing, how it was before and is after. */
export const auditEntryResource = (act: AuditEntry) => ({
  id: act.id,
  object: "audit_log_entry" as const,
  actor: act.actor,
  action: act.action,
  subject: act.subject,
  before: act.before,
  after: act.after,
  recorded_at: isoTime(act.recordedAt),
});

/** Without the signing secret, which is shown once, where the endpoint is made. */
export const webhookResource = (webhook: WebhookEndpoint) => ({
  id: webhook.id,
  url: webhook.url,
  events: webhook.events,
  disabled: webhook.disabled,
  created_at: isoTime(webhook.createdAt),
});

export const deliveryResource = (delivery: WebhookDelivery) => ({
  id: delivery.id,
  webhook_id: delivery.webhookId,
  event: delivery.event,
  status: delivery.status,
  attempts: delivery.attempts,
  response_code: delivery.responseCode,
  next_attempt_at: isoTimeOrNull(delivery.nextAttemptAt),
  created_at: isoTime(delivery.createdAt),
});

/** A delivery in its log: also what it carries, and how its last attempt went. */
export const deliveryRecord = (delivery: WebhookDelivery) => ({
  ...deliveryResource(delivery),
  event_id: delivery.eventId,
  warrant_id: delivery.warrantId,
  response_start: delivery.responseStart,
  duration_ms: delivery.durationMs,
});

export const depositResource = (deposit: Deposit) => ({
  id: deposit.id,
  object: "deposit" as const,
  organisation_id: deposit.organisationId,
  mode: deposit.mode,
  asset: deposit.asset,
  amount: deposit.amount.toString(),
  reference: deposit.reference,
  created_at: isoTime(deposit.createdAt),
});

export const balanceResource = (
  mode: Mode,
  balances: readonly { readonly asset: string; readonly balance: Balance }[],
) => ({
  object: "balance" as const,
  mode,
  balances: balances.map(({ asset, balance }) => ({
    asset,
    available: balance.available.toString(),
    held: balance.held.toString(),
    paid: balance.paid.toString(),
  })),
});

export const listResource = <Item, Extra extends object = Record<never, never>>(
  data: readonly Item[],
  extra?: Extra,
) => ({
  object: "list" as const,
  data,
  ...extra,
});
