import { isRefusal, type Refusal, refuse } from "../core/errors.ts";
import type { Network } from "../core/networks.ts";
import type { RateLimits } from "../core/rate.ts";
import { refuseAccess } from "../core/roles.ts";
import type { Context } from "../services/context.ts";
import type { Answer, Result } from "./answers.ts";
import { findRoute } from "./app.ts";
import { BODY_MS_MAX, readJsonBody, TOOK_TOO_LONG } from "./body.ts";
import { addressOf, type Call, reportFault, type Setup } from "./call.ts";
import { type Identity, identify } from "./caller.ts";
import { readQuery, refuseInput } from "./check-input.ts";
import { errorAnswer, refuseByFault, refuseUnknownRoute } from "./errors.ts";
import { intentOfRequest, readIdempotencyKey } from "./idempotency.ts";
import { type Counted, createRateCounters, type RateCounters } from "./limits.ts";
import type { Answered, Operation } from "./operation.ts";
import type { Pages } from "./pages.ts";
import { echoedRequestId } from "./request-id.ts";
import { responseOf } from "./response.ts";
import type { RouteRule } from "./route.ts";
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
 * The shell around the routes. It owns what every answer has, 404s and crashes included: request id, caller, rate limits, the
 * form of the body, and the answer to an unexpected error. It checks in the order of decisions.md's "The order of checks", calls
 * the route's handler, and makes the one response.
 */
export function createShell(ctx: Context, options: HttpOptions): Shell {
  const { docsUrl, pages = {}, operation = null, trustedProxies, onFault, onAnswered } = options;
  const { workerSecretHash = null, bodyMsMax = BODY_MS_MAX } = options;
  const setup: Setup = { ctx, docsUrl, pages, operation, trustedProxies, onFault };
  const checks: Checks = { counters: createRateCounters(options.rateLimits), workerSecretHash, bodyMsMax };

  return async (request, socketAddress) => {
    const startedAt = performance.now();
    ctx.store.reader.refresh();
    const call = callOf(setup, request, socketAddress);
    const answer = await answerTo(call, request, checks);
    const budget = call.budget ?? checks.counters.peek("read", countedAs(call), ctx.now());
    const requestId = echoedRequestId(call.headers, call.requestId);
    onAnswered?.(answeredOf(call, request.method, requestId, answer.status, startedAt));
    return responseOf(answer, budget, requestId, request.method === "HEAD", call.closes);
  };
}

/** What the checks of a shell need. */
type Checks = {
  readonly counters: RateCounters;
  readonly workerSecretHash: string | null;
  readonly bodyMsMax: number;
};

function callOf(setup: Setup, request: Request, socketAddress: Call["socketAddress"]): Call {
  const { url, method, headers } = request;
  const pathStart = pathStartOf(url);
  const pathEnd = url.indexOf("?", pathStart);
  return {
    ctx: setup.ctx,
    setup,
    requestId: setup.ctx.newId("request"),
    method: method === "HEAD" ? "GET" : method,
    path: pathEnd < 0 ? url.slice(pathStart) : url.slice(pathStart, pathEnd),
    search: pathEnd < 0 ? "" : url.slice(pathEnd + 1),
    headers,
    socketAddress,
    route: null,
    params: undefined,
    query: undefined,
    body: undefined,
    caller: null,
    worker: false,
    signedIn: null,
    budget: null,
    intent: null,
    closes: false,
  };
}

/** Where a URL's path starts. Without a usable Host header, Bun's URL is the path alone. */
const pathStartOf = (url: string): number =>
  url.startsWith("/") ? 0 : url.indexOf("/", url.indexOf("//") + 2);

/** Never throws: an unexpected error is logged, and answered without its message. */
async function answerTo(call: Call, request: Request, checks: Checks): Promise<Answer> {
  try {
    const result = await resultOf(call, request, checks);
    return isRefusal(result) ? errorAnswer(call, result) : result;
  } catch (error) {
    reportFault(call, error);
    return errorAnswer(call, refuseByFault());
  }
}

/** What the route's handler answers, or the first check that refuses, in the fixed order. */
async function resultOf(call: Call, request: Request, checks: Checks): Promise<Result> {
  const found = findRoute(call.method, call.path);
  const identity = identify(call);
  setIdentity(call, identity instanceof Promise ? await identity : identity);
  if (!found) return refuseNoRoute(call, checks);
  const { route, params } = found;
  const { rule, models } = route;
  call.route = route.path;
  const refused = refuseByRule(call, rule, checks);
  if (refused) return refused;
  const key = rule.idempotent ? readIdempotencyKey(call.headers) : null;
  if (isRefusal(key)) return key;
  if (call.method !== "GET") {
    const read = await readJsonBody(request, rule.bodyBytesMax, checks.bodyMsMax);
    call.closes = read === TOOK_TOO_LONG;
    if (isRefusal(read)) return read;
    call.body = read.body;
    const gone = read.body && call.signedIn ? await refuseGone(call, rule) : null;
    if (gone) return gone;
  }
  if (key !== null) call.intent = intentOfRequest(key, call.method, call.path, call.body);
  call.params = params;
  call.query = readQuery(call.search, models.query);
  return refuseInput(models, call.query, call.body) ?? (await route.handle(call));
}

function setIdentity(call: Call, { caller, signedIn }: Identity): void {
  call.caller = caller;
  call.signedIn = signedIn;
}

function refuseNoRoute(call: Call, { counters }: Checks): Refusal {
  call.budget = counters.peek(call.method === "GET" ? "read" : "write", countedAs(call), call.ctx.now());
  return refuseUnknownRoute(call.method, call.path);
}

/** Rate limit, credentials, role. */
function refuseByRule(call: Call, rule: RouteRule, { counters, workerSecretHash }: Checks): Refusal | null {
  call.worker = rule.worker && isWorker(call.headers, workerSecretHash);
  const counted = rule.bucket === "bench" ? countedByAddress(call) : countedAs(call);
  const now = call.ctx.now();
  const budget = rule.counted
    ? counters.take(rule.bucket, counted, now)
    : counters.peek(rule.bucket, counted, now);
  call.budget = budget;
  if (rule.counted && budget.exceeded) {
    return refuse("rate_limit_exceeded", `Over the limit; retry in ${budget.resetSeconds} seconds.`);
  }
  return refuseCaller(call, rule) ?? (rule.worker && !call.worker ? refuseStranger(workerSecretHash) : null);
}

/** Whether the route is open to whoever calls. */
function refuseCaller({ caller }: Call, { access }: RouteRule): Refusal | null {
  if (!access) return null;
  return caller
    ? refuseAccess(caller, access)
    : refuse("not_authenticated", "Send a valid API key as Authorization: Bearer, or sign in.");
}

/** While the body came, the person may have signed out. Whether a key still stands is asked by the commit itself. */
async function refuseGone(call: Call, rule: RouteRule): Promise<Refusal | null> {
  setIdentity(call, await identify(call));
  return refuseCaller(call, rule);
}

/** Counters are per caller: a person, a key, or an address (interface.md, Rate-limit rules). */
function countedAs(call: Call): Counted {
  const { caller, worker } = call;
  // Not by its address, where strangers could use up its budget.
  if (worker) return { kind: "account", id: "worker" };
  if (caller === null) return countedByAddress(call);
  return { kind: "account", id: caller.kind === "key" ? caller.keyId : caller.userId };
}

const countedByAddress = (call: Call): Counted => ({ kind: "address", id: addressOf(call) });

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
