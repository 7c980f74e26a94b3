import type { DepositSender } from "../../core/deposit-sender.ts";
import { watchKey } from "../../core/treasury-watch.ts";
import { caip2Of } from "../../core/x402/chains.ts";
import type { Reader } from "../../store/reader.ts";
import type { Scope } from "../../store/scope.ts";
import type { Context } from "../context.ts";

/** Where an organisation pays in on chains, in one mode. */
export type PayIn = {
  readonly treasuries: readonly {
    readonly asset: string;
    /** CAIP-2. */
    readonly chain: string;
    readonly address: string;
    readonly token: string;
    /** Up to which block deposits are credited; null before the first look. */
    readonly block: number | null;
    readonly isStopped: boolean;
  }[];
  /** The first of the organisation's registered addresses. */
  readonly senders: readonly DepositSender[];
};

const SENDERS_SHOWN = 20;

export async function readPayIn({ treasuries }: Context, reader: Reader, scope: Scope): Promise<PayIn> {
  const ofMode = treasuries.filter(({ mode }) => mode === scope.mode);
  if (ofMode.length === 0) return { treasuries: [], senders: [] };
  const watches = await reader.treasuryWatches.list();
  return {
    treasuries: ofMode.map((treasury) => {
      const { asset, chainId, address, token } = treasury;
      const watch = watches.find((one) => watchKey(one) === watchKey(treasury));
      return {
        ...{ asset, chain: caip2Of(chainId), address, token },
        block: watch?.reconciled.number ?? null,
        isStopped: (watch?.stopped ?? null) !== null,
      };
    }),
    senders: await reader.depositSenders.list(scope, null, SENDERS_SHOWN),
  };
}
