import type { Mode } from "../../core/roles.ts";
import type { Spec, State, Warrant } from "../../core/warrant.ts";
import { hexOf } from "./columns.ts";

/**
 * A warrant with the ids that its positions stand for. It is SQL of its own, since it is read with every move and with most
 * requests. The joins are outer ones, so that SQLite always begins with the warrant.
 */
export const WARRANT_COLUMNS = `w.position, w.id, scopes.organisation_id, scopes.mode, w.state, w.version, w.amount,
  accounts.asset, w.released_bps, w.payee, w.spec, w.spec_hash, agents.id AS agent_id, spend_sessions.id AS session_id,
  verifiers.id AS verifier_id, policies.id AS policy_id, policies.version AS policy_version,
  policies.rules_hash AS policy_rules_hash, w.rules_hash, w.trace_head, w.deadline, w.opened_at, w.verifying_since, w.settled_at`;
export const WARRANT_TABLES = `warrants AS w
  LEFT JOIN scopes ON scopes.position = w.scope
  LEFT JOIN accounts ON accounts.position = w.account
  LEFT JOIN agents ON agents.position = w.agent
  LEFT JOIN spend_sessions ON spend_sessions.position = w.session
  LEFT JOIN verifiers ON verifiers.position = w.verifier
  LEFT JOIN policies ON policies.position = w.policy`;
export const SELECT_WARRANTS = `SELECT ${WARRANT_COLUMNS} FROM ${WARRANT_TABLES}`;

/** A row of `SELECT_WARRANTS`. */
export type StoredWarrant = {
  readonly position: bigint;
  readonly id: string;
  readonly organisation_id: string;
  readonly mode: Mode;
  readonly state: State;
  readonly version: bigint;
  readonly amount: bigint;
  readonly asset: string;
  readonly released_bps: bigint | null;
  readonly payee: string;
  readonly spec: string;
  readonly spec_hash: Uint8Array;
  readonly agent_id: string | null;
  readonly session_id: string | null;
  readonly verifier_id: string | null;
  readonly policy_id: string | null;
  readonly policy_version: bigint | null;
  readonly policy_rules_hash: string | null;
  readonly rules_hash: Uint8Array | null;
  readonly trace_head: Uint8Array;
  readonly deadline: bigint;
  readonly opened_at: bigint;
  readonly verifying_since: bigint | null;
  readonly settled_at: bigint | null;
};

const numberOrNull = (value: bigint | null): number | null => (value === null ? null : Number(value));

export const warrantOf = (row: StoredWarrant): Warrant => ({
  id: row.id,
  organisationId: row.organisation_id,
  mode: row.mode,
  state: row.state,
  version: Number(row.version),
  amount: row.amount,
  asset: row.asset,
  releasedBps: numberOrNull(row.released_bps),
  payee: row.payee,
  spec: JSON.parse(row.spec) as Spec,
  specHash: hexOf(row.spec_hash),
  agentId: row.agent_id,
  sessionId: row.session_id,
  verifierId: row.verifier_id,
  policyId: row.policy_id,
  policyVersion: numberOrNull(row.policy_version),
  rulesHash: row.rules_hash === null ? (row.policy_rules_hash ?? "") : hexOf(row.rules_hash),
  traceHead: hexOf(row.trace_head),
  deadline: Number(row.deadline),
  openedAt: Number(row.opened_at),
  verifyingSince: numberOrNull(row.verifying_since),
  settledAt: numberOrNull(row.settled_at),
});
