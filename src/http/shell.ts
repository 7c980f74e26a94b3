import { isRefusal, type Refusal, refuse } from "../core/errors.ts";
import type { Network } from "../core/networks.ts";
import type { Budget, RateLimits } from "../core/rate.ts";
import { refuseAccess } from "../core/roles.ts";
import type { Context } from "../services/context.ts";
import { app } from "./app.ts";
import { BODY_MS_MAX, readJsonBody, TOOK_TOO_LONG } from "./body.ts";
import { type Call, calls } from "./call.ts";
import { identify } from "./caller.ts";
import type { Models } from "./check-input.ts";
import { faultRefusal, refusalResponse, routeRefusal } from "./errors.ts";
import { intentOfRequest, readIdempotencyKey } from "./idempotency.ts";
import { type Counted, clientAddress, createRateCounters } from "./limits.ts";
import type { Answered, Operation } from "./operation.ts";
import type { Pages } from "./pages.ts";
import { echoedRequestId } from "./request-id.ts";
import { type RouteRule, ruleOf } from "./route.ts";
import { isWorker, refuseStranger } from "./worker.ts";

export type HttpOptions = {
  /** Where the links in errors lead. */
  readonly docsUrl: string;
  /** What people see in a browser, by path; without it those routes are not there. */
  readonly pages?: Pages;
  readonly rateLimits: RateLimits;
  readonly trustedProxies: readonly Network[];
  /** SHA-256 of the worker's secret; without it the worker's route is closed. */
  readonly workerSecretHash?: string | null;
  /** How long a body may take to come; 15 s where it is not said. */
  readonly bodyMsMax?: number;
  readonly onFault: (error: unknown, requestId: string) => void;
  /** Of the running service; without it there are no metrics, and nothing to be unready for. */
  readonly operation?: Operation;
  /** Hears of every answer, once it is made. */
  readonly onAnswered?: (answered: Answered) => void;
};

/** Answers one request. `socketAddress` tells the address of the other end, which costs a system call. */
export type Shell = (request: Request, socketAddress: () => string | undefined) => Promise<Response>;

/**
 * The thin shell around the routes. It owns what every answer has, 404s and crashes included: request id, caller, rate
 * limits, the body's form, and the last-resort envelope. The order of its checks is decisions.md's "The order of checks".
 */
export function createShell(ctx: Context, options: HttpOptions): Shell {
  const counters = createRateCounters(options.rateLimits);
  const { workerSecretHash = null } = options;

  /** The first check that refuses, in the fixed order; null where the route may run. */
  async function refusalOf(call: Call, request: Request, path: string): Promise<Refusal | null> {
    const route = routeFor(request.method, path);
    Object.assign(call, await identify(ctx, request));
    call.worker = route?.rule.worker === true && isWorker(request.headers, workerSecretHash);
    const who = countedAs(call);
    if (!route) {
      call.budget = counters.peek(request.method === "GET" ? "read" : "write", who, ctx.now());
      return routeRefusal(request.method, path);
    }
    const { rule } = route;
    call.models = route;
    call.route = route.pattern;
    const counted = rule.bucket === "bench" ? addressOf(call) : who;
    call.budget = counters[rule.counted ? "take" : "peek"](rule.bucket, counted, ctx.now());
    if (rule.counted && call.budget.exceeded) {
      return refuse(
        "rate_limit_exceeded",
        `Over the limit; it is whole again in ${call.budget.resetSeconds} seconds.`,
      );
    }
    const refused =
      refuseCaller(call, rule) ?? (rule.worker && !call.worker ? refuseStranger(workerSecretHash) : null);
    if (refused) return refused;
    const key = rule.idempotent ? readIdempotencyKey(request.headers) : null;
    if (isRefusal(key)) return key;
    const body = await readJsonBody(request, rule.bodyBytesMax, options.bodyMsMax ?? BODY_MS_MAX);
    call.closes = body === TOOK_TOO_LONG;
    if (isRefusal(body)) return body;
    call.body = body;
    if (body !== null && call.signedIn) {
      // A body may take its time, and the person may have signed out meanwhile. Of a key the commit itself asks.
      Object.assign(call, await identify(ctx, request));
      const gone = refuseCaller(call, rule);
      if (gone) return gone;
    }
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
    const startedAt = performance.now();
    const requestId = ctx.newId("request");
    const call: Call = {
      ctx,
      requestId,
      reportFault: (error) => options.onFault(error, requestId),
      docsUrl: options.docsUrl,
      operation: options.operation ?? null,
      pages: options.pages ?? {},
      address: () =>
        clientAddress(socketAddress(), received.headers.get("x-forwarded-for"), options.trustedProxies),
      caller: null,
      worker: false,
      signedIn: null,
      budget: null,
      route: null,
      models: {},
      intent: null,
      body: null,
      closes: false,
    };
    const response = await answer(call, requestForRoutes(received));
    const budget = call.budget ?? counters.peek("read", countedAs(call), ctx.now());
    const echoed = echoedRequestId(received.headers, call.requestId);
    setHeaders(response, budget, echoed);
    if (call.closes) response.headers.set("Connection", "close");
    options.onAnswered?.(answeredOf(call, received.method, echoed, response.status, startedAt));
    return received.method === "HEAD" ? new Response(null, response) : response;
  };
}

