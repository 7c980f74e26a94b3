/**
 * Holdfast's rules of money in and out (docs/money, "Money in and out") in plain lists, beside `plain-model.ts`. It uses no rule of
 * src either. An answer is a refusal's code, or what the service must show.
 */

/** Who gives the command: the operator of the machine, or a person with a role. */
export type ModelAdmin =
  | { readonly kind: "machine" }
  | { readonly kind: "person"; readonly userId: string; readonly isSenior: boolean };

type ModelBalance = { available: bigint; held: bigint; paid: bigint };
export type ModelDeposit = {
  readonly id: string;
  readonly asset: string;
  readonly amount: bigint;
  readonly reference: string | null;
};
export type ModelCorrection = {
  readonly id: string;
  readonly depositId: string;
  readonly asset: string;
  readonly before: bigint;
  readonly after: bigint;
  readonly proposedBy: string | null;
  status: "proposed" | "recorded" | "withdrawn";
};
export type ModelPayee = {
  readonly asset: string;
  readonly payee: string;
  payable: bigint;
  submitted: bigint;
  paidOut: bigint;
};
export type ModelPayout = {
  readonly id: string;
  readonly asset: string;
  readonly payee: string;
  readonly amount: bigint;
  readonly rail: "book" | "evm";
  status: "submitted" | "paid" | "failed";
  reference: string | null;
  reason: string | null;
};
export type ModelEnd =
  | { readonly reference: string }
  | { readonly reason: string; readonly returned: boolean };

/** What a person has released: a wallet sends it later. */
type ModelRelease = Pick<ModelPayout, "asset" | "payee" | "amount" | "reference" | "reason"> & {
  readonly id: null;
  readonly status: "owed";
};
/** A wallet that pays payees on a chain; `plain-treasury.ts` has its rules. */
type ModelWallet = {
  pays(account: ModelPayee): boolean;
  /** How much a person has released to each payee. */
  readonly released: Map<string, bigint>;
  /** The payees to whom a payout failed after the last one had begun: the next one a person releases. */
  readonly failed: Set<string>;
};

const MAXIMUM = 2n ** 63n - 1n;

const isRefusedTo = (by: ModelAdmin): boolean => by.kind === "person" && !by.isSenior;

export class PlainMoney {
  readonly balances = new Map<string, ModelBalance>();
  readonly deposits: ModelDeposit[] = [];
  readonly corrections: ModelCorrection[] = [];
  /** In the order in which each was first paid. */
  readonly payees: ModelPayee[] = [];
  readonly payouts: ModelPayout[] = [];
  /** How many postings there are of each kind. */
  readonly postings = new Map<string, number>();
  threshold: bigint | null = null;
  wallet: ModelWallet | null = null;
  /** The ids of the people who have a passkey. */
  readonly withPasskey = new Set<string>();

  private post(kind: string): void {
    this.postings.set(kind, (this.postings.get(kind) ?? 0) + 1);
  }

  private balanceOf(asset: string): ModelBalance {
    return this.balances.get(asset) ?? { available: 0n, held: 0n, paid: 0n };
  }

  isAboveThreshold(amount: bigint, asset: string): boolean {
    return this.threshold !== null && (asset !== "USDC" || amount > this.threshold);
  }

  /** What somebody is answered who has not signed what must be signed. */
  unsigned(userId: string): string {
    return this.withPasskey.has(userId) ? "passkey_required" : "passkey_unavailable";
  }

  hold(asset: string, amount: bigint): boolean {
    const balance = this.balances.get(asset);
    if (!balance || balance.available < amount) return false;
    balance.available -= amount;
    balance.held += amount;
    this.post("hold");
    return true;
  }

  /** A hold ends: a part of it is owed to the payee, the rest is available again. */
  settle(asset: string, amount: bigint, paid: bigint, payee: string): void {
    const balance = this.balances.get(asset);
    if (!balance) throw new Error("no balance");
    balance.held -= amount;
    balance.paid += paid;
    balance.available += amount - paid;
    this.post("settlement");
    if (paid === 0n) return;
    const account = this.payeeOf(asset, payee);
    if (account) account.payable += paid;
    else this.payees.push({ asset, payee, payable: paid, submitted: 0n, paidOut: 0n });
  }

