import { sha256 } from "../canonical.ts";
import type { ClauseCode, SourceCode } from "./reason-codes.ts";
import type { Clause, ClauseKind } from "./registry.ts";

/** What the three coming-soon kinds read. Nothing supplies it on a live warrant, so they fail closed there. */
export type SuppliedValues = {
  readonly uptimeRatio: number | null;
  readonly emittedTopics: readonly string[] | null;
  readonly judgeScore: number | null;
};

/** What the source answered. `body` is content-decoded. */
export type ReachedEvidence = SuppliedValues & {
  readonly reached: true;
  readonly status: number | null;
  readonly body: Uint8Array;
  /** Epoch ms. Only a bench run supplies it, and it wins over the body's own time. Null in a verification. */
  readonly generatedAt: number | null;
  /** Epoch ms of `Last-Modified`, used where the body's top-level `generated_at` says nothing. */
  readonly lastModifiedAt: number | null;
};

/** Nothing could be read. Every clause fails with `reason`, except the three coming-soon kinds. */
export type UnreachedEvidence = SuppliedValues & { readonly reached: false; readonly reason: SourceCode };

export type Evidence = ReachedEvidence | UnreachedEvidence;

export type ClauseResult = {
  readonly kind: ClauseKind;
  /** The clause as given. */
  readonly clause: Clause;
  readonly passed: boolean;
  /** Null where the clause passed. */
  readonly reason_code: ClauseCode | null;
  /** What was seen, as JSON; null where there is nothing to show. */
  readonly observed: unknown;
};

export type Evaluation = {
  readonly passed: boolean;
  /** Share of clauses that passed, 0 to 1. */
  readonly score: number;
  /** Each code once, in the order of the clauses. */
  readonly reasonCodes: readonly ClauseCode[];
  readonly details: readonly ClauseResult[];
  readonly evidenceHash: string;
  /** Epoch ms. */
  readonly evaluatedAt: number;
};

const NOTHING_SUPPLIED: SuppliedValues = { uptimeRatio: null, emittedTopics: null, judgeScore: null };
const NO_BYTES = new Uint8Array();

/** Evidence of an answer. Fields that are not given are null, and the body is empty. */
export const reachedEvidence = (given: Partial<Omit<ReachedEvidence, "reached">>): ReachedEvidence => ({
  ...NOTHING_SUPPLIED,
  status: null,
  body: NO_BYTES,
  generatedAt: null,
  lastModifiedAt: null,
  ...given,
  reached: true,
});

/** Evidence where no answer could be read. */
export const unreachedEvidence = (
  reason: SourceCode,
  supplied: Partial<SuppliedValues> = {},
): UnreachedEvidence => ({ ...NOTHING_SUPPLIED, ...supplied, reached: false, reason });

const digests = new WeakMap<Uint8Array, string>();

/** Lower-case hex SHA-256 of the content-decoded bytes; of no bytes where there are none. Hashed once for a body. */
export function evidenceHashOf(evidence: Evidence): string {
  const body = evidence.reached ? evidence.body : NO_BYTES;
  const digest = digests.get(body) ?? sha256(body);
  digests.set(body, digest);
  return digest;
}

/** The evaluation that the clauses' results add up to. `evaluatedAt` is in epoch ms. */
export function summarise(
  details: readonly ClauseResult[],
  evidenceHash: string,
  evaluatedAt: number,
): Evaluation {
  const passedCount = details.filter((result) => result.passed).length;
  const codes = details.flatMap((result) => (result.reason_code === null ? [] : [result.reason_code]));
  return {
    passed: details.length > 0 && passedCount === details.length,
    score: details.length === 0 ? 0 : passedCount / details.length,
    reasonCodes: [...new Set(codes)],
    details,
    evidenceHash,
    evaluatedAt,
  };
}
