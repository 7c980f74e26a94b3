import {
  type ChainCall,
  firstFees,
  type WalletTransaction,
  type WalletView,
} from "../../core/chain-transaction.ts";
import { amountIn, payeeAddress, transferData } from "../../core/evm-address.ts";
import { isTooDear, nextNonce, type PayoutPlan, type RailState } from "../../core/rail.ts";
import type { Treasury } from "../../core/treasury.ts";
import type { EvmTreasury } from "../../platform/evm-treasury.ts";
import { type OtherUnit, otherUnit } from "../chain/unit.ts";
import {
  reopenTakenOut,
  type Sending,
  type Stopped,
  signFirst,
  stopped,
  UNDER_WAY_MAX,
  walletKey,
} from "../chain/wallet.ts";
import type { Context } from "../context.ts";
import type { Keeping } from "./states.ts";
import { commitPayout, fitsAt, keepWait, type Owed, planOf } from "./submit.ts";

/** Payouts that a wallet begins one after the other, by one look at its chain. */

export type PayingWallet = Sending & {
  readonly wallet: EvmTreasury;
  /** The tokens of this wallet: of one mode, on one chain. */
  readonly tokens: readonly Treasury[];
};

/** How many transactions of a wallet wait for a block at most: nodes keep so many of an account. */
const UNMINED_MAX = 16;

/** What is left of the wallet while the batch goes on. */
type Batch = {
  readonly view: WalletView;
  /** What is under way, and in no block so far: it is spent. */
  readonly unmined: readonly WalletTransaction[];
  nonce: number;
  /** How many more transactions may wait for a block. */
  room: number;
  coin: bigint;
  readonly tokens: Map<string, bigint>;
  /** Whether the tokens that were asked count in another unit than the ledger. */
  readonly units: Map<string, OtherUnit | null>;
};

/** What keeps the whole wallet from paying, with why. */
export type Trouble = Keeping & { readonly code: NonNullable<Keeping["code"]> };

const CODES = { away: "away", no_funds: "no_gas", refused: "refused" } as const;
export const troubleOf = ({ outcome, why }: Stopped): Trouble => ({ code: CODES[outcome], detail: why });

/**
 * What came of a payee: its payout was committed, it waits, nothing is owed to it, or there is no room for another transaction.
 * `limitedUntil`: it waits for the limit of 24 hours until then.
 */
export type Paid = "submitted" | "waits" | "nothing" | "full" | { readonly limitedUntil: number };

export type PayingBatch = {
  /**
   * Pays one payee what it is owed, where that may be sent now. The next step sends it.
   *
   * @param limitedUntil until when one before it waits for the limit of 24 hours, so that it waits too; null where none does
   */
  pay(
    owed: Owed,
    payable: bigint,
    treasury: Treasury,
    state: RailState,
    limitedUntil: number | null,
  ): Promise<Paid | Trouble>;
};

/** The chain is looked at with the first payout that may be sent. */
export function createPayingBatch(ctx: Context, paying: PayingWallet): PayingBatch {
  let opened: Batch | Trouble | undefined;
  return {
    async pay(owed, payable, treasury, state, limitedUntil) {
      const found = payeeAddress(owed.payee, state);
      if (!("address" in found)) return "nothing";
      const plan = await planOf(ctx, owed, payable, treasury, limitedUntil !== null);
      if (plan.do === "nothing") return "nothing";
      if (plan.do === "wait") {
        const { dayMax } = treasury.limits;
        const isLimited = plan.code === "above_day_limit";
        const until = isLimited ? (limitedUntil ?? (await fitsAt(ctx, owed, payable, dayMax))) : null;
        await keepWait(ctx, owed, { ...plan, until });
        return until === null ? "waits" : { limitedUntil: until };
      }
      opened ??= await openBatch(ctx, paying);
      if ("code" in opened) return opened;
      const call = { to: state.token, data: transferData(found.address, plan.amount) };
      return payIn(ctx, paying, opened, { owed, plan, treasury, call });
    },
  };
}

type Payment = {
  readonly owed: Owed;
  readonly plan: Extract<PayoutPlan, { readonly do: "submit" }>;
  readonly treasury: Treasury;
  readonly call: ChainCall;
};

