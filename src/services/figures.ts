import { isStopped } from "../core/rail.ts";
import { STATES, WAITING_STATES } from "../core/warrant.ts";
import type { Figures } from "../platform/metrics.ts";
import type { Context } from "./context.ts";
import { fromCopy } from "./from-copy.ts";

type LedgerFigures = Pick<
  Figures,
  | "warrantsByState"
  | "warrantsOverdue"
  | "money"
  | "escalations"
  | "deliveries"
  | "capsulesNotKept"
  | "purchases"
  | "leavesToAnchor"
  | "rails"
>;

/** Figures of the whole ledger, for the operator's metrics. */
export const ledgerFigures = (ctx: Context): Promise<LedgerFigures> =>
  fromCopy(ctx).store.read(async (reader) => {
    const now = ctx.now();
    const counts = await reader.warrants.countsByState();
    const totals = await reader.balances.totals();
    const oldestAt = await reader.escalations.oldestWaitingAt();
    const purchases = await reader.purchases.waiting();
    return {
      warrantsByState: Object.fromEntries(STATES.map((state) => [state, counts[state] ?? 0])),
      warrantsOverdue: await reader.warrants.overdueCount(now),
      money: totals.flatMap(({ mode, asset, balance: { available, held, paid }, payable, submitted }) =>
        Object.entries({ available, held, paid, payable, submitted }).map(([state, amount]) => ({
          ...{ mode, asset, state, amount },
        })),
      ),
      // A warrant in one of these states has exactly one escalation that waits, so counting warrants is
      // enough.
      escalations: {
        count: WAITING_STATES.reduce((sum, state) => sum + (counts[state] ?? 0), 0),
        oldestMs: ageOf(oldestAt, now),
      },
      deliveries: {
        waiting: await reader.deliveries.waiting(),
        lateMs: ageOf(await reader.deliveries.nextAttemptAt(), now),
        exhausted: ctx.deliveryFailures.exhausted,
        notSent: ctx.deliveryFailures.notSent,
      },
      leavesToAnchor: (await reader.log.size()) - (await reader.logAnchors.confirmedSize()),
      rails: (await reader.rails.figures()).map(({ code, ...of }) => ({
        ...{ ...of, stopped: code !== null && isStopped({ code }) },
      })),
      capsulesNotKept: ctx.capsules.notKept.count,
      purchases: {
        unfinished: purchases.unfinished,
        unknown: purchases.unknown,
        contradicted: purchases.contradicted,
        lateMs: ageOf(purchases.nextCheckAt, now),
      },
    };
  });

const ageOf = (time: number | null, now: number): number => (time === null ? 0 : Math.max(0, now - time));

/** Whether the ledger can be read. */
export const isReadable = ({ store }: Context): Promise<boolean> =>
  store
    .read((reader) => reader.instance.get())
    .then(
      () => true,
      () => false,
    );
