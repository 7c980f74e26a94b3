import { evmChainRef } from "../../core/chain-anchor.ts";
import { type Anchor, type LogCheckpoint, type LogPlace, localChainRef } from "../../core/log.ts";
import { TILE_WIDTH, widthOf } from "../../core/tiles.ts";
import type { Reader } from "../../store/reader.ts";
import type { Context } from "../context.ts";

/** What is published of the log (docs/witnesses, "The log"): it answers as C2SP tlog-tiles says. */

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
  ctx.store.read(
    async ({ log }) => {
      const size = (await log.newestCheckpoint())?.size ?? 0;
      const isEntries = level === "entries";
      if (widthOf({ level: isEntries ? 0 : level, index }, size) < width) return null;
      if (!isEntries) return log.tile(level, index, width);
      return bundleOf(await log.entryHashes(index * TILE_WIDTH, width));
    },
    // It never changes.
    { suffices: (tile) => tile !== null },
  );

/** Entries one after the other, each after its length in two bytes. */
function bundleOf(entries: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(
    entries.flatMap((entry) => [Uint8Array.of(entry.length >> 8, entry.length & 0xff), entry]),
  );
}

/** Where the entries of a warrant's trace are in the log, and the `chain_ref` of each, in their order. */
export async function readPlaces({ chain }: Context, reader: Reader, warrantId: string) {
  const places = await reader.log.placesOf(warrantId);
  const chainRefs: (string | null)[] = [];
  for (const place of places) chainRefs.push(await chainRefOf(chain, reader, place));
  return { places, chainRefs };
}

/**
 * The block of the first anchor that a chain has confirmed and that covers the entry. Where the log is anchored on a chain, it is
 * null until then; else it is the first checkpoint that covers the entry, and null until there is one.
 */
async function chainRefOf(
  { anchors }: Context["chain"],
  { instance, logAnchors }: Reader,
  { leafIndex, checkpoint }: LogPlace,
): Promise<string | null> {
  if (leafIndex === null || checkpoint === null) return null;
  const anchored = await logAnchors.firstConfirmed(leafIndex + 1);
  if (anchored) return evmChainRef(anchored);
  return anchors ? null : localChainRef((await instance.get()).id, checkpoint);
}

/**
 * The proof that an entry is in the log, at the first checkpoint that covers it and that a chain has confirmed, so that `chainRef`
 * names a block with this very checkpoint; else at the first that all configured witnesses signed, since a reader may ask for any of
 * them; else at one that most of them signed; else at the first one. Null while no checkpoint covers it.
 */
export async function readAnchor(
  { chain, witness: { witnesses } }: Context,
  reader: Reader,
  place: LogPlace,
): Promise<Anchor | null> {
  const { log, logAnchors, cosignatures } = reader;
  const { leafIndex } = place;
  if (leafIndex === null || place.checkpoint === null) return null;
  const least = leafIndex + 1;
  const anchored = await logAnchors.firstConfirmed(least);
  const names = witnesses.map(({ key }) => key.name);
  const best = anchored?.size ?? (await cosignatures.bestSize(least, names)) ?? least;
  const checkpoint = await log.checkpointOf(best);
  if (checkpoint === null) return null;
  const { size, root } = checkpoint;
  return {
    leafIndex,
    size,
    root,
    proof: await log.inclusionProof(leafIndex, size),
    note: await cosignedNote(reader, checkpoint),
    chainRef: await chainRefOf(chain, reader, place),
  };
}
