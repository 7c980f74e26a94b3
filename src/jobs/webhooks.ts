import type { Context } from "../services/context.ts";
import type { OnDeliveryFault } from "../services/webhooks/attempt.ts";
import { beginDeliveries } from "../services/webhooks/deliver.ts";
import { recoverDeliveries } from "../services/webhooks/recover.ts";

/** Begins what is due, and puts back on schedule what was left behind. The run does not wait for the attempts to end. */
export async function deliverWebhooks(ctx: Context, onFault: OnDeliveryFault): Promise<void> {
  await recoverDeliveries(ctx);
  await beginDeliveries(ctx, onFault);
}
