import type { PeerCertificate } from "node:tls";
import type { SourceCode } from "../core/clauses/reason-codes.ts";
import type { AddressRules } from "./addresses.ts";
import { codeOf, logUnverified } from "./certificates.ts";
import { lacksDescriptor, withReserve } from "./descriptors.ts";
import { capWire } from "./wire-cap.ts";

/**
 * One HTTP request to an address that was checked (docs/security, "Hostile deliverables"): no redirect, proxy or reused connection.
 * Whoever makes it aborts the signal at the end, also after an answer.
 */
export type SafeRequest = {
  readonly url: URL;
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
  readonly signal: AbortSignal;
  /** Called with who answered, before the answer is given. */
  readonly onAnswer?: (peer: Peer) => void;
  /**
   * Whether `onAnswer` gets the certificate. Its name is then checked by this process, once it is there, and not by the code that
   * connects. So nothing asks for it that sends a secret.
   */
  readonly wantsCertificate?: boolean;
};

/** Who answered a request. */
export type Peer = {
  /** The address that the connection went to. */
  readonly address: string;
  /** SHA-256 of the TLS certificate, lower-case hex; null without TLS, or where nobody asked for it. */
  readonly certificateSha256: string | null;
};

export type SafeRequestOptions = {
  readonly rules: AddressRules;
  /** The addresses of a name; injectable for tests. */
  readonly resolve?: (hostname: string) => Promise<readonly string[]>;
  /** Certificate authorities to trust besides the built-in ones, as PEM. */
  readonly certificateAuthorities?: readonly string[];
};

/** Why there is no answer. `connected`: whether anything can have reached the other side. */
export class RequestFailure extends Error {
  constructor(
    readonly code: SourceCode,
    message: string,
    readonly connected: boolean,
  ) {
    super(message);
  }
}

const ADDRESSES_MAX = 8;
/** Errors of Bun's fetch that come before there is a connection. */
const NOT_CONNECTED = new Set([
  "ConnectionRefused",
  "FailedToOpenSocket",
  "ECONNREFUSED",
  "ENETUNREACH",
  "EHOSTUNREACH",
]);
/** On a busy machine the thread that fetches may come too late for the reserve. It is asked so often. */
const OPENINGS_MAX = 4;
/** Names of metadata services; their addresses are refused too. */
const REFUSED_NAMES = new Set(["metadata.google.internal", "metadata.goog", "metadata"]);

/**
 * Settles as the promise does, or rejects when the signal aborts, so that nobody waits for a hanging
 * operation.
 */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(new RequestFailure("source_timeout", "no answer in time", true));
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/**
 * The system's own resolver is not used: while a name server does not answer, each of its lookups blocks one of the few threads
 * on which files are read and passwords are hashed.
 */
async function resolveByDns(hostname: string): Promise<readonly string[]> {
  try {
    const lookup = withReserve("this thread", () => Bun.dns.lookup(hostname, { backend: "c-ares" }));
    return (await lookup).map(({ address }) => address);
  } catch (error) {
    if (codeOf(error) !== "DNS_ETIMEOUT") throw error;
    throw new RequestFailure("source_timeout", "no name server answers", false);
  }
}

/**
 * The response, its body unread and not decoded. Throws `RequestFailure`. The name is resolved once, every address is
 * checked, and the connection goes to an address that was checked.
 */
export async function requestSafely(options: SafeRequestOptions, request: SafeRequest): Promise<Response> {
  const { url, signal } = request;
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new RequestFailure("source_blocked", "not http or https", false);
  for (const address of await addressesOf(options, url, signal)) {
    const response = await responseFrom(options, request, address);
    if (response !== null) return response;
  }
  throw new RequestFailure("source_unreachable", "no address accepts a connection", false);
}

/**
 * The response from one address; null where there was no connection to it, so that another address may be tried. Once there
 * was one, the other side may have acted on the request: every failure after that throws, and ends the whole request.
 *
 * @param openings how often it may still be tried to get a descriptor
 */
async function responseFrom(
  options: SafeRequestOptions,
  request: SafeRequest,
  address: string,
  openings = OPENINGS_MAX,
): Promise<Response | null> {
  const { signal } = request;
  try {
    const certificate = { sha256: null };
    const response = await untilAborted(connect(options, request, address, certificate), signal);
    request.onAnswer?.({ address, certificateSha256: certificate.sha256 });
    return response;
  } catch (error) {
    if (error instanceof RequestFailure) throw error;
    if (signal.aborted) throw new RequestFailure("source_timeout", "no answer in time", true);
    if (lacksDescriptor(error))
      return openings > 1 ? responseFrom(options, request, address, openings - 1) : null;
    const code = codeOf(error);
    if (NOT_CONNECTED.has(code)) return null;
    logUnverified(error, request.url.host);
    throw new RequestFailure("source_unreachable", code || "no answer", true);
  }
}