  payeeOf(asset: string, payee: string): ModelPayee | undefined {
    return this.payees.find((one) => one.asset === asset && one.payee === payee);
  }

  /** `id` is the id that the service answered with. */
  fund(id: string, asset: string, amount: bigint, reference: string | null): ModelDeposit | string {
    const known = this.deposits.find(
      (one) => reference !== null && one.asset === asset && one.reference === reference,
    );
    if (known) return known.amount === amount ? known : "deposit_reference_used";
    const { available, held, paid } = this.balanceOf(asset);
    if (available + held + paid + amount > MAXIMUM) return "validation_failed";
    this.balances.set(asset, { available: available + amount, held, paid });
    const deposit = { id, asset, amount, reference };
    this.deposits.push(deposit);
    this.post("deposit");
    return deposit;
  }

  /** What the deposit counts for. */
  countsFor(deposit: ModelDeposit): bigint {
    const recorded = this.corrections.findLast(
      (one) => one.depositId === deposit.id && one.status === "recorded",
    );
    return recorded?.after ?? deposit.amount;
  }

  correct(by: ModelAdmin, id: string, depositId: string, after: bigint): ModelCorrection | string {
    if (isRefusedTo(by)) return "insufficient_role";
    const deposit = this.deposits.find((one) => one.id === depositId);
    if (!deposit) return "deposit_not_found";
    const newest = this.corrections.findLast(
      (one) => one.depositId === depositId && one.status !== "withdrawn",
    );
    if (newest?.after === after) return newest;
    if (newest?.status === "proposed") return "illegal_transition";
    if (!newest && deposit.amount === after) return "validation_failed";
    const correction: ModelCorrection = {
      ...{ id, depositId, asset: deposit.asset, before: this.countsFor(deposit), after, status: "recorded" },
      proposedBy: by.kind === "person" ? by.userId : null,
    };
    const refused = this.refuseDifference(correction);
    if (refused) return refused;
    if (this.isSigned(correction)) correction.status = "proposed";
    else this.postCorrection(correction);
    this.corrections.push(correction);
    return correction;
  }

  /** Whether it is above the threshold, in this step or in all since the deposit was recorded. */
  private isSigned({ depositId, asset, before, after }: ModelCorrection): boolean {
    const recorded = this.deposits.find((one) => one.id === depositId)?.amount ?? before;
    return [before, recorded].some((from) =>
      this.isAboveThreshold(after > from ? after - from : from - after, asset),
    );
  }

  private refuseDifference({ asset, before, after }: ModelCorrection): string | null {
    const { available, held, paid } = this.balanceOf(asset);
    if (available + after - before < 0n) return "insufficient_funds";
    return available + held + paid + after - before > MAXIMUM ? "validation_failed" : null;
  }

  private postCorrection({ asset, before, after }: ModelCorrection): void {
    const balance = this.balanceOf(asset);
    this.balances.set(asset, { ...balance, available: balance.available + after - before });
    this.post("correction");
  }

  decideCorrection(by: ModelAdmin, id: string, decision: "approve" | "withdraw"): ModelCorrection | string {
    if (isRefusedTo(by)) return "insufficient_role";
    const correction = this.corrections.find((one) => one.id === id);
    if (!correction) return "correction_not_found";
    if (correction.status !== "proposed") return "illegal_transition";
    if (decision === "withdraw") return Object.assign(correction, { status: "withdrawn" as const });
    if (by.kind === "person" && correction.proposedBy === by.userId) return "second_person_required";
    const refused = this.refuseDifference(correction);
    if (refused) return refused;
    if (this.isSigned(correction)) return by.kind === "person" ? this.unsigned(by.userId) : "no_person";
    this.postCorrection(correction);
    return Object.assign(correction, { status: "recorded" as const });
  }

