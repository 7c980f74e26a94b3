import { type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { AGENT_STATUSES } from "../core/agent.ts";
import { AUDIT_ACTIONS } from "../core/audit-entry.ts";
import { REASON_CODES } from "../core/clauses/reason-codes.ts";
import { CLAUSE_KINDS, clauseModels } from "../core/clauses/registry.ts";
import { ERRORS, typeOf } from "../core/errors.ts";
import { DECISIONS } from "../core/escalation.ts";
import { OUTCOMES } from "../core/policy.ts";
import { MODES, ROLES } from "../core/roles.ts";
import { STATES } from "../core/warrant.ts";
import { passkeyModels } from "./passkey-models.ts";
import { webhookModels } from "./webhook-models.ts";
import { x402Models } from "./x402-models.ts";

/**
 * The forms of answers (interface.md, Resources and their fields), for the API's description. Nothing validates with them
 * at run time; a test holds real answers against them. An inner model stands before those that contain it.
 */

/** Every field is required. More may come in later versions. */
const object = (properties: TProperties) => Type.Object(properties);
const orNull = (schema: TSchema) => Type.Union([schema, Type.Null()]);
const oneOf = (values: readonly string[]) => Type.Union(values.map((value) => Type.Literal(value)));
const is = (name: string) => Type.Literal(name);

const text = Type.String();
const time = Type.String({ format: "date-time" });
const amount = Type.String({ pattern: "^[0-9]+$", description: "In the asset's smallest unit." });
const hash = Type.String({ pattern: "^[0-9a-f]{64}$", description: "Lower-case hex SHA-256." });
const integer = Type.Integer();
const count = Type.Integer({ minimum: 0 });
const share = orNull(Type.Integer({ minimum: 1, maximum: 10_000, description: "In basis points." }));
const score = Type.Integer({ minimum: 0, maximum: 10_000, description: "In basis points." });
const state = oneOf(STATES);
const mode = oneOf(MODES);

const clause = Type.Union(CLAUSE_KINDS.map((kind) => clauseModels[kind]));
const spec = object({ clauses: Type.Array(clause) });
const reasonCodes = Type.Array(oneOf(REASON_CODES));

const warrant = object({
  id: text,
  object: is("warrant"),
  state,
  version: Type.Integer({ minimum: 1 }),
  amount,
  asset: text,
  released_bps: share,
  payee: text,
  spec_hash: hash,
  spec,
  agent_id: orNull(text),
  verifier_id: orNull(text),
  policy_id: orNull(text),
  policy_version: orNull(integer),
  deadline: time,
  opened_at: time,
  settled_at: orNull(time),
  created_at: time,
});

const actor = object({ kind: oneOf(["agent", "user", "system"]), id: orNull(text) });
const traceFields = {
  to: state,
  from: orNull(state),
  actor,
  recorded_at: time,
  payload_hash: hash,
  rules_hash: hash,
  chain_ref: orNull(text),
};
const traceEntry = object(traceFields);

const clauseResult = object({
  kind: oneOf(CLAUSE_KINDS),
  clause,
  passed: Type.Boolean(),
  reason_code: orNull(oneOf(REASON_CODES)),
  observed: Type.Unknown({ description: "What was seen; null where there is nothing to show." }),
});
const checkResult = object({
  passed: Type.Boolean(),
  score: Type.Number({ minimum: 0, maximum: 1 }),
  reason_codes: reasonCodes,
  evidence_hash: hash,
  evaluated_at: time,
  details: Type.Array(clauseResult),
});

const escalationFields = {
  id: text,
  object: is("escalation"),
  warrant_id: text,
  check_id: orNull(text),
  score: orNull(score),
  reason_codes: reasonCodes,
  status: oneOf(["open", "disputed", "resolved"]),
  decision: orNull(oneOf(DECISIONS)),
  released_bps: share,
  note: orNull(text),
  raised_by: orNull(text),
  resolved_by: orNull(text),
  created_at: time,
  resolved_at: orNull(time),
};
const escalation = object(escalationFields);

const receiptCheck = object({
  id: text,
  source_origin: text,
  source_url_hash: hash,
  http_status: orNull(integer),
  bytes: count,
  score,
  passed: Type.Boolean(),
  reason_codes: reasonCodes,
  evidence_hash: hash,
  details: Type.Array(
    object({
      kind: oneOf(CLAUSE_KINDS),
      passed: Type.Boolean(),
      reason_code: orNull(oneOf(REASON_CODES)),
    }),
  ),
  outcome: oneOf(OUTCOMES),
  evaluated_at: time,
});
const receipt = object({
  object: is("receipt"),
  mode,
  warrant: object({
    id: text,
    state,
    amount,
    asset: text,
    released_bps: share,
    payee: text,
    spec_hash: hash,
    spec: orNull(spec),
    policy_version: orNull(integer),
    rules_hash: hash,
    opened_at: time,
    settled_at: time,
  }),
  checks: Type.Array(receiptCheck),
  trace: Type.Array(
    object({
      ...traceFields,
      sequence: count,
      payload: Type.Object({}, { additionalProperties: true, description: "What payload_hash hashes." }),
      entry_hash: hash,
    }),
  ),
  anchor: Type.Unknown({ description: "Null until there is one." }),
  signature: orNull(text),
});

const verifier = object({
  id: text,
  object: is("verifier"),
  type: oneOf(CLAUSE_KINDS),
  name: text,
  config: Type.Object(
    {},
    { additionalProperties: true, description: "The clause's fields apart from kind." },
  ),
  created_at: time,
});

const policy = object({
  id: text,
  object: is("policy"),
  agent_id: orNull(text),
  name: text,
  version: Type.Integer({ minimum: 1 }),
  rules: object({
    bands: Type.Array(
      object({
        minScore: Type.Number({ minimum: 0, maximum: 1 }),
        outcome: oneOf(OUTCOMES),
        releasedBps: Type.Optional(
          Type.Integer({ minimum: 1, maximum: 9_999, description: "With partial_release." }),
        ),
        label: Type.Optional(text),
      }),
      { minItems: 1 },
    ),
    maxAmount: Type.Optional(amount),
    alwaysEscalate: Type.Optional(reasonCodes),
    alwaysRefund: Type.Optional(reasonCodes),
  }),
  rules_hash: hash,
  created_at: time,
});

const spendSession = object({
  id: text,
  amount_ceiling: amount,
  amount_spent: amount,
  warrant_limit: orNull(integer),
  warrant_count: count,
  failure_budget: integer,
  failure_count: count,
  expires_at: time,
});
const agent = object({
  id: text,
  object: is("agent"),
  mode,
  name: text,
  identity: text,
  status: oneOf(AGENT_STATUSES),
  failure_budget: integer,
  failure_count: count,
  must_be_named: Type.Boolean({ description: "Whether its keys must send agent_id on open." }),
  created_at: time,
  policy: orNull(object({ agentId: orNull(text), name: text, version: integer })),
  session: orNull(spendSession),
  warrants: object({
    total: count,
    by_state: Type.Object({}, { additionalProperties: count, description: "Keyed by state." }),
  }),
});

const apiKey = object({
  id: text,
  object: is("api_key"),
  agent_id: text,
  mode,
  last_four: text,
  created_at: time,
  expires_at: orNull(time),
  last_used_at: orNull(time),
  revoked_at: orNull(time),
});

const user = object({
  id: text,
  object: is("user"),
  organisation_id: text,
  email: text,
  name: text,
  role: oneOf(ROLES),
  created_at: time,
  removed_at: orNull(time),
});

const readBack = orNull(
  Type.Object(
    {},
    { additionalProperties: true, description: "As read back; null where there was, or is, nothing." },
  ),
);
const auditLogEntry = object({
  id: text,
  object: is("audit_log_entry"),
  actor: object({ kind: oneOf(["user", "machine"]), id: orNull(text) }),
  action: oneOf(AUDIT_ACTIONS),
  subject: text,
  before: readBack,
  after: readBack,
  recorded_at: time,
});

const list = (item: TSchema, more: TProperties = {}) =>
  object({ object: is("list"), data: Type.Array(item), ...more });

/** Named models, as `components.schemas` has them. */
export const responseModels = {
  ...Object.fromEntries(CLAUSE_KINDS.map((kind) => [modelName(kind), clauseModels[kind]])),
  Clause: clause,
  Warrant: warrant,
  WarrantList: list(warrant, {
    has_more: Type.Boolean(),
    sort: oneOf(["deadline", "created"]),
    next_offset: orNull(integer),
    next_cursor: orNull(text),
  }),
  TraceEntry: traceEntry,
  TraceList: list(traceEntry),
  ClauseResult: clauseResult,
  CheckResult: checkResult,
  Escalation: escalation,
  EscalationList: list(escalation),
  ResolvedEscalation: object({ ...escalationFields, warrant }),
  Receipt: receipt,
  ...x402Models,
  Verifier: verifier,
  VerifierList: list(verifier, {
    templates: Type.Array(object({ kind: oneOf(CLAUSE_KINDS), description: text })),
  }),
  Policy: policy,
  PolicyList: list(policy),
  SpendSession: spendSession,
  Agent: agent,
  AgentList: list(agent),
  ...webhookModels,
  ApiKey: apiKey,
  ApiKeyList: list(apiKey),
  User: user,
  UserList: list(user),
  AuditLogEntry: auditLogEntry,
  AuditLog: list(auditLogEntry, { has_more: Type.Boolean(), next_cursor: orNull(text) }),
  ...passkeyModels,
  AuthSession: object({
    object: is("auth_session"),
    user: object({ id: text, email: text, name: text, role: oneOf(ROLES) }),
    organisation: object({ id: text, name: text }),
    mode,
    expires_at: time,
  }),
  Health: object({ object: is("health"), status: is("ok") }),
  Readiness: object({
    object: is("readiness"),
    ready: Type.Boolean(),
    checks: Type.Array(object({ name: text, ok: Type.Boolean(), message: orNull(text) })),
  }),
  Error: object({
    error: object({
      type: oneOf([...new Set(codes().map(typeOf))]),
      code: oneOf(codes()),
      message: text,
      doc_url: text,
      request_id: text,
    }),
  }),
} satisfies Record<string, TSchema>;

function codes() {
  return Object.keys(ERRORS) as (keyof typeof ERRORS)[];
}

/** `http.status` → HttpStatusClause. */
function modelName(kind: string): string {
  const words = kind.split(".").map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${words.join("")}Clause`;
}
