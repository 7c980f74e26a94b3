import { isoTime } from "../core/time.ts";
import { type Audited, executeAudited } from "../services/audited.ts";
import type { FailureEntry } from "../services/auth/failures.ts";
import type { Context } from "../services/context.ts";
import { writeInSteps } from "./in-steps.ts";

/** Writes failed sign-ins into the audit log, every five seconds and on stop; with `all`, also sums whose hour is not over. */
export const writeSignInFailures = (ctx: Context, all = false): Promise<void> =>
  writeInSteps(
    ctx.signInFailures.take(ctx.now(), all),
    (entry) => writeEntry(ctx, entry),
    ctx.signInFailures.putBack,
  );

async function writeEntry(ctx: Context, entry: FailureEntry): Promise<void> {
  const { userId, organisationId, failures, networks, network, agent, by, why, firstAt, lastAt } = entry;
  const after = {
    ...{ failures, addresses: networks, agent, by, why },
    ...{ first_at: isoTime(firstAt), last_at: isoTime(lastAt) },
  };
  await executeAudited(
    ctx,
    { kind: "stranger", id: network },
    {
      scope: { organisationId, mode: "live" },
      needs: {},
      decide: (): Audited<null> => ({
        answer: null,
        put: [],
        entries: [{ action: "user.sign_in_failed", subject: userId, before: null, after }],
      }),
    },
  );
}