/** The addresses of the URL's host, all of them allowed. */
async function addressesOf(
  options: SafeRequestOptions,
  url: URL,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const host = url.hostname.replace(/\.$/, "").toLowerCase();
  if (REFUSED_NAMES.has(host)) throw new RequestFailure("source_blocked", "a metadata service", false);
  const literal = literalAddress(host);
  let addresses: readonly string[];
  try {
    addresses = literal ? [literal] : await untilAborted((options.resolve ?? resolveByDns)(host), signal);
  } catch (error) {
    if (error instanceof RequestFailure) throw new RequestFailure(error.code, "no name in time", false);
    throw new RequestFailure("source_unreachable", "the name does not resolve", false);
  }
  if (addresses.length === 0)
    throw new RequestFailure("source_unreachable", "the name has no address", false);
  if (!addresses.every((address) => options.rules.allows(address, portOf(url))))
    throw new RequestFailure("source_blocked", "an address that may not be reached", false);
  return addresses.slice(0, ADDRESSES_MAX);
}

const portOf = (url: URL): number => Number(url.port || (url.protocol === "https:" ? 443 : 80));

/**
 * The address where a URL's host is one, else null. The URL parser has already written every form of IPv4 as
 * four parts.
 */
function literalAddress(host: string): string | null {
  if (host.startsWith("[")) return host.slice(1, -1);
  return /^\d+\.\d+\.\d+\.\d+$/.test(host) ? host : null;
}

/** The certificate's name is checked as Bun itself does it (RFC 6125), and its fingerprint is kept. */
async function keepingCertificate(kept: { sha256: string | null }): Promise<object> {
  const { checkServerIdentity } = await import("node:tls");
  return {
    checkServerIdentity(host: string, certificate: PeerCertificate) {
      kept.sha256 = certificate.fingerprint256.replaceAll(":", "").toLowerCase();
      return checkServerIdentity(host, certificate);
    },
  };
}

async function connect(
  options: SafeRequestOptions,
  request: SafeRequest,
  address: string,
  certificate: { sha256: string | null },
): Promise<Response> {
  const { url } = request;
  const target = new URL(url);
  const host = address.includes(":") ? `[${address}]` : address;
  target.hostname = host;
  // The setter ignores a host that it cannot parse, and then the name would be resolved again.
  if (target.hostname !== new URL(`http://${host}/`).hostname)
    throw new Error("the host did not become the address");
  target.hash = "";

  const name = url.hostname.replace(/\.$/, "");
  const { certificateAuthorities } = options;
  const tls = {
    rejectUnauthorized: true,
    ...(literalAddress(name) ? {} : { serverName: name }),
    ...(certificateAuthorities ? { ca: [...certificateAuthorities] } : {}),
    ...(request.wantsCertificate && url.protocol === "https:" ? await keepingCertificate(certificate) : {}),
  };
  const init = {
    method: request.method ?? "GET",
    headers: { ...request.headers, host: url.host, connection: "close" },
    ...(request.body === undefined ? {} : { body: request.body }),
    redirect: "manual",
    decompress: false,
    keepalive: false,
    proxy: false,
    signal: request.signal,
    ...(url.protocol === "https:" ? { tls } : {}),
  };
  capWire(address, portOf(url), request.signal);
  return withReserve("another", () => fetch(target.href, init as unknown as RequestInit));
}

/** Why a request or its body failed, as a code. */
export function failureCode(error: unknown, signal: AbortSignal): SourceCode {
  if (error instanceof RequestFailure) return error.code;
  return signal.aborted ? "source_timeout" : "source_unreachable";
}

/** The first bytes of a response's body, or as many of them as come in time. */
export async function readStart(
  response: Response,
  signal: AbortSignal,
  bytesMax: number,
): Promise<Uint8Array> {
  const reader = response.body?.getReader();
  let start = Buffer.alloc(0);
  try {
    while (reader && start.length < bytesMax) {
      const { done, value } = await untilAborted(reader.read(), signal);
      if (done) break;
      start = Buffer.concat([start, value]);
    }
  } catch {
    // The response was cut off. What has come so far is enough.
  }
  return start.subarray(0, bytesMax);
}
