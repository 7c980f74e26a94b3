import type { Deposit } from "./deposit.ts";
import type { Mode } from "./roles.ts";

/** `proposed` waits for a second person and moves nothing; `recorded` is posted; `withdrawn` was given up. */
export const CORRECTION_STATUSES = ["proposed", "recorded", "withdrawn"] as const;
export type CorrectionStatus = (typeof CORRECTION_STATUSES)[number];

/** What a deposit really brought, and why. The posting of the difference takes back what was posted too much, or adds what was missing. */
export type Correction = {
  readonly id: string;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly asset: string;
  readonly depositId: string;
  /** What the deposit counted for until then, and counts for from then on. */
  readonly amountBefore: bigint;
  readonly amountAfter: bigint;
  readonly reason: string;
  readonly status: CorrectionStatus;
  /** The person who proposed or recorded it; null for the operator of the machine. */
  readonly proposedBy: string | null;
  /** The person who approved or withdrew what was proposed; null where nobody did. */
  readonly decidedBy: string | null;
  readonly createdAt: number;
  readonly decidedAt: number | null;
};

/** By how much the balance changes; negative where money is taken back. */
export const differenceOf = ({
  amountBefore,
  amountAfter,
}: Pick<Correction, "amountBefore" | "amountAfter">): bigint => amountAfter - amountBefore;

/** How much a correction changes, whichever way: in this step, and in all since the deposit was recorded. Small steps add up. */
export const movedBy = (
  { amountBefore, amountAfter, asset }: Pick<Correction, "amountBefore" | "amountAfter" | "asset">,
  deposit: Pick<Deposit, "amount">,
) =>
  [amountBefore, deposit.amount].map((from) => ({
    amount: from < amountAfter ? amountAfter - from : from - amountAfter,
    asset,
  }));

/**
 * What a deposit counts for.
 *
 * @param newest the newest of its corrections that was not withdrawn; null where there is none
 */
export function countedAmount(deposit: Deposit, newest: Correction | null): bigint {
  if (newest === null) return deposit.amount;
  return newest.status === "proposed" ? newest.amountBefore : newest.amountAfter;
}
