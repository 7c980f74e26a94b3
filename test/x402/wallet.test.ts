/** Holdfast's wallet that sends transactions of its own, on a chain whose blocks the test makes. */
import { describe, expect, test } from "bun:test";
import {
  BLOCKS_UNTIL_REPLACED,
  type ChainStep,
  type ChainTransaction,
  type ChainView,
  firstFees,
  nextStep,
} from "../../src/core/chain-transaction.ts";
import { createEvmWallet, type EvmWallet, type NotSent } from "../../src/platform/evm-wallet.ts";
import { chainWithBlocksByHand } from "./blocks-by-hand.ts";
import { CHAIN_ID, type Chain } from "./chain.ts";

const CONFIRMATIONS = 3;
const RULES = { confirmations: CONFIRMATIONS, feeMax: 10n ** 12n };
const ETHER = 10n ** 18n;

let chain: Chain;
let wallet: EvmWallet;
let call: { readonly to: string; readonly data: string };

chainWithBlocksByHand(async (started) => {
  chain = started;
  const { key } = await chain.wallet(1n);
  wallet = createEvmWallet({ chainId: CHAIN_ID, url: chain.url, key }, CONFIRMATIONS);
  call = { to: wallet.address, data: `0x${"ab".repeat(44)}` };
  await chain.ask("hardhat_setBalance", [wallet.address, `0x${ETHER.toString(16)}`]);
});

const must = <T extends object | null>(answer: T | NotSent): T => {
  if (answer !== null && ("away" in answer || "refused" in answer)) throw new Error(JSON.stringify(answer));
  return answer as T;
};
async function look(underWay: ChainTransaction | null): Promise<ChainView> {
  const { mined, ...view } = must(await wallet.look(underWay === null ? [] : [underWay]));
  return { ...view, mined: mined[0] ?? null };
}

async function signAnew(underWay: ChainTransaction | null = null): Promise<ChainTransaction> {
  const view = await look(underWay);
  const { gas } = must(await wallet.gasOf(call));
  const nonce = underWay?.nonce ?? view.nonce;
  const fees = firstFees(view.fees, RULES.feeMax);
  const signing = await wallet.sign({ ...call, nonce, gas, fees, newestBlock: view.newestBlock });
  return { nonce, signings: [signing] };
}

/** Looks, decides, and does what was decided. */
async function step(transaction: ChainTransaction): Promise<readonly [ChainStep, ChainTransaction]> {
  const view = await look(transaction);
  const decided = nextStep(transaction, view, RULES);
  if (decided.do === "send") expect(await wallet.send(decided.raw)).toBeNull();
  if (decided.do !== "replace") return [decided, transaction];
  const { gas } = must(await wallet.gasOf(call));
  const { nonce, signings } = transaction;
  const { fees } = decided;
  const signing = await wallet.sign({ ...call, nonce, gas, fees, newestBlock: view.newestBlock });
  expect(await wallet.send(signing.raw)).toBeNull();
  return [decided, { nonce, signings: [...signings, signing] }];
}

const sent = async (): Promise<ChainTransaction> => {
  const transaction = await signAnew();
  expect((await step(transaction))[0].do).toBe("send");
  return transaction;
};

describe("a transaction", () => {
  test("is sent as often as one likes, gets into one block, and ends with its confirmations", async () => {
    const transaction = await sent();
    expect((await step(transaction))[0].do).toBe("send");
    await chain.mine(1);
    const [waiting] = await step(transaction);
    expect(waiting.do).toBe("wait");
    // What is in a block is no fault to send again.
    expect(await wallet.send(transaction.signings[0]!.raw)).toBeNull();
    await chain.mine(CONFIRMATIONS - 1);
    const [end] = await step(transaction);
    const { newestBlock, nonce, confirmedNonce } = await look(transaction);
    const { hash } = transaction.signings[0]!;
    expect(end).toEqual({ do: "end", hash, block: newestBlock - CONFIRMATIONS + 1 });
    expect([nonce, confirmedNonce]).toEqual([transaction.nonce + 1, transaction.nonce + 1]);
    const inChain = (await chain.ask("eth_getTransactionByHash", [hash])) as { input: string; to: string };
    expect([inChain.input, inChain.to]).toEqual([call.data, wallet.address.toLowerCase()]);
  });

  test("that a reorganisation took out of its block is sent again, and ends in another one", async () => {
    const before = await chain.ask("evm_snapshot", []);
    const transaction = await sent();
    await chain.mine(1);
    expect((await step(transaction))[0].do).toBe("wait");
    await chain.ask("evm_revert", [before]);
    expect((await step(transaction))[0].do).toBe("send");
    await chain.mine(CONFIRMATIONS);
    expect((await step(transaction))[0].do).toBe("end");
  });

  test("that fees have left behind is signed again at its nonce, and counts once", async () => {
    let transaction = await sent();
    await chain.ask("hardhat_dropTransaction", [transaction.signings[0]!.hash]);
    await chain.ask("hardhat_mine", [`0x${BLOCKS_UNTIL_REPLACED.toString(16)}`]);
    await chain.ask("hardhat_setNextBlockBaseFeePerGas", [`0x${(5n * 10n ** 10n).toString(16)}`]);
    await chain.mine(1);
    const [replaced, after] = await step(transaction);
    expect(replaced.do).toBe("replace");
    transaction = after;
    await chain.mine(CONFIRMATIONS);
    const [end] = await step(transaction);
    expect(end).toMatchObject({ do: "end", hash: transaction.signings[1]!.hash });
    expect((await look(null)).nonce).toBe(transaction.nonce + 1);
  });

  test("whose nonce another one of the wallet has, for good, is given up", async () => {
    const [first, second] = [await signAnew(), await signAnew()];
    const other = await wallet.sign({
      ...{ ...call, data: "0x", nonce: second.nonce, gas: 30_000n, newestBlock: 1 },
      fees: first.signings[0]!.fees,
    });
    expect(await wallet.send(other.raw)).toBeNull();
    await chain.mine(1);
    expect((await step(first))[0].do).toBe("wait");
    await chain.mine(CONFIRMATIONS - 1);
    expect((await step(first))[0].do).toBe("give_up");
  });
});

test("a wallet without money for the gas is reported so, and a node that hangs is away", async () => {
  const transaction = await signAnew();
  await chain.ask("hardhat_setBalance", [wallet.address, "0x0"]);
  expect(await wallet.send(transaction.signings[0]!.raw)).toMatchObject({ refused: "no_funds" });
  const impatient = createEvmWallet(
    { chainId: CHAIN_ID, url: chain.url, key: `0x${"11".repeat(32)}` },
    CONFIRMATIONS,
    { timeoutMs: 200, retries: 0 },
  );
  chain.hang();
  try {
    expect(await impatient.look([])).toEqual({ away: "timeout" });
    expect(await impatient.send(transaction.signings[0]!.raw)).toEqual({ away: "timeout" });
  } finally {
    chain.goOn();
  }
  const elsewhere = createEvmWallet({ chainId: 1, url: chain.url, key: `0x${"11".repeat(32)}` }, 1);
  expect(await elsewhere.look([])).toEqual({ away: "wrong_chain" });
});
