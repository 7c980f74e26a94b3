import assert from "node:assert/strict";
import { sha256Bytes } from "../../src/core/canonical.ts";
import { parseCheckpoint } from "../../src/core/checkpoint.ts";
import {
  consistencyProof,
  HASH_BYTES,
  leafHash,
  sameHash,
  verifyConsistency,
} from "../../src/core/merkle.ts";
import { type NoteKey, noteKey, parseSignedNote, verifyNote } from "../../src/core/signed-note.ts";
import { growingTree, hashesAt, nodesOf, TILE_WIDTH, type TileReader } from "../../src/core/tiles.ts";
import { verifyEd25519 } from "../../src/platform/note-keys.ts";
import { until } from "../support/until.ts";
import { openLeft } from "./checks.ts";
import { UNSHARED } from "./load.ts";
import type { Program } from "./program.ts";

/** The log as a monitor follows it: what it has shown must stay true after every crash. */

const LOG = "/.well-known/holdfast";
const LOOKED_AT_EVERY_MS = 10;
/** An entry in a bundle: its length in two bytes, and 32 bytes. */
const BUNDLED_BYTES = 2 + HASH_BYTES;

type Seen = { readonly size: number; readonly root: Uint8Array; readonly note: string };

export type Monitor = {
  /**
   * Looks at the newest checkpoint again and again, until the server is gone.
   *
   * @param ended ends it instead: until then nobody there may be able to answer
   */
  follow(url: string, ended?: AbortSignal): Promise<void>;
  /** Remembers a checkpoint that is shown elsewhere. */
  remember(note: string): void;
  /**
   * Checks the whole log: that every entry of the ledger is one leaf, that the tiles and the newest checkpoint are those of these
   * leaves, and that every checkpoint that was ever seen is consistent with it.
   */
  check(url: string, program: Program): Promise<void>;
  /** Resolves once the newest checkpoint is signed by the witness. */
  untilSigned(url: string): Promise<void>;
  /** Different checkpoints that were seen, and those of them that a witness had signed when it was seen. */
  readonly count: () => { readonly seen: number; readonly cosigned: number };
};

export function createMonitor(folder: string): Monitor {
  const seen = new Map<number, Seen>();
  const cosigned = new Set<number>();

  /** Remembers a checkpoint. A log has one root at each size, whatever happened between. */
  function remember(note: string): Seen {
    const parsed = parseSignedNote(note);
    const checkpoint = parsed && parseCheckpoint(parsed.text);
    assert.ok(parsed && checkpoint, `no checkpoint: ${note}`);
    const { size, root } = checkpoint;
    const known = seen.get(size);
    if (known) assert.ok(sameHash(known.root, root), `two checkpoints of ${size} leaves`);
    else seen.set(size, { size, root, note });
    if (parsed.lines.length > 1) cosigned.add(size);
    return { size, root, note };
  }

  async function look(url: string, mayBreak = false): Promise<Seen | null> {
    const response = await fetch(`${url}${LOG}/checkpoint`, UNSHARED);
    const note = await response.text();
    if (response.status === 404 || (mayBreak && response.status >= 500)) return null;
    assert.equal(response.status, 200, note);
    return remember(note);
  }

  return {
    remember,
    async follow(url, ended) {
      for (let goesOn = true; goesOn; await Bun.sleep(LOOKED_AT_EVERY_MS)) {
        const isThere = await look(url, ended !== undefined).then(
          () => true,
          (error: unknown) => {
            if (error instanceof assert.AssertionError) throw error;
            return false;
          },
        );
        goesOn = ended ? !ended.aborted : isThere;
      }
    },
    async check(url, program) {
      const recorded = columnOf(folder, "SELECT entry_hash FROM trace ORDER BY position");
      // The server appends to the log at the same time: no entry may get two leaves, and no leaf two entries.
      await Promise.all([program.command("jobs", "run", "anchor"), program.command("jobs", "run", "anchor")]);
      const newest = await look(url);
      assert.ok(newest, "there is no checkpoint");
      const leaves = await entriesOf(url, newest.size);
      assert.equal(new Set(leaves).size, leaves.length, "leaves that are in the log, each once");
      const missing = new Set(recorded).difference(new Set(leaves));
      assert.deepEqual([...missing], [], "entries that are not in the log");
      const readTile = await tilesOf(url, newest.size);
      checkTree(leaves, newest, readTile);
      const keys = await keysOf(url, newest.note);
      for (const one of seen.values()) {
        if (one.size > newest.size) assert.fail(`the log had ${one.size} leaves, and has ${newest.size}`);
        const from: number = one.size;
        const to: number = newest.size;
        const proof = consistencyProof({ from, to }, nodesOf(readTile));
        const isConsistent = verifyConsistency({ from, to, fromRoot: one.root, toRoot: newest.root, proof });
        assert.ok(isConsistent, `the checkpoint of ${from} leaves is not how that of ${to} began`);
        const note = parseSignedNote(one.note);
        const verified = note && (await verifyNote(note, keys, verifyEd25519));
        assert.ok(verified?.length, `the checkpoint of ${from} leaves is not signed`);
      }
    },
    async untilSigned(url) {
      await until("the witness has signed the newest checkpoint", async () => {
        const newest = await look(url);
        return newest !== null && cosigned.has(newest.size);
      });
    },
    count: () => ({ seen: seen.size, cosigned: cosigned.size }),
  };
}

