import { sha256 } from "../../src/core/canonical.ts";
import type { ChainTransaction, ChainView, Fees } from "../../src/core/chain-transaction.ts";
import type { TransferInBlock } from "../../src/core/chain-transfer.ts";
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
import type { TreasuryChain } from "../../src/platform/treasury-chain.ts";

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

/** A transfer to the wallet. */
export type Received = { readonly hash: string; readonly from: string; readonly amount: bigint };

type Block = {
  readonly hash: string;
  /** The transactions of the wallet; null for those of another program. */
  readonly taken: readonly (InBlock | null)[];
  readonly received: readonly Received[];
};

/** A chain in memory with a token, and the wallet that pays with it. Signatures are real; a test makes the blocks. */
export type ModelTreasury = {
  readonly wallet: EvmTreasury;
  /** The same chain, as the deposits are looked for. */
  readonly watched: TreasuryChain;
  /** Everything that was sent, in order; a transaction may be sent many times. */
  readonly sent: string[];
  away: Away["away"] | null;
  fees: Fees;
  coin: bigint;
  balance: bigint;
  token: TokenKind;
  /** Whether the node has the balances of old blocks. */
  keepsBalances: boolean;
  /** What the token says of its unit. */
  decimals: number | null;
  /** Whether a call of the token is played honestly before it is sent; else it always seems to work. */
  playsHonestly: boolean;
  /** What the node answers to the next transactions that are sent, instead of taking them. */
  readonly refusals: NotSent[];
  /** Somebody sends the wallet some of the token, with the next block. `from` is in lower case. */
  receive(from: string, amount: bigint): void;
  /** Makes blocks. The first one, or the one after so many empty ones, takes what waits and follows without a gap. */
  mine(blocks: number, empty?: number): void;
  /** Forgets the newest blocks. What was in them waits again, what came in last first. */
  takeOut(blocks: number): void;
  /** Forgets what waits. */
  drop(): void;
  newestBlock(): number;
  /** What came in, by its blocks. */
  received(): readonly (Received & { readonly block: number })[];
  /** What the wallet's transactions in blocks moved, by their nonces. */
  receipts(): readonly TransactionReceipt[];
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
  let made = 0;
  const hashOf = () => `0x${sha256(`${own} ${++made}`)}`;
  const blocks: Block[] = [{ hash: hashOf(), taken: [], received: [] }];
  const waiting = new Map<number, Waiting>();
  let arriving: Received[] = [];
  const takenIn = (of: readonly Block[]) => of.flatMap(({ taken }) => taken);
  const nonceIn = (count: number) => takenIn(blocks.slice(0, Math.max(0, count))).length;

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
  const sentIn = ({ taken }: Block) =>
    taken.flatMap((one) =>
      one === null
        ? []
        : transfersOf(one).map(({ to, amount, token: of }) => ({ hash: one.sent.hash, to, amount, of })),
    );
  /** By how much these blocks have changed what the wallet has. */
  const gainOf = (of: readonly Block[]) =>
    of
      .flatMap((block) => [...block.received, ...sentIn(block).map(({ amount }) => ({ amount: -amount }))])
      .reduce((sum, { amount }) => sum + amount, 0n);
  const receiptOf = (one: InBlock, block: number): TransactionReceipt => ({
    ...{ hash: one.sent.hash, block, succeeded: one.kind !== "reverts", transfers: transfersOf(one) },
  });
  const receipts = () =>
    blocks.flatMap(({ taken }, block) => taken.flatMap((one) => (one ? [receiptOf(one, block)] : [])));

  return {
    waiting,
    blocks,
    sentIn,
    gainOf,
    receipts,
    newest: () => blocks.length - 1,
    nonceIn,
    nextNonce: () => nonceIn(blocks.length),
    mined({ signings }: ChainTransaction): ChainView["mined"] {
      for (const [block, { taken }] of blocks.entries())
        for (const { hash, raw } of signings)
          if (taken.some((one) => one?.raw === raw)) return { hash, block };
      return null;
    },
    receipt: (hash: string) => receipts().find((one) => one.hash === hash) ?? null,
    push: (taken: readonly null[] = []) => void blocks.push({ hash: hashOf(), taken, received: [] }),
    receive: (from: string, amount: bigint) => void arriving.push({ hash: hashOf(), from, amount }),
    /** Makes a block of what waits and follows without a gap. Answers how much more of the token the wallet has. */
    mine(kind: TokenKind): bigint {
      const taken: InBlock[] = [];
      const next = () => nonceIn(blocks.length) + taken.length;
      for (let nonce = next(); waiting.has(nonce); nonce = next()) {
        taken.push({ ...waiting.get(nonce)!, kind });
        waiting.delete(nonce);
      }
      const block = { hash: hashOf(), taken, received: arriving };
      arriving = [];
      blocks.push(block);
      return gainOf([block]);
    },
    takeOut(count: number): bigint {
      const out = blocks.splice(blocks.length - count);
      for (const one of takenIn(out)) if (one !== null) waiting.set(one.sent.nonce, one);
      arriving.push(...out.flatMap(({ received }) => received).reverse());
      return gainOf(out);
    },
    drop() {
      waiting.clear();
      arriving = [];
    },
    paid() {
      const sums = new Map<string, bigint>();
      for (const { to, amount, of } of blocks.flatMap(sentIn))
        if (of === token) sums.set(to, (sums.get(to) ?? 0n) + amount);
      return sums;
    },
  };
}

