import { isRefusal, statusOf } from "../core/errors.ts";
import { sayOtherMode } from "../services/other-mode.ts";
import type { Result } from "./answers.ts";
import type { FoundRoute } from "./app.ts";
import type { Call } from "./call.ts";

/**
 * The answer, where a 404 also says that what was named exists in the other mode of the caller's organisation. The reads of an
 * API key say so themselves, and what is public has no mode.
 */
export function explained(call: Call, found: FoundRoute | null, result: Result): Result | Promise<Result> {
  if (!isRefusal(result) || statusOf(result.refused) !== 404) return result;
  const { ctx, caller, method } = call;
  if (caller === null || !found?.route.rule.access || (caller.kind === "key" && method === "GET"))
    return result;
  const { agent_id: agentId } = (call.body ?? {}) as { readonly agent_id?: unknown };
  return sayOtherMode(ctx, caller, result, [...Object.values(call.params ?? {}), agentId]);
}
