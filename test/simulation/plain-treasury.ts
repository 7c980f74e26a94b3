import type { ModelPayee, ModelPayout, PlainMoney } from "./plain-money.ts";

/**
 * What a treasury on a chain must do (docs/money, "On a chain"), in plain lists beside `plain-money.ts`. It does not say when the
 * service looks at the chain. It is told what is on the chain and what was done, and says what must follow, or why it was wrong.
 */

const DAY_MS = 86_400_000;
const ASSET = "USDC";
const CHAIN = "eip155:84532";

/** The most of one payout and of 24 hours that is sent without a person. */
export type ModelWalletLimits = { readonly payout: bigint; readonly day: bigint };
type Sent = { readonly payout: ModelPayout; readonly byPerson: boolean; readonly at: number };
/** What came in, in a block. */
type Arrived = { readonly hash: string; readonly from: string; readonly amount: bigint };

export class PlainTreasury {
  readonly released = new Map<string, bigint>();
  readonly failed = new Set<string>();
  /** The payouts that were sent, in the order of the wallet's nonces. */
  readonly sent: Sent[] = [];
  /** The addresses whose transfers are deposits of the organisation. */
  readonly senders = new Set<string>();
  /** The transfers that were credited, by their hashes, and those that wait for a person. */
  readonly credited = new Set<string>();
  readonly unassigned = new Map<string, Arrived>();

  constructor(
    private readonly money: PlainMoney,
    private readonly limits: ModelWalletLimits,
    /** The payees that are addresses. */
    private readonly addresses: readonly string[],
  ) {
    money.wallet = this;
  }

  pays({ asset, payee }: ModelPayee): boolean {
    return asset === ASSET && this.addresses.includes(payee);
  }

  /**
   * The service has begun a payout: it is noted. Answers why it must not have; null where it was right.
   *
   * @param isInOrder whether it has looked at all payees before this one too
   */
  begin(id: string, payee: string, amount: bigint, now: number, isInOrder: boolean): string | null {
    const account = this.money.payeeOf(ASSET, payee);
    if (!account || !this.pays(account)) return `${payee} is nobody whom the wallet pays`;
    const released = this.released.get(payee);
    const isLess = released !== undefined && released < account.payable;
    const due = isLess ? released : account.payable;
    if (amount === 0n || amount !== due) return `${amount} is sent to ${payee}, and ${due} is due`;
    const kept =
      released === undefined ? this.keptBy(account, now, isInOrder && this.isBehind(account, now)) : null;
    if (kept !== null) return `${amount} is sent to ${payee}, and must not be: ${kept}`;
    const payout = this.money.begin(account, id, amount, "evm");
    this.sent.push({ payout, byPerson: released !== undefined, at: now });
    return null;
  }

  /** @param isBehind whether a payee before this one waits until the limit of 24 hours has room for it */
  private keptBy({ payee, payable }: ModelPayee, now: number, isBehind: boolean): string | null {
    if (this.failed.has(payee)) return "failed";
    if (payable > this.limits.payout) return "above_payout_limit";
    return isBehind || this.sentWithin(now) + payable > this.limits.day ? "above_day_limit" : null;
  }

  /** Whether a payee before this one waits for the limit of 24 hours: smaller payouts do not pass it. */
  private isBehind(account: ModelPayee, now: number): boolean {
    return this.money.payees
      .slice(0, this.money.payees.indexOf(account))
      .filter((one) => this.pays(one) && one.payable > 0n && !this.released.has(one.payee))
      .some((one) => this.waitsForDay(one, this.keptBy(one, now, false)));
  }

  /** Whether the limit of 24 hours will have room for it: those after it wait too. What never fits keeps nobody waiting. */
  private waitsForDay({ payable }: ModelPayee, kept: string | null): boolean {
    return kept === "above_day_limit" && payable <= this.limits.day;
  }

  /** What was sent in the last 24 hours without a person, and has not failed. */
  private sentWithin(now: number): bigint {
    return this.sent
      .filter(({ payout, byPerson, at }) => !byPerson && payout.status !== "failed" && at > now - DAY_MS)
      .reduce((sum, { payout }) => sum + payout.amount, 0n);
  }

  /**
   * Why each payee is still owed something of the asset after a run that could do all that was due; null where nothing keeps it.
   *
   * @param paidNow who was paid in that run: what is left is of the next one
   * @param tokenRefuses whether the token takes no transfer
   */
  reasons(now: number, paidNow: ReadonlySet<string>, tokenRefuses: boolean): [string, string | null][] {
    let isBehind = false;
    const owed = this.money.payees.filter(({ asset, payable }) => asset === ASSET && payable > 0n);
    return owed.map((account) => {
      const { payee } = account;
      if (!this.pays(account)) return [payee, "not_an_address"];
      if (paidNow.has(payee)) return [payee, "next_run"];
      const kept = this.released.has(payee) ? null : this.keptBy(account, now, isBehind);
      isBehind ||= this.waitsForDay(account, kept);
      return [payee, kept ?? (tokenRefuses ? "token_refuses" : null)];
    });
  }

  /** A confirmed block has the transaction of a nonce, and the payout is accounted for. */
  account(nonce: number, { hash, succeeded }: { readonly hash: string; readonly succeeded: boolean }): void {
    const payout = this.sent[nonce]?.payout;
    if (payout?.status !== "submitted") return;
    const reference = `${CHAIN}:${hash}`;
    if (succeeded) this.money.ended(payout, { reference });
    else
      this.money.ended(payout, {
        ...{ reason: `the token reverted the transfer: ${reference}`, returned: false },
      });
  }

  /**
   * A transfer is in a confirmed block, and the service looks at it. It is a deposit where its sender is registered and the balance
   * has room; else it waits for a person. A transfer is looked at once, in whichever block it is.
   *
   * @param id of the deposit that the service has made of it
   */
  arrive(transfer: Arrived, id: string): void {
    const { hash, from } = transfer;
    if (this.credited.has(hash) || this.unassigned.has(hash)) return;
    if (!this.senders.has(from) || typeof this.credit(transfer, id) === "string")
      this.unassigned.set(hash, transfer);
  }

  /** Answers a refusal's code where the balance has no room. */
  private credit({ hash, amount }: Arrived, id: string): object | string {
    const deposit = this.money.fund(id, ASSET, amount, referenceOf(hash));
    if (typeof deposit === "string") return deposit;
    this.credited.add(hash);
    return deposit;
  }

  /** A person says that the transfer is the organisation's. Answers the refusal's code; null where it is. */
  assign(hash: string, id: string): string | null {
    const transfer = this.unassigned.get(hash);
    const answer = transfer === undefined ? "transfer_not_found" : this.credit(transfer, id);
    if (typeof answer === "string") return answer;
    this.unassigned.delete(hash);
    return null;
  }
}

/** What a deposit of a transfer is called. No transaction of the simulation has two. */
export const referenceOf = (hash: string): string => `${CHAIN}:${hash}/0`;
