import type { ByteBudget } from "../core/byte-budget.ts";
import { isRefusal, type Refusal, refuse } from "../core/errors.ts";
import type { Network } from "../core/networks.ts";
import type { RateLimits } from "../core/rate.ts";
import { refuseAccess } from "../core/roles.ts";
import { isHttps } from "../core/source-url.ts";
import type { Context } from "../services/context.ts";
import { refuseLost } from "../services/instance.ts";
import { fromOneSnapshot } from "../services/one-snapshot.ts";
import { versionNow } from "../services/warrants/read.ts";
import type { Answer, Result } from "./answers.ts";
import { type FoundRoute, findRoute } from "./app.ts";
import {
  BODY_MS_MAX,
  bodyBytesOf,
  claimBody,
  createBodyBudget,
  NO_BODY,
  NO_ROOM,
  type ReadBody,
  readJsonBody,
  readTextBody,
  TOOK_TOO_LONG,
} from "./body.ts";
import {
  type Call,
  callerIdOf,
  callerOf,
  clientOfCall,
  countedAs,
  type OnFault,
  partyOf,
  reportFault,
  roomOf,
  type Setup,
} from "./call.ts";
import { hasSessionCookie, type Identity, identify, isFromOwnPage } from "./caller.ts";
import { readQuery, refuseInput } from "./check-input.ts";
import { errorAnswer, refuseByFault, refuseUnknownRoute } from "./errors.ts";
import { explained } from "./explained.ts";
import { idempotencyOfRequest, readIdempotencyKey } from "./idempotency.ts";
import { createRateCounters, type RateCounters } from "./limits.ts";
import { isMachine, NO_SECRET_HASHES, refuseStranger, type SecretHashes } from "./machines.ts";
import type { Answered, Operation } from "./operation.ts";
import type { Pages, ReceiptPages, Site } from "./pages.ts";
import { echoedRequestId } from "./request-id.ts";
import { responseOf, type SentAnswer } from "./response.ts";
import type { RouteRule } from "./route.ts";
import { createAnswerBudget, isShort, sendable } from "./sending.ts";
import { findPage } from "./site.ts";

export type HttpOptions = {
  /** Where the links in errors lead. */
  readonly docsUrl: string;
  /** The console's pages by path. The route of a page that is missing here answers 404. */
  readonly pages?: Pages;
  /** The page of a receipt. Without it receipts are shown as JSON alone. */
  readonly receiptPages?: ReceiptPages;
  /** The console. Its pages are routes that the API's description does not have. */
  readonly site?: Site;
  readonly rateLimits: RateLimits;
  /** Those that this instance shares with others; by default they are its own. */
  readonly rateCounters?: RateCounters;
  readonly trustedProxies: readonly Network[];
  /** Those of the secrets that machines call with. By default none is configured. */
  readonly secretHashes?: SecretHashes;
  /** How long a body may take to come; 15 s by default. */
  readonly bodyMsMax?: number;
  /** The bytes of all bodies under way; 256 MiB by default. */
  readonly bodies?: ByteBudget;
  /** The bytes of all long answers that are being sent; 128 MiB by default. */
  readonly answers?: ByteBudget;
  readonly onFault: OnFault;
  /** Called once, where a request names a client that it came for, and no proxy is trusted. */
  readonly onUntrustedProxy?: (header: string) => void;
  /** Without it there are no metrics, and /readyz always answers that the service is ready. */
  readonly operation?: Operation;
  /** Called with every answer. */
  readonly onAnswered?: (answered: Answered) => void;
};

/** Answers one request. `socketAddress` asks for the address of the other end, by a system call. */
export type Shell = (request: Request, socketAddress: () => string | undefined) => Promise<Response>;

/**
 * The shell around the routes' handlers. It does everything that is the same for all requests: it finds the
 * route and the caller, makes the checks up to the body (docs/idempotency, "The order of checks"), calls the handler, and
 * makes the response. Unknown routes and unexpected errors also get a request id and rate-limit headers.
 */
