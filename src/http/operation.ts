import { timingSafeEqual } from "node:crypto";
import { sha256 } from "../core/canonical.ts";
import type { Client } from "../core/client.ts";
import type { ErrorCode } from "../core/errors.ts";
import type { Readiness } from "../core/operation.ts";
import type { Caller } from "../core/roles.ts";
import type { Context } from "../services/context.ts";
import type { Machine } from "./machines.ts";

/** What the routes for the operator's tools ask of the running service. */
export type Operation = {
  /** @param reading the context of a request that holds a snapshot: it must not wait for another one */
  readonly readiness: (reading?: Context) => Promise<Readiness>;
  /** The metrics as Prometheus text. */
  readonly metrics: () => Promise<string>;
  /** SHA-256 of the token that reads the metrics; null closes their route. */
  readonly metricsTokenHash: string | null;
};

/** Whether a request carries the metrics' token. Hashes are compared, in constant time. */
export function mayReadMetrics(headers: Headers, tokenHash: string): boolean {
  const token = /^Bearer (\S+)$/i.exec(headers.get("authorization") ?? "")?.[1];
  return token !== undefined && timingSafeEqual(Buffer.from(sha256(token)), Buffer.from(tokenHash));
}

/**
 * One request and its result, for metrics and logs. It has only the path's pattern, since a path may contain
 * a secret.
 */
export type Answered = {
  readonly requestId: string;
  /** The caller's own id; null where it sent none, or one that may not be echoed. */
  readonly callerRequestId: string | null;
  readonly method: string;
  /** Such as `/v1/warrants/:id`; null where there is no such route. */
  readonly route: string | null;
  readonly status: number;
  readonly durationMs: number;
  /** The code of the refusal; null where the request was answered. */
  readonly refused: ErrorCode | null;
  readonly caller: Caller["kind"] | Machine | null;
  /** The id of the key or the person. */
  readonly callerId: string | null;
  /** Asks for the address of the other end, by a system call. */
  readonly client: () => Client;
};
