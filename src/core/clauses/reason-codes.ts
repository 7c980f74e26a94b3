import { CODES_OF_KINDS } from "./registry.ts";

/** The closed list of reasons why a clause failed, or why a decision differs from what the clauses alone would give. */

/** Why nothing could be read from the source. */
export const SOURCE_CODES = [
  "source_unreachable",
  "source_timeout",
  "source_too_large",
  "source_blocked",
] as const;

/** Why a clause failed: by its own kind, by its source, or by its time. */
export const CLAUSE_CODES = [...CODES_OF_KINDS, ...SOURCE_CODES, "clause_timeout"] as const;

/** Why a decision differs from what the clauses alone would give. */
export const DECISION_CODES = [
  "passkey_required",
  "share_too_small",
  "agent_killed",
  "payment_unknown",
  "payment_irrevocable",
  "payment_unused",
] as const;

export const REASON_CODES = [...CLAUSE_CODES, ...DECISION_CODES] as const;

export type SourceCode = (typeof SOURCE_CODES)[number];
export type ClauseCode = (typeof CLAUSE_CODES)[number];
export type ReasonCode = (typeof REASON_CODES)[number];
