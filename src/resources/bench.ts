import { Type } from "@sinclair/typebox";
import type { Evaluation, SuppliedValues } from "../core/clauses/evidence.ts";
import { clauseResultForm, reasonCodesForm } from "../core/clauses/form.ts";
import { arrayOf, boolean, form, fraction, hash, object, time, type Wire } from "../core/form.ts";
import { isoTime } from "../core/time.ts";
import { clauses, closed, plainText } from "./input.ts";

/** The answer of the bench (docs/clauses, "The bench"). Its score is from 0 to 1, as the engine computes it. */

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

/** The values that a bench run supplies for the kinds of clauses that need more than a fetched answer. */
export const suppliedValuesOf = ({ deliverable }: Wire<typeof benchBody>): SuppliedValues => ({
  uptimeRatio: deliverable.uptime_ratio ?? null,
  emittedTopics: deliverable.emitted_topics ?? null,
  judgeScore: deliverable.judge_score ?? null,
});

export const benchBody = Type.Object(
  {
    clauses,
    deliverable: Type.Object(
      {
        reached: Type.Boolean({ description: "true or false" }),
        status: Type.Optional(Type.Integer({ description: "an integer" })),
        raw: Type.Optional(Type.String({ description: "a string of at most 128 kB" })),
        generated_at: Type.Optional(plainText({ lengthMax: 64, description: "an ISO 8601 time" })),
        uptime_ratio: Type.Optional(Type.Number({ description: "a number" })),
        emitted_topics: Type.Optional(
          Type.Array(Type.String({ maxLength: 512 }), {
            maxItems: 10_000,
            description: "an array of strings",
          }),
        ),
        judge_score: Type.Optional(Type.Number({ description: "a number" })),
      },
      { ...closed, description: "an object with reached" },
    ),
    now: Type.Optional(plainText({ lengthMax: 64, description: "an ISO 8601 time" })),
  },
  closed,
);
