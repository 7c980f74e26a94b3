import type { SignInMeans } from "../../core/auth-session.ts";
import type { Client } from "../../core/client.ts";
import { isRefusal, type Refusal, refuse, refusedUnshared } from "../../core/errors.ts";
import type { FailedSignIn } from "../../platform/sign-in-log.ts";
import type { Context } from "../context.ts";
import type { Tried } from "./throttle.ts";

/** A try to show who one is, and who is meant. */
export type Attempt = Pick<Tried, "account" | "trusted"> & {
  readonly by: SignInMeans;
  readonly client: Client;
  readonly user: FailedSignIn["user"];
};

/** What the throttle knows of a try. */
export const triedBy = (by: SignInMeans, { network }: Client): Pick<Tried, "by" | "network"> => ({
  by: by === "passkey" ? by : "password",
  network,
});

/**
 * Makes an attempt. It has failed where the answer is `not_authenticated`, or where the work throws. Where too many have
 * failed nothing is tried, and the answer is `rate_limit_exceeded`, as where other instances cannot be told of it. Failures leave a
 * trace.
 */
export async function attemptSignIn<Answer>(
  ctx: Pick<Context, "signInThrottle" | "signInLog" | "signInFailures" | "now">,
  { by, client, account, trusted, user }: Attempt,
  work: () => Promise<Answer | Refusal>,
): Promise<Answer | Refusal> {
  const leaveTrace = (why: FailedSignIn["why"]): void => {
    ctx.signInLog.failed({ client, by, why, user });
    ctx.signInFailures.record({ client, by, why, user }, ctx.now());
  };
  const end = await ctx.signInThrottle
    .begin({ ...triedBy(by, client), account, trusted }, ctx.now)
    .catch(refusedUnshared);
  if (isRefusal(end)) return end;
  if (!end) {
    leaveTrace("too many failures");
    return TOO_MANY_FAILURES;
  }
  let failed = true;
  let uncounted: Refusal | null = null;
  let answer: Answer | Refusal;
  try {
    answer = await work();
    failed = isRefusal(answer) && answer.refused === "not_authenticated";
    if (failed) leaveTrace("wrong");
  } finally {
    const ended = end(failed);
    if (ended) uncounted = await ended.then(() => null, refusedUnshared);
  }
  // Whoever guesses is not told of a failure that does not count.
  return failed ? (uncounted ?? answer) : answer;
}

const TOO_MANY_FAILURES = refuse(
  "rate_limit_exceeded",
  "Too many failed sign-ins for this account or network. Retry-After says when to try again.",
);
