import type { ChainTransaction, ChainView, Fees } from "../../src/core/chain-transaction.ts";
import { addresseeIn, amountIn } from "../../src/core/evm-address.ts";
import type { TokenTransfer, TransactionReceipt } from "../../src/core/payout-outcome.ts";
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
  /** A tenth stays behind, and the event says nothing of it. */
  | "hides_fee"
  | "pays_another";

type InBlock = { readonly raw: string; readonly sent: DecodedTransaction; readonly kind: TokenKind };

/** A chain in memory with a token, and the wallet that pays with it. Signatures are real; a test makes the blocks. */
export type ModelTreasury = {
  readonly wallet: EvmTreasury;
  /** Everything that was sent, in order; a transaction may be sent many times. */
  readonly sent: string[];
  away: Away["away"] | null;
  fees: Fees;
  coin: bigint;
  balance: bigint;
  token: TokenKind;
  /** Whether the node has the balances of old blocks. */
  keepsBalances: boolean;
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

type Waiting = { readonly raw: string; readonly sent: DecodedTransaction };

/** The blocks of a chain with a token, and what waits for one. */
function createTokenChain(own: string, token: string) {
  /** The transactions of each block; null for those of another program. */
  const blocks: (InBlock | null)[][] = [[]];
  const waiting = new Map<number, Waiting>();
  const nonceIn = (count: number) => blocks.slice(0, Math.max(0, count)).flat().length;

  const transfersOf = ({ sent, kind }: InBlock): TokenTransfer[] => {
    const [to, amount] = [addresseeIn(sent.data), amountIn(sent.data)];
    const moved = (of: Partial<TokenTransfer>) => ({
      ...{ token: sent.to.toLowerCase(), from: own, to, amount, ...of },
    });
    const fee = amount / FEE_DIVISOR;
    if (kind === "answers_false" || kind === "reverts") return [];
    if (kind === "takes_fee")
      return [moved({ amount: amount - fee }), moved({ to: `0x${"fe".repeat(20)}`, amount: fee })];
    return kind === "pays_another" ? [moved({ to: `0x${"ee".repeat(20)}` })] : [moved({})];
  };
  const spentIn = (of: readonly (InBlock | null)[]) =>
    of.flatMap((one) => (one === null ? [] : transfersOf(one))).reduce((sum, { amount }) => sum + amount, 0n);

  return {
    waiting,
    newest: () => blocks.length - 1,
    nonceIn,
    nextNonce: () => nonceIn(blocks.length),
    mined({ signings }: ChainTransaction): ChainView["mined"] {
      for (const [block, taken] of blocks.entries())
        for (const { hash, raw } of signings)
          if (taken.some((one) => one?.raw === raw)) return { hash, block };
      return null;
    },
    receipt(hash: string): TransactionReceipt | null {
      for (const [block, taken] of blocks.entries())
        for (const one of taken)
          if (one?.sent.hash === hash)
            return { hash, block, succeeded: one.kind !== "reverts", transfers: transfersOf(one) };
      return null;
    },
    /** What an address did not get in a block, though the events say that it did. */
    hidden: (number: number, holder: string): bigint =>
      (blocks[number] ?? []).reduce(
        (sum, one) =>
          one?.kind === "hides_fee" && addresseeIn(one.sent.data) === holder
            ? sum + amountIn(one.sent.data) / FEE_DIVISOR
            : sum,
        0n,
      ),
    /** Makes a block of what waits and follows without a gap. Answers how much of the token is spent. */
    mine(kind: TokenKind): bigint {
      const block: InBlock[] = [];
      blocks.push(block);
      for (let next = nonceIn(blocks.length); waiting.has(next); next = nonceIn(blocks.length)) {
        block.push({ ...waiting.get(next)!, kind });
        waiting.delete(next);
      }
      return spentIn(block);
    },
    takeOut(count: number): bigint {
      const taken = blocks.splice(blocks.length - count).flat();
      for (const one of taken) if (one !== null) waiting.set(one.sent.nonce, one);
      return spentIn(taken);
    },
    useNonce() {
      waiting.delete(nonceIn(blocks.length));
      blocks.push([null]);
    },
    paid() {
      const sums = new Map<string, bigint>();
      for (const one of blocks.flat())
        for (const { to, amount, token: of } of one === null ? [] : transfersOf(one))
          if (of === token) sums.set(to, (sums.get(to) ?? 0n) + amount);
      return sums;
    },
  };
}

export function createModelTreasury(
  confirmations: number,
  {
    chainId = 84_532,
    token = `0x${"ab".repeat(20)}`,
    key = `0x${"1f".repeat(32)}` as const,
  }: { readonly chainId?: number; readonly token?: string; readonly key?: `0x${string}` } = {},
): ModelTreasury {
  const signer = createEvmWallet({ chainId, url: "http://127.0.0.1:9", key }, confirmations);
  const blocks = createTokenChain(signer.address.toLowerCase(), token);
  async function ask<Answer>(
    question: string,
    answer: () => Answer | Promise<Answer>,
  ): Promise<Answer | Away> {
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
    const other = blocks.waiting.get(sent.nonce);
    const isWanted = sent.nonce >= blocks.nextNonce() && (!other || sent.fees.max > other.sent.fees.max);
    if (isWanted) blocks.waiting.set(sent.nonce, { raw, sent });
    return null;
  }
  const wallet: EvmTreasury = {
    ...signer,
    look: (underWay) =>
      ask("look", () => ({
        newestBlock: blocks.newest(),
        nonce: blocks.nextNonce(),
        confirmedNonce: blocks.nonceIn(blocks.newest() - confirmations + 2),
        mined: underWay.map(blocks.mined),
        fees: chain.fees,
      })),
    gasOf: () => ask("gasOf", () => ({ gas: 60_000n })),
    send: (raw) => ask("send", () => take(raw)),
    balanceOf: (what) => ask("balanceOf", () => ({ balance: what === "coin" ? chain.coin : chain.balance })),
    refusalOf: () =>
      ask("refusalOf", () => {
        if (!chain.playsHonestly) return null;
        if (chain.token === "answers_false") return { why: "it answers false" };
        return chain.token === "reverts" ? { why: "execution reverted: Pausable: paused" } : null;
      }),
    receipt: (hash) => ask("receipt", () => blocks.receipt(hash)),
    missingIn: (block, _, holder) =>
      ask("missingIn", () => (chain.keepsBalances ? { missing: blocks.hidden(block, holder) } : null)),
  };
  const chain: ModelTreasury = {
    ...{ wallet, sent: [], away: null, refusals: [], onAsked: () => {} },
    ...{ fees: { max: 100n, priority: 10n }, coin: 10n ** 18n, balance: 10n ** 12n },
    ...{ token: "plain", playsHonestly: true, keepsBalances: true },
    mine(count) {
      for (let made = 0; made < count; made++) chain.balance -= blocks.mine(chain.token);
    },
    takeOut(count) {
      chain.balance += blocks.takeOut(count);
    },
    drop: () => blocks.waiting.clear(),
    useNonce: blocks.useNonce,
    paid: blocks.paid,
  };
  return chain;
}
