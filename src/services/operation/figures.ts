import { STATES } from "../../core/warrant.ts";
import type { Figures } from "../../platform/metrics.ts";
import type { Context } from "../context.ts";

/** What the ledger says of the whole instance, for its operator's metrics. */
export function ledgerFigures(
  ctx: Context,
): Pick<
  Figures,
  "warrantsByState" | "warrantsOverdue" | "money" | "escalations" | "deliveries" | "purchases"
> {
  const { reader } = ctx.store;
  const now = ctx.now();
  const counts = reader.warrants.countsByState();
  const escalations = reader.escalations.waitingCount();
  const purchases = reader.purchases.waiting();
  return {
    warrantsByState: Object.fromEntries(STATES.map((state) => [state, counts[state] ?? 0])),
    warrantsOverdue: reader.warrants.overdueCount(now),
    money: reader.balances
      .totals()
      .flatMap(({ mode, asset, balance: { available, held, paid } }) =>
        Object.entries({ available, held, paid }).map(([state, amount]) => ({ mode, asset, state, amount })),
      ),
    escalations: { count: escalations.count, oldestMs: ageOf(escalations.oldestAt, now) },
    deliveries: {
      waiting: reader.deliveries.waiting(),
      lateMs: ageOf(reader.deliveries.nextAttemptAt(), now),
      ...ctx.deliveryFailures,
    },
    purchases: {
      unfinished: purchases.unfinished,
      unknown: purchases.toCheck,
      lateMs: ageOf(purchases.nextCheckAt, now),
    },
  };
}

const ageOf = (time: number | null, now: number): number => (time === null ? 0 : Math.max(0, now - time));

/** Whether the ledger can be read. */
export function isReadable({ store }: Context): boolean {
  try {
    store.reader.instance.get();
    return true;
  } catch {
    return false;
  }
}
