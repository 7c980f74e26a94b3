import type { Context } from "../services/context.ts";
import type { OnDeliveryFault } from "../services/webhooks/attempt.ts";
import { claimDeliveries } from "../services/webhooks/deliver.ts";
import { recoverDeliveries } from "../services/webhooks/recover.ts";

/** Puts deliveries that were cut off back on their schedule, and starts the attempts that are due. It does not wait for their end. */
export async function deliverWebhooks(ctx: Context, onFault: OnDeliveryFault): Promise<void> {
  await recoverDeliveries(ctx);
  await claimDeliveries(ctx, onFault);
}
