import type { Spec, State, Warrant } from "../../core/warrant.ts";
import { hexOf } from "./columns.ts";
import type { Names } from "./names.ts";

/**
 * A row of `warrants` as the driver reads it. Nearly every request reads one, and drizzle's mapping would
 * take twice as long.
 */
export type StoredWarrant = {
  readonly position: bigint;
  readonly id: string;
  readonly scope: bigint;
  readonly account: bigint;
  readonly state: State;
  readonly version: bigint;
  readonly amount: bigint;
  readonly released_bps: bigint | null;
  readonly payee: string;
  readonly spec: string;
  readonly spec_hash: Uint8Array;
  readonly agent: bigint | null;
  readonly session: bigint | null;
  readonly verifier: bigint | null;
  readonly policy: bigint | null;
  readonly rules_hash: Uint8Array | null;
  readonly trace_head: Uint8Array;
  readonly deadline: bigint;
  readonly opened_at: bigint;
  readonly verifying_since: bigint | null;
  readonly grace_until: bigint | null;
  readonly settled_at: bigint | null;
  readonly opened_by_agent: bigint | null;
  readonly opened_by_user: string | null;
};

const numberOrNull = (value: bigint | null): number | null => (value === null ? null : Number(value));

/**
 * @param specOf reads the text of a spec
 * @throws where a position names no row
 */
export function warrantOf(
  row: StoredWarrant,
  names: Names,
  specOf = (text: string) => JSON.parse(text) as Spec,
): Warrant {
  const found = <K extends Parameters<Names["find"]>[0]>(kind: K, position: bigint) => {
    const name = names.find<K>(kind, position);
    if (name === null) throw new Error(`there is no ${kind} at position ${position}`);
    return name;
  };
  const { organisation_id: organisationId, mode } = found("scope", row.scope);
  const policy = row.policy === null ? null : found("policy", row.policy);
  const openedBy =
    row.opened_by_agent !== null
      ? ({ kind: "agent", id: found("agent", row.opened_by_agent).id } as const)
      : row.opened_by_user !== null
        ? ({ kind: "user", id: row.opened_by_user } as const)
        : null;
  return {
    id: row.id,
    organisationId,
    mode,
    state: row.state,
    version: Number(row.version),
    amount: row.amount,
    asset: found("account", row.account).asset,
    releasedBps: numberOrNull(row.released_bps),
    payee: row.payee,
    spec: specOf(row.spec),
    specHash: hexOf(row.spec_hash),
    agentId: row.agent === null ? null : found("agent", row.agent).id,
    openedBy,
    sessionId: row.session === null ? null : found("session", row.session).id,
    verifierId: row.verifier === null ? null : found("verifier", row.verifier).id,
    policyId: policy?.id ?? null,
    policyVersion: policy && Number(policy.version),
    rulesHash: policy ? policy.rules_hash : hexOf(row.rules_hash ?? new Uint8Array()),
    traceHead: hexOf(row.trace_head),
    deadline: Number(row.deadline),
    openedAt: Number(row.opened_at),
    verifyingSince: numberOrNull(row.verifying_since),
    graceUntil: numberOrNull(row.grace_until),
    settledAt: numberOrNull(row.settled_at),
  };
}
