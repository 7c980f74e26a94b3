/**
 * Anchors of the log on a real chain, with its faults: the data is there for a stranger to read, `chain_ref` names its block once
 * it is confirmed, and nothing is brought twice. test/jobs/chain-anchors.test.ts has more cases, on a chain in memory.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { sha256Bytes } from "../../src/core/canonical.ts";
import { anchorAddressOf, anchorDataOf } from "../../src/core/chain-anchor.ts";
import { BLOCKS_UNTIL_REPLACED } from "../../src/core/chain-transaction.ts";
import { logNameOf } from "../../src/core/log.ts";
import { MINUTE_MS, SECOND_MS } from "../../src/core/time.ts";
import { type ChainAnchorsJob, chainAnchorsJob } from "../../src/jobs/chain-anchors.ts";
import { createEvmWallet, decodeTransaction, type EvmWallet } from "../../src/platform/evm-wallet.ts";
import { auditTransactions } from "../../src/services/chain/audit.ts";
import type { Context } from "../../src/services/context.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { readReceipt } from "../../src/services/warrants/read.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { openServerFolder, type ServerFolder } from "../support/server-process.ts";
import { createCaller, createStage, must, open, type Stage, settle, warrantIn } from "../support/stage.ts";
import { until } from "../support/until.ts";
import { chainWithBlocksByHand } from "./blocks-by-hand.ts";
import { CHAIN_ID, type Chain, NETWORK_V2 } from "./chain.ts";
import { startNode } from "./node.ts";

const CONFIRMATIONS = 3;
const FEE_MAX = 10n ** 12n;
const ETHER = 10n ** 18n;
const STEP_MS = 10 * SECOND_MS;
const SERVER_MS = 120 * SECOND_MS;

let chain: Chain;
let key: `0x${string}`;

chainWithBlocksByHand(async (started) => {
  chain = started;
  ({ key } = await chain.wallet(1n));
});

const pay = (address: string, wei: bigint) =>
  chain.ask("hardhat_setBalance", [address, `0x${wei.toString(16)}`]);

type InBlock = { readonly to: string; readonly input: string; readonly hash: string };

/** As a stranger reads it, who has nothing but the receipt: the texts that a block has for the log's address. */
async function textsIn(block: number, address: string): Promise<string[]> {
  const asked = [`0x${block.toString(16)}`, true];
  const { transactions } = (await chain.ask("eth_getBlockByNumber", asked)) as { transactions: InBlock[] };
  return transactions
    .filter(({ to }) => to === address)
    .map(({ input }) => Buffer.from(input.slice(2), "hex").toString("utf8"));
}

const logAddress = (ctx: Pick<TestContext, "reader">): string =>
  anchorAddressOf(logNameOf(ctx.reader.instance.get().id), sha256Bytes);

async function settled(ctx: Context, stage: Stage): Promise<string> {
  const { id } = warrantIn(await open(stage, await createCaller(stage)));
  must(await settle(stage, stage.operator, id, "refund"));
  await anchor(ctx);
  return id;
}