async function payIn(
  ctx: Context,
  paying: PayingWallet,
  batch: Batch,
  { owed, plan, treasury, call }: Payment,
): Promise<Paid | Trouble> {
  const { wallet, rules } = paying;
  if (batch.room === 0) return "full";
  const { fees } = batch.view;
  if (isTooDear(fees, rules.feeMax)) return { code: "fees", detail: null };
  const unit = await unitOf(wallet, batch, call.to, owed.asset);
  if (unit !== null && "code" in unit) return unit;
  if (unit !== null)
    return refusedBy(`it has ${unit.decimals ?? "no"} decimals, and ${owed.asset} has ${unit.expected}`);
  const token = await tokenLeft(wallet, batch, call.to);
  if (typeof token !== "bigint") return token;
  if (token < plan.amount) {
    await keepWait(ctx, owed, { code: "no_money", detail: token.toString() });
    return "waits";
  }
  const refusal = await wallet.refusalOf(call);
  if (refusal !== null && "away" in refusal) return troubleOf(stopped(refusal));
  if (refusal !== null) return refusedBy(refusal.why);
  const allowed = await wallet.gasOf(call);
  if ("away" in allowed) return troubleOf(stopped(allowed));
  if ("refused" in allowed) return allowed.refused === "no_funds" ? NO_GAS : refusedBy(allowed.message);
  const { gas } = allowed;
  const cost = gas * firstFees(fees, rules.feeMax).max;
  if (batch.coin < cost) return NO_GAS;
  const signed = await signFirst(paying, { ...call, nonce: batch.nonce, gas }, batch.view);
  if (!(await commitPayout(ctx, owed, plan, signed, treasury))) return "waits";
  batch.nonce += 1;
  batch.room -= 1;
  batch.coin -= cost;
  batch.tokens.set(call.to, token - plan.amount);
  return "submitted";

  async function refusedBy(detail: string): Promise<Paid> {
    await keepWait(ctx, owed, { code: "token_refuses", detail });
    return "waits";
  }
}

/** The other unit in which a token counts, where it does. It is asked once in a batch. */
async function unitOf(
  wallet: EvmTreasury,
  { units }: Batch,
  token: string,
  asset: string,
): Promise<OtherUnit | Trouble | null> {
  const known = units.get(token);
  if (known !== undefined) return known;
  const unit = await otherUnit(asset, () => wallet.decimalsOf(token as `0x${string}`));
  if (unit !== null && "away" in unit) return troubleOf(stopped(unit));
  units.set(token, unit);
  return unit;
}

/** How much of a token the wallet has left. */
async function tokenLeft(
  wallet: EvmTreasury,
  { tokens, unmined }: Batch,
  token: string,
): Promise<bigint | Trouble> {
  const known = tokens.get(token);
  if (known !== undefined) return known;
  const read = await wallet.balanceOf(token as `0x${string}`);
  if ("away" in read) return troubleOf(stopped(read));
  const left = unmined.reduce(
    (sum, one) => (one.to === token ? sum - amountIn(one.data) : sum),
    read.balance,
  );
  tokens.set(token, left);
  return left;
}

async function openBatch(ctx: Context, paying: PayingWallet): Promise<Batch | Trouble> {
  const { wallet } = paying;
  const key = walletKey(wallet);
  const { underWay, newest, states, instance } = await ctx.store.read(async (reader) => ({
    underWay: await reader.chainTransactions.open(key, UNDER_WAY_MAX),
    newest: await reader.chainTransactions.newest(key),
    states: await reader.rails.states(),
    instance: await reader.instance.get(),
  }));
  // The nonces are asked for before the balances: what gets into a block meanwhile counts as spent twice, and never as left.
  const view = await wallet.look([]);
  if ("away" in view) return troubleOf(stopped(view));
  const accepted = states.flatMap(({ chainId, wallet: of, acceptedNonce }) =>
    chainId === key.chainId && of === key.wallet && acceptedNonce !== null ? [acceptedNonce] : [],
  );
  const known = {
    newest: newest?.nonce ?? null,
    accepted: accepted.length === 0 ? null : Math.max(...accepted),
    wasRestored: instance.restoredAt !== null,
  };
  const next = nextNonce(known, view.nonce, underWay[0]?.nonce ?? null);
  if ("stop" in next) {
    if (next.stop !== "behind") return unknownTransactions(next.stop);
    // A reorganisation may have taken out what was confirmed.
    const away = await reopenTakenOut(ctx, paying);
    return away ? troubleOf(stopped(away)) : BEHIND;
  }
  const coin = await wallet.balanceOf("coin");
  if ("away" in coin) return troubleOf(stopped(coin));
  const unmined = underWay.filter(({ nonce }) => nonce >= view.nonce);
  const room = Math.min(UNMINED_MAX - unmined.length, UNDER_WAY_MAX - underWay.length);
  return {
    ...{ view, unmined, nonce: next.nonce, room: Math.max(0, room) },
    ...{ tokens: new Map<string, bigint>(), units: new Map<string, OtherUnit | null>() },
    coin: unmined.reduce(
      (sum, { gas, signings }) => sum - gas * (signings.at(-1)?.fees.max ?? 0n),
      coin.balance,
    ),
  };
}

const NO_GAS: Trouble = { code: "no_gas", detail: null };
const BEHIND: Trouble = {
  code: "away",
  detail: "the node is behind: it does not show what the wallet has sent",
};

const unknownTransactions = ({
  from,
  until,
}: {
  readonly from: number;
  readonly until: number;
}): Trouble => ({
  code: "unknown_transactions",
  detail: until - from === 1 ? `nonce ${from}` : `nonces ${from} to ${until - 1}`,
  seenNonce: until,
});
