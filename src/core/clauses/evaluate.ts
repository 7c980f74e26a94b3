import { SECOND_MS } from "../time.ts";
import {
  documentOf,
  type JsonDocument,
  jsonEquals,
  mayBeObject,
  observedOf,
  statedTimeOf,
} from "./document.ts";
import { type ClauseResult, type Evidence, evidenceHashOf, type ReachedEvidence } from "./evidence.ts";
import type { ClauseCode } from "./reason-codes.ts";
import type { Clause } from "./registry.ts";
import type { Schemas } from "./schema.ts";

/**
 * The packages that these two load take 10 ms. A server's start does not wait for them: the server itself
 * evaluates only clauses that need no document (`needsDocument`), and its child processes evaluate the
 * others.
 */
const jsonPaths = (): typeof import("./jsonpath.ts") => require("./jsonpath.ts");
const jsonSchemas = (): typeof import("./schema.ts") => require("./schema.ts");

/** Loads both packages before the first clause comes: loading must not use up the clause's time limit. */
export function loadDocumentPackages(): void {
  jsonPaths();
  jsonSchemas();
}

/** How far in the future the time of evidence may be, since clocks differ. */
const FUTURE_MAX_MS = 300 * SECOND_MS;

type Finding = { readonly code: ClauseCode | null; readonly observed: unknown };
const found = (code: ClauseCode | null, observed: unknown = null): Finding => ({ code, observed });

/**
 * Evaluates one clause against the evidence. An error on the way fails the clause. Hostile schemas, paths and documents can
 * take long, so services use `platform/evaluator.ts`.
 *
 * @param now epoch milliseconds
 */
export function evaluateClause(
  clause: Clause,
  evidence: Evidence,
  schemas: Schemas,
  now: number,
): ClauseResult {
  let finding: Finding;
  try {
    finding = findingOf(clause, evidence, schemas, now);
  } catch {
    finding = found(failureOf(clause));
  }
  return resultOf(clause, finding.code, finding.observed);
}

/** The result of a clause. It passed where `code` is null. */
export const resultOf = (
  clause: Clause,
  code: ClauseCode | null,
  observed: unknown = null,
): ClauseResult => ({
  kind: clause.kind,
  clause,
  passed: code === null,
  reason_code: code,
  observed,
});

/** Whether a clause reads the body as JSON. A hostile body can make that take very long. */
export function needsDocument(clause: Clause, evidence: Evidence): boolean {
  if (!evidence.reached) return false;
  if (clause.kind === "json.schema" || clause.kind === "json.jsonpath") return true;
  return clause.kind === "data.freshness" && evidence.generatedAt === null && mayBeObject(evidence.body);
}

/** The code of a clause whose evaluation threw, because the stack was too deep or a pattern too large. */
function failureOf(clause: Clause): ClauseCode {
  if (clause.kind === "json.schema") return "schema_mismatch";
  return clause.kind === "json.jsonpath" ? "path_not_found" : "body_not_json";
}

function findingOf(clause: Clause, evidence: Evidence, schemas: Schemas, now: number): Finding {
  switch (clause.kind) {
    case "uptime.window":
      return reaches(evidence.uptimeRatio, clause.minRatio, "no_uptime_data", "uptime_below_minimum");
    case "llm.judge":
      return reaches(evidence.judgeScore, clause.minScore, "no_judgement", "score_below_minimum");
    case "chain.event":
      return emitted(evidence.emittedTopics, clause.topic);
  }
  if (!evidence.reached) return found(evidence.reason);
  switch (clause.kind) {
    case "http.status":
      return statusIs(evidence.status, clause.equals);
    case "file.sha256": {
      const digest = evidenceHashOf(evidence);
      return found(digest === clause.digest.toLowerCase() ? null : "digest_mismatch", digest);
    }
    case "data.freshness":
      return isFresh(evidence, clause.maxAgeSeconds, now);
    case "json.schema":
      return validates(evidence, clause.schema, schemas);
    case "json.jsonpath":
      return resolves(evidence, clause);
  }
}

function reaches(
  value: number | null,
  minimum: number,
  codeAbsent: ClauseCode,
  codeBelow: ClauseCode,
): Finding {
  if (value === null || !Number.isFinite(value)) return found(codeAbsent);
  return found(value >= minimum ? null : codeBelow, value);
}

function emitted(topics: readonly string[] | null, topic: string): Finding {
  if (topics === null) return found("no_event_log");
  return found(topics.includes(topic) ? null : "event_not_emitted", observedOf(topics));
}

function statusIs(status: number | null, wanted: number): Finding {
  if (status === wanted) return found(null, status);
  return found(status === 404 || status === 410 ? "source_not_found" : "status_mismatch", status);
}

function isFresh(evidence: ReachedEvidence, ageMaxSeconds: number, now: number): Finding {
  const statedAt = evidence.generatedAt ?? statedTimeOf(evidence.body);
  const madeAt = statedAt === undefined ? evidence.lastModifiedAt : statedAt;
  if (madeAt === null || !Number.isFinite(madeAt)) return found("no_timestamp");
  const ageMs = now - madeAt;
  const fresh = ageMs <= ageMaxSeconds * SECOND_MS && ageMs >= -FUTURE_MAX_MS;
  return found(fresh ? null : "data_stale", ageMs / SECOND_MS);
}

function validates(evidence: ReachedEvidence, name: string, schemas: Schemas): Finding {
  const schema = Object.hasOwn(schemas, name) ? schemas[name] : undefined;
  if (schema === undefined) return found("schema_not_found");
  const document = documentOf(evidence.body);
  if (document === null) return found("body_not_json");
  return found(jsonSchemas().compileSchema(schema)(document.value) ? null : "schema_mismatch");
}

function resolves(evidence: ReachedEvidence, clause: Clause<"json.jsonpath">): Finding {
  if (jsonPaths().parseJsonPath(clause.path) !== null) return found("path_unsupported");
  const document = documentOf(evidence.body);
  if (document === null) return found("body_not_json");
  return Object.hasOwn(clause, "equals")
    ? selectsExactly(clause.path, document, clause.equals)
    : selectsSomething(clause.path, document);
}

/** Without `equals`, one selected node is enough. The first one is shown as observed. */
function selectsSomething(path: string, document: JsonDocument): Finding {
  const first = jsonPaths().select(path, document.value).next();
  return first.done ? found("path_not_found") : found(null, observedOf(first.value));
}

/** With `equals`, the path must select one node only. */
function selectsExactly(path: string, document: JsonDocument, wanted: unknown): Finding {
  const values: unknown[] = [];
  for (const value of jsonPaths().select(path, document.value)) {
    values.push(value);
    if (values.length === 2) return found("value_mismatch", observedOf(values));
  }
  if (values.length === 0) return found("path_not_found");
  return found(jsonEquals(values[0], wanted) ? null : "value_mismatch", observedOf(values[0]));
}
