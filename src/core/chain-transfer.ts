import { caip2Of } from "./x402/chains.ts";

/** Transfers of a token to and from a treasury, as a chain's logs have them (docs/money, "Deposits on a chain"). */

/**
 * What is done with a transfer. `found`: it came in, and is not judged yet. `unassigned`: nobody has registered its sender, so a
 * person says whose it is. `credited`: it is a deposit. `sent`: it left the treasury.
 */
export const TRANSFER_STATUSES = ["found", "unassigned", "credited", "sent"] as const;

/** A transfer to or from a treasury, as it is kept. */
export type ChainTransfer = TransferKey & {
  readonly id: string;
  readonly status: (typeof TRANSFER_STATUSES)[number];
  /** The other side, in lower case: who sent what came in, or got what left. */
  readonly counterparty: string;
  readonly amount: bigint;
  /** The block that has it, and its hash; null where a reorganisation has taken it out. */
  readonly block: number | null;
  readonly blockHash: string | null;
  /** Of what is credited; else null. */
  readonly depositId: string | null;
  readonly createdAt: number;
};

/**
 * Which transfer it is. The `ordinal` counts the treasury's transfers of the token in a transaction, in the order in which they
 * were first seen: the index of a log in its block changes where a reorganisation brings the transaction into another block.
 */
export type TransferKey = {
  /** The id of the treasury's watch. */
  readonly watchId: string;
  /** The transaction's: `0x` and 64 hex digits. */
  readonly hash: string;
  readonly ordinal: number;
};

export const transferKey = ({ watchId, hash, ordinal }: TransferKey): string =>
  `${watchId} ${hash} ${ordinal}`;

/** What a deposit is called that a transfer brought: chain, transaction and ordinal. */
export const referenceOf = (
  chainId: number,
  { hash, ordinal }: Pick<TransferKey, "hash" | "ordinal">,
): string => `${caip2Of(chainId)}:${hash}/${ordinal}`;

/** A transfer in a block. */
export type TransferInBlock = Pick<ChainTransfer, "hash" | "counterparty" | "amount"> & {
  readonly direction: "received" | "sent";
  readonly block: number;
  readonly blockHash: string;
};

/** Which logs a node is asked for. */
export type LogsQuestion = {
  /** The token's contract and the treasury's address. */
  readonly token: string;
  readonly address: string;
  /** The blocks after the first and up to the last, which is included. */
  readonly after: number;
  readonly until: number;
};

/** The first topic of `Transfer(address indexed from, address indexed to, uint256 value)` (ERC-20). */
export const TRANSFER_TOPIC = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/** An address as a topic: 32 bytes. */
export const topicOf = (address: string): string => `0x${address.slice(2).toLowerCase().padStart(64, "0")}`;

const HASH = /^0x[0-9a-f]{64}$/;
const QUANTITY = /^0x(?:0|[1-9a-f][0-9a-f]{0,12})$/;
const ADDRESS_TOPIC = /^0x0{24}([0-9a-f]{40})$/;

/** A log of a transfer with its place, by which a log that is answered twice is known. */
type PlacedLog = { readonly from: string; readonly to: string; readonly amount: bigint } & {
  readonly hash: string;
  readonly block: number;
  readonly blockHash: string;
  readonly index: number;
};

/**
 * The transfers in a node's logs, in the order of the chain; null where one is not what was asked for, or contradicts another: then
 * nothing of the answer is believed. Transfers of nothing, and of the treasury to itself, move no money and are left out.
 */
export function transfersIn(logs: unknown, question: LogsQuestion): readonly TransferInBlock[] | null {
  if (!Array.isArray(logs)) return null;
  const address = question.address.toLowerCase();
  const placed = new Map<string, PlacedLog>();
  const blockHashes = new Map<number, string>();
  for (const log of logs) {
    const read = logIn(log, question);
    if (read === null || (read.from !== address && read.to !== address)) return null;
    const place = `${read.block} ${read.index}`;
    const other = placed.get(place);
    if (other && !isSameLog(other, read)) return null;
    const blockHash = blockHashes.get(read.block) ?? read.blockHash;
    if (blockHash !== read.blockHash) return null;
    blockHashes.set(read.block, blockHash);
    placed.set(place, read);
  }
  return [...placed.values()]
    .filter(({ from, to, amount }) => amount > 0n && from !== to)
    .sort((one, other) => one.block - other.block || one.index - other.index)
    .map(({ from, to, hash, amount, block, blockHash }) => ({
      ...{ hash, amount, block, blockHash },
      ...(to === address
        ? { direction: "received", counterparty: from }
        : { direction: "sent", counterparty: to }),
    }));
}

