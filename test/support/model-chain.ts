import type { ChainTransaction, ChainView, Fees, WalletView } from "../../src/core/chain-transaction.ts";
import type { Away } from "../../src/platform/ask-chain.ts";
import { createEvmWallet, decodeTransaction, type EvmWallet } from "../../src/platform/evm-wallet.ts";

/** The id of a test network. */
export const MODEL_CHAIN_ID = 84_532;

/** A chain in memory, with the wallet of one key on it. Signatures are real; a test makes the blocks. */
export type ModelChain = {
  readonly wallet: EvmWallet;
  /** Everything that was sent, in order; a transaction may be sent many times. */
  readonly sent: string[];
  /** Why the node is away; null where it answers. */
  away: Away["away"] | null;
  fees: Fees;
  /** Makes blocks. The first one, or the one after so many empty ones, takes what waits. */
  mine(blocks: number, empty?: number): void;
  /** Forgets the newest blocks. What was in them waits again. */
  takeOut(blocks: number): void;
  /** Forgets what waits. */
  drop(): void;
  /** Another program signs with the wallet's key, and a block takes it. */
  useNonce(): void;
  newestBlock(): number;
  /** The data of the transactions in blocks, in their order; null for those of `useNonce`. */
  taken(): Promise<(string | null)[]>;
};

const OTHER = "another program's";

export function createModelChain(confirmations: number): ModelChain {
  const key = `0x${"11".repeat(32)}` as const;
  const signer = createEvmWallet({ chainId: MODEL_CHAIN_ID, url: "http://127.0.0.1:9", key }, confirmations);
  /** The transactions of each block: raw, or `OTHER`. */
  const blocks: string[][] = [[]];
  let waiting: string[] = [];
  const nonceIn = (count: number) => blocks.slice(0, count).flat().length;
  const minedOf = ({ signings }: ChainTransaction): ChainView["mined"] =>
    blocks.flatMap((block, number) =>
      signings.filter(({ raw }) => block.includes(raw)).map(({ hash }) => ({ hash, block: number })),
    )[0] ?? null;
  const viewOf = (underWay: readonly ChainTransaction[]): WalletView => {
    const newestBlock = blocks.length - 1;
    return {
      newestBlock,
      nonce: nonceIn(blocks.length),
      confirmedNonce: nonceIn(Math.max(0, newestBlock - confirmations + 2)),
      mined: underWay.map(minedOf),
      fees: chain.fees,
    };
  };
  const chain: ModelChain = {
    sent: [],
    away: null,
    fees: { max: 100n, priority: 10n },
    wallet: {
      ...signer,
      look: async (underWay) => (chain.away ? { away: chain.away } : viewOf(underWay)),
      gasOf: async () => (chain.away ? { away: chain.away } : { gas: 30_000n }),
      async send(raw) {
        if (chain.away) return { away: chain.away };
        chain.sent.push(raw);
        const decoded = (await decodeTransaction(raw))!;
        if (decoded.nonce !== nonceIn(blocks.length)) return null;
        // One of a nonce waits: the one that pays most.
        const [other] = waiting;
        const others = other === undefined ? null : (await decodeTransaction(other))!.fees;
        if (others === null || decoded.fees.max > others.max) waiting = [raw];
        return null;
      },
    },
    mine(count, empty = 0) {
      for (let made = 0; made < empty; made++) blocks.push([]);
      for (let made = 0; made < count; made++) blocks.push(waiting.splice(0));
    },
    takeOut(count) {
      waiting = blocks
        .splice(blocks.length - count)
        .flat()
        .filter((raw) => raw !== OTHER);
    },
    drop() {
      waiting = [];
    },
    useNonce: () => void blocks.push([OTHER]),
    newestBlock: () => blocks.length - 1,
    taken: () =>
      Promise.all(
        blocks.flat().map(async (raw) => (raw === OTHER ? null : (await decodeTransaction(raw))!.data)),
      ),
  };
  return chain;
}