export function createShell(ctx: Context, options: HttpOptions): Shell {
  const { docsUrl, pages = {}, receiptPages = null, site = null, operation = null } = options;
  const { trustedProxies, rateLimits, onFault, onAnswered } = options;
  const { secretHashes = NO_SECRET_HASHES, bodyMsMax = BODY_MS_MAX, bodies = createBodyBudget() } = options;
  const { answers = createAnswerBudget(), rateCounters: counters = createRateCounters(rateLimits) } = options;
  const setup: Setup = {
    ...{ ctx, docsUrl, pages, receiptPages, site, operation, trustedProxies, answers, onFault },
  };
  const checks: Checks = { counters, secretHashes, bodyMsMax, bodies };
  const onlyHttps = isHttps(ctx.baseUrl);
  const lookForProxy = proxyLookOut(options);

  return async (request, socketAddress) => {
    const startedAt = performance.now();
    lookForProxy(request.headers);
    const call = callOf(setup, request, socketAddress);
    const answer = await answerTo(call, request, checks);
    const sent = isShort(answer) ? answer : await inPieces(call, answer);
    const budget = call.budget ?? checks.counters.peek("read", countedAs(call), ctx.now());
    const requestId = echoedRequestId(call.headers, call.requestId);
    onAnswered?.(answeredOf(call, request.method, requestId, sent, startedAt));
    return responseOf(sent, {
      ...{ budget, requestId, onlyHttps },
      isHead: request.method === "HEAD",
      closes: call.closes,
    });
  };
}

/**
 * Behind a proxy that is not trusted all clients have one address, so that limits count them as one. The first request that
 * shows it is logged, and none after that: whoever calls can write the headers.
 */
function proxyLookOut({ trustedProxies, onUntrustedProxy }: HttpOptions): (headers: Headers) => void {
  let looks = trustedProxies.length === 0 && onUntrustedProxy !== undefined;
  return (headers) => {
    const header = looks ? FORWARDED_HEADERS.find((name) => headers.has(name)) : undefined;
    if (header === undefined) return;
    looks = false;
    onUntrustedProxy?.(header);
  };
}

const FORWARDED_HEADERS = ["x-forwarded-for", "forwarded"];

/** What the checks work with. */
type Checks = {
  readonly counters: RateCounters;
  readonly secretHashes: SecretHashes;
  readonly bodyMsMax: number;
  readonly bodies: ByteBudget;
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
    left: () => request.signal,
    socketAddress,
    route: null,
    params: undefined,
    query: undefined,
    body: undefined,
    caller: null,
    machine: null,
    signedIn: null,
    budget: null,
    idempotency: null,
    versionSeen: null,
    bodyClaim: null,
    closes: false,
    showRefusal: null,
  };
}

/** Where the path starts in a URL. If the Host header is missing or malformed, Bun's URL is only the path. */
const pathStartOf = (url: string): number =>
  url.startsWith("/") ? 0 : url.indexOf("/", url.indexOf("//") + 2);

/** Never throws. An unexpected error is logged; the answer does not contain its message. */
async function answerTo(call: Call, request: Request, checks: Checks): Promise<Answer> {
  try {
    const result = await resultOf(call, request, checks);
    return isRefusal(result) ? refusalAnswer(call, result) : result;
  } catch (error) {
    reportFault(call, error);
    return refusalAnswer(call, refuseByFault(error, call));
  } finally {
    call.bodyClaim?.end();
  }
}

/** The error envelope, or its page where a person asked for a page. */
function refusalAnswer(call: Call, refusal: Refusal): Answer {
  if (call.showRefusal === null) return errorAnswer(call, refusal);
  try {
    return { ...call.showRefusal(refusal), refused: refusal.refused };
  } catch (error) {
    reportFault(call, error);
    return errorAnswer(call, refuseByFault(error, call));
  }
}

/** A long answer as it is sent, or a refusal where there is no memory for it. */
async function inPieces(call: Call, answer: Answer): Promise<SentAnswer> {
  const body = await sendable(answer.body, roomOf(call));
  return isRefusal(body) ? errorAnswer(call, body) : { ...answer, body };
}

/**
 * The refusal of the first check that fails, else what the route's handler answers. Who a person is and what they read comes
 * from one snapshot.
 */
async function resultOf(call: Call, request: Request, checks: Checks): Promise<Result> {
  const found = findRoute(call.method, call.path) ?? findPage(call);
  const { ctx } = call;
  const checked = async () => explained(call, found, await checkedResult(call, found, request, checks));
  if (!found || !isPersonsRead(call, found.route.rule)) return checked();
  try {
    return await fromOneSnapshot(ctx, (reading) => {
      call.ctx = reading;
      return checked();
    });
  } finally {
    call.ctx = ctx;
  }
}

/**
 * The operator's tools, which are not counted, read from the store of the setup: they would wait for a connection that their own
 * request holds.
 */
const isPersonsRead = ({ method, headers }: Call, { counted }: RouteRule): boolean =>
  method === "GET" && counted && hasSessionCookie(headers) && !headers.has("authorization");