type FoundRoute = Models & { readonly pattern: string; readonly rule: RouteRule };

function routeFor(method: string, path: string): FoundRoute | null {
  const found = app.router.dynamic.find(method, path)?.store;
  const hooks = found?.hooks as (Models & { readonly detail?: object }) | undefined;
  if (!found || !hooks?.detail) return null;
  return { query: hooks.query, body: hooks.body, pattern: String(found.route), rule: ruleOf(hooks.detail) };
}

const answeredOf = (
  { requestId, route, caller, worker }: Call,
  method: string,
  echoed: string,
  status: number,
  startedAt: number,
): Answered => ({
  requestId,
  callerRequestId: echoed === requestId ? null : echoed,
  method,
  route,
  status,
  durationMs: performance.now() - startedAt,
  caller: worker ? "worker" : (caller?.kind ?? null),
});

/** Whether the route is open to whoever calls. */
function refuseCaller({ caller }: Call, { access }: RouteRule): Refusal | null {
  if (!access) return null;
  return caller
    ? refuseAccess(caller, access)
    : refuse("not_authenticated", "Send a valid API key as Authorization: Bearer, or sign in.");
}

/** Counters are per caller: a person, a key, or an address (interface.md, Rate-limit rules). */
function countedAs(call: Call): Counted {
  const { caller, worker } = call;
  // Not by its address, where strangers could use up its budget.
  if (worker) return { kind: "account", id: "worker" };
  if (caller === null) return addressOf(call);
  return { kind: "account", id: caller.kind === "key" ? caller.keyId : caller.userId };
}

const addressOf = ({ address }: Call): Counted => ({ kind: "address", id: address() });

/** Elysia looks for the path from here on in the URL, whatever the host is. */
const PATH_START_MIN = 11;

/** The request as the routes are to see it: a HEAD as its GET, and a path that starts where Elysia finds it. */
function requestForRoutes(received: Request): Request {
  const isHead = received.method === "HEAD";
  const start = pathStartOf(received.url);
  if (!isHead && start >= PATH_START_MIN) return received;
  const url = `http://localhost${received.url.slice(start)}`;
  return isHead ? new Request(url, { headers: received.headers }) : new Request(url, received);
}

/** Where a URL's path starts. Without a usable Host header, Bun's URL is the path alone. */
const pathStartOf = (url: string): number =>
  url.startsWith("/") ? 0 : url.indexOf("/", url.indexOf("//") + 2);

function pathOf(url: string): string {
  const start = pathStartOf(url);
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