const isSameLog = (one: PlacedLog, other: PlacedLog): boolean =>
  one.hash === other.hash && one.from === other.from && one.to === other.to && one.amount === other.amount;

/** Reads one log; null where it is not a transfer of the token in one of the blocks. */
function logIn(log: unknown, { token, after, until }: LogsQuestion): PlacedLog | null {
  if (typeof log !== "object" || log === null) return null;
  const { address, topics, data, blockNumber, blockHash, transactionHash, logIndex, removed } = log as Record<
    string,
    unknown
  >;
  const [topic, fromTopic, toTopic, more] = Array.isArray(topics) ? topics.map(lowerCase) : [];
  const from = ADDRESS_TOPIC.exec(fromTopic ?? "")?.[1];
  const to = ADDRESS_TOPIC.exec(toTopic ?? "")?.[1];
  const [block, index] = [quantityIn(blockNumber), quantityIn(logIndex)];
  const [inBlock, hash, amount] = [lowerCase(blockHash), lowerCase(transactionHash), lowerCase(data)];
  const isTransfer =
    lowerCase(address) === token.toLowerCase() &&
    topic === TRANSFER_TOPIC &&
    more === undefined &&
    removed !== true;
  if (!isTransfer || from === undefined || to === undefined || block === null || index === null) return null;
  if (block <= after || block > until) return null;
  if (![inBlock, hash, amount].every((text) => HASH.test(text))) return null;
  return {
    ...{ from: `0x${from}`, to: `0x${to}`, amount: BigInt(amount) },
    ...{ hash, block, blockHash: inBlock, index },
  };
}

const lowerCase = (value: unknown): string => (typeof value === "string" ? value.toLowerCase() : "");

const quantityIn = (value: unknown): number | null => {
  const text = lowerCase(value);
  return QUANTITY.test(text) ? Number(text) : null;
};

/** A known transfer before and after a scan, or (`before` is null) a new one. */
export type ChangedTransfer = {
  readonly before: ChainTransfer | null;
  readonly after: ChainTransfer;
};

/**
 * What a scan of blocks changes. What is in a block is matched to the known transfers of its transaction by what it moved, so that
 * the order and the place in the block do not matter. A known transfer of these blocks that was not found is in no block any more.
 *
 * @param known those in these blocks, and all others of the transactions that were found
 * @param made makes a new one, which is not in the ledger yet
 */
export function mergeTransfers(
  known: readonly ChainTransfer[],
  found: readonly TransferInBlock[],
  { after, until }: Pick<LogsQuestion, "after" | "until">,
  made: (found: TransferInBlock, ordinal: number) => ChainTransfer,
): readonly ChangedTransfer[] {
  const changed: ChangedTransfer[] = [];
  const matched = new Set<ChainTransfer>();
  const nextOrdinals = new Map<string, number>();
  for (const { hash, ordinal } of known)
    nextOrdinals.set(hash, Math.max(nextOrdinals.get(hash) ?? 0, ordinal + 1));
  const ofTransaction = Map.groupBy(
    known.toSorted((one, other) => one.ordinal - other.ordinal),
    ({ hash }) => hash,
  );
  for (const one of found) {
    const before = ofTransaction.get(one.hash)?.find((row) => !matched.has(row) && isSameTransfer(row, one));
    if (before === undefined) {
      const ordinal = nextOrdinals.get(one.hash) ?? 0;
      nextOrdinals.set(one.hash, ordinal + 1);
      changed.push({ before: null, after: made(one, ordinal) });
      continue;
    }
    matched.add(before);
    const { block, blockHash } = one;
    if (before.block !== block || before.blockHash !== blockHash)
      changed.push({ before, after: { ...before, block, blockHash } });
  }
  for (const row of known)
    if (!matched.has(row) && row.block !== null && row.block > after && row.block <= until)
      changed.push({ before: row, after: { ...row, block: null, blockHash: null } });
  return changed;
}

const isSameTransfer = (row: ChainTransfer, found: TransferInBlock): boolean =>
  row.amount === found.amount &&
  row.counterparty === found.counterparty &&
  (row.status === "sent") === (found.direction === "sent");
