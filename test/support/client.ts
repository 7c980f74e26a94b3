import { expect } from "bun:test";
import { type Client as Caller, clientOf } from "../../src/core/client.ts";
import { parseAddress } from "../../src/core/networks.ts";

/** Sends one request, over a socket or directly into the shell. */
export type Send = (request: Request) => Promise<Response>;

/** Headers that say who calls. */
export type Credentials = Readonly<Record<string, string>>;
export const NOBODY: Credentials = {};

/** JSON of any form. */
export type Json = ReturnType<typeof JSON.parse>;

export type Reply = {
  readonly status: number;
  readonly headers: Headers;
  /** The body's JSON; null where there is none. */
  readonly body: Json;
  readonly text: string;
  /** The error's code; null where the answer is not an error. */
  readonly code: string | null;
};

export type SendOptions = {
  readonly as?: Credentials;
  /** The Idempotency-Key (default: a new one; null sends none). */
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
};

/** A caller at this address, as the services see it. */
export const callerAt = (address: string, agent = "test"): Caller => clientOf(parseAddress(address), agent);

export type Client = {
  /** An object is sent as JSON. Text, bytes and streams are sent unchanged, with the content type of JSON. */
  post(path: string, body?: unknown, options?: SendOptions): Promise<Reply>;
  get(path: string, options?: SendOptions): Promise<Reply>;
  send(method: string, path: string, body?: unknown, options?: SendOptions): Promise<Reply>;
};

let sequence = 0;
/** Never the same twice in the process. */
export const freshKey = (): string => `key-${++sequence}`;

type Payload = string | Uint8Array<ArrayBuffer> | ReadableStream;

const bodyOf = (body: unknown): Payload | null => {
  if (body === undefined) return null;
  return typeof body === "string" || body instanceof Uint8Array || body instanceof ReadableStream
    ? (body as Payload)
    : JSON.stringify(body);
};

/** A client that checks what every answer must have, so that a test checks only its own part. */
export function createClient(send: Send, baseUrl: string, docsUrl = `${baseUrl}/docs`): Client {
  const request: Client["send"] = async (method, path, body, { as, key, headers } = {}) => {
    const payload = bodyOf(body);
    const sent = method === "GET" || method === "HEAD" ? null : key === undefined ? freshKey() : key;
    const response = await send(
      new Request(baseUrl + path, {
        method,
        redirect: "manual",
        headers: {
          ...(payload !== null && { "Content-Type": "application/json" }),
          ...(sent !== null && { "Idempotency-Key": sent }),
          ...as,
          ...headers,
        },
        ...(payload !== null && { body: payload }),
      }),
    );
    return readReply(response, docsUrl, method);
  };
  return {
    send: request,
    post: (path, body, options) => request("POST", path, body, options),
    get: (path, options) => request("GET", path, undefined, options),
  };
}

/** The reply, after its headers and (on errors) its envelope were checked (docs/errors, "Errors"; docs/idempotency, "Limits"). */
export async function readReply(response: Response, docsUrl: string, method = "GET"): Promise<Reply> {
  const text = await response.text();
  const { status, headers } = response;
  const isJson = headers.get("content-type")?.startsWith("application/json") ?? false;
  const body: Json = isJson && text !== "" ? JSON.parse(text) : null;
  expectHeaders(status, headers);
  // What a witness answers to a log that does not continue as it says is no error of ours (C2SP, tlog-witness).
  const isOfWitness = (status === 409 || status === 422) && !isJson;
  if (status >= 400 && method !== "HEAD" && !isOfWitness) expectEnvelope(status, body, docsUrl);
  return { status, headers, body, text, code: body?.error?.code ?? null };
}

function expectHeaders(status: number, headers: Headers): void {
  const number = (name: string): number => {
    const value = headers.get(name) ?? "";
    expect([name, value]).toEqual([name, expect.stringMatching(/^[0-9]+$/)]);
    return Number(value);
  };
  expect(headers.get("x-request-id")).toMatch(/^[\x20-\x7e]{1,200}$/);
  const limit = number("ratelimit-limit");
  expect(number("ratelimit-remaining")).toBeLessThanOrEqual(limit);
  const reset = number("ratelimit-reset");
  expect(reset).toBeGreaterThan(0);
  // The failures of sign-ins are counted by the quarter-hour, everything else by the minute.
  expect(reset).toBeLessThanOrEqual(status === 429 ? 900 : 60);
  // Where not the window is used up, but a place is waited for, it is a second.
  const isUsedUp = number("ratelimit-remaining") === 0;
  expect(headers.get("retry-after")).toBe(status === 429 ? (isUsedUp ? String(reset) : "1") : null);
  expect(headers.get("cache-control")).toBe("no-store");
}

const TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request",
  401: "unauthenticated",
  402: "insufficient_funds",
  403: "forbidden",
  404: "not_found",
  429: "rate_limited",
  500: "api_error",
  503: "unavailable",
};

function expectEnvelope(status: number, body: Json, docsUrl: string): void {
  const code: string = body?.error?.code ?? "";
  const conflict = code === "illegal_transition" ? "invalid_state" : "conflict";
  expect(body).toEqual({
    error: {
      type: status === 409 ? conflict : (TYPES[status] ?? `no type for ${status}`),
      code: expect.stringMatching(/^[a-z0-9_]+$/),
      message: expect.stringMatching(/\S/),
      doc_url: `${docsUrl}/api-reference/errors#${code}`,
      request_id: expect.stringMatching(/^req_[0-9A-HJKMNP-TV-Z]{26}$/),
    },
  });
}
