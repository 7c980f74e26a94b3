import { randomUUIDv7 } from "bun";
import { sha256 } from "../../src/core/canonical.ts";
import { TRANSFER_TOPIC, topicOf } from "../../src/core/chain-transfer.ts";

/** A chain with a token, in memory, which answers JSON-RPC on loopback. A test makes its blocks, and what is wrong with it. */

export const TOKEN = `0x${"70".repeat(20)}`;

export type Transfer = {
  readonly hash: string;
  readonly from: string;
  readonly to: string;
  readonly amount: bigint;
};
type Block = { readonly number: number; readonly hash: string; readonly transfers: readonly Transfer[] };

/** A question to the node, and what it would answer. */
export type Asked = {
  readonly method: string;
  readonly params: readonly unknown[];
  readonly answer: () => unknown;
};

/** An error that the node answers. Every other one says that too much was asked for. */
export class NodeError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}
const TOO_MUCH = -32_005;

export type ModelToken = {
  readonly url: string;
  /** What the node answers instead; it throws an error's message. */
  intercept: (asked: Asked) => unknown;
  /** How much of a transfer arrives. */
  arrives: (amount: bigint) => bigint;
  /** The methods that were asked, in order. */
  readonly asked: string[];
  /** A transaction with these transfers, as it stands in no block yet. */
  transaction(...transfers: readonly Omit<Transfer, "hash">[]): readonly Transfer[];
  /** Makes a block, and `empty` ones after it. */
  mine(transfers?: readonly (readonly Transfer[])[], empty?: number): void;
  /** Takes out the newest blocks, and answers the transactions that were in them. */
  takeOut(blocks: number): (readonly Transfer[])[];
  newest(): number;
  /** What is in blocks, in their order. */
  transfers(): readonly (Transfer & { readonly block: number })[];
  balanceOf(holder: string): bigint;
  stop(): Promise<void>;
};

const hashOf = (): string => `0x${sha256(randomUUIDv7())}`;
const hex = (value: number | bigint): string => `0x${value.toString(16)}`;

/** The chain itself, without its node. */
function createBlocks(endowed: Readonly<Record<string, bigint>>, arrives: (amount: bigint) => bigint) {
  const newBlock = (number: number, transfers: readonly Transfer[] = []): Block => ({
    ...{ number, hash: hashOf(), transfers },
  });
  const blocks: Block[] = [newBlock(0)];
  return {
    at: (number: number): Block | undefined => blocks[number],
    last: (): Block => blocks[blocks.length - 1]!,
    between: (first: number, last: number) => blocks.slice(first, last + 1),
    push: (transfers: readonly Transfer[] = []) => void blocks.push(newBlock(blocks.length, transfers)),
    transfers: () =>
      blocks.flatMap(({ number, transfers }) => transfers.map((one) => ({ ...one, block: number }))),
    take: (count: number) => blocks.splice(blocks.length - count).flatMap(({ transfers }) => transfers),
    balanceAt(holder: string, number: number): bigint {
      let balance = endowed[holder.toLowerCase()] ?? 0n;
      for (const { from, to, amount } of blocks.slice(0, number + 1).flatMap(({ transfers }) => transfers)) {
        if (from === holder.toLowerCase()) balance -= amount;
        if (to === holder.toLowerCase()) balance += arrives(amount);
      }
      return balance;
    },
  };
}

const word = (amount: bigint): string => `0x${amount.toString(16).padStart(64, "0")}`;

const logsOf = ({ number, hash, transfers }: Block) =>
  transfers.map((transfer, index) => ({
    address: TOKEN,
    topics: [TRANSFER_TOPIC, topicOf(transfer.from), topicOf(transfer.to)],
    data: word(transfer.amount),
    blockNumber: hex(number),
    blockHash: hash,
    transactionHash: transfer.hash,
    transactionIndex: "0x0",
    logIndex: hex(index),
    removed: false,
  }));

