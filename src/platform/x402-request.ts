import type { ByteBudget } from "../core/byte-budget.ts";
import { headersSeen, type SeenAnswer, UNSEEN_ANSWER } from "../core/capsule.ts";
import { type ReachedEvidence, reachedEvidence, unreachedEvidence } from "../core/clauses/evidence.ts";
import { EVIDENCE_BYTES_MAX } from "../core/clauses/limits.ts";
import type { SourceCode } from "../core/clauses/reason-codes.ts";
import { isRefusal, type Refusal, refuse } from "../core/errors.ts";
import { checkSourceUrl } from "../core/source-url.ts";
import { SECOND_MS } from "../core/time.ts";
import { CHALLENGE_BYTES_MAX, CHALLENGE_TOO_LONG, challengeHeaderOf } from "../core/x402/challenge.ts";
import type { PaymentHeader } from "../core/x402/purchase.ts";
import { createAddressRules, type OwnListeners } from "./addresses.ts";
import { ACCEPT_ENCODING } from "./content-coding.ts";
import { createEvidenceBudget, EvidenceBusy, type EvidenceOwner, EvidenceRoom } from "./evidence-room.ts";
import { type Fetched, hopOf, REDIRECTS_MAX, readEvidence } from "./fetcher.ts";
import { type Peer, RequestFailure, requestSafely, type SafeRequestOptions } from "./safe-request.ts";

/**
 * Makes the two requests of a purchase to a seller, who may be hostile. It never throws: its answer says what
 * went wrong.
 */
export type X402Client = {
  /** The first request, without payment. It follows redirects within the origin. A 402 that is too long is refused. */
  ask(
    request: SellerRequest,
    owner?: EvidenceOwner,
  ): Promise<FirstAnswer | Refusal | { readonly problem: string }>;
  /** The paid request. It is sent once, and follows no redirect. */
  pay(request: SellerRequest, payment: PaymentHeader): Promise<PaidAnswer>;
};

export type SellerRequest = {
  readonly url: string;
  readonly method: "GET" | "POST";
  /** The caller's own headers. A POST has no body. */
  readonly headers: Readonly<Record<string, string>>;
};

export type FirstAnswer = {
  /** The URL that answered, after redirects. */
  readonly url: string;
  readonly status: number;
  /** The headers by lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly evidence: ReachedEvidence;
};

export type PaidAnswer = {
  /** False where certainly nothing reached the seller. */
  readonly connected: boolean;
  /** The headers by lower-case names. They may be known even where the body could not be read. */
  readonly headers: Readonly<Record<string, string>>;
  readonly evidence: Fetched["evidence"];
  /** Who answered, and how. */
  readonly answer: SeenAnswer;
};

export type X402ClientOptions = {
  /** CIDRs that the operator allows besides the public addresses. */
  readonly allowNetworks: readonly string[];
  /** The time limit of the first request, and of the paid one, with everything in it. */
  readonly askTimeoutMs?: number;
  readonly payTimeoutMs?: number;
  readonly bytesMax?: number;
  readonly ownListeners?: OwnListeners;
  /** The memory for all bodies that are being fetched. The paid answer is read in any case: it cannot be asked for again. */
  readonly budget?: ByteBudget;
} & Omit<SafeRequestOptions, "rules">;

/** The default time limits (docs/x402, "The two requests"). */
const ASK_TIMEOUT_MS = 30 * SECOND_MS;
const PAY_TIMEOUT_MS = 90 * SECOND_MS;
const PAYMENT_REQUIRED = 402;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
/**
 * The redirects that a POST may follow. Any other status would change it to a GET, which is a different
 * request.
 */
const REDIRECTS_OF_POST = new Set([307, 308]);
const HEADERS = { accept: "*/*", "accept-encoding": ACCEPT_ENCODING, "user-agent": "Holdfast/0.1" } as const;

const NO_ROOM = refuse(
  "rate_limit_exceeded",
  "The seller's answer needs memory that other answers use. Nothing is held.",
);

