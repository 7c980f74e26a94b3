import type { AuthSession } from "../core/auth-session.ts";
import type { Budget } from "../core/rate.ts";
import type { Caller } from "../core/roles.ts";
import type { User } from "../core/user.ts";
import type { Context } from "../services/context.ts";
import type { Idempotency } from "../services/idempotency.ts";
import type { Models } from "./check-input.ts";
import type { Operation } from "./operation.ts";
import type { Pages } from "./pages.ts";

/** One request on its way, as the shell knows it and the handlers need it. */
export type Call = {
  readonly ctx: Context;
  /** The service's own id of the request. */
  readonly requestId: string;
  readonly docsUrl: string;
  readonly pages: Pages;
  /** Logs a fault that nobody foresaw, with the request's id. */
  readonly reportFault: (error: unknown) => void;
  /** Of the running service; null in a shell by itself. */
  readonly operation: Operation | null;
  /** The client's address; an IPv6 one as its /64. Asked for where nobody is signed in. */
  readonly address: () => string;
  caller: Caller | null;
  /** Whether the worker calls, on a route of its own. */
  worker: boolean;
  /** The person and the sign-in, where a cookie was honoured. */
  signedIn: { readonly user: User; readonly session: AuthSession } | null;
  budget: Budget | null;
  /** The route's pattern, such as `/v1/warrants/:id`; null before it is found, and where there is none. */
  route: string | null;
  /** What the route asks of the query and the body. */
  models: Models;
  /** Present on the routes that move money. */
  intent: Idempotency | null;
  /** The body's JSON object, read and checked in form. */
  body: Readonly<Record<string, unknown>> | null;
  /** Whether the connection ends with the answer: nobody waits for the rest of the body. */
  closes: boolean;
};

/** Calls under way. Elysia makes its own context for a request; this is how a handler finds ours. */
export const calls = new WeakMap<Request, Call>();

/** The caller of a route that asks for one. */
export function callerOf(call: Call): Caller {
  if (!call.caller) throw new Error("a guarded route without a caller");
  return call.caller;
}

/** The intent of a route that asks for an Idempotency-Key. */
export function intentOf(call: Call): Idempotency {
  if (!call.intent) throw new Error("a money-moving route without an intent");
  return call.intent;
}
