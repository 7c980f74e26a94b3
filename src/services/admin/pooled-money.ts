import { type Correction, differenceOf } from "../../core/correction.ts";
import { type Refusal, refuse, refuseField } from "../../core/errors.ts";
import type { Payout, PayoutEnd } from "../../core/payout.ts";
import { isOfPool, isPooled, type RailState } from "../../core/rail.ts";
import type { Mode } from "../../core/roles.ts";
import type { Authority } from "./authority.ts";

/**
 * What an organisation's people may not say of real money that a treasury holds for all organisations (docs/money, "Deposits on a
 * chain"). The operator of the machine, for whom no state of a rail is read, may say all of it.
 */

export const refusePooledDeposit = (mode: Mode, asset: string, state: RailState | null): Refusal | null =>
  isPooled(mode, state)
    ? refuseField(
        "asset",
        `${asset} comes in on a chain, where it is found by itself; what comes in otherwise the operator of the machine records, with holdfast balances fund`,
      )
    : null;

export const refusePooledCorrection = (correction: Correction, state: RailState | null): Refusal | null =>
  isPooled(correction.mode, state) && differenceOf(correction) > 0n
    ? refuseField(
        "amount",
        `must not be more than it counts for: ${correction.asset} is on a chain, and the operator of the machine adds to it, with holdfast balances correct`,
      )
    : null;

/** That a payout which left a wallet is owed again. */
export const refuseOwedAgain = (
  authority: Authority,
  payout: Payout,
  { status }: PayoutEnd,
): Refusal | null =>
  authority.kind === "machine" || !isOfPool(payout) || status !== "failed"
    ? null
    : refuse(
        "insufficient_role",
        `The payout ${payout.id} was sent by a treasury. That it failed, or came back, is said by the operator of the machine, with holdfast payouts fail.`,
      );
