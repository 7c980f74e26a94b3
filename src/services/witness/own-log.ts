import { logNameOf } from "../../core/log.ts";
import type { Hash } from "../../core/merkle.ts";
import type { NoteKey } from "../../core/signed-note.ts";
import type { Context } from "../context.ts";
import { logKeysOf } from "../log/anchor.ts";

/** This instance's log, as far as its witnesses concern it. */
export type OwnLog = {
  readonly origin: string;
  /** The keys that may have signed its checkpoints, those that were rotated out among them. */
  readonly keys: readonly NoteKey[];
  /** How many leaves it has. */
  readonly size: () => Promise<number>;
  /** The newest checkpoint, signed; null before the first. */
  readonly newest: () => Promise<{ readonly size: number; readonly note: string } | null>;
  readonly root: (size: number) => Promise<Hash>;
  readonly consistencyProof: (from: number, to: number) => Promise<readonly Hash[]>;
};

export async function ownLogOf({ store, tokens }: Context): Promise<OwnLog> {
  const { id } = await store.read(({ instance }) => instance.get());
  const origin = logNameOf(id);
  return {
    origin,
    keys: logKeysOf(origin, tokens),
    size: () => store.read(({ log }) => log.size()),
    newest: () => store.read(({ log }) => log.newestCheckpoint()),
    root: (size) => store.read(({ log }) => log.root(size)),
    consistencyProof: (from, to) => store.read(({ log }) => log.consistencyProof(from, to)),
  };
}
