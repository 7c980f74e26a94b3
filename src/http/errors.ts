import { type ValueError, ValueErrorType } from "@sinclair/typebox/errors";
import { ContendedFault, type Refusal, refuse, refuseField, statusOf, UndoneFault } from "../core/errors.ts";
import { errorResource } from "../resources/error.ts";
import { type Answer, json } from "./answers.ts";
import type { Call } from "./call.ts";

/** The one place that turns refusals and faults into the error envelope (docs/idempotency, "Errors"). */

/** A refusal as an answer. */
export const errorAnswer = (
  { requestId, setup }: Call,
  refusal: Refusal,
): Answer & { readonly body: string } => ({
  ...json(errorResource(refusal, requestId, setup.docsUrl), statusOf(refusal.refused)),
  refused: refusal.refused,
});

export const refuseUnknownRoute = (method: string, path: string): Refusal =>
  refuse("route_not_found", `There is no ${method} ${path}.`);

const CONTENDED = refuse(
  "rate_limit_exceeded",
  "Other work of the database is in the way of this read. Retry shortly.",
);

/** The refusal for an unexpected error. What caused it goes only to the log. */
export function refuseByFault(error: unknown, { method }: Pick<Call, "method">): Refusal {
  // What writes may read after it has written.
  if (error instanceof ContendedFault && method === "GET") return CONTENDED;
  const what =
    error instanceof UndoneFault
      ? error.message
      : "Something went wrong in the service, and it is not known what was done.";
  return refuse("internal_error", `${what} Retry with the same Idempotency-Key.`);
}

/** The refusal of a field that does not fit its model. The message starts with the path, such as `spec.clauses`. */
export function validationRefusal(finding: ValueError | undefined): Refusal {
  if (!finding) return refuse("validation_failed", "The request does not have the right form.");
  const path = finding.path.slice(1).replaceAll("/", ".") || "body";
  switch (finding.type) {
    case ValueErrorType.ObjectAdditionalProperties:
      return refuseField(path, "unknown field");
    case ValueErrorType.ObjectRequiredProperty:
      return refuseField(path, withRule("is required", finding));
    default:
      return refuseField(path, withRule("", finding));
  }
}

function withRule(problem: string, { schema, message }: ValueError): string {
  const rule = schema.description === undefined ? message.toLowerCase() : `must be ${schema.description}`;
  return problem === "" ? rule : `${problem}; it ${rule}`;
}
