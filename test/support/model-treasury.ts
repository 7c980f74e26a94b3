import type { ChainTransaction, ChainView, Fees } from "../../src/core/chain-transaction.ts";
import { addresseeIn, amountIn } from "../../src/core/evm-address.ts";
import type { TokenTransfer } from "../../src/core/payout-outcome.ts";
import type { Away } from "../../src/platform/ask-chain.ts";
import type { EvmTreasury } from "../../src/platform/evm-treasury.ts";
import {
  createEvmWallet,
  type DecodedTransaction,
  decodeTransaction,
  type NotSent,
} from "../../src/platform/evm-wallet.ts";

/** How the token behaves: as ERC-20 says (`plain`), or otherwise. */
export type TokenKind =
  | "plain"
  | "answers_nothing"
  | "answers_false"
  | "reverts"
  | "takes_fee"
  | "pays_another";

type InBlock = { readonly raw: string; readonly sent: DecodedTransaction; readonly kind: TokenKind };

/** A chain in memory with a token, and the wallet that pays with it. Signatures are real; a test makes the blocks. */
export type ModelTreasury = {
  readonly wallet: EvmTreasury;
  /** Everything that was sent, in order; a transaction may be sent many times. */
  readonly sent: string[];
  /** Every question that the node was asked, by its name. */
  readonly asked: string[];
  away: Away["away"] | null;
  fees: Fees;
  coin: bigint;
  balance: bigint;
  token: TokenKind;
  /** Whether a call of the token is played honestly before it is sent; else it always seems to work. */
  playsHonestly: boolean;
  /** What the node answers to the next transactions that are sent, instead of taking them. */
  readonly refusals: NotSent[];
  /** Makes blocks. The first one takes what waits and follows without a gap. */
  mine(blocks: number): void;
  /** Forgets the newest blocks. What was in them waits again. */
  takeOut(blocks: number): void;
  /** Forgets what waits. */
  drop(): void;
  /** Another program signs with the wallet's key, and a block takes it. */
  useNonce(): void;
  /** What each address has got in blocks. */
  paid(): ReadonlyMap<string, bigint>;
  /** Called before each answer of the node. */
  onAsked: (question: string) => Promise<void> | void;
};

/** A tenth. */
const FEE_DIVISOR = 10n;

export function createModelTreasury(
  confirmations: number,
  { chainId = 84_532, token: address = `0x${"ab".repeat(20)}`, key = `0x${"1f".repeat(32)}` as const } = {},
): ModelTreasury {
  const signer = createEvmWallet({ chainId, url: "http://127.0.0.1:9", key }, confirmations);
  const own = signer.address.toLowerCase();
  /** The transactions of each block; null for those of another program. */
  const blocks: (InBlock | null)[][] = [[]];
  const waiting = new Map<number, { raw: string; sent: DecodedTransaction }>();
  const nonceIn = (count: number) => blocks.slice(0, Math.max(0, count)).flat().length;
  const newest = () => blocks.length - 1;

  const transfersOf = ({ sent, kind }: InBlock): TokenTransfer[] => {
    const [to, amount] = [addresseeIn(sent.data), amountIn(sent.data)];
    const moved = (of: Partial<TokenTransfer>) => ({
      token: sent.to.toLowerCase(),
      from: own,
      to,
      amount,
      ...of,
    });
    const fee = amount / FEE_DIVISOR;
    if (kind === "answers_false" || kind === "reverts") return [];
    if (kind === "takes_fee")
      return [moved({ amount: amount - fee }), moved({ to: `0x${"fe".repeat(20)}`, amount: fee })];
    return kind === "pays_another" ? [moved({ to: `0x${"ee".repeat(20)}` })] : [moved({})];
  };
  const minedOf = ({ signings }: ChainTransaction): ChainView["mined"] => {
    for (const [block, taken] of blocks.entries())
      for (const { hash, raw } of signings) if (taken.some((one) => one?.raw === raw)) return { hash, block };
    return null;
  };
  async function ask<Answer>(
    question: string,
    answer: () => Answer | Promise<Answer>,
  ): Promise<Answer | Away> {
    chain.asked.push(question);
    await chain.onAsked(question);
    return chain.away === null ? answer() : { away: chain.away };
  }
  async function take(raw: string): Promise<NotSent | null> {
    chain.sent.push(raw);
    const refusal = chain.refusals.shift();
    if (refusal) return refusal;
    const sent = await decodeTransaction(raw);
    if (sent === null) throw new Error("the node got no transaction");
    if (sent.gas * sent.fees.max > chain.coin)
      return { refused: "no_funds", message: "insufficient funds for gas * price + value" };
    if (sent.nonce < nonceIn(blocks.length)) return null;
    const other = waiting.get(sent.nonce);
    if (!other || sent.fees.max > other.sent.fees.max) waiting.set(sent.nonce, { raw, sent });
    return null;
  }

  const chain: ModelTreasury = {
    sent: [],
    asked: [],
    away: null,
    fees: { max: 100n, priority: 10n },
    coin: 10n ** 18n,
    balance: 10n ** 12n,
    token: "plain",
    playsHonestly: true,
    refusals: [],
    onAsked: () => {},
    wallet: {
      ...signer,
      look: (underWay) =>
        ask("look", () => ({
          newestBlock: newest(),
          nonce: nonceIn(blocks.length),
          confirmedNonce: nonceIn(newest() - confirmations + 2),
          mined: underWay.map(minedOf),
          fees: chain.fees,
        })),
      gasOf: () => ask("gasOf", () => ({ gas: 60_000n })),
      send: (raw) => ask("send", () => take(raw)),
      balanceOf: (what) =>
        ask(`balanceOf ${what === "coin" ? "coin" : "token"}`, () => ({
          balance: what === "coin" ? chain.coin : chain.balance,
        })),
      refusalOf: () =>
        ask("refusalOf", () => {
          if (!chain.playsHonestly) return null;
          if (chain.token === "answers_false") return { why: "it answers false" };
          return chain.token === "reverts" ? { why: "execution reverted: Pausable: paused" } : null;
        }),
      receipt: (hash) =>
        ask("receipt", () => {
          for (const [block, taken] of blocks.entries())
            for (const one of taken)
              if (one?.sent.hash === hash)
                return { hash, block, succeeded: one.kind !== "reverts", transfers: transfersOf(one) };
          return null;
        }),
    },
    mine(count) {
      for (let made = 0; made < count; made++) {
        const block: InBlock[] = [];
        blocks.push(block);
        for (let next = nonceIn(blocks.length); waiting.has(next); next = nonceIn(blocks.length)) {
          block.push({ ...waiting.get(next)!, kind: chain.token });
          waiting.delete(next);
          for (const { amount } of transfersOf(block.at(-1)!)) chain.balance -= amount;
        }
      }
    },
    takeOut(count) {
      for (const one of blocks.splice(blocks.length - count).flat())
        if (one !== null) {
          waiting.set(one.sent.nonce, one);
          for (const { amount } of transfersOf(one)) chain.balance += amount;
        }
    },
    drop: () => waiting.clear(),
    useNonce() {
      waiting.delete(nonceIn(blocks.length));
      blocks.push([null]);
    },
    paid() {
      const sums = new Map<string, bigint>();
      for (const one of blocks.flat())
        for (const { to, amount, token } of one === null ? [] : transfersOf(one))
          if (token === address) sums.set(to, (sums.get(to) ?? 0n) + amount);
      return sums;
    },
  };
  return chain;
}
