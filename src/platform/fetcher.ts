import type { ByteBudget } from "../core/byte-budget.ts";
import { type Hop, headersSeen, type SeenAnswer } from "../core/capsule.ts";
import {
  type Evidence,
  type ReachedEvidence,
  reachedEvidence,
  unreachedEvidence,
} from "../core/clauses/evidence.ts";
import { EVIDENCE_BYTES_MAX } from "../core/clauses/limits.ts";
import type { SourceCode } from "../core/clauses/reason-codes.ts";
import { checkSourceUrl, isHttps } from "../core/source-url.ts";
import { createAddressRules, type OwnListeners } from "./addresses.ts";
import { ACCEPT_ENCODING, decodeContent } from "./content-coding.ts";
import { createEvidenceBudget, EvidenceBusy, type EvidenceOwner, EvidenceRoom } from "./evidence-room.ts";
import {
  type Peer,
  RequestFailure,
  requestSafely,
  type SafeRequestOptions,
  untilAborted,
} from "./safe-request.ts";
import { holdsItsDigest } from "./source-signature.ts";

export type FetcherOptions = {
  /** CIDRs that the operator allows besides the public addresses. */
  readonly allowNetworks: readonly string[];
  /**
   * The time limit for the whole fetch: name look-up, connections, redirects, the last byte and its decoding.
   */
  readonly timeoutMs: number;
  readonly bytesMax?: number;
  readonly redirectsMax?: number;
  readonly ownListeners?: OwnListeners;
  /** The memory for all bodies that are being fetched. */
  readonly budget?: ByteBudget;
} & Omit<SafeRequestOptions, "rules">;

export type Fetched = {
  readonly evidence: Evidence;
  /** The status of the last response, also where its body could not be read; null where there was no response. */
  readonly status: number | null;
  /** The length of the evidence, content-decoded. */
  readonly bytes: number;
  readonly durationMs: number;
  readonly answer: SeenAnswer;
};

/**
 * Fetches a deliverable. Where something went wrong, the evidence says so. It rejects only with `EvidenceBusy`, where other bodies
 * take the memory that this one needs.
 */
export type Fetcher = {
  /** @param mayFollow whether a redirect to this URL may be followed; by default every one */
  fetch(url: string, owner?: EvidenceOwner, mayFollow?: MayFollow): Promise<Fetched>;
  /**
   * A small file that belongs to what was fetched, in what is left of that fetch's time; null where there is none. It
   * never rejects.
   */
  fetchBeside(
    fetched: Pick<Fetched, "durationMs">,
    url: string,
    owner?: EvidenceOwner,
    mayFollow?: MayFollow,
  ): Promise<Uint8Array | null>;
};

type MayFollow = (target: URL) => boolean;

/** How long a file beside a deliverable may be. */
const BESIDE_BYTES_MAX = 32 * 1024;

export const REDIRECTS_MAX = 5;

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const BODILESS = new Set([204, 304]);
const HEADERS = { accept: "*/*", "accept-encoding": ACCEPT_ENCODING, "user-agent": "Holdfast/0.1" } as const;

type Limits = {
  readonly bytesMax: number;
  readonly redirectsMax: number;
  readonly mayFollow: MayFollow;
  readonly timeoutMs: number;
};
type Progress = {
  status: number | null;
  hops: Hop[];
  headers: SeenAnswer["headers"];
  holdsItsDigest: boolean;
};

/** The safe fetcher of evidence (docs/clauses, "What a verify fetches"; docs/security, "Hostile deliverables"). Throws on a malformed CIDR. */
export function createFetcher(options: FetcherOptions): Fetcher {
  const usual = {
    bytesMax: options.bytesMax ?? EVIDENCE_BYTES_MAX,
    redirectsMax: options.redirectsMax ?? REDIRECTS_MAX,
    timeoutMs: options.timeoutMs,
    mayFollow: () => true,
  };
  const budget = options.budget ?? createEvidenceBudget();
  const safe = { ...options, rules: createAddressRules(options.allowNetworks, options.ownListeners) };
  async function fetchWithin(
    url: string,
    owner: EvidenceOwner | undefined,
    limits: Limits,
  ): Promise<Fetched> {
    const room = new EvidenceRoom(budget, owner);
    const startedAt = performance.now();
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), limits.timeoutMs);
    const progress: Progress = { status: null, hops: [], headers: null, holdsItsDigest: false };
    let evidence: Evidence;
    try {
      evidence = await fetchEvidence(safe, limits, url, controller.signal, progress, room);
    } catch (error) {
      const code = codeOf(error, controller.signal);
      if (error instanceof EvidenceBusy) throw error;
      if (room.hasWaited && code === "source_timeout")
        throw new EvidenceBusy("it waited for memory too long");
      evidence = unreachedEvidence(code);
    } finally {
      room.end();
      clearTimeout(timer);
      // This closes whatever is still open, such as a body that is not read to its end.
      controller.abort();
    }
    return {
      evidence,
      status: progress.status,
      bytes: evidence.reached ? evidence.body.length : 0,
      durationMs: Math.round(performance.now() - startedAt),
      answer: progress,
    };
  }
  return {
    fetch: (url, owner, mayFollow = usual.mayFollow) => fetchWithin(url, owner, { ...usual, mayFollow }),
    async fetchBeside({ durationMs }, url, owner, mayFollow = usual.mayFollow) {
      const timeoutMs = usual.timeoutMs - durationMs;
      if (timeoutMs <= 0) return null;
      const limits = { ...usual, mayFollow, timeoutMs, bytesMax: BESIDE_BYTES_MAX };
      const { evidence } = await fetchWithin(url, owner, limits).catch(() => NOTHING);
      return evidence.reached && evidence.status === 200 ? evidence.body : null;
    },
  };
}

