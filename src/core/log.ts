import type { Hash } from "./merkle.ts";

/** The instance's log: an append-only Merkle tree of all trace entries, and its checkpoints (docs/witnesses, "The log"). */

/** What the log's checkpoints and their key are called. */
export const logNameOf = (instanceId: string): string => `holdfast/${instanceId}`;

/** A checkpoint of the log. */
export type SignedCheckpoint = {
  readonly size: number;
  readonly root: Hash;
  /** The signed note. */
  readonly note: string;
};

/** A checkpoint as it is kept. They are numbered from 1. */
export type LogCheckpoint = SignedCheckpoint & { readonly number: number };

/** Where an entry of the trace is in the log. */
export type LogPlace = {
  /** Null until the log has it. */
  readonly leafIndex: number | null;
  /** The number of the first checkpoint that covers it; null until there is one. */
  readonly checkpoint: number | null;
};

/** The proof that an entry is in the log, at a checkpoint that covers it. */
export type Anchor = {
  readonly leafIndex: number;
  readonly size: number;
  readonly root: Hash;
  readonly proof: readonly Hash[];
  /** The checkpoint's signed note. */
  readonly note: string;
  /** Null where the log is anchored on a chain, and none has confirmed it so far. */
  readonly chainRef: string | null;
};

/** How an entry names the checkpoint that covers it. */
export const localChainRef = (instanceId: string, checkpoint: number): string =>
  `local:${instanceId}#${checkpoint}`;
