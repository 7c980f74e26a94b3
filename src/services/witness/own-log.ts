import type { Hash } from "../../core/merkle.ts";
import type { NoteKey } from "../../core/signed-note.ts";

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
