import {
  BaseError,
  type Client,
  RpcRequestError,
  recoverTransactionAddress,
  TransactionReceiptNotFoundError,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import {
  estimateGas,
  estimateMaxPriorityFeePerGas,
  getBlock,
  getTransactionCount,
  getTransactionReceipt,
  sendRawTransaction,
} from "viem/actions";
import { keccak256, parseTransaction } from "viem/utils";
import type {
  ChainCall,
  ChainTransaction,
  ChainView,
  Fees,
  Signing,
  WalletView,
} from "../core/chain-transaction.ts";
import { storableText } from "../core/storable-text.ts";
import { type AskOptions, type Away, createChainAsker } from "./ask-chain.ts";

/** A wallet that sends transactions of its own to one EVM chain. It never throws for what a node says. */
export type EvmWallet = {
  readonly chainId: number;
  /** With its checksum. */
  readonly address: string;
  /** What the node says of the wallet, and of its transactions that are under way: `mined` is in their order. */
  look(underWay: readonly ChainTransaction[]): Promise<WalletView | Away>;
  /** How much gas a call takes, with a fifth more than the node says. */
  gasOf(call: ChainCall): Promise<{ readonly gas: bigint } | NotSent>;
  /** Signs, without a connection. The same order gives the same signing. */
  sign(order: SigningOrder): Promise<Signing>;
  /** Sends a signing. Whether it got anywhere is what the next look says. Null where the node took it, or had it. */
  send(raw: string): Promise<NotSent | null>;
};

export type SigningOrder = ChainCall & {
  readonly nonce: number;
  readonly gas: bigint;
  readonly fees: Fees;
  readonly newestBlock: number;
};

/** `no_funds`: the wallet cannot pay the gas. `refused`: the node's own words, which are no secret. */
export type NotSent = Away | NodeRefusal;

type NodeRefusal = { readonly refused: "no_funds" | "by_node"; readonly message: string };

type Hex = `0x${string}`;

/** What every transaction takes (EIP-2). */
const GAS_MIN = 21_000n;

const MESSAGE_CHARACTERS_MAX = 200;

/** What a node said, as it is kept. */
export const wordsOf = ({ details }: RpcRequestError): string =>
  storableText(details.slice(0, MESSAGE_CHARACTERS_MAX));

/** The address of a private key's wallet, with its checksum. */
export const addressOf = (key: Hex): string => privateKeyToAccount(key).address;

/** @param confirmations how many blocks there must be, the block itself and those after it, before it is confirmed */
export function createEvmWallet(
  { chainId, url, key }: { readonly chainId: number; readonly url: string; readonly key: Hex },
  confirmations: number,
  options: AskOptions = {},
): EvmWallet {
  const account = privateKeyToAccount(key);
  const { address } = account;
  const askChain = createChainAsker(new Map([[chainId, url]]), options);
  const ask = <Answer>(question: (client: Client) => Promise<Answer>) => askChain(chainId, question);
  return {
    chainId,
    address,
    look: (underWay) =>
      ask(async (client) => {
        const newest = await getBlock(client, { blockTag: "latest" });
        // A chain without it has no fees of EIP-1559, and signing for it would be wrong.
        if (newest.baseFeePerGas === null) throw new Error("the chain has no base fee");
        const confirmed = newest.number - BigInt(confirmations) + 1n;
        const countAt = (blockNumber: bigint) => getTransactionCount(client, { address, blockNumber });
        // The order matters: a transaction that gets into a block meanwhile is then found in it.
        const confirmedNonce = confirmed < 0n ? 0 : await countAt(confirmed);
        const mined: WalletView["mined"][number][] = [];
        // One whose nonce no confirmed block has is in no confirmed block.
        for (const one of underWay)
          mined.push(one.nonce < confirmedNonce ? await minedOf(client, one) : null);
        const nonce = await getTransactionCount(client, { address, blockTag: "latest" });
        const priority = await estimateMaxPriorityFeePerGas(client, { chain: null });
        // The base fee grows by an eighth a block at most: twice of it is enough for six full blocks.
        const fees = { max: 2n * newest.baseFeePerGas + priority, priority };
        return { newestBlock: Number(newest.number), nonce, confirmedNonce, mined, fees };
      }),
    gasOf: ({ to, data }) =>
      ask(async (client) => {
        try {
          const gas = await estimateGas(client, { account, to: to as Hex, data: data as Hex });
          // No node takes such a transaction, and its nonce would hold up all after it.
          if (gas < GAS_MIN) throw new Error("less gas than any transaction takes");
          return { gas: gas + gas / 5n };
        } catch (error) {
          return refusalIn(error);
        }
      }),
    async sign({ to, data, nonce, gas, fees, newestBlock }) {
      const raw = await account.signTransaction({
        type: "eip1559",
        chainId,
        nonce,
        to: to as Hex,
        data: data as Hex,
        value: 0n,
        gas,
        maxFeePerGas: fees.max,
        maxPriorityFeePerGas: fees.priority,
      });
      return { hash: keccak256(raw), raw, fees, signedAtBlock: newestBlock };
    },
    send: (raw) =>
      ask(async (client) => {
        try {
          await sendRawTransaction(client, { serializedTransaction: raw as Hex });
          return null;
        } catch (error) {
          const refusal = refusalIn(error);
          return TAKEN.test(refusal.message) ? null : refusal;
        }
      }),
  };
}

/** What a signed transaction says, and who signed it. */
export type DecodedTransaction = ChainCall & {
  readonly hash: string;
  readonly chainId: number;
  /** With its checksum. */
  readonly wallet: string;
  readonly nonce: number;
  readonly gas: bigint;
  readonly fees: Fees;
};

/** Reads what `sign` made; null for every other text. */
export async function decodeTransaction(raw: string): Promise<DecodedTransaction | null> {
  const serializedTransaction = raw as `0x02${string}`;
  try {
    const {
      chainId,
      nonce = 0,
      to,
      data = "0x",
      gas,
      maxFeePerGas,
      maxPriorityFeePerGas,
      value,
    } = parseTransaction(serializedTransaction);
    if (!to || gas === undefined || maxFeePerGas === undefined || value) return null;
    return {
      ...{ hash: keccak256(serializedTransaction), chainId, nonce, to, data, gas },
      wallet: await recoverTransactionAddress({ serializedTransaction }),
      fees: { max: maxFeePerGas, priority: maxPriorityFeePerGas ?? 0n },
    };
  } catch {
    return null;
  }
}

/** The signing that is in a block. The newest one is the likeliest. */
async function minedOf(client: Client, { signings }: ChainTransaction): Promise<ChainView["mined"]> {
  for (const { hash } of signings.toReversed()) {
    try {
      const { blockNumber } = await getTransactionReceipt(client, { hash: hash as Hex });
      // Some nodes give a receipt of what waits for a block.
      if (typeof blockNumber !== "bigint") throw new Error("a receipt of no block");
      return { hash, block: Number(blockNumber) };
    } catch (error) {
      if (!(error instanceof TransactionReceiptNotFoundError)) throw error;
    }
  }
  return null;
}

/** The words of geth, Nethermind, Besu and hardhat for a transaction that a node has, or has in a block already. */
const TAKEN = /already known|already imported|known transaction|already exists|nonce too low/i;

/** The same nodes' words for a wallet that cannot pay the gas. */
const NO_FUNDS = /insufficient funds|enough funds|exceeds .*balance/i;

/** What a node's refusal of a transaction means; throws every other error, such as a connection's. */
function refusalIn(error: unknown): NodeRefusal {
  const said = error instanceof BaseError && error.walk((cause) => cause instanceof RpcRequestError);
  if (!(said instanceof RpcRequestError)) throw error;
  const refused = NO_FUNDS.test(said.details) ? "no_funds" : "by_node";
  return { refused, message: wordsOf(said) };
}