/** The receipt of a transaction that is in a block; null where it is in none. */
function receiptOf(blocks: ReturnType<typeof createBlocks>, hash: unknown) {
  const found = blocks.transfers().find((one) => one.hash === hash);
  const block = found && blocks.at(found.block);
  if (!block) return null;
  const logs = logsOf(block).filter(({ transactionHash }) => transactionHash === hash);
  return {
    transactionHash: hash,
    blockNumber: hex(block.number),
    blockHash: block.hash,
    status: "0x1",
    logs,
  };
}

/** How many transactions of a holder are in the blocks up to this one. */
const countOf = (blocks: ReturnType<typeof createBlocks>, holder: string, until: number): number =>
  new Set(
    blocks
      .transfers()
      .filter(({ from, block }) => from === holder.toLowerCase() && block <= until)
      .map(({ hash }) => hash),
  ).size;

/** The question `decimals()`. */
export const DECIMALS = "0x313ce567";

type Params = readonly { readonly [name: string]: string }[];
type Topics = readonly (string | null)[];

function answerTo(blocks: ReturnType<typeof createBlocks>, chainId: number, method: string, params: Params) {
  const [first, second] = params as readonly unknown[];
  const numberOf = (tag: unknown) => (tag === "latest" ? blocks.last().number : Number(tag));
  switch (method) {
    case "eth_chainId":
      return hex(chainId);
    case "eth_getBlockByNumber": {
      const block = blocks.at(numberOf(first));
      return block
        ? { number: hex(block.number), hash: block.hash, timestamp: hex(block.number), transactions: [] }
        : null;
    }
    case "eth_call":
      if (params[0]!.data === DECIMALS) return word(6n);
      return word(blocks.balanceAt(`0x${params[0]!.data!.slice(-40)}`, numberOf(second)));
    case "eth_getTransactionCount":
      return hex(countOf(blocks, String(first), numberOf(second)));
    case "eth_getTransactionReceipt":
      return receiptOf(blocks, first);
    case "eth_getLogs": {
      const { topics, fromBlock, toBlock } = first as { topics: Topics; fromBlock: string; toBlock: string };
      return blocks
        .between(Number(fromBlock), Number(toBlock))
        .flatMap(logsOf)
        .filter((log) => topics.every((topic, at) => topic === null || log.topics[at] === topic));
    }
    default:
      throw new NodeError(-32_601, `the method ${method} does not exist`);
  }
}

type Question = { readonly id: number; readonly method: string; readonly params?: Params };

export function startModelToken(chainId: number, endowed: Readonly<Record<string, bigint>> = {}): ModelToken {
  const blocks = createBlocks(endowed, (amount) => model.arrives(amount));
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { id, method, params = [] } = (await request.json()) as Question;
      model.asked.push(method);
      try {
        const answer = () => answerTo(blocks, chainId, method, params);
        const result = await model.intercept({ method, params, answer });
        return result instanceof Response ? result : Response.json({ jsonrpc: "2.0", id, result });
      } catch (error) {
        const { message } = error as Error;
        const code = error instanceof NodeError ? error.code : TOO_MUCH;
        return Response.json({ jsonrpc: "2.0", id, error: { code, message } });
      }
    },
  });
  const model: ModelToken = {
    url: `http://127.0.0.1:${server.port}`,
    intercept: ({ answer }) => answer(),
    arrives: (amount) => amount,
    asked: [],
    transaction(...transfers) {
      const hash = hashOf();
      return transfers.map(({ from, to, amount }) => ({
        ...{ hash, from: from.toLowerCase(), to: to.toLowerCase(), amount },
      }));
    },
    mine(transfers = [], empty = 0) {
      blocks.push(transfers.flat());
      for (let made = 0; made < empty; made++) blocks.push();
    },
    takeOut: (count) => [...Map.groupBy(blocks.take(count), ({ hash }) => hash).values()],
    newest: () => blocks.last().number,
    transfers: blocks.transfers,
    balanceOf: (holder) => blocks.balanceAt(holder, blocks.last().number),
    stop: () => server.stop(true),
  };
  return model;
}
