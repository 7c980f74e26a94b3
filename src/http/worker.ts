import { timingSafeEqual } from "node:crypto";
import { sha256 } from "../core/canonical.ts";
import { type Refusal, refuse } from "../core/errors.ts";

export const WORKER_HEADER = "X-Service-Worker";

/**
 * Whether a request has the worker's secret. Their hashes are compared, in constant time, since these always
 * have the same length. Without a configured secret nobody is the worker.
 */
export function isWorker(headers: Headers, secretHash: string | null): boolean {
  const sent = headers.get(WORKER_HEADER);
  return (
    sent !== null &&
    secretHash !== null &&
    timingSafeEqual(Buffer.from(sha256(sent)), Buffer.from(secretHash))
  );
}

/** The refusal for everybody who is not the worker. */
export const refuseStranger = (secretHash: string | null): Refusal =>
  secretHash === null
    ? refuse("worker_secret_unset", "HOLDFAST_WORKER_SECRET is not set: this route is closed.")
    : refuse("invalid_worker_secret", `Send the worker's secret as ${WORKER_HEADER}.`);
