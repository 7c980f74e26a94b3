/** @jsxImportSource hono/jsx */
import type { ClauseResult, Evaluation } from "../../core/clauses/evidence.ts";
import type { ClauseCode } from "../../core/clauses/reason-codes.ts";
import { clauseTemplates } from "../../core/clauses/registry.ts";
import { Asked, Seen } from "./evidence.tsx";
import { Reason, Sentence } from "./figures.tsx";

/** The result of each clause, with what it asks for and why it failed, in sentences. */

const WHY: Readonly<Record<ClauseCode, string>> = {
  status_mismatch: "The source answered with another status.",
  source_not_found: "The source says that there is nothing at this address (404 or 410).",
  body_not_json: "The body is not JSON, so nothing in it could be looked at.",
  schema_mismatch: "The body is JSON, but not as the schema wants it.",
  schema_not_found: "There is no schema of that name. Save one, or name a built-in one.",
  path_not_found: "Nothing in the body is at this path.",
  path_unsupported: "The path is not a JSONPath of RFC 9535.",
  value_mismatch: "What is at the path is not exactly the value that is asked for.",
  digest_mismatch: "The bytes hash to another SHA-256. A single byte makes another one.",
  data_stale: "The data is older than allowed, or says that it was made more than 5 minutes from now.",
  no_timestamp: "Neither generated_at in the body nor the header Last-Modified says when the data was made.",
  uptime_below_minimum: "The uptime that was supplied is below the minimum.",
  no_uptime_data: "No uptime was supplied. On a warrant nothing supplies it yet.",
  event_not_emitted: "The topic is not among the events that were supplied.",
  no_event_log: "No events were supplied. On a warrant nothing supplies them yet.",
  score_below_minimum: "The judgement that was supplied is below the minimum.",
  no_judgement: "No judgement was supplied. On a warrant nothing supplies one yet.",
  source_unreachable: "The source could not be reached: the name, the connection or its certificate failed.",
  source_timeout: "The source took too long.",
  source_too_large: "The answer is larger than a check reads.",
  source_blocked: "The address is private or otherwise not allowed here.",
  clause_timeout: "The clause took longer than a second to evaluate.",
};

const ASSERTS = new Map(clauseTemplates.map(({ kind, description }) => [kind, description]));

export const Explained = ({ evaluation }: { evaluation: Evaluation }) => (
  <ul class="clauses">
    {evaluation.details.map((result) => (
      <Explanation result={result} />
    ))}
  </ul>
);

const Explanation = ({
  result: { clause, passed, reason_code: code, observed },
}: {
  result: ClauseResult;
}) => (
  <li>
    <span class={`badge ${passed ? "pass" : "fail"}`}>{passed ? "passed" : "failed"}</span>
    <div>
      <code>{clause.kind}</code> <Asked of={clause} />
      <p class="quiet">
        <Sentence of={ASSERTS.get(clause.kind) ?? ""} />
      </p>
      {code === null ? null : (
        <p>
          <Reason code={code} /> {WHY[code]}
        </p>
      )}
      {observed === null ? null : (
        <>
          <p class="quiet">What was seen:</p>
          <Seen of={observed} />
        </>
      )}
    </div>
  </li>
);
