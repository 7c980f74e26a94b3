import {
  BaseError,
  type Client,
  ContractFunctionRevertedError,
  ContractFunctionZeroDataError,
  erc20Abi,
  HttpRequestError,
  RpcRequestError,
} from "viem";
import { getBlock, getChainId, readContract } from "viem/actions";
import {
  type LogsQuestion,
  TRANSFER_TOPIC,
  type TransferInBlock,
  topicOf,
  transfersIn,
} from "../core/chain-transfer.ts";
import { SECOND_MS } from "../core/time.ts";
import type { BlockId, WatchKey } from "../core/treasury-watch.ts";
import type { Away, ChainAsker } from "./ask-chain.ts";
import { wordsOf } from "./evm-wallet.ts";

/** How many digits of a token's amounts come after the point; null where it does not say. */
export type Decimals = { readonly decimals: number | null };

/** What a treasury asks of its chain. It never throws for what a node says. */
export type TreasuryChain = {
  /** The time of the newest block, epoch milliseconds, and the newest confirmed block; null while the chain has too few. */
  head(): Promise<{ readonly newestTime: number; readonly confirmed: BlockId | null } | Away>;
  decimals(): Promise<Decimals | Away>;
  /** The block of a number; null where the node does not have it. */
  block(number: number): Promise<{ readonly block: BlockId | null } | Away>;
  /** The token's transfers to and from the treasury after a block and up to another one, which is included. */
  transfers(
    blocks: Pick<LogsQuestion, "after" | "until">,
  ): Promise<{ readonly transfers: readonly TransferInBlock[] } | NoLogs | Away>;
  /** The treasury's balance at a block; null where the chain has another block there by now. */
  balanceAt(block: BlockId): Promise<{ readonly balance: bigint | null } | Away>;
};

/**
 * `refused`: the node does not answer for so many blocks or logs, in its own words. `wrong`: its logs are not what was asked for, or
 * contradict each other.
 */
export type NoLogs = { readonly refused: string } | { readonly wrong: "logs" };

type Hex = `0x${string}`;

/** @param confirmations how many blocks there must be, the block itself and those after it, before it is confirmed */
export function createTreasuryChain(
  askChain: ChainAsker,
  { chainId, token, address }: WatchKey,
  confirmations: number,
): TreasuryChain {
  const ask = <Answer>(question: (client: Client) => Promise<Answer>) => askChain(chainId, question);
  const blockAt = async (client: Client, number: number): Promise<BlockId> => {
    const block = await getBlock(client, { blockNumber: BigInt(number) });
    if (block.number !== BigInt(number)) throw new Error("another block than the one that was asked for");
    return { number, hash: block.hash };
  };
  const logsOf = (client: Client, { after, until }: Pick<LogsQuestion, "after" | "until">, topics: Topics) =>
    client.request({
      method: "eth_getLogs",
      params: [
        { address: token as Hex, topics, fromBlock: hexOf(after + 1), toBlock: hexOf(until) },
      ] as never,
    }) as Promise<unknown>;
  return {
    head: () =>
      ask(async (client) => {
        // Behind one URL there may be another chain by now, on which the same address has other money.
        if ((await getChainId(client)) !== chainId) throw new Error("another chain than before");
        const { number, timestamp } = await getBlock(client, { blockTag: "latest" });
        const confirmed = Number(number) - confirmations + 1;
        return {
          newestTime: Number(timestamp) * SECOND_MS,
          confirmed: confirmed < 0 ? null : await blockAt(client, confirmed),
        };
      }),
    decimals: () => ask((client) => decimalsOf(client, token)),
    block: (number) =>
      ask(async (client) => {
        try {
          return { block: await blockAt(client, number) };
        } catch (error) {
          if (error instanceof BaseError && error.name === "BlockNotFoundError") return { block: null };
          throw error;
        }
      }),
    transfers: (blocks) =>
      ask(async (client) => {
        const topic = topicOf(address) as Hex;
        try {
          const [sent, received] = await Promise.all([
            logsOf(client, blocks, [TRANSFER_TOPIC, topic]),
            logsOf(client, blocks, [TRANSFER_TOPIC, null, topic]),
          ]);
          if (!Array.isArray(sent) || !Array.isArray(received)) return { wrong: "logs" };
          const transfers = transfersIn([...sent, ...received], { token, address, ...blocks });
          return transfers === null ? { wrong: "logs" } : { transfers };
        } catch (error) {
          return refusalIn(error);
        }
      }),
    balanceAt: (block) =>
      ask(async (client) => {
        const balance = await readContract(client, {
          address: token as Hex,
          abi: erc20Abi,
          functionName: "balanceOf",
          args: [address as Hex],
          blockNumber: BigInt(block.number),
        });
        // Read after the balance: a block that is still there was there when its balance was read.
        const { hash } = await blockAt(client, block.number);
        return { balance: hash === block.hash ? balance : null };
      }),
  };
}

/** Asks a token for its decimals. Throws where the node does not answer. */
export async function decimalsOf(client: Client, token: string): Promise<Decimals> {
  try {
    const question = { address: token as Hex, abi: erc20Abi, functionName: "decimals" } as const;
    return { decimals: await readContract(client, question) };
  } catch (error) {
    if (error instanceof BaseError && error.walk(saysNothing) !== null) return { decimals: null };
    throw error;
  }
}

/** Whether it is the contract that does not answer, and not the node. */
const saysNothing = (error: unknown): boolean =>
  error instanceof ContractFunctionRevertedError || error instanceof ContractFunctionZeroDataError;

type Topics = readonly (string | null)[];

const hexOf = (number: number): Hex => `0x${number.toString(16)}`;

/** A node's refusal of so many logs; throws every other error, such as a connection's. */
function refusalIn(error: unknown): NoLogs {
  if (!(error instanceof BaseError)) throw error;
  const said = error.walk((cause) => cause instanceof RpcRequestError);
  if (said instanceof RpcRequestError) return { refused: wordsOf(said) };
  // Some endpoints refuse by the status alone: 400, or 413 for an answer that is too large.
  const http = error.walk((cause) => cause instanceof HttpRequestError);
  if (http instanceof HttpRequestError && (http.status === 400 || http.status === 413))
    return { refused: `status ${http.status}` };
  throw error;
}
