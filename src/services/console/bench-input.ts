import { Value } from "@sinclair/typebox/value";
import { isRefusal, type Refusal, refuseField } from "../../core/errors.ts";
import { benchBody } from "../../resources/bench.ts";
import type { BenchInput } from "../run-bench.ts";
import { readJsonField } from "./clause-input.ts";

/** What people write on the bench, as its verb takes it. */

type Fields = Readonly<Record<string, string>>;

/** An array of clauses, a single one, or the object that holds them, as the documentation shows each. */
export function readClauses(text: string): readonly unknown[] | Refusal {
  const parsed = readJsonField(text, "clauses");
  if (isRefusal(parsed)) return parsed;
  const { value } = parsed;
  if (Array.isArray(value)) return value;
  const { clauses, kind } = (value ?? {}) as { readonly clauses?: unknown; readonly kind?: unknown };
  if (Array.isArray(clauses)) return clauses;
  return kind === undefined
    ? refuseField(
        "clauses",
        'must be an array of clauses, such as [{ "kind": "http.status", "equals": 200 }]',
      )
    : [value];
}

/** What is not filled in was not supplied. */
export function readDeliverable(fields: Fields, clauses: readonly unknown[]): BenchInput | Refusal {
  const numberOf = (name: string) => {
    const text = (fields[name] ?? "").trim();
    return text === "" ? {} : { [name]: /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text };
  };
  const generatedAt = (fields.generated_at ?? "").trim();
  const topics = (fields.emitted_topics ?? "").split(",").map((topic) => topic.trim());
  const body = {
    clauses,
    deliverable: {
      reached: true,
      raw: fields.raw ?? "",
      ...numberOf("status"),
      ...numberOf("uptime_ratio"),
      ...numberOf("judge_score"),
      ...(generatedAt !== "" && { generated_at: generatedAt }),
      ...(topics.some(Boolean) && { emitted_topics: topics.filter(Boolean) }),
    },
  };
  const error = Value.Errors(benchBody, body).First();
  // Clauses that are wrong are refused by the verb, which names their fields.
  if (!error || error.path.startsWith("/clauses")) return body as unknown as BenchInput;
  return refuseField(error.path.split("/").at(-1) ?? "", `must be ${error.schema.description}`);
}
