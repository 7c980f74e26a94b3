import type { Figures } from "../platform/metrics.ts";
import type { Context } from "../services/context.ts";
import { ledgerFigures } from "../services/figures.ts";
import type { WatchedDatabase } from "./store.ts";

type Sources = {
  readonly ctx: Context;
  readonly witnesses: () => Promise<Figures["witnesses"]>;
  readonly deposits: () => Promise<Figures["deposits"]>;
  /** Null where the ledger is in the data folder. */
  readonly database: WatchedDatabase | null;
};

/** What the metrics read from the ledger. Where a database does not answer, that is as it was when it last did. */
export function ledgerReading({ ctx, witnesses, deposits, database }: Sources) {
  const read = async () => ({
    ...(await ledgerFigures(ctx)),
    ...{ witnesses: await witnesses(), deposits: await deposits() },
  });
  let last: Awaited<ReturnType<typeof read>> | null = null;
  return async () => {
    if (last && database?.figures().isReachable === false) return last;
    try {
      last = await read();
    } catch (error) {
      if (!last || !database) throw error;
    }
    return last;
  };
}