/** What a kill left undone of the log's job: entries that no leaf has yet, and leaves that no checkpoint covers yet. */
export function leftOver(folder: string): { readonly entries: boolean; readonly leaves: boolean } {
  const [entries = 0, leaves = 0] = columnOf(
    folder,
    `SELECT count(*) FROM trace WHERE leaf_index IS NULL
     UNION ALL SELECT count(*) FROM trace WHERE leaf_index >= (SELECT coalesce(max(size), 0) FROM log_checkpoints)`,
  ).map(Number);
  return { entries: entries > 0, leaves: leaves > 0 };
}

function columnOf(folder: string, sql: string): readonly string[] {
  const database = openLeft(folder);
  try {
    return database
      .query(sql)
      .values()
      .map(([value]) => (value instanceof Uint8Array ? value.toHex() : String(value)));
  } finally {
    database.close();
  }
}

async function bytesAt(url: string): Promise<Uint8Array> {
  const response = await fetch(url, UNSHARED);
  assert.equal(response.status, 200, url);
  return new Uint8Array(await response.arrayBuffer());
}

/** The path of a tile of so many hashes. The crash run's logs have fewer than 256,000 leaves. */
function pathOf(level: number | "entries", index: number, width: number): string {
  const place = String(index).padStart(3, "0");
  return `${LOG}/tile/${level}/${place}${width === TILE_WIDTH ? "" : `.p/${width}`}`;
}

/** The widths of the tiles of one level. */
const widthsOf = (hashes: number): readonly number[] =>
  Array.from({ length: Math.ceil(hashes / TILE_WIDTH) }, (_, index) =>
    Math.min(TILE_WIDTH, hashes - index * TILE_WIDTH),
  );

/** The leaves, in hex. */
async function entriesOf(url: string, size: number): Promise<readonly string[]> {
  const bundles = await Promise.all(
    widthsOf(size).map((width, index) => bytesAt(url + pathOf("entries", index, width))),
  );
  return bundles.flatMap((bundle) =>
    Array.from({ length: bundle.length / BUNDLED_BYTES }, (_, at) =>
      bundle.subarray(at * BUNDLED_BYTES + 2, (at + 1) * BUNDLED_BYTES).toHex(),
    ),
  );
}

/** All tiles of the tree, as they are served. */
async function tilesOf(url: string, size: number): Promise<TileReader> {
  const tiles = new Map<string, Uint8Array>();
  for (let level = 0; hashesAt(level, size) > 0; level++) {
    await Promise.all(
      widthsOf(hashesAt(level, size)).map(async (width, index) => {
        tiles.set(`${level} ${index}`, await bytesAt(url + pathOf(level, index, width)));
      }),
    );
  }
  return (level, index) => tiles.get(`${level} ${index}`) ?? null;
}

/** The tree over the leaves has the tiles that were served, and the root that was signed. */
function checkTree(leaves: readonly string[], { size, root }: Seen, readTile: TileReader): void {
  assert.equal(leaves.length, size, "leaves, as many as the checkpoint says");
  const isSame = (level: number, index: number, hashes: Uint8Array) =>
    assert.ok(
      Buffer.compare(readTile(level, index) ?? new Uint8Array(), hashes) === 0,
      `tile ${index} of level ${level} is not that of its leaves`,
    );
  const tree = growingTree(
    0,
    () => null,
    ({ level, index, hashes }) => isSame(level, index, hashes),
  );
  for (const leaf of leaves) tree.append(leafHash(Uint8Array.fromHex(leaf)));
  for (const { level, index, hashes } of tree.changed()) isSame(level, index, hashes);
  assert.ok(sameHash(tree.root(), root), `the checkpoint of ${size} leaves has another root`);
}

/** The instance's keys, under the name of its log. */
async function keysOf(url: string, note: string): Promise<readonly NoteKey[]> {
  const [name = ""] = note.split("\n");
  const { keys } = JSON.parse(await (await fetch(`${url}/.well-known/jwks.json`)).text());
  return (keys as readonly { readonly x: string }[]).map(({ x }) =>
    noteKey(name, "ed25519", Uint8Array.fromBase64(x, { alphabet: "base64url" }), sha256Bytes),
  );
}
