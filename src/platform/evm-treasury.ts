import { BaseError, type Client, erc20Abi, RpcRequestError, TransactionReceiptNotFoundError } from "viem";
import { call, getBalance, getLogs, getTransactionReceipt, readContract } from "viem/actions";
import type { ChainCall } from "../core/chain-transaction.ts";
import { TRANSFER_TOPIC } from "../core/chain-transfer.ts";
import type { TokenTransfer, TransactionReceipt } from "../core/payout-outcome.ts";
import { type AskOptions, type Away, createChainAsker } from "./ask-chain.ts";
import { createEvmWallet, type EvmWallet, wordsOf } from "./evm-wallet.ts";
import { createTreasuryChain, type Decimals, decimalsOf } from "./treasury-chain.ts";

/** A wallet that holds tokens and pays with them. It never throws for what a node says. */
export type EvmTreasury = EvmWallet & {
  /** How much of the chain's coin, for gas, or of a token the wallet has at the newest block, in the smallest unit. */
  balanceOf(what: "coin" | TokenAddress): Promise<{ readonly balance: bigint } | Away>;
  decimalsOf(token: TokenAddress): Promise<Decimals | Away>;
  /** Plays a call of a token that answers true or nothing where it works. Null where it would work; else why not. */
  refusalOf(call: ChainCall): Promise<{ readonly why: string } | Away | null>;
  /** The receipt of a transaction that is in a block; null where it is in none. */
  receipt(hash: string): Promise<TransactionReceipt | Away | null>;
  /**
   * How much less of a token somebody has got in a block than the token's own events say; negative where it is more. Null where the
   * node does not say, such as where it has forgotten the balances of that block.
   */
  missingIn(
    block: number,
    token: string,
    holder: string,
  ): Promise<{ readonly missing: bigint } | Away | null>;
};

type TokenAddress = `0x${string}`;

type Hex = TokenAddress;

const YES = `0x${"1".padStart(64, "0")}`;

export function createEvmTreasury(
  of: Parameters<typeof createEvmWallet>[0],
  confirmations: number,
  options: AskOptions = {},
): EvmTreasury {
  const wallet = createEvmWallet(of, confirmations, options);
  const { address, chainId } = wallet;
  const askChain = createChainAsker(new Map([[chainId, of.url]]), options);
  const ask = <Answer>(question: (client: Client) => Promise<Answer>) => askChain(chainId, question);
  const isOwn = ({ from }: TokenTransfer): boolean => from === address.toLowerCase();
  return {
    ...wallet,
    balanceOf: (what) =>
      ask(async (client) => ({
        balance:
          what === "coin"
            ? await getBalance(client, { address: address as Hex, blockTag: "latest" })
            : await readContract(client, {
                ...{ address: what, abi: erc20Abi, functionName: "balanceOf", args: [address as Hex] },
                blockTag: "latest",
              }),
      })),
    decimalsOf: (token) => ask((client) => decimalsOf(client, token)),
    refusalOf: ({ to, data }) =>
      ask(async (client) => {
        try {
          const { data: said = "0x" } = await call(client, {
            account: address as Hex,
            to: to as Hex,
            data: data as Hex,
          });
          return said === "0x" || said === YES ? null : { why: "it answers false" };
        } catch (error) {
          return { why: revertIn(error) };
        }
      }),
    receipt: (hash) =>
      ask(async (client) => {
        try {
          const { transactionHash, blockNumber, status, logs, to } = await getTransactionReceipt(client, {
            hash: hash as Hex,
          });
          if (transactionHash !== hash) throw new Error("the node gives another transaction's receipt");
          // What is left out is not known: a payout that is taken for failed is owed again.
          if (typeof blockNumber !== "bigint" || !isStatus(status)) throw new Error("half a receipt");
          const transfers = logs.flatMap(transferIn);
          if (to !== null && !transfers.some(isOwn)) await expectNoLogs(client, to, hash, blockNumber);
          return { hash, block: Number(blockNumber), succeeded: status === "success", transfers };
        } catch (error) {
          if (error instanceof TransactionReceiptNotFoundError) return null;
          throw error;
        }
      }),
    async missingIn(block, token, holder) {
      const key = { chainId, token, address: holder };
      const blocks = { after: block - 1, until: block };
      const moved = await createTreasuryChain(askChain, key, confirmations).transfers(blocks);
      if ("away" in moved) return moved;
      if ("refused" in moved) return null;
      if ("wrong" in moved) return { away: "no_answer" };
      const net = moved.transfers.reduce(
        (sum, { direction, amount }) => (direction === "received" ? sum + amount : sum - amount),
        0n,
      );
      return ask(async (client) => {
        try {
          const [before, after] = await Promise.all(
            [block - 1, block].map((number) => heldAt(client, token as Hex, holder as Hex, number)),
          );
          return { missing: net - ((after ?? 0n) - (before ?? 0n)) };
        } catch (error) {
          if (isRefusal(error)) return null;
          throw error;
        }
      });
    },
  };
}

const heldAt = (client: Client, token: Hex, holder: Hex, block: number): Promise<bigint> =>
  readContract(client, {
    ...{ address: token, abi: erc20Abi, functionName: "balanceOf", args: [holder] },
    blockNumber: BigInt(block),
  });

/** Nodes forget balances of old blocks, and say so in many ways. What they cannot say keeps no payout from its end. */
const isRefusal = (error: unknown): boolean =>
  error instanceof BaseError && error.walk((cause) => cause instanceof RpcRequestError) !== null;

/** Nodes leave out a field that they do not know. */
const isStatus = (status: unknown): boolean => status === "success" || status === "reverted";

/** Throws where the logs of the block have a transfer of a transaction whose receipt has none: one of the two is wrong. */
async function expectNoLogs(client: Client, token: Hex, hash: string, block: bigint): Promise<void> {
  const logs = await getLogs(client, { address: token, fromBlock: block, toBlock: block });
  if (logs.some((log) => log.transactionHash === hash && transferIn(log).length > 0))
    throw new Error("the receipt and the logs of its block contradict each other");
}

type Log = { readonly address: string; readonly topics: readonly string[]; readonly data: string };

function transferIn({ address, topics: [topic, from = "", to = "", ...more], data }: Log): TokenTransfer[] {
  if (topic !== TRANSFER_TOPIC || more.length > 0 || !/^0x[0-9a-f]{64}$/i.test(data)) return [];
  const addressIn = (word: string) => `0x${word.slice(-40).toLowerCase()}`;
  return [{ token: address.toLowerCase(), from: addressIn(from), to: addressIn(to), amount: BigInt(data) }];
}

/** JSON-RPC's code of geth for a call that was reverted. Other nodes say it in words. */
const REVERTED = 3;
const REVERT = /revert|invalid opcode|VM Exception|out of gas|paused/i;

/** What a node says of a call that a contract undid; throws every other error, such as a connection's. */
function revertIn(error: unknown): string {
  const said = error instanceof BaseError && error.walk((cause) => cause instanceof RpcRequestError);
  if (!(said instanceof RpcRequestError) || (said.code !== REVERTED && !REVERT.test(said.details)))
    throw error;
  return wordsOf(said);
}
