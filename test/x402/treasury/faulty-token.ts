import { join } from "node:path";
import { type Address, encodeFunctionData, type Hex, parseAbi, type TransactionReceipt } from "viem";
import { type Chain, customerWallet } from "../chain.ts";
import { compileContract } from "../token.ts";

/** In the order of the contract's enum. */
const BEHAVIOURS = [
  ...["plain", "returns false", "returns nothing", "takes a fee", "hides a fee", "moves nothing"],
  ...["paused", "burns gas", "moves twice", "charges more"],
] as const;
export type Behaviour = (typeof BEHAVIOURS)[number];

const ABI = parseAbi([
  "function behave(uint8 as_)",
  "function refuse(address account, bool isIt)",
  "function mint(address to, uint256 value)",
  "function setBalance(address holder, uint256 value)",
  "function transfer(address to, uint256 value) returns (bool)",
  "function balanceOf(address) view returns (uint256)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
]);

/** What moved money, as the token's event says. */
export type Moved = { readonly to: Address; readonly value: bigint; readonly hash: Hex };

/**
 * A token that a test tells how to behave. Where blocks are made by hand, everything that changes it mines one, unless it is to
 * be `inNextBlock`: then it comes before whatever else is in that block.
 */
export type FaultyToken = {
  readonly address: Address;
  /** Whose money the deposits are: more than any test needs. */
  readonly customer: Address;
  behave(behaviour: Behaviour, inNextBlock?: "inNextBlock"): Promise<void>;
  refuse(account: string, isIt: boolean): Promise<void>;
  mint(to: string, value: bigint): Promise<void>;
  /** Changes what a holder has without an event. */
  setBalance(holder: string, value: bigint): Promise<void>;
  /** Sends the customer's money. Answers the transaction's hash. */
  pay(to: string, value: bigint): Promise<Hex>;
  /** Signs what `pay` sends. */
  signPayment(to: string, value: bigint): Promise<Hex>;
  /** Sends what was signed. Answers the transaction's hash. */
  send(raw: Hex): Promise<Hex>;
  balanceOf(holder: string): Promise<bigint>;
  /** Everything that an address has sent, in order. */
  sentBy(from: string): Promise<readonly Moved[]>;
};

const GWEI = 10n ** 9n;
/** More than whatever else is in a block. */
const FIRST_IN_BLOCK = { maxPriorityFeePerGas: 1_000n * GWEI, maxFeePerGas: 100_000n * GWEI };
const GAS = 200_000n;
const PLENTY = 10n ** 18n;

export async function deployFaultyToken(chain: Chain): Promise<FaultyToken> {
  const wallet = customerWallet(chain);
  const { address: customer } = wallet.account;
  const bytecode = compileContract(join(import.meta.dir, "faulty-token.sol"), "FaultyToken");

  /** In a block, which it makes where the chain does not. */
  async function inBlock(hash: Hex): Promise<TransactionReceipt> {
    if ((await chain.ask("eth_getTransactionReceipt", [hash])) === null) await chain.mine(1);
    const receipt = await wallet.getTransactionReceipt({ hash });
    if (receipt.status === "reverted") throw new Error(`the token refused ${hash}`);
    return receipt;
  }
  const { contractAddress } = await inBlock(await wallet.deployContract({ abi: ABI, bytecode }));
  const to = contractAddress as Address;
  const write = async (data: Hex): Promise<void> => {
    await inBlock(await wallet.sendTransaction({ to, data, gas: GAS }));
  };
  const mint = (holder: string, value: bigint): Promise<void> =>
    write(encodeFunctionData({ abi: ABI, functionName: "mint", args: [holder as Address, value] }));
  await mint(customer, PLENTY);

  const signPayment: FaultyToken["signPayment"] = async (payee, value) => {
    const args = [payee as Address, value] as const;
    const data = encodeFunctionData({ abi: ABI, functionName: "transfer", args });
    const request = await wallet.prepareTransactionRequest({ to, data, gas: GAS });
    return wallet.signTransaction(request);
  };
  const send: FaultyToken["send"] = async (serializedTransaction) => {
    const hash = await wallet.sendRawTransaction({ serializedTransaction });
    await inBlock(hash);
    return hash;
  };
  return {
    ...{ address: to, customer, mint, signPayment, send },
    async behave(behaviour, inNextBlock) {
      const args = [BEHAVIOURS.indexOf(behaviour)] as const;
      const data = encodeFunctionData({ abi: ABI, functionName: "behave", args });
      if (inNextBlock) await wallet.sendTransaction({ to, data, gas: GAS, ...FIRST_IN_BLOCK });
      else await write(data);
    },
    refuse: (holder, isIt) =>
      write(encodeFunctionData({ abi: ABI, functionName: "refuse", args: [holder as Address, isIt] })),
    setBalance: (holder, value) =>
      write(encodeFunctionData({ abi: ABI, functionName: "setBalance", args: [holder as Address, value] })),
    pay: async (payee, value) => send(await signPayment(payee, value)),
    balanceOf: (holder) =>
      wallet.readContract({ address: to, abi: ABI, functionName: "balanceOf", args: [holder as Address] }),
    async sentBy(from) {
      const args = { from: from as Address };
      const logs = await wallet.getContractEvents({
        ...{ address: to, abi: ABI, eventName: "Transfer", args, fromBlock: 0n, strict: true },
      });
      return logs.map(({ args: { to: payee, value }, transactionHash: hash }) => ({
        to: payee,
        value,
        hash,
      }));
    },
  };
}