/** Throws on a malformed CIDR. */
export function createX402Client(options: X402ClientOptions): X402Client {
  const { askTimeoutMs = ASK_TIMEOUT_MS, payTimeoutMs = PAY_TIMEOUT_MS } = options;
  const bytesMax = options.bytesMax ?? EVIDENCE_BYTES_MAX;
  const budget = options.budget ?? createEvidenceBudget();
  const safe = { ...options, rules: createAddressRules(options.allowNetworks, options.ownListeners) };
  return {
    ask: (request, owner) =>
      within(askTimeoutMs, async (signal) => {
        const room = new EvidenceRoom(budget, owner);
        try {
          const { response, url } = await requestInOrigin(safe, request, signal);
          const { status } = response;
          const headers = headersOf(response);
          const evidence =
            status === PAYMENT_REQUIRED
              ? await readChallenge(response, headers, signal)
              : await readEvidence(response, bytesMax, signal, room);
          return isRefusal(evidence) ? evidence : { url, status, headers, evidence };
        } catch (error) {
          if (error instanceof EvidenceBusy) return NO_ROOM;
          return { problem: problemOf(error) };
        } finally {
          room.end();
        }
      }),
    pay: (request, payment) =>
      within(payTimeoutMs, async (signal) => {
        let headers: PaidAnswer["headers"] = {};
        let answer = UNSEEN_ANSWER;
        let peer: Peer | null = null;
        const url = new URL(request.url);
        try {
          const response = await requestSafely(safe, {
            ...request,
            url,
            headers: { ...withDefaults(request.headers), [payment.name]: payment.value },
            signal,
            onAnswer(answered) {
              peer = answered;
            },
          });
          headers = headersOf(response);
          const seen = { headers: headersSeen(response.headers), holdsItsDigest: false };
          answer = { hops: [hopOf(url, response, peer)], ...seen };
          const evidence = await readEvidence(response, bytesMax, signal, null, seen);
          return { connected: true, headers, evidence, answer: { ...answer, ...seen } };
        } catch (error) {
          const connected = !(error instanceof RequestFailure) || error.connected;
          return { connected, headers, evidence: unreachedEvidence(codeOf(error, signal)), answer };
        }
      }),
  };
}

/** Runs with a signal that aborts when the time is up. At the end it closes whatever is still open. */
async function within<Answer>(
  timeoutMs: number,
  run: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), timeoutMs);
  try {
    return await run(controller.signal);
  } finally {
    clearTimeout(timer);
    controller.abort();
  }
}

/** Reads a 402 up to the length of a challenge. Where the header has the challenge, the body is not read. */
async function readChallenge(
  response: Response,
  headers: FirstAnswer["headers"],
  signal: AbortSignal,
): Promise<ReachedEvidence | Refusal> {
  if (challengeHeaderOf(headers) !== undefined) {
    response.body?.cancel().catch(() => {});
    return reachedEvidence({ status: response.status, body: new Uint8Array() });
  }
  try {
    return await readEvidence(response, CHALLENGE_BYTES_MAX, signal, null);
  } catch (error) {
    const isTooLong = error instanceof RequestFailure && error.code === "source_too_large";
    if (isTooLong) return CHALLENGE_TOO_LONG;
    throw error;
  }
}

async function requestInOrigin(safe: SafeRequestOptions, request: SellerRequest, signal: AbortSignal) {
  const { method } = request;
  const headers = withDefaults(request.headers);
  let url = new URL(request.url);
  for (let redirects = 0; ; redirects++) {
    const response = await requestSafely(safe, { url, method, headers, signal });
    const location = REDIRECTS.has(response.status) ? response.headers.get("location") : null;
    if (location === null) return { response, url: url.href };
    // Not awaited, since nobody needs this body and it may hang.
    response.body?.cancel().catch(() => {});
    if (redirects === REDIRECTS_MAX) throw new NotFollowed("it redirects too often");
    url = redirectTarget(location, url);
    if (method === "POST" && !REDIRECTS_OF_POST.has(response.status))
      throw new NotFollowed("it redirects the POST to a GET");
  }
}

function redirectTarget(location: string, from: URL): URL {
  const target = URL.parse(location, from.href);
  if (target === null || checkSourceUrl(target.href) !== null)
    throw new NotFollowed("it redirects to something that is not a URL that can be asked");
  if (target.origin !== from.origin) throw new NotFollowed("it redirects to another origin");
  return target;
}

/** A redirect that is not followed; the message is for people. */
class NotFollowed extends RequestFailure {
  constructor(message: string) {
    super("source_blocked", message, true);
  }
}

/** The caller's headers, and the defaults for those that are not among them. */
function withDefaults(headers: SellerRequest["headers"]): Record<string, string> {
  const own = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const),
  );
  return { ...HEADERS, ...own };
}

const headersOf = (response: Response): Readonly<Record<string, string>> =>
  Object.fromEntries(response.headers);

const codeOf = (error: unknown, signal: AbortSignal): SourceCode => {
  if (error instanceof RequestFailure) return error.code;
  return signal.aborted ? "source_timeout" : "source_unreachable";
};

const PROBLEMS: Readonly<Record<SourceCode, string>> = {
  source_unreachable: "it could not be reached",
  source_timeout: "it gave no answer in time",
  source_too_large: "its answer is larger than 10 MiB",
  source_blocked: "its address may not be reached",
};

/** The problem in words for people. Messages of network errors are left out. */
function problemOf(error: unknown): string {
  if (error instanceof NotFollowed) return error.message;
  return PROBLEMS[error instanceof RequestFailure ? error.code : "source_unreachable"];
}