async function checkedResult(
  call: Call,
  found: FoundRoute | null,
  request: Request,
  checks: Checks,
): Promise<Result> {
  const identity = identify(call);
  setIdentity(call, identity instanceof Promise ? await identity : identity);
  if (!found) return refuseNoRoute(call, checks);
  const { route, params } = found;
  const { rule, models } = route;
  call.route = route.path;
  const refused = refuseByRule(call, rule, checks) ?? (call.method === "GET" ? null : refuseLost(call.ctx));
  if (refused) return refused;
  const key = rule.idempotent ? readIdempotencyKey(call.headers.get("idempotency-key")) : null;
  if (isRefusal(key)) return key;
  if (rule.decides) call.versionSeen = await versionNow(call.ctx, callerOf(call), params.id ?? "");
  if (call.method !== "GET") {
    const read = await readBody(call, rule, request, checks);
    call.closes = read === TOOK_TOO_LONG || read === NO_ROOM;
    if (isRefusal(read)) return read;
    call.body = read.body;
    const gone = read.body && call.signedIn ? await refuseGone(call, rule) : null;
    if (gone) return gone;
  }
  if (key !== null)
    call.idempotency = idempotencyOfRequest(key, callerOf(call), call.method, call.path, call.body);
  call.params = params;
  call.query = readQuery(call.search, models.query);
  return refuseInput(models, call.query, call.body) ?? (await route.handle(call));
}

async function readBody(
  call: Call,
  { bodyBytesMax, takesText }: RouteRule,
  request: Request,
  { bodies, bodyMsMax }: Checks,
): Promise<ReadBody | Refusal> {
  const bytes = bodyBytesOf(request, bodyBytesMax);
  if (isRefusal(bytes)) return bytes;
  if (bytes === 0) return NO_BODY;
  const claim = await claimBody(bodies, { bytes, ...partyOf(call) });
  if (isRefusal(claim)) return claim;
  call.bodyClaim = claim;
  return (takesText ? readTextBody : readJsonBody)(request, bodyBytesMax, bodyMsMax);
}

function setIdentity(call: Call, { caller, signedIn }: Identity): void {
  call.caller = caller;
  call.signedIn = signedIn;
}

function refuseNoRoute(call: Call, { counters }: Checks): Refusal {
  call.budget = counters.peek(call.method === "GET" ? "read" : "write", countedAs(call), call.ctx.now());
  return refuseUnknownRoute(call.method, call.path);
}

/** The checks of rate limit, credentials and role. */
function refuseByRule(call: Call, rule: RouteRule, { counters, secretHashes }: Checks): Refusal | null {
  const { machine } = rule;
  call.machine = machine && isMachine(machine, call.headers, secretHashes) ? machine : null;
  const counted = countedAs(call);
  const now = call.ctx.now();
  // Whoever writes to the bot comes by the bot API. Counted as one, a few of them would stop all others.
  const isCounted = rule.counted && call.machine !== "messaging";
  const budget = isCounted
    ? counters.take(rule.bucket, counted, now)
    : counters.peek(rule.bucket, counted, now);
  call.budget = budget;
  if (isCounted && budget.exceeded) {
    return refuse("rate_limit_exceeded", `Over the limit; retry in ${budget.resetSeconds} seconds.`);
  }
  if (rule.ownPagesOnly && !isFromOwnPage(call)) return refuseOtherSite(call);
  return (
    refuseCaller(call, rule) ?? (machine && !call.machine ? refuseStranger(machine, secretHashes) : null)
  );
}

const refuseOtherSite = ({ ctx }: Call): Refusal =>
  refuse(
    "not_authenticated",
    `This form was not sent from Holdfast's own pages. Open them at ${new URL(ctx.baseUrl).origin} and send it there.`,
  );

function refuseCaller({ caller }: Call, { access }: RouteRule): Refusal | null {
  if (!access) return null;
  return caller
    ? refuseAccess(caller, access)
    : refuse("not_authenticated", "Send a valid API key as Authorization: Bearer, or sign in.");
}

/** Refuses a person who has signed out while the body came. A key is checked again in the commit. */
async function refuseGone(call: Call, rule: RouteRule): Promise<Refusal | null> {
  setIdentity(call, await identify(call));
  return refuseCaller(call, rule);
}

const answeredOf = (
  call: Call,
  method: string,
  echoed: string,
  { status, refused }: SentAnswer,
  startedAt: number,
): Answered => {
  const { requestId, route, caller, machine } = call;
  return {
    requestId,
    callerRequestId: echoed === requestId ? null : echoed,
    method,
    route,
    status,
    durationMs: performance.now() - startedAt,
    refused: refused ?? null,
    caller: machine ?? caller?.kind ?? null,
    callerId: callerIdOf(call),
    client: () => clientOfCall(call),
  };
};