describe("an anchor", () => {
  let ctx: TestContext;
  let stage: Stage;
  let wallet: EvmWallet;
  let job: ChainAnchorsJob;
  let time: number;
  let reported: string[];
  beforeEach(async () => {
    ctx = createTestContext({ chain: { anchors: true, decode: decodeTransaction } });
    stage = await createStage(ctx);
    const impatient = { timeoutMs: SECOND_MS, retries: 0 };
    wallet = createEvmWallet({ chainId: CHAIN_ID, url: chain.url, key }, CONFIRMATIONS, impatient);
    await pay(wallet.address, ETHER);
    [time, reported] = [0, []];
    job = chainAnchorsJob(ctx, {
      sending: () => ({
        wallet,
        rules: { confirmations: CONFIRMATIONS, feeMax: FEE_MAX },
        onTakenOut: () => reported.push("taken out"),
      }),
      everyMs: MINUTE_MS,
      monotonicNow: () => time,
      random: () => 0,
      onTrouble: (trouble) => reported.push(trouble?.outcome ?? "goes on"),
      onGivenUp: () => reported.push("given up"),
    });
  });
  afterEach(async () => {
    expect(await auditTransactions(ctx)).toEqual([]);
    await ctx.close();
  });

  const step = async (waitMs = STEP_MS): Promise<void> => {
    time += waitMs;
    await job.run();
  };
  const anchorOf = async (id: string) => must(await readReceipt(ctx, id)).anchor;
  const nonceOnChain = async () =>
    Number(await chain.ask("eth_getTransactionCount", [wallet.address, "latest"]));
  const kept = () => ctx.reader.chainTransactions.after(null, 10);

  /** The block that the receipt names has the receipt's checkpoint. */
  async function expectOnChain(id: string): Promise<number> {
    const { chain_ref, checkpoint } = (await anchorOf(id))!;
    const [, block] = /^eip155:84532#([0-9]+)$/.exec(chain_ref ?? "") ?? [];
    expect(await textsIn(Number(block), logAddress(ctx))).toEqual([checkpoint]);
    return Number(block);
  }

  test("is in the block that the receipt names, at the log's address, once it is confirmed", async () => {
    const id = await settled(ctx, stage);
    await step();
    await chain.mine(CONFIRMATIONS - 1);
    await step();
    expect(await anchorOf(id)).toMatchObject({ chain_ref: null });
    await chain.mine(1);
    await step();
    await expectOnChain(id);
    expect(reported).toEqual([]);
  });

  test("that a reorganisation took out, before and after the confirmation, gets into another block", async () => {
    const before = await chain.ask("evm_snapshot", []);
    const id = await settled(ctx, stage);
    await step();
    await chain.mine(1);
    await step();
    // `evm_revert` uses its snapshot up.
    await chain.ask("evm_revert", [before]);
    const again = await chain.ask("evm_snapshot", []);
    await step();
    await chain.mine(CONFIRMATIONS);
    await step();
    const first = await expectOnChain(id);
    await chain.ask("evm_revert", [again]);
    await step(10 * MINUTE_MS);
    expect(reported).toEqual(["taken out"]);
    expect(await anchorOf(id)).toMatchObject({ chain_ref: null });
    await chain.ask("hardhat_dropTransaction", [kept()[0]!.signings[0]!.hash]);
    await chain.mine(4);
    await step();
    await chain.mine(CONFIRMATIONS);
    await step();
    expect(await expectOnChain(id)).toBe(first + 4);
    expect(kept()).toHaveLength(1);
  });

  test("that fees have left behind pays more, with its nonce, and is there once", async () => {
    const id = await settled(ctx, stage);
    const nonce = await nonceOnChain();
    await step();
    await chain.ask("hardhat_dropTransaction", [kept()[0]!.signings[0]!.hash]);
    await chain.mine(BLOCKS_UNTIL_REPLACED);
    await chain.ask("hardhat_setNextBlockBaseFeePerGas", [`0x${(5n * 10n ** 10n).toString(16)}`]);
    await chain.mine(1);
    await step();
    await chain.mine(CONFIRMATIONS);
    await step();
    await expectOnChain(id);
    const [transaction, ...others] = kept();
    expect([transaction!.signings.length, others.length]).toEqual([2, 0]);
    expect(transaction!.minedHash).toBe(transaction!.signings[1]!.hash);
    expect(await nonceOnChain()).toBe(nonce + 1);
  });

  test("waits for a node that hangs, and for money, says so once, and is then brought", async () => {
    const id = await settled(ctx, stage);
    chain.hang();
    try {
      await step();
      await step();
    } finally {
      chain.goOn();
    }
    expect(reported).toEqual(["away"]);
    await pay(wallet.address, 0n);
    await step(MINUTE_MS);
    await step(MINUTE_MS);
    expect(reported).toEqual(["away", "no_funds"]);
    await pay(wallet.address, ETHER);
    await step(MINUTE_MS);
    expect(reported).toEqual(["away", "no_funds", "goes on"]);
    await chain.mine(CONFIRMATIONS);
    await step();
    await expectOnChain(id);
  });

  test("whose nonce another program took is made anew", async () => {
    const id = await settled(ctx, stage);
    await step();
    const [{ nonce, signings }] = kept() as [ReturnType<typeof kept>[number]];
    await chain.ask("hardhat_dropTransaction", [signings[0]!.hash]);
    const { fees } = signings[0]!;
    const other = { to: wallet.address, data: "0x", nonce, gas: 30_000n, fees, newestBlock: 1 };
    expect(await wallet.send((await wallet.sign(other)).raw)).toBeNull();
    await chain.mine(CONFIRMATIONS);
    await step();
    expect(reported).toEqual(["given up"]);
    await step();
    await chain.mine(CONFIRMATIONS);
    await step();
    await expectOnChain(id);
    expect(kept().map(({ state }) => state)).toEqual(["given_up", "confirmed"]);
  });
});

describe("kill -9 of a server", () => {
  let folder: ServerFolder;
  beforeEach(async () => {
    folder = await openServerFolder();
  });
  afterEach(() => folder.close());

  for (const [when, held] of [
    ["once an anchor is signed and kept, before the node has it", "never"],
    ["once the node has it, before that is known", "forward, never"],
  ] as const)
    test(
      `${when}: it is on the chain once, and named`,
      async () => {
        const node = await startNode(chain);
        node.react(({ method }) => (method === "eth_sendRawTransaction" ? held : "forward"));
        try {
          const settings = {
            ...{ ANCHOR: "evm", ANCHOR_RPC: `${NETWORK_V2}=${node.url}`, ANCHOR_KEY: key },
            ANCHOR_CONFIRMATIONS: String(CONFIRMATIONS),
          };
          const server = await folder.start("10", settings);
          const { address } = createEvmWallet({ chainId: CHAIN_ID, url: chain.url, key }, 1);
          await pay(address, ETHER);
          const leaves = node.leavesOne();
          await settled(folder.ctx, await createStage(folder.ctx));
          await leaves;
          await server.end("SIGKILL");
          node.recover();
          const [transaction] = folder.ctx.reader.chainTransactions.after(null, 10);
          expect(transaction!.signings.map(({ raw }) => raw)).toEqual([node.sent[0]!]);
          if (held === "forward, never") await chain.mine(1);
          await folder.start("10", settings);
          const isOnce = async () => {
            await chain.mine(1);
            return folder.ctx.reader.chainTransactions.after(null, 10)[0]!.state === "confirmed";
          };
          await until("it is confirmed", isOnce, SERVER_MS / 2);
          const [confirmed, ...others] = folder.ctx.reader.chainTransactions.after(null, 10);
          expect(others).toEqual([]);
          const note = folder.ctx.reader.log.checkpointOf(1)!.note;
          expect(confirmed!.data).toBe(anchorDataOf(note));
          expect(new Set(node.sent).size).toBe(1);
          expect(await textsIn(confirmed!.block!, logAddress(folder.ctx))).toEqual([note]);
        } finally {
          await node.close();
        }
      },
      SERVER_MS,
    );
});
