import { BaseError, BlockNotFoundError, type Client, RpcRequestError } from "viem";
import { getBlock, readContract } from "viem/actions";
import { DAY_MS, SECOND_MS } from "../core/time.ts";
import { isTestNetwork } from "../core/x402/chains.ts";
import type { Finding } from "../core/x402/purchase.ts";
import { type AskOptions, type Away, createChainAsker } from "./ask-chain.ts";

/** Reads EVM chains over the operator's own JSON-RPC endpoints. It never throws: a chain that does not answer is `Away`. */
export type EvmChains = {
  /**
   * Whether a wallet's EIP-3009 authorization is used, read at the newest confirmed block, and up to when that is final. An
   * authorization that its wallet has cancelled counts as used; our wallets never cancel one.
   */
  authorizationState(question: AuthorizationQuestion): Promise<AuthorizationState | Away>;
  /** What a wallet has of a token at the newest block, in the token's smallest unit. */
  balanceOf(chainId: number, contract: string, holder: string): Promise<TokenBalance | Away>;
};

export type AuthorizationQuestion = {
  readonly chainId: number;
  /** The token's address: `0x` and 40 hex digits, as all addresses here. */
  readonly contract: string;
  readonly authorizer: string;
  /** `0x` and 64 hex digits. */
  readonly nonce: string;
};

/** The state of an authorization at a block. */
export type AuthorizationState = {
  readonly isUsed: boolean;
  readonly blockNumber: bigint;
  /** Whether the block itself is final. A test network's is, and one where the endpoint knows no finalized block. */
  readonly isFinal: boolean;
  /** Up to when the chain is final: the time of the block, or of the finalized block before it. Epoch milliseconds. */
  readonly finalUntil: number;
};

export type TokenBalance = {
  readonly balance: bigint;
  /** The time of the newest block, at which it was read. Epoch milliseconds. */
  readonly blockTime: number;
};

export type EvmChainsOptions = AskOptions & {
  /** A block is confirmed when this many blocks exist from it on, itself included. */
  readonly confirmations?: (chainId: number) => number;
};

const CONFIRMATIONS_MAIN = 12;
const CONFIRMATIONS_TEST = 1;

/** What is asked of tokens. */
export const TOKEN_ABI = [
  {
    type: "function",
    name: "authorizationState",
    stateMutability: "view",
    inputs: [
      { name: "authorizer", type: "address" },
      { name: "nonce", type: "bytes32" },
    ],
    outputs: [{ name: "", type: "bool" }],
  },
  {
    type: "function",
    name: "balanceOf",
    stateMutability: "view",
    inputs: [{ name: "account", type: "address" }],
    outputs: [{ name: "", type: "uint256" }],
  },
] as const;

type Hex = `0x${string}`;

export function createEvmChains(
  endpoints: ReadonlyMap<number, string>,
  { confirmations = defaultConfirmations, ...options }: EvmChainsOptions = {},
): EvmChains {
  const ask = createChainAsker(endpoints, options);
  return {
    authorizationState: ({ chainId, contract, authorizer, nonce }) =>
      ask(chainId, async (client) => {
        // The finalized block is read first, so that the block that is read below comes after it.
        const finalized = isTestNetwork(chainId) ? null : await finalizedBlock(client);
        const newest = await getBlock(client, { blockTag: "latest" });
        const depth = BigInt(confirmations(chainId) - 1);
        const confirmed = newest.number > depth ? newest.number - depth : 0n;
        // Some chains finalize a block sooner than that.
        const isFinal = finalized === null || finalized.number >= confirmed;
        const blockNumber = finalized !== null && isFinal ? finalized.number : confirmed;
        const until =
          finalized ?? (blockNumber === newest.number ? newest : await getBlock(client, { blockNumber }));
        const isUsed = await readContract(client, {
          address: contract as Hex,
          abi: TOKEN_ABI,
          functionName: "authorizationState",
          args: [authorizer as Hex, nonce as Hex],
          blockNumber,
        });
        return { isUsed, blockNumber, isFinal, finalUntil: Number(until.timestamp) * SECOND_MS };
      }),
    balanceOf: (chainId, contract, holder) =>
      ask(chainId, async (client) => {
        const newest = await getBlock(client, { blockTag: "latest" });
        const balance = await readContract(client, {
          address: contract as Hex,
          abi: TOKEN_ABI,
          functionName: "balanceOf",
          args: [holder as Hex],
          blockNumber: newest.number,
        });
        return { balance, blockTime: Number(newest.timestamp) * SECOND_MS };
      }),
  };
}

/** The codes that endpoints answer with where they do not know a block or a tag. */
const NO_SUCH_BLOCK: ReadonlySet<number> = new Set([-32_602, -39_001]);
/** These codes have other meanings too, such as too many requests. So the error's words must name a block or a tag. */
const SERVER_ERRORS: ReadonlySet<number> = new Set([-32_000, -32_001]);

/**
 * The newest block that cannot be undone any more; null where the endpoint does not know it. Where it is old, the state is not
 * read there, since most nodes do not keep a state that old.
 */
async function finalizedBlock(client: Client): Promise<{ number: bigint; timestamp: bigint } | null> {
  try {
    return await getBlock(client, { blockTag: "finalized" });
  } catch (error) {
    if (isNoSuchBlock(error)) return null;
    throw error;
  }
}

const isNoSuchBlock = (error: unknown): boolean =>
  error instanceof BaseError &&
  error.walk(
    (cause) =>
      cause instanceof BlockNotFoundError ||
      (cause instanceof RpcRequestError &&
        (NO_SUCH_BLOCK.has(cause.code) ||
          (SERVER_ERRORS.has(cause.code) && /block|tag/i.test(cause.details)))),
  ) !== null;

/** How many confirmations a block needs where nobody says otherwise. */
export const defaultConfirmations = (chainId: number): number =>
  isTestNetwork(chainId) ? CONFIRMATIONS_TEST : CONFIRMATIONS_MAIN;

/**
 * What the chain's answer means for an authorization (see `Finding` in core/x402/purchase.ts). It can only be used in a block
 * before its expiry, and the times of blocks only grow. So once the chain is final up to a time after the expiry, what a
 * confirmed block says stays so: used, or never used.
 *
 * @param validBefore epoch milliseconds, as is `now`
 */
export function findingOf(state: AuthorizationState | Away, validBefore: number, now: number): Finding {
  if ("away" in state) return state.away === "none" ? "none" : "away";
  const isPast = state.finalUntil > validBefore;
  if (state.isUsed && (state.isFinal || isPast)) return "used";
  if (isPast) return "expired";
  // A stopped endpoint would answer the same for ever, so a block older than a day counts as no answer.
  return state.finalUntil < now - DAY_MS ? "away" : "open";
}
