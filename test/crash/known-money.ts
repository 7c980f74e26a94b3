import type { Mode } from "../../src/core/roles.ts";
import type { Knowledge } from "./knowledge.ts";
import type { Json } from "./program.ts";

export type KnownDeposit = {
  readonly id: string;
  readonly mode: Mode;
  readonly reference: string;
  readonly amount: bigint;
  /** What it counts for, as it was corrected. */
  readonly counts: bigint;
};
export type KnownPayout = {
  readonly id: string;
  readonly mode: Mode;
  readonly status: "submitted" | "paid" | "failed";
};

/** Everything that the answers have said of money in and out. */
export type KnownMoney = {
  readonly deposits: ReadonlyMap<string, KnownDeposit>;
  /** Ids. */
  readonly corrections: ReadonlySet<string>;
  /** Those that people pay. */
  readonly payouts: ReadonlyMap<string, KnownPayout>;
  /** Payouts that the treasury's wallet sends, by their ids. */
  readonly onChain: ReadonlySet<string>;
  /** Transfers to the treasury that were nobody's, and those of them that were assigned, by their ids. */
  readonly unassigned: ReadonlySet<string>;
  readonly assigned: ReadonlySet<string>;
  /** Throws where the reference was recorded under another id. */
  learnDeposit(mode: Mode, deposit: Json): void;
  learnCorrection(correction: Json): void;
  /** Learns of a payout that was submitted. */
  learnSubmitted(payout: Pick<KnownPayout, "id" | "mode">): void;
  learnEnd(payoutId: string, status: "paid" | "failed"): void;
  learnOnChain(payoutId: string): void;
  learnUnassigned(transferId: string): void;
  learnAssigned(transferId: string): void;
  /** Learns of a deposit that the treasury's chain has brought. */
  learnCredited(mode: Mode, deposit: Pick<KnownDeposit, "id" | "amount">): void;
};

/** @param funded is changed by what came in */
export function createKnownMoney(funded: Knowledge["funded"]): KnownMoney {
  const deposits = new Map<string, KnownDeposit>();
  const corrections = new Set<string>();
  const payouts = new Map<string, KnownPayout>();
  const onChain = new Set<string>();
  const unassigned = new Set<string>();
  const assigned = new Set<string>();
  const credited = new Set<string>();
  return {
    ...{ deposits, corrections, payouts, onChain, unassigned, assigned },
    learnDeposit(mode, { id, amount: text, reference }) {
      if (deposits.has(id)) return;
      const amount = BigInt(text);
      const same = [...deposits.values()].find((one) => one.mode === mode && one.reference === reference);
      if (same) throw new Error(`${reference} was recorded as ${same.id}, and then as ${id}`);
      deposits.set(id, { id, mode, reference, amount, counts: amount });
      funded[mode] += amount;
    },
    learnCorrection({ id, deposit_id: depositId, amount_after: after }) {
      const deposit = deposits.get(depositId);
      if (!deposit || corrections.has(id)) return;
      corrections.add(id);
      deposits.set(depositId, { ...deposit, counts: BigInt(after) });
      funded[deposit.mode] += BigInt(after) - deposit.counts;
    },
    learnSubmitted({ id, mode }) {
      if (!payouts.has(id)) payouts.set(id, { id, mode, status: "submitted" });
    },
    learnEnd(id, status) {
      const known = payouts.get(id);
      if (!known) throw new Error(`an answer about a payout that nobody submitted: ${id}`);
      payouts.set(id, { ...known, status });
    },
    learnOnChain: (id) => void onChain.add(id),
    learnUnassigned: (id) => void unassigned.add(id),
    learnAssigned(id) {
      unassigned.delete(id);
      assigned.add(id);
    },
    learnCredited(mode, { id, amount }) {
      if (credited.has(id)) return;
      credited.add(id);
      funded[mode] += amount;
    },
  };
}
