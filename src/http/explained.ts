import { isRefusal, statusOf } from "../core/errors.ts";
import { sayOtherMode } from "../services/other-mode.ts";
import type { Result } from "./answers.ts";
import type { FoundRoute } from "./app.ts";
import type { Call } from "./call.ts";

/**
 * What is answered; a 404 also says where the caller's organisation has what was named in its other mode. What a key reads says
 * so itself, and what is public has no mode.
 */
export function explained(call: Call, found: FoundRoute | null, result: Result): Result | Promise<Result> {
  if (!isRefusal(result) || statusOf(result.refused) !== 404) return result;
  const { ctx, caller, method } = call;
  if (caller === null || !found?.route.rule.access || (caller.kind === "key" && method === "GET"))
    return result;
  const { agent_id: agentId } = (call.body ?? {}) as { readonly agent_id?: unknown };
  return sayOtherMode(ctx, caller, result, [...Object.values(call.params ?? {}), agentId]);
}
