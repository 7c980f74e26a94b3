import { Type } from "@sinclair/typebox";
import type { Evaluation } from "../core/clauses/evidence.ts";
import { REASON_CODES } from "../core/clauses/reason-codes.ts";
import { CLAUSE_KINDS } from "../core/clauses/registry.ts";
import {
  arrayOf,
  boolean,
  form,
  fraction,
  hash,
  object,
  oneOf,
  orNull,
  time,
  type Wire,
} from "../core/form.ts";
import { isoTime } from "../core/time.ts";
import { clauseForm, reasonCodesForm } from "./clause.ts";

/** The bench's answer (interface.md, Check result), in the engine's scale: a score from 0 to 1. */

const clauseResultForm = form("ClauseResult", () =>
  object({
    kind: oneOf(CLAUSE_KINDS),
    clause: clauseForm(),
    passed: boolean,
    reason_code: orNull(oneOf(REASON_CODES)),
    observed: Type.Unknown({ description: "What was seen; null where there is nothing to show." }),
  }),
);

export const checkResultForm = form("CheckResult", () =>
  object({
    passed: boolean,
    score: fraction,
    reason_codes: reasonCodesForm(),
    evidence_hash: hash,
    evaluated_at: time,
    details: arrayOf(clauseResultForm()),
  }),
);

export const checkResultResource = (evaluation: Evaluation): Wire<typeof checkResultForm> => ({
  passed: evaluation.passed,
  score: evaluation.score,
  reason_codes: evaluation.reasonCodes,
  evidence_hash: evaluation.evidenceHash,
  evaluated_at: isoTime(evaluation.evaluatedAt),
  details: evaluation.details,
});
