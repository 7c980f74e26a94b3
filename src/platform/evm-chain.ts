import {
  BaseError,
  BlockNotFoundError,
  type Client,
  createClient,
  HttpRequestError,
  http,
  RpcRequestError,
  TimeoutError,
} from "viem";
import { getBlock, getChainId, readContract } from "viem/actions";
import { DAY_MS, SECOND_MS } from "../core/time.ts";
import { caip2Of, isTestNetwork } from "../core/x402/chains.ts";
import type { Finding } from "../core/x402/purchase.ts";
import { logUnverified } from "./certificates.ts";
import { withReserve } from "./descriptors.ts";

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

/**
 * Why nothing is known. `none`: there is no endpoint to ask. `timeout`: no answer in time. `unreachable`: no connection, or no
 * JSON-RPC there. `wrong_chain`: the endpoint is of another chain. `no_answer`: an error, or the contract or block is missing.
 */
export type Away = { readonly away: "none" | "timeout" | "unreachable" | "wrong_chain" | "no_answer" };

export type EvmChainsOptions = {
  /** A block is confirmed when this many blocks exist from it on, itself included. */
  readonly confirmations?: (chainId: number) => number;
  /** The time limit of one request. */
  readonly timeoutMs?: number;
  /** How often a request is tried again, after a short wait that doubles each time. */
  readonly retries?: number;
  readonly retryDelayMs?: number;
};

const CONFIRMATIONS_MAIN = 12;
const CONFIRMATIONS_TEST = 1;
const TIMEOUT_MS = 5 * SECOND_MS;
const RETRIES = 3;
const RETRY_DELAY_MS = 200;

const ABI = [
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

/** `endpoints` are JSON-RPC URLs by chain id. Nothing is asked before the first question. */
export function createEvmChains(
  endpoints: ReadonlyMap<number, string>,
  options: EvmChainsOptions = {},
): EvmChains {
  const { confirmations = defaultConfirmations, timeoutMs = TIMEOUT_MS, retries = RETRIES } = options;
  const { retryDelayMs = RETRY_DELAY_MS } = options;
  const clients = new Map<number, Client>();
  const checked = new Set<number>();

  const clientOf = (chainId: number, url: string): Client => {
    const known = clients.get(chainId);
    if (known) return known;
    const transport = http(url, {
      timeout: timeoutMs,
      retryCount: retries,
      retryDelay: retryDelayMs,
      fetchOptions: { redirect: "error" },
      fetchFn: (input, init) =>
        withReserve("another", () => fetch(input, init)).catch((error: unknown) => {
          // The chain's name, since the endpoint's URL may hold a key.
          logUnverified(error, caip2Of(chainId));
          throw error;
        }),
    });
    const client = createClient({ transport });
    clients.set(chainId, client);
    return client;
  };

  /** Asks an endpoint, after it has confirmed its chain: the answer of another chain would be wrong. */
  async function ask<Answer>(
    chainId: number,
    question: (client: Client) => Promise<Answer>,
  ): Promise<Answer | Away> {
    const url = endpoints.get(chainId);
    if (url === undefined) return { away: "none" };
    const client = clientOf(chainId, url);
    try {
      if (!checked.has(chainId)) {
        if ((await getChainId(client)) !== chainId) return { away: "wrong_chain" };
        checked.add(chainId);
      }
      return await question(client);
    } catch (error) {
      return { away: reasonOf(error) };
    }
  }

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
          abi: ABI,
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
          abi: ABI,
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

const defaultConfirmations = (chainId: number): number =>
  isTestNetwork(chainId) ? CONFIRMATIONS_TEST : CONFIRMATIONS_MAIN;

/** viem wraps the cause of an error. Its messages hold the endpoint's URL, which may hold a key, so they are not passed on. */
function reasonOf(error: unknown): Away["away"] {
  if (!(error instanceof BaseError)) return "no_answer";
  if (error.walk((cause) => cause instanceof TimeoutError) !== null) return "timeout";
  return error.walk((cause) => cause instanceof HttpRequestError) === null ? "no_answer" : "unreachable";
}

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