type Ask = <Answer>(question: string, answer: () => Answer | Promise<Answer>) => Promise<Answer | Away>;

/** The chain as its deposits are looked for. `balance` is what the wallet has at the newest block. */
function watchedChain(
  { blocks, sentIn, gainOf, newest }: ReturnType<typeof createTokenChain>,
  confirmations: number,
  ask: Ask,
  balance: () => bigint,
): TreasuryChain {
  const blockAt = (number: number) => {
    const block = blocks[number];
    return block === undefined ? null : { number, hash: block.hash };
  };
  const movedIn = (block: Block, number: number): TransferInBlock[] => [
    ...block.received.map(({ hash, from: counterparty, amount }) => ({
      ...{ direction: "received" as const, hash, counterparty, amount, block: number, blockHash: block.hash },
    })),
    ...sentIn(block).map(({ hash, to: counterparty, amount }) => ({
      ...{ direction: "sent" as const, hash, counterparty, amount, block: number, blockHash: block.hash },
    })),
  ];
  return {
    head: () => ask("head", () => ({ newestTime: 0, confirmed: blockAt(newest() - confirmations + 1) })),
    block: (number) => ask("block", () => ({ block: blockAt(number) })),
    transfers: ({ after, until }) =>
      ask("transfers", () => ({
        transfers: blocks.flatMap((block, at) => (at > after && at <= until ? movedIn(block, at) : [])),
      })),
    decimals: () => ask("decimals", () => ({ decimals: 6 })),
    balanceAt: ({ number, hash }) =>
      ask("balanceAt", () => ({
        balance: blocks[number]?.hash === hash ? balance() - gainOf(blocks.slice(number + 1)) : null,
      })),
  };
}

/** What an address did not get in a block, though the events say that it did. */
const hiddenIn = ({ taken }: Block, holder: string): bigint =>
  taken.reduce(
    (sum, one) =>
      one?.kind === "hides_fee" && addresseeIn(one.sent.data) === holder
        ? sum + amountIn(one.sent.data) / FEE_DIVISOR
        : sum,
    0n,
  );

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
    decimalsOf: () => ask("decimalsOf", () => ({ decimals: chain.decimals })),
    refusalOf: () =>
      ask("refusalOf", () => {
        if (!chain.playsHonestly) return null;
        if (chain.token === "answers_false") return { why: "it answers false" };
        return chain.token === "reverts" ? { why: "execution reverted: Pausable: paused" } : null;
      }),
    receipt: (hash) => ask("receipt", () => blocks.receipt(hash)),
    missingIn: (block, _, holder) =>
      ask("missingIn", () =>
        chain.keepsBalances ? { missing: hiddenIn(blocks.blocks[block]!, holder) } : null,
      ),
  };
  const chain: ModelTreasury = {
    ...{
      wallet,
      watched: watchedChain(blocks, confirmations, ask, () => chain.balance),
      sent: [],
      away: null,
      refusals: [],
      onAsked: () => {},
    },
    ...{ fees: { max: 100n, priority: 10n }, coin: 10n ** 18n, balance: 10n ** 12n },
    ...{ token: "plain", playsHonestly: true, keepsBalances: true, decimals: 6 },
    mine(count, empty = 0) {
      for (let made = 0; made < empty; made++) blocks.push();
      for (let made = 0; made < count; made++) chain.balance += blocks.mine(chain.token);
    },
    takeOut(count) {
      chain.balance -= blocks.takeOut(count);
    },
    receive: blocks.receive,
    drop: blocks.drop,
    newestBlock: blocks.newest,
    received: () =>
      blocks.blocks.flatMap(({ received }, block) => received.map((one) => ({ ...one, block }))),
    receipts: blocks.receipts,
    useNonce() {
      blocks.waiting.delete(blocks.nextNonce());
      blocks.push([null]);
    },
    paid: blocks.paid,
  };
  return chain;
}
