/**
 * A transaction that an EVM chain is to take once, whatever happens to this process, to the node or to the fees meanwhile. It
 * keeps its nonce from the first signing on, and a chain takes one transaction of a nonce. So it may be signed again with a
 * higher fee, and sent as often as one likes.
 */
export type ChainTransaction = {
  readonly nonce: number;
  /** Every signing, oldest first. Each is on disk before it is sent, since the chain may take any of them. */
  readonly signings: readonly Signing[];
};

/** What a transaction does: it calls an address with data, and carries no value. Both are `0x` and hex digits. */
export type ChainCall = { readonly to: string; readonly data: string };

/** `open` until a confirmed block has it (`confirmed`), or, as the node says, another transaction of its nonce (`given_up`). */
export const TRANSACTION_STATES = ["open", "confirmed", "given_up"] as const;

/** Which transaction it is: a wallet has one of each nonce on a chain. */
export type TransactionKey = { readonly chainId: number; readonly wallet: string; readonly nonce: number };

export type WalletOfChain = Omit<TransactionKey, "nonce">;

/** A transaction of the instance's own wallet as it is kept. */
export type WalletTransaction = ChainTransaction &
  ChainCall &
  TransactionKey & {
    /** The most gas that it may take. All signings have the same. */
    readonly gas: bigint;
    readonly state: (typeof TRANSACTION_STATES)[number];
    /** The number of the block that has it, and the hash of the signing that is there; null unless it is confirmed. */
    readonly block: number | null;
    readonly minedHash: string | null;
    readonly createdAt: number;
  };

export const transactionKey = ({ chainId, wallet, nonce }: TransactionKey): string =>
  `${chainId} ${wallet} ${nonce}`;

/** What `transactionKey` made a text of. */
export function transactionKeyIn(text: string): TransactionKey {
  const [chainId, wallet = "", nonce] = text.split(" ");
  return { chainId: Number(chainId), wallet, nonce: Number(nonce) };
}

export type Signing = {
  /** What the chain calls it: `0x` and 64 hex digits. */
  readonly hash: string;
  /** The signed transaction as nodes take it, `0x` and hex digits. */
  readonly raw: string;
  readonly fees: Fees;
  /** The newest block when it was signed. Waits are counted in blocks: the clock may be wrong. */
  readonly signedAtBlock: number;
};

/** In wei for each unit of gas (EIP-1559). */
export type Fees = {
  /** The most that is paid in all. */
  readonly max: bigint;
  /** What the block's maker gets of it. */
  readonly priority: bigint;
};

/** What a node says of a wallet and its transaction. */
export type ChainView = {
  /** The number of the newest block. */
  readonly newestBlock: number;
  /** How many transactions of the wallet are in blocks, up to the newest one. It is the next nonce. */
  readonly nonce: number;
  /** The same up to the newest confirmed block. It is read before `mined`. */
  readonly confirmedNonce: number;
  /** The signing that is in a block; null where none is, and where no confirmed block has the transaction's nonce. */
  readonly mined: { readonly hash: string; readonly block: number } | null;
  /** What it costs to be in one of the next blocks. */
  readonly fees: Fees;
};

/** What a node says of a wallet, and of several of its transactions in their order. */
export type WalletView = Omit<ChainView, "mined"> & { readonly mined: readonly ChainView["mined"][] };

/** What is to be done with a transaction. */
export type ChainStep =
  /** It is in a block that enough others follow. */
  | { readonly do: "end"; readonly block: number; readonly hash: string }
  /** It is in a block, and too few others follow so far. A reorganisation may still take it out. */
  | { readonly do: "wait" }
  /** It is in no block: the newest signing is sent, once more if need be. `isCapped`: it waits for lower fees. */
  | { readonly do: "send"; readonly raw: string; readonly isCapped: boolean }
  /** After `BLOCKS_UNTIL_REPLACED` it is still in no block, and its fees are too low: it is signed again with these. */
  | { readonly do: "replace"; readonly fees: Fees }
  /** The node says that another transaction of the wallet has its nonce, and is confirmed. It may have lost the receipt of this one. */
  | { readonly do: "give_up" };

export type ChainRules = {
  /** How many blocks there must be, the block itself and those after it, before it is confirmed. */
  readonly confirmations: number;
  /** The most that is paid for each unit of gas, in wei. */
  readonly feeMax: bigint;
};

/** A transaction that is in none of this many blocks, and whose fees have become too low, is signed again with higher ones. */
export const BLOCKS_UNTIL_REPLACED = 5;

/** No reorganisation goes back so far, and nodes forget in which block an old transaction is. */
const BLOCKS_UNTIL_FINAL = 10_000;

/** Whether a confirmed transaction is still in its block. A reorganisation may take out what many blocks followed. */
export const standsInBlock = (
  { block }: Pick<WalletTransaction, "block">,
  { mined, newestBlock }: ChainView,
): boolean => mined?.block === block || newestBlock - (block ?? newestBlock) >= BLOCKS_UNTIL_FINAL;

/** Decides what to do next with a transaction that was signed. */
export function nextStep(
  { nonce, signings }: ChainTransaction,
  view: ChainView,
  { confirmations, feeMax }: ChainRules,
): ChainStep {
  if (view.mined !== null) {
    const { block, hash } = view.mined;
    const isConfirmed = view.newestBlock - block + 1 >= confirmations;
    return isConfirmed ? { do: "end", block, hash } : { do: "wait" };
  }
  if (view.confirmedNonce > nonce) return { do: "give_up" };
  // A block has its nonce, and too few others follow.
  if (view.nonce > nonce) return { do: "wait" };
  const newest = signings.at(-1);
  if (newest === undefined) throw new Error(`the transaction ${nonce} was never signed`);
  const isLate = view.newestBlock - newest.signedAtBlock >= BLOCKS_UNTIL_REPLACED;
  // A node that loses what it takes would else drive the fees up to the most that may be paid.
  const paysEnough = newest.fees.max >= view.fees.max && newest.fees.priority >= view.fees.priority;
  if (!isLate || paysEnough) return { do: "send", raw: newest.raw, isCapped: false };
  const fees = raised(newest.fees, view.fees, feeMax);
  return fees === null ? { do: "send", raw: newest.raw, isCapped: true } : { do: "replace", fees };
}

/** The fees of a first signing, never above the most that may be paid. */
export const firstFees = ({ max, priority }: Fees, feeMax: bigint): Fees => ({
  max: min(max, feeMax),
  priority: min(priority, feeMax),
});

/**
 * Nodes take a signing in the place of another one only where it pays a tenth more of both (geth's `pricebump`). This is an
 * eighth, so that rounding does not matter.
 */
const bumped = (fee: bigint): bigint => fee + fee / 8n + 1n;

/** The fees of the next signing; null where they would be above the most that may be paid. */
function raised(last: Fees, wanted: Fees, feeMax: bigint): Fees | null {
  const [leastMax, leastPriority] = [bumped(last.max), bumped(last.priority)];
  if (leastMax > feeMax || leastPriority > feeMax) return null;
  const max = min(larger(leastMax, wanted.max), feeMax);
  return { max, priority: min(larger(leastPriority, wanted.priority), max) };
}

const min = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b);
