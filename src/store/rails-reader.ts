import type { WalletOfChain, WalletTransaction } from "../core/chain-transaction.ts";
import type { PayeeName, Payout } from "../core/payout.ts";
import type { PayoutTransaction, PayoutWait, RailState } from "../core/rail.ts";
import type { Mode } from "../core/roles.ts";
import type { Scope } from "./scope.ts";

/** The part of the reads that is about payouts on chains. */
export interface RailsReader {
  readonly rails: {
    /** All of them: there are as many as the operator has named tokens. */
    states(): Promise<readonly RailState[]>;
    state(of: Pick<RailState, "mode" | "asset">): Promise<RailState | null>;
    wait(scope: Scope, of: PayeeName): Promise<PayoutWait | null>;
    newestPayout(scope: Scope, of: PayeeName): Promise<Payout | null>;
    /** Which transaction pays a payout; null on the rail `book`. */
    transactionOf(
      payoutId: string,
    ): Promise<{ readonly of: PayoutTransaction; readonly transaction: WalletTransaction } | null>;
    /** Those of a wallet whose end is not accounted for, by their nonces. */
    toJudge(of: WalletOfChain, limit: number): Promise<readonly PayoutTransaction[]>;
    /** Those that were accounted for, and are open again since a reorganisation. */
    reopened(of: WalletOfChain, limit: number): Promise<readonly PayoutTransaction[]>;
    /** The organisations that owe something in a mode and asset. */
    owing(mode: Mode, asset: string): Promise<readonly string[]>;
    /** How much was sent after a time without a person, and has not failed. */
    sentAfter(scope: Scope, asset: string, after: number): Promise<bigint>;
    /** The time up to which at least so much of that was sent, epoch milliseconds; null where it was less. */
    sentBy(scope: Scope, asset: string, after: number, amount: bigint): Promise<number | null>;
    /** Of each token: how many payouts are under way, and of the first ten thousand payees that wait how many wait for what. */
    figures(): Promise<readonly RailFigure[]>;
  };
}

export type RailFigure = Pick<RailState, "mode" | "asset" | "code"> & {
  readonly underWay: number;
  readonly waiting: Readonly<Record<string, number>>;
};
