import type { Asked, ByteBudget, Claim } from "../core/byte-budget.ts";
import { type Client, clientOf, networkOf } from "../core/client.ts";
import type { Refusal } from "../core/errors.ts";
import type { Address, Network } from "../core/networks.ts";
import type { Budget } from "../core/rate.ts";
import type { Caller } from "../core/roles.ts";
import type { SignedIn } from "../services/auth/callers.ts";
import type { Context } from "../services/context.ts";
import type { Idempotency } from "../services/idempotency.ts";
import type { Answer } from "./answers.ts";
import { type Counted, clientAddress } from "./limits.ts";
import type { Machine } from "./machines.ts";
import type { Operation } from "./operation.ts";
import type { Pages, ReceiptPages, Site } from "./pages.ts";
import { type Room, roomIn } from "./sending.ts";

/** What all requests to a shell share. */
export type Setup = {
  readonly ctx: Context;
  /** Where the links in errors lead. */
  readonly docsUrl: string;
  /** The console's pages by path. The route of a page that is missing here answers 404. */
  readonly pages: Pages;
  /** Null where receipts are shown as JSON alone. */
  readonly receiptPages: ReceiptPages | null;
  /** Null where nobody is shown the console. */
  readonly site: Site | null;
  /** Null without a running service. Then there are no metrics, and /readyz always answers that it is ready. */
  readonly operation: Operation | null;
  /** Proxies whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: readonly Network[];
  /** The bytes of all long answers that are being sent. */
  readonly answers: ByteBudget;
  /** Logs an unexpected error with the request's id. */
  readonly onFault: OnFault;
};

/** Called with an unexpected error, for the log. */
export type OnFault = (
  error: unknown,
  requestId: string,
  who: { readonly caller_id: string | null; readonly address: string },
) => void;

/**
 * One request: what was sent, and what the shell has found out about it. In a handler, body and query have
 * the types of the route's models.
 */
export type Call<Body = unknown, Query = unknown, Params = unknown> = {
  /** While a GET is answered, its reads may all come from one snapshot. */
  ctx: Context;
  readonly setup: Setup;
  /** The service's own id of the request. */
  readonly requestId: string;
  /** The method whose route is looked for. For a HEAD this is GET. */
  readonly method: string;
  /** The path as it was sent, percent-encoded. */
  readonly path: string;
  /** The text after the URL's `?`, possibly empty. */
  readonly search: string;
  readonly headers: Headers;
  /** Aborts where the connection ends before the answer. */
  readonly left: () => AbortSignal;
  /** Asks for the address of the other end, by a system call. */
  readonly socketAddress: () => string | undefined;
  /** The route's pattern, such as `/v1/warrants/:id`; null until it is found, and where there is no such route. */
  route: string | null;
  /** The parameters in the path, decoded. */
  params: Params;
  query: Query;
  /** The JSON object; undefined where no body was sent. */
  body: Body;
  caller: Caller | null;
  /** The machine that calls, on a route for it. */
  machine: Machine | null;
  /** The person and the sign-in; null where the request has no valid cookie. */
  signedIn: SignedIn | null;
  /** The caller's remaining rate limit; null until the request was counted. */
  budget: Budget | null;
  /** The Idempotency-Key and the fingerprint; null on a route that does not move money. */
  idempotency: Idempotency | null;
  /** The warrant's version when the headers were read, on a route that decides on it; null where there is no such warrant. */
  versionSeen: number | null;
  /** The bytes that the body holds until the answer. */
  bodyClaim: Claim | null;
  /** Whether the connection is closed after the answer, because the rest of the body is not read. */
  closes: boolean;
  /** How a refusal is shown to a person; null where it is answered as the error envelope. */
  showRefusal: ((refusal: Refusal) => Answer) | null;
};

/** The caller that a request counts for: a person, a key, otherwise the address (docs/idempotency, "Limits"). */
export function countedAs(call: Call): Counted {
  const { caller, machine } = call;
  // Strangers at its address must not use up its budget.
  if (machine) return { kind: "account", id: machine, live: true };
  if (caller === null) return countedByAddress(call);
  const id = caller.kind === "key" ? caller.keyId : caller.userId;
  return { kind: "account", id, live: caller.mode === "live" };
}

const countedByAddress = (call: Call): Counted => ({ kind: "address", id: networkOfClient(call) });

/** Who takes memory, for a body or an answer. */
export function partyOf(call: Call): Omit<Asked, "bytes"> {
  const { kind, id } = countedAs(call);
  return { party: `${kind} ${id}`, live: call.caller?.mode === "live" };
}

/** Memory for a long answer to this request. */
export const roomOf = (call: Call): Room => roomIn(call.setup.answers, partyOf(call));

const addressOf = ({ socketAddress, headers, setup }: Call): Address | null =>
  clientAddress(socketAddress(), headers.get("x-forwarded-for"), setup.trustedProxies);

/** The client's address; for IPv6, its /64 network. */
export const networkOfClient = (call: Call): string => networkOf(addressOf(call));

/** Where the request came from. */
export const clientOfCall = (call: Call): Client => clientOf(addressOf(call), call.headers.get("user-agent"));

/** Logs an unexpected error with the request's id, and whose request it was. */
export const reportFault = (call: Call, error: unknown): void =>
  call.setup.onFault(error, call.requestId, {
    caller_id: callerIdOf(call),
    address: clientOfCall(call).address,
  });

/** The id of the key or the person; null where nobody was recognised. */
export const callerIdOf = ({ caller }: Call): string | null =>
  caller && (caller.kind === "key" ? caller.keyId : caller.userId);

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
export function idempotencyOf(call: Call): Idempotency {
  if (!call.idempotency) throw new Error("a money-moving route without an Idempotency-Key");
  return call.idempotency;
}
