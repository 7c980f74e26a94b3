import type { SignInMeans } from "../core/auth-session.ts";
import type { Client } from "../core/client.ts";
import { createLineBudget } from "./line-budget.ts";
import { logInfo, logWarning } from "./log.ts";

/** Somebody did not show who they are. Passwords and e-mails are not in it: people type the one where the other belongs. */
export type FailedSignIn = {
  readonly client: Client;
  readonly by: SignInMeans;
  /** Whether it was wrong, or not tried since too many had failed. */
  readonly why: "wrong" | "too many failures";
  /** Null where no account was named, or none that exists. */
  readonly user: { readonly id: string; readonly organisationId: string } | null;
};

type SucceededSignIn = {
  readonly client: Client;
  readonly by: SignInMeans;
  readonly userId: string;
  readonly signInId: string;
};

type EndedSignIns = {
  readonly client: Client;
  readonly userId: string;
  readonly signInIds: readonly string[];
  readonly why: EndOfSignIn;
  /** Who ended them. */
  readonly endedBy: string;
};

export type EndOfSignIn = "signed out" | "signed in again" | "ended" | "password changed" | "password reset";

/** The server's log of sign-ins. A command of the command line logs none: the audit log has its ends. */
export type SignInLog = {
  failed(failure: FailedSignIn): void;
  succeeded(success: SucceededSignIn): void;
  ended(end: EndedSignIns): void;
};

export const NO_SIGN_IN_LOG: SignInLog = { failed() {}, succeeded() {}, ended() {} };

type Log = { readonly warning: typeof logWarning; readonly info: typeof logInfo };

/**
 * Logs sign-ins, one line each (docs/operating, "Sign-ins in the log"). The address stands at the same place in each line, before
 * anything that the client could write. Of failures that are too many a later line says how many were left out.
 *
 * @param now milliseconds of a clock that never jumps
 */
export function createSignInLog(
  log: Log = { warning: logWarning, info: logInfo },
  now: () => number = () => performance.now(),
): SignInLog {
  const lines = createLineBudget(now);
  return {
    failed({ client: { address, network, agent }, by, why, user }) {
      const left = lines.take(network);
      if (left === null) return;
      log.warning("sign-in failed", { address, by, why, user_id: user?.id ?? null, agent, ...left });
    },
    succeeded({ client: { address, agent }, by, userId, signInId }) {
      log.info("signed in", { address, by, user_id: userId, sign_in: signInId, agent });
    },
    ended({ client: { address, agent }, userId, signInIds, why, endedBy }) {
      const [first = null] = signInIds;
      const sign_ins = signInIds.length;
      log.info("sign-in ended", {
        ...{ address, why, user_id: userId, ended_by: endedBy, sign_in: first, sign_ins, agent },
      });
    },
  };
}
