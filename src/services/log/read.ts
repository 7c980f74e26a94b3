import { type Anchor, type LogCheckpoint, type LogPlace, localChainRef } from "../../core/log.ts";
import { TILE_WIDTH, widthOf } from "../../core/tiles.ts";
import type { Reader } from "../../store/reader.ts";
import type { Context } from "../context.ts";

/** What is published of the log (README, "Trace"): it answers as C2SP tlog-tiles says. */

/** The newest checkpoint, as a note with the signatures of the log and of the witnesses; null before the first. */
export const readCheckpoint = (ctx: Context): Promise<string | null> =>
  ctx.store.read(async (reader) => {
    const newest = await reader.log.newestCheckpoint();
    return newest && cosignedNote(reader, newest);
  });

/** The note of a checkpoint, with the signature lines of its witnesses after the log's own. */
const cosignedNote = async ({ cosignatures }: Reader, { size, note }: LogCheckpoint): Promise<string> =>
  note + (await cosignatures.of(size)).map(({ line }) => line).join("");

export type AskedTile = {
  /** `entries` for the leaves themselves. */
  readonly level: number | "entries";
  readonly index: number;
  /** Of a tile that is not full: how many of its hashes. */
  readonly width: number;
};

/**
 * The bytes of a tile; null where the newest checkpoint does not cover it. So nothing is shown that was not signed.
 */
export const readTile = (ctx: Context, { level, index, width }: AskedTile): Promise<Uint8Array | null> =>
  ctx.store.read(async ({ log }) => {
    const size = (await log.newestCheckpoint())?.size ?? 0;
    const isEntries = level === "entries";
    if (widthOf({ level: isEntries ? 0 : level, index }, size) < width) return null;
    if (!isEntries) return log.tile(level, index, width);
    return bundleOf(await log.entryHashes(index * TILE_WIDTH, width));
  });

/** Entries one after the other, each after its length in two bytes. */
function bundleOf(entries: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(
    entries.flatMap((entry) => [Uint8Array.of(entry.length >> 8, entry.length & 0xff), entry]),
  );
}

/**
 * Where the entries of a warrant's trace are in the log, and how each of them is named there: in their order, null while no
 * checkpoint covers it.
 */
export async function readPlaces({ instance, log }: Reader, warrantId: string) {
  const { id } = await instance.get();
  const places = await log.placesOf(warrantId);
  const chainRefs = places.map(({ checkpoint }) =>
    checkpoint === null ? null : localChainRef(id, checkpoint),
  );
  return { places, chainRefs };
}

/**
 * The proof that an entry is in the log, at the first checkpoint that covers it and that a witness signed; else at the first one.
 * Null while no checkpoint covers it.
 */
export async function readAnchor(reader: Reader, place: LogPlace): Promise<Anchor | null> {
  const { instance, log, cosignatures } = reader;
  const { leafIndex, checkpoint: number } = place;
  if (leafIndex === null || number === null) return null;
  const cosignedSize = await cosignatures.firstSize(leafIndex + 1);
  const checkpoint = await log.checkpointOf(cosignedSize ?? leafIndex + 1);
  if (checkpoint === null) return null;
  const { size, root } = checkpoint;
  return {
    leafIndex,
    size,
    root,
    proof: await log.inclusionProof(leafIndex, size),
    note: await cosignedNote(reader, checkpoint),
    chainRef: localChainRef((await instance.get()).id, number),
  };
}
