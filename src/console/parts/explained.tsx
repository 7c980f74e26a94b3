/** @jsxImportSource hono/jsx */
import type { ClauseResult, Evaluation } from "../../core/clauses/evidence.ts";
import type { ClauseCode } from "../../core/clauses/reason-codes.ts";
import { clauseTemplates, EXPLAINED_CODES } from "../../core/clauses/registry.ts";
import { Asked, Seen } from "./evidence.tsx";
import { Passed, Reason, Sentence } from "./figures.tsx";

/** The result of each clause, with what it asks for and why it failed, in sentences. */

const WHY: Readonly<Record<ClauseCode, string>> = {
  ...EXPLAINED_CODES,
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
    <Passed of={passed} />
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