  /** Who is owed something now: one payee, or each of them. */
  owed(to: { readonly asset: string; readonly payee: string } | null): readonly ModelPayee[] {
    const asked = to === null ? this.payees : [this.payeeOf(to.asset, to.payee)];
    return asked.filter((one) => one !== undefined).filter(({ payable }) => payable > 0n);
  }

  /**
   * Payouts of all that is owed to them, or of none. `ids` are those that the service answered with.
   *
   * @param found who was owed something when the command was sent
   * @param how `byHand`: no wallet sends it; `isSigned`: a passkey has signed exactly this
   */
  submit(
    by: ModelAdmin,
    ids: readonly (string | null)[],
    found: readonly ModelPayee[],
    { byHand, isSigned }: { readonly byHand: boolean; readonly isSigned: boolean },
  ): readonly (ModelPayout | ModelRelease)[] | string {
    if (isRefusedTo(by)) return "insufficient_role";
    const owed = found.filter(({ payable }) => payable > 0n);
    const isSent = (one: ModelPayee) => !byHand && this.isPaidByWallet(one);
    const totalOf = (of: string) =>
      owed.reduce((sum, { asset, payable }) => (asset === of ? sum + payable : sum), 0n);
    const isAbove = owed.some(({ asset }) => this.isAboveThreshold(totalOf(asset), asset));
    if (by.kind === "machine" && owed.some(isSent)) return "passkey_required";
    if (by.kind === "person" && !isSigned && (isAbove || owed.some(isSent))) return this.unsigned(by.userId);
    return owed.map((account, at) => {
      const { asset, payee, payable: amount } = account;
      if (!isSent(account)) return this.begin(account, ids[at] ?? "", amount, "book");
      this.wallet?.released.set(payee, amount);
      return { id: null, asset, payee, amount, status: "owed", reference: null, reason: null };
    });
  }

  isPaidByWallet(account: ModelPayee): boolean {
    return this.wallet?.pays(account) ?? false;
  }

  /** A payout of what is owed. With it, what was released to the payee is used up. */
  begin(account: ModelPayee, id: string, amount: bigint, rail: ModelPayout["rail"]): ModelPayout {
    const { asset, payee } = account;
    account.payable -= amount;
    account.submitted += amount;
    if (this.wallet?.pays(account)) {
      this.wallet.released.delete(payee);
      this.wallet.failed.delete(payee);
    }
    const payout: ModelPayout = {
      ...{ id, asset, payee, amount, rail, status: "submitted" },
      ...{ reference: null, reason: null },
    };
    this.payouts.push(payout);
    this.post("payout_submitted");
    return payout;
  }

  end(by: ModelAdmin, id: string, end: ModelEnd): ModelPayout | string {
    if (isRefusedTo(by)) return "insufficient_role";
    const payout = this.payouts.find((one) => one.id === id);
    if (!payout) return "payout_not_found";
    if ("reference" in end) {
      if (payout.status === "paid" && payout.reference === end.reference) return payout;
    } else if (payout.status === "failed" && payout.reason === end.reason) return payout;
    const from = "reference" in end || !end.returned ? "submitted" : "paid";
    // What is under way on a chain nobody ends by hand.
    if (payout.status !== from || (payout.rail === "evm" && from === "submitted"))
      return "illegal_transition";
    return this.ended(payout, end);
  }

  /** The payout after its end, whoever says so. */
  ended(payout: ModelPayout, end: ModelEnd): ModelPayout {
    const account = this.payeeOf(payout.asset, payout.payee);
    if (!account) throw new Error("a payout to nobody");
    if ("reference" in end) {
      account.submitted -= payout.amount;
      account.paidOut += payout.amount;
      this.post("payout_paid");
      return Object.assign(payout, { status: "paid" as const, reference: end.reference });
    }
    if (end.returned) account.paidOut -= payout.amount;
    else account.submitted -= payout.amount;
    account.payable += payout.amount;
    // Who has released what is owed has decided already.
    if (this.wallet?.pays(account) && !this.wallet.released.has(payout.payee))
      this.wallet.failed.add(payout.payee);
    this.post("payout_failed");
    return Object.assign(payout, { status: "failed" as const, reason: end.reason });
  }
}