/** Other bodies took the memory. */
const NOTHING = { evidence: unreachedEvidence("source_unreachable") };

function codeOf(error: unknown, signal: AbortSignal): SourceCode {
  if (error instanceof RequestFailure) return error.code;
  return signal.aborted ? "source_timeout" : "source_unreachable";
}

const fail = (code: SourceCode, message: string): never => {
  throw new RequestFailure(code, message, true);
};

async function fetchEvidence(
  safe: SafeRequestOptions,
  limits: Limits,
  url: string,
  signal: AbortSignal,
  progress: Progress,
  room: EvidenceRoom,
): Promise<Evidence> {
  if (checkSourceUrl(url) !== null) return fail("source_blocked", "not a URL that is fetched");
  let target = new URL(url);
  for (let redirects = 0; ; redirects++) {
    let peer: Peer | null = null;
    const onAnswer = (answered: Peer): void => {
      peer = answered;
    };
    const asked = { url: target, headers: HEADERS, signal, wantsCertificate: true, onAnswer };
    const response = await requestSafely(safe, asked);
    progress.status = response.status;
    progress.hops.push(hopOf(target, response, peer));
    progress.headers = headersSeen(response.headers);
    const location = REDIRECTS.has(response.status) ? response.headers.get("location") : null;
    if (location === null) return readEvidence(response, limits.bytesMax, signal, room, progress);
    // Not awaited, since nobody needs this body and it may hang.
    response.body?.cancel().catch(() => {});
    if (redirects === limits.redirectsMax) return fail("source_unreachable", "too many redirects");
    target = redirectTarget(location, target);
    if (!limits.mayFollow(target)) fail("source_blocked", "a redirect to where the session may not ask");
  }
}

export const hopOf = (url: URL, { status }: Response, peer: Peer | null): Hop => ({
  url: url.href,
  status,
  address: peer?.address ?? null,
  certificateSha256: peer?.certificateSha256 ?? null,
});

function redirectTarget(location: string, from: URL): URL {
  const target = URL.parse(location, from.href);
  if (target === null) return fail("source_unreachable", "a redirect to something that is not a URL");
  if (checkSourceUrl(target.href) !== null) return fail("source_blocked", "a redirect that is not followed");
  // Whoever is on the way could change what https protected.
  if (isHttps(from.href) && !isHttps(target.href))
    return fail("source_blocked", "a redirect from https to http");
  return target;
}

/**
 * The evidence in a response of `requestSafely`, its body read and decoded up to `bytesMax`. Throws `RequestFailure` where the
 * body is longer, incomplete or late.
 *
 * @param seen has the headers, and learns whether a signed response has the digest of its bytes
 */
export async function readEvidence(
  response: Response,
  bytesMax: number,
  signal: AbortSignal,
  room: EvidenceRoom | null,
  seen: Pick<Progress, "headers" | "holdsItsDigest"> = { headers: null, holdsItsDigest: false },
): Promise<ReachedEvidence> {
  const coding = response.headers.get("content-encoding");
  const wire = await readBody(response, bytesMax, signal, room);
  seen.holdsItsDigest = await holdsItsDigest(seen.headers, wire);
  // A few bytes may decode to very many.
  if (coding !== null) await room?.take(bytesMax);
  const decoding = decodeContent(wire, coding, bytesMax);
  const decoded = await untilAborted(decoding, signal);
  if ("problem" in decoded) {
    const code = decoded.problem === "too_large" ? "source_too_large" : "source_unreachable";
    return fail(code, `the content coding is ${decoded.problem}`);
  }
  return reachedEvidence({
    status: response.status,
    body: decoded.body,
    lastModifiedAt: parseHttpDate(response.headers.get("last-modified")),
  });
}

/** The bytes as they were sent, at most `bytesMax`, and no fewer than `Content-Length` announced. */
async function readBody(
  response: Response,
  bytesMax: number,
  signal: AbortSignal,
  room: EvidenceRoom | null,
): Promise<Uint8Array> {
  const announced = announcedLength(response);
  if (announced !== null && announced > bytesMax)
    fail("source_too_large", "an announced length above the limit");
  const isCoded = response.headers.has("content-encoding");
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = response.body?.getReader();
  while (reader) {
    const { done, value } = await untilAborted(reader.read(), signal);
    if (done) break;
    length += value.length;
    if (length > bytesMax) fail("source_too_large", "more bytes than the limit");
    chunks.push(value);
    if (length > EvidenceRoom.SMALL_BYTES) await room?.take(isCoded ? bytesMax : (announced ?? bytesMax));
  }
  if (announced !== null && length < announced) fail("source_unreachable", "the body was cut off");
  const body = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.length;
  }
  return body;
}

function announcedLength(response: Response): number | null {
  const text = response.headers.get("content-length");
  if (text === null || response.headers.has("transfer-encoding") || BODILESS.has(response.status))
    return null;
  return /^\d{1,15}$/.test(text)
    ? Number(text)
    : fail("source_unreachable", "a Content-Length that is not a number");
}

const IMF_FIXDATE =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** Epoch ms of an HTTP date in today's form, IMF-fixdate (RFC 9110, 5.6.7); null for any other text. */
export function parseHttpDate(text: string | null): number | null {
  if (text === null || !IMF_FIXDATE.test(text)) return null;
  const time = Date.parse(text);
  // Date.parse reads 31 February as 3 March.
  return Number.isNaN(time) || new Date(time).toUTCString() !== text ? null : time;
}
