import type { Mode } from "../roles.ts";

/** EVM chains by their ids, as x402 names them: protocol version 2 by CAIP-2, version 1 by names of its own. */

/** The names of version 1 (`EVM_NETWORK_CHAIN_ID_MAP` of @x402/evm). */
const CHAIN_IDS_OF_V1: ReadonlyMap<string, number> = new Map([
  ["ethereum", 1],
  ["sepolia", 11_155_111],
  ["abstract", 2_741],
  ["abstract-testnet", 11_124],
  ["base-sepolia", 84_532],
  ["base", 8_453],
  ["avalanche-fuji", 43_113],
  ["avalanche", 43_114],
  ["iotex", 4_689],
  ["sei", 1_329],
  ["sei-testnet", 1_328],
  ["polygon", 137],
  ["polygon-amoy", 80_002],
  ["peaq", 3_338],
  ["story", 1_514],
  ["educhain", 41_923],
  ["skale-base-sepolia", 324_705_682],
  ["megaeth", 4_326],
  ["monad", 143],
  ["stable", 988],
  ["stable-testnet", 2_201],
  ["celo", 42_220],
  ["flare", 14],
]);

/** Chains whose money is not real. Every other chain counts as real, so the sandbox never pays on a chain that is not listed. */
export const TEST_NETWORKS: ReadonlySet<number> = new Set([
  11_155_111, // Ethereum Sepolia
  11_155_420, // OP Sepolia
  84_532, // Base Sepolia
  43_113, // Avalanche Fuji
  80_002, // Polygon Amoy
  421_614, // Arbitrum Sepolia
  11_142_220, // Celo Sepolia
  11_124, // Abstract testnet
  1_328, // Sei testnet
  51, // XDC Apothem
  2_201, // Stable testnet
  10_143, // Monad testnet
  324_705_682, // SKALE Base Sepolia
  1_337, // a local chain
  31_337, // a local chain of hardhat or anvil
]);

/** The sandbox pays on test networks only, and live pays on all others only (docs/x402, "Tokens"). */
export const isTestNetwork = (chainId: number): boolean => TEST_NETWORKS.has(chainId);

declare const money: unique symbol;
/** The id of a chain on which a mode may move money. Only `chainOfMode` gives one. */
export type ChainOfMode<M extends Mode> = number & { readonly [money]: M };

/** The chain as one of the mode; null where it has the other mode's money. */
export const chainOfMode = <M extends Mode>(mode: M, chainId: number): ChainOfMode<M> | null =>
  isTestNetwork(chainId) === (mode === "sandbox") ? (chainId as ChainOfMode<M>) : null;

const CAIP_2 = /^eip155:([1-9][0-9]{0,15})$/;

export const caip2Of = (chainId: number): string => `eip155:${chainId}`;

/** The chain of a CAIP-2 name such as `eip155:8453`; null where it names no EVM chain. */
export function chainOfCaip2(network: string): number | null {
  const chainId = Number(CAIP_2.exec(network)?.[1] ?? Number.NaN);
  return Number.isSafeInteger(chainId) ? chainId : null;
}

/** The chain that a challenge of a protocol version names; null where the name is not known. */
export const chainOfNetwork = (protocol: 1 | 2, network: string): number | null =>
  protocol === 1 ? (CHAIN_IDS_OF_V1.get(network) ?? null) : chainOfCaip2(network);
