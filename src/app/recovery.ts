import { recoverAtStart } from "../jobs/recover.ts";
import type { Context } from "../services/context.ts";
import { rememberServer } from "../services/instance.ts";
import { recoverDeliveriesAtStart } from "../services/webhooks/recover.ts";
import { recoverPurchasesSoon } from "./buying.ts";
import { JOBS, onRecoveryFault } from "./operation.ts";

/**
 * Undoes or ends at the start what a crash may have left. Each of these also runs beside the others while the server does, so none
 * waits for another: they read from one snapshot, and their commits are gathered into one.
 *
 * @param onFault is called for what failed. On a full disk the service must still answer reads, and the jobs try it again
 * @throws where the interrupted checks cannot even be read
 */
export async function recoverLeftovers(ctx: Context, onFault: (error: unknown) => void): Promise<void> {
  const [checks] = await Promise.allSettled([
    recoverAtStart(ctx, onRecoveryFault),
    recoverPurchasesSoon(ctx).catch(onFault),
    rememberServer(ctx).catch(onFault),
    recoverDeliveriesAtStart(ctx).catch(onFault),
    JOBS.agents(ctx).catch(onFault),
  ]);
  if (checks.status === "rejected") throw checks.reason;
}
