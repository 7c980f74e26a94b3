import type { Client } from "../core/client.ts";
import type { ErrorCode } from "../core/errors.ts";
import { createLineBudget } from "./line-budget.ts";
import { logWarning } from "./log.ts";

/** A request that was refused, or answered: then `refused` is null. */
export type Answer = {
  readonly requestId: string;
  readonly method: string;
  /** Such as `/v1/warrants/:id`; null where there is no such route. */
  readonly route: string | null;
  readonly status: number;
  readonly refused: ErrorCode | null;
  readonly caller: "key" | "person" | "worker" | "messaging" | null;
  /** Whose key or person; null where nobody was recognised. */
  readonly callerId: string | null;
  readonly client: () => Client;
};

/** Who may not, who is nobody, who sends what cannot be, and who asks too often. */
const STATUSES = new Set([400, 401, 403, 429]);
/** A signature over a decision that does not fit. */
const APPROVALS = "/auth/passkey/assertion";

/**
 * Logs refusals that may be attempts to get past a check, one line each, whatever `HOLDFAST_LOG` says (docs/operating,
 * "Refusals in the log"). Failed sign-ins have lines of their own. Of lines that are too many a later one says how many were left out.
 *
 * @param now milliseconds of a clock that never jumps
 */
export function createRefusalLog(warning = logWarning, now: () => number = () => performance.now()) {
  const lines = createLineBudget(now);
  return ({ requestId, method, route, status, refused, caller, callerId, client }: Answer): void => {
    const isSignIn = (status === 401 || status === 429) && (route?.startsWith("/auth/") ?? false);
    const isLogged = STATUSES.has(status) || (status === 404 && route === APPROVALS);
    if (refused === null || !isLogged || isSignIn) return;
    const { address, network, agent } = client();
    const left = lines.take(network);
    if (left === null) return;
    warning("refused", {
      ...{ address, code: refused, status, method, route, caller, caller_id: callerId },
      ...{ request_id: requestId, agent, ...left },
    });
  };
}
