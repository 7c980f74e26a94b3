import { isRefusal, type Refusal, refuse } from "../core/errors.ts";
import type { Network } from "../core/networks.ts";
import type { Budget, RateLimits } from "../core/rate.ts";
import { refuseAccess } from "../core/roles.ts";
import type { Context } from "../services/context.ts";
import { app } from "./app.ts";
import { readJsonBody } from "./body.ts";
import { type Call, calls } from "./call.ts";
import { identify } from "./caller.ts";
import { faultRefusal, refusalResponse } from "./errors.ts";
import { intentOfRequest, readIdempotencyKey } from "./idempotency.ts";
import { clientAddress, createRateCounters } from "./limits.ts";
import { echoedRequestId } from "./request-id.ts";
import { type RouteRule, ruleOf } from "./route.ts";

export type HttpOptions = {
  /** Where the links in errors lead. */
  readonly docsUrl: string;
  readonly rateLimits: RateLimits;
  readonly trustedProxies: readonly Network[];
  readonly onFault: (error: unknown, requestId: string) => void;
};

/** Answers one request. `socketAddress` tells the address of the other end, which costs a system call. */
export type Shell = (request: Request, socketAddress: () => string | undefined) => Promise<Response>;

/**
 * The thin shell around the routes. It owns what every answer has, 404s and crashes included: request id, caller, rate
 * limits, the body's form, and the last-resort envelope. The order of its checks is decisions.md's "The order of checks".
 */
export function createShell(ctx: Context, options: HttpOptions): Shell {
  const counters = createRateCounters(options.rateLimits);

  function ruleFor(method: string, path: string): RouteRule | null {
    const hooks = app.router.dynamic.find(method, path)?.store.hooks as
      | { readonly detail?: object }
      | undefined;
    return hooks?.detail ? ruleOf(hooks.detail) : null;
  }

  /** The first check that refuses, in the fixed order; null where the route may run. */
  async function refusalOf(call: Call, request: Request, path: string): Promise<Refusal | null> {
    const rule = ruleFor(request.method, path);
    Object.assign(call, await identify(ctx, request));
    const who = rateKey(call);
    if (!rule) {
      call.budget = counters.peek(request.method === "GET" ? "read" : "write", who, ctx.now());
      return refuse("route_not_found", `There is no ${request.method} ${path}.`);
    }
    call.budget = counters.take(rule.bucket, rule.bucket === "bench" ? call.address() : who, ctx.now());
    if (call.budget.exceeded) {
      return refuse(
        "rate_limit_exceeded",
        `Over the limit; it is whole again in ${call.budget.resetSeconds} seconds.`,
      );
    }
    if (rule.access) {
      if (!call.caller) {
        return refuse("not_authenticated", "Send a valid API key as Authorization: Bearer, or sign in.");
      }
      const refused = refuseAccess(call.caller, rule.access);
      if (refused) return refused;
    }
    const key = rule.idempotent ? readIdempotencyKey(request.headers) : null;
    if (isRefusal(key)) return key;
    const body = await readJsonBody(request, rule.bodyBytesMax);
    if (isRefusal(body)) return body;
    call.body = body;
    if (key !== null) call.intent = intentOfRequest(key, request.method, path, body);
    return null;
  }

  async function answer(call: Call, request: Request): Promise<Response> {
    try {
      const refusal = await refusalOf(call, request, pathOf(request.url));
      if (refusal) return refusalResponse(call, refusal);
      calls.set(request, call);
      return await app.handle(request);
    } catch (error) {
      call.reportFault(error);
      return refusalResponse(call, faultRefusal());
    }
  }

  return async (received, socketAddress) => {
    ctx.store.reader.refresh();
    const requestId = ctx.newId("request");
    const call: Call = {
      ctx,
      requestId,
      reportFault: (error) => options.onFault(error, requestId),
      docsUrl: options.docsUrl,
      address: () =>
        clientAddress(socketAddress(), received.headers.get("x-forwarded-for"), options.trustedProxies),
      caller: null,
      signedIn: null,
      budget: null,
      intent: null,
      body: null,
    };
    const isHead = received.method === "HEAD";
    const request = isHead ? new Request(received.url, { headers: received.headers }) : received;
    const response = await answer(call, request);
    const budget = call.budget ?? counters.peek("read", rateKey(call), ctx.now());
    setHeaders(response, budget, echoedRequestId(received.headers, call.requestId));
    return isHead ? new Response(null, response) : response;
  };
}

/** Counters are per caller: a person, a key, or an address (interface.md, Rate-limit rules). */
const rateKey = ({ caller, address }: Call): string =>
  caller === null ? address() : caller.kind === "key" ? caller.keyId : caller.userId;

function pathOf(url: string): string {
  const start = url.indexOf("/", url.indexOf("//") + 2);
  const end = url.indexOf("?", start);
  return end < 0 ? url.slice(start) : url.slice(start, end);
}

/** What every answer has. */
function setHeaders({ headers, status }: Response, budget: Budget, requestId: string): void {
  headers.set("X-Request-Id", requestId);
  headers.set("Cache-Control", "no-store");
  headers.set("X-Content-Type-Options", "nosniff");
  headers.set("RateLimit-Limit", String(budget.limit));
  headers.set("RateLimit-Remaining", String(budget.remaining));
  headers.set("RateLimit-Reset", String(budget.resetSeconds));
  if (status === 429) headers.set("Retry-After", String(budget.resetSeconds));
}
