import type { AuthSession, User } from "../core/directory.ts";
import type { Network } from "../core/networks.ts";
import type { Budget } from "../core/rate.ts";
import type { Caller } from "../core/roles.ts";
import type { Context } from "../services/context.ts";
import type { Intent } from "../services/intent.ts";
import { clientAddress } from "./limits.ts";
import type { Operation } from "./operation.ts";
import type { Pages } from "./pages.ts";

/** What all requests of a shell share. */
export type Setup = {
  readonly ctx: Context;
  /** Where the links in errors lead. */
  readonly docsUrl: string;
  /** What people see in a browser, by path; where a page is not there, its route answers 404. */
  readonly pages: Pages;
  /** Null where there is no running service: then there are no metrics, and nothing that could be unready. */
  readonly operation: Operation | null;
  /** Proxies whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: readonly Network[];
  /** Logs an unexpected error with the request's id. */
  readonly onFault: (error: unknown, requestId: string) => void;
};

/** One request: what it sends, and what the shell finds out about it. A handler's body and query have the types of its models. */
export type Call<Body = unknown, Query = unknown, Params = unknown> = {
  readonly ctx: Context;
  readonly setup: Setup;
  /** The service's own id of the request. */
  readonly requestId: string;
  /** The method whose route is looked for: a HEAD is answered as a GET. */
  readonly method: string;
  /** As it was sent: percent-encoded. */
  readonly path: string;
  /** The text after the URL's `?`; empty where there is none. */
  readonly search: string;
  readonly headers: Headers;
  /** The address of the other end. Asking costs a system call. */
  readonly socketAddress: () => string | undefined;
  /** The route's pattern, such as `/v1/warrants/:id`; null before it is found, and where there is none. */
  route: string | null;
  /** From the path, percent-decoded. */
  params: Params;
  query: Query;
  /** The JSON object; undefined where none was sent. */
  body: Body;
  caller: Caller | null;
  /** Whether the worker calls, on a route of its own. */
  worker: boolean;
  /** The person and the sign-in, where a cookie was honoured. */
  signedIn: { readonly user: User; readonly session: AuthSession } | null;
  /** What is left of the caller's rate; null before it was counted. */
  budget: Budget | null;
  /** Present on the routes that move money. */
  intent: Intent | null;
  /** Whether the connection is closed after the answer, because the rest of the body is not waited for. */
  closes: boolean;
};

/** The client's address; an IPv6 one as its /64. */
export const addressOf = ({ socketAddress, headers, setup }: Call): string =>
  clientAddress(socketAddress(), headers.get("x-forwarded-for"), setup.trustedProxies);

/** Logs an unexpected error with the request's id. */
export const reportFault = ({ setup, requestId }: Call, error: unknown): void =>
  setup.onFault(error, requestId);

/** The caller, on a route that requires one. */
export function callerOf(call: Call): Caller {
  if (!call.caller) throw new Error("a guarded route without a caller");
  return call.caller;
}

/** The person and the sign-in, on a route that requires a person. */
export function signedInOf(call: Call) {
  if (!call.signedIn) throw new Error("a person's route without a person");
  return call.signedIn;
}

/** The Idempotency-Key and the request's fingerprint, on a route that requires the key. */
export function intentOf(call: Call): Intent {
  if (!call.intent) throw new Error("a money-moving route without an intent");
  return call.intent;
}
