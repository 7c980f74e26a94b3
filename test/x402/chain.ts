import { join } from "node:path";
import {
  type Address,
  createPublicClient,
  createWalletClient,
  defineChain,
  type Hex,
  http,
  publicActions,
} from "viem";
import { generatePrivateKey, mnemonicToAccount, privateKeyToAccount } from "viem/accounts";
import { compileToken, TOKEN_ABI, TOKEN_NAME, TOKEN_VERSION } from "./token.ts";

/** The id of Base Sepolia: version 1 of the protocol has a closed list of network names, without 31337. */
export const CHAIN_ID = 84_532;
export const NETWORK_V1 = "base-sepolia";
export const NETWORK_V2 = `eip155:${CHAIN_ID}` as const;

export type Wallet = { readonly address: Address; readonly key: Hex };

/** A chain on 127.0.0.1 with a token on it that does EIP-3009. Each transaction is a block at once. */
export type Chain = {
  readonly url: string;
  readonly token: Address;
  /** A new wallet with so much of the token, in its smallest unit, and nothing else. */
  wallet(amount: bigint): Promise<Wallet>;
  balanceOf(holder: Address): Promise<bigint>;
  /** How many transactions have moved the token so far, including mints. */
  transfers(): Promise<number>;
  isUsed(authorizer: Address, nonce: Hex): Promise<boolean>;
  /** Mines blocks. The first one is dated so many seconds ahead of the clock, or of the last block. */
  mine(blocks: number, laterBySeconds?: number): Promise<void>;
  /** Asks the chain's own node, also for what only a node for tests does. */
  ask(method: string, params: readonly unknown[]): Promise<unknown>;
  /** Makes the process accept connections without answering, until it goes on. */
  hang(): void;
  goOn(): void;
  close(): Promise<void>;
};

const DEPLOYER = 0;
const FACILITATOR = 1;
const CUSTOMER = 2;
const POLL_MS = 20;

/** Hardhat's own accounts, which have ether for the gas. */
const accountOf = (index: number) =>
  mnemonicToAccount("test test test test test test test test test test test junk", { addressIndex: index });

const chainAt = (url: string) =>
  defineChain({
    id: CHAIN_ID,
    name: "local",
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [url] } },
  });

const walletOf = (url: string, index: number) =>
  createWalletClient({
    account: accountOf(index),
    chain: chainAt(url),
    transport: http(url),
    pollingInterval: POLL_MS,
  }).extend(publicActions);

/** The account that pays the gas of settlements. */
export const facilitatorWallet = (chain: Chain) => walletOf(chain.url, FACILITATOR);
/** An account of somebody who sends tokens. */
export const customerWallet = (chain: Chain) => walletOf(chain.url, CUSTOMER);

/** Starts the chain and puts the token on it. */
export async function startChain(): Promise<Chain> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "chain-process.ts"), `${CHAIN_ID}`], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
    // The caller's environment is not passed on. The caches of the runtime and hardhat stay outside of the repository.
    env: { HOME: join(import.meta.dir, "node_modules/.cache") },
  });
  try {
    const url = await firstLine(child.stdout);
    const deployer = walletOf(url, DEPLOYER);
    const created = await deployer.deployContract({ abi: TOKEN_ABI, bytecode: compileToken() });
    const { contractAddress: token } = await deployer.waitForTransactionReceipt({ hash: created });
    if (!token) throw new Error("the token was not deployed");
    return { ...chainOf(url, token, deployer), ...processOf(child) };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

/** The settings that a service needs for this chain. */
export const settingsOf = ({ url, token }: Chain) => ({
  EVM_RPC: `${NETWORK_V2}=${url}`,
  X402_ASSETS: `${NETWORK_V2}/${token}=USDC:${TOKEN_NAME}:${TOKEN_VERSION}`,
  X402_ALLOW_NETWORKS: "127.0.0.0/8",
});

function chainOf(
  url: string,
  token: Address,
  deployer: ReturnType<typeof walletOf>,
): Omit<Chain, "hang" | "goOn" | "close"> {
  const reader = createPublicClient({ chain: chainAt(url), transport: http(url) });
  const contract = { address: token, abi: TOKEN_ABI } as const;
  const ask = (method: string, params: readonly unknown[]) =>
    reader.request({ method, params } as unknown as Parameters<typeof reader.request>[0]);
  return {
    url,
    token,
    ask,
    async wallet(amount) {
      const key = generatePrivateKey();
      const { address } = privateKeyToAccount(key);
      const hash = await deployer.writeContract({
        ...contract,
        functionName: "mint",
        args: [address, amount],
      });
      await deployer.waitForTransactionReceipt({ hash });
      return { address, key };
    },
    balanceOf: (holder) => reader.readContract({ ...contract, functionName: "balanceOf", args: [holder] }),
    transfers: async () => (await reader.getLogs({ address: token, event: TRANSFER, fromBlock: 0n })).length,
    isUsed: (authorizer, nonce) =>
      reader.readContract({ ...contract, functionName: "authorizationState", args: [authorizer, nonce] }),
    async mine(blocks, laterBySeconds = 0) {
      if (laterBySeconds > 0) await ask("evm_increaseTime", [laterBySeconds]);
      await ask("hardhat_mine", [`0x${blocks.toString(16)}`]);
    },
  };
}

const TRANSFER = {
  type: "event",
  name: "Transfer",
  inputs: [
    { name: "from", type: "address", indexed: true },
    { name: "to", type: "address", indexed: true },
    { name: "value", type: "uint256" },
  ],
} as const;

const processOf = (child: Bun.Subprocess): Pick<Chain, "hang" | "goOn" | "close"> => ({
  hang: () => child.kill("SIGSTOP"),
  goOn: () => child.kill("SIGCONT"),
  async close() {
    child.kill("SIGKILL");
    await child.exited;
  },
});

async function firstLine(output: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const bytes of output) {
    text += decoder.decode(bytes, { stream: true });
    const end = text.indexOf("\n");
    if (end >= 0) return text.slice(0, end);
  }
  throw new Error("the chain's process ended before it said where it is");
}
