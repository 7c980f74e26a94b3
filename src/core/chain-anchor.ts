import type { TransactionKey } from "./chain-transaction.ts";
import { hexOf, type Sha256 } from "./signed-note.ts";
import { caip2Of, chainOfCaip2 } from "./x402/chains.ts";

/**
 * Anchors of the log on an EVM chain (docs/witnesses, "Anchors on a chain"): transactions whose data is a checkpoint of the log. Receipts
 * are verified with this in browsers too, so nothing here needs more than these have.
 */

/** A transaction that brings a checkpoint to a chain. */
export type LogAnchor = TransactionKey & {
  /** The number of the checkpoint. */
  readonly checkpoint: number;
  readonly size: number;
  /** Lower-case hex. */
  readonly root: string;
};

/** The block of a chain that has a checkpoint. */
export type ChainPlace = { readonly chainId: number; readonly block: number };

/** How an entry names the block that anchors it. */
export const evmChainRef = ({ chainId, block }: ChainPlace): string => `${caip2Of(chainId)}#${block}`;

/** The block that such a name names; null for every other text. */
export function parseEvmChainRef(text: string): ChainPlace | null {
  const [, network = "", digits = ""] = /^(eip155:[0-9]+)#(0|[1-9][0-9]{0,14})$/.exec(text) ?? [];
  const chainId = chainOfCaip2(network);
  return chainId === null ? null : { chainId, block: Number(digits) };
}

const ADDRESS_BYTES = 20;

/**
 * The address that all anchors of a log go to: the last 20 bytes of the SHA-256 of its name. Nobody has its key. Whoever knows the
 * log's name finds there every checkpoint that was ever brought to the chain under it.
 */
export const anchorAddressOf = (logName: string, sha256: Sha256): string =>
  `0x${hexOf(sha256(new TextEncoder().encode(logName)).slice(-ADDRESS_BYTES))}`;

/** A checkpoint as a transaction's data: the bytes of its note, with the log's own signature alone. */
export const anchorDataOf = (note: string): string => `0x${hexOf(new TextEncoder().encode(note))}`;
