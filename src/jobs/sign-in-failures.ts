import { isoTime } from "../core/time.ts";
import { type Audited, executeAudited } from "../services/audited.ts";
import type { FailureEntry } from "../services/auth/failures.ts";
import type { Context } from "../services/context.ts";

/** How many entries are written before requests are served again. */
const STEP = 100;

/** Writes failed sign-ins into the audit log, every five seconds and on stop. Answers how many entries. */
export async function writeSignInFailures(ctx: Context, all = false): Promise<number> {
  const entries = ctx.signInFailures.take(ctx.now(), all);
  for (let start = 0; start < entries.length; start += STEP) {
    try {
      await Promise.all(entries.slice(start, start + STEP).map((entry) => writeEntry(ctx, entry)));
    } catch (error) {
      ctx.signInFailures.putBack(entries.slice(start));
      throw error;
    }
  }
  return entries.length;
}

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
