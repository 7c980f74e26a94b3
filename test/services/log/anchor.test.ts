import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createPublicKey, verify as verifySignature } from "node:crypto";
import { parseCheckpoint } from "../../../src/core/checkpoint.ts";
import { leafHash, verifyInclusion } from "../../../src/core/merkle.ts";
import { parseSignedNote } from "../../../src/core/signed-note.ts";
import type { Context } from "../../../src/services/context.ts";
import { anchor } from "../../../src/services/log/anchor.ts";
import { readReceipt, readTrace } from "../../../src/services/warrants/read.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { createCaller, createStage, must, open, type Stage, settle, warrantIn } from "../../support/stage.ts";

/** The log: what the job `anchor` appends and signs (docs/witnesses, "The log"). */

let ctx: TestContext;
let stage: Stage;
beforeEach(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx);
});
afterEach(() => ctx.close());

const opened = async (count: number): Promise<string[]> => {
  const caller = await createCaller(stage);
  const answers = await Promise.all(Array.from({ length: count }, () => open(stage, caller)));
  return answers.map((answer) => warrantIn(answer).id);
};
const newest = () => {
  const checkpoint = ctx.reader.log.newestCheckpoint();
  if (!checkpoint) throw new Error("there is no checkpoint");
  return checkpoint;
};
const instanceId = () => ctx.reader.instance.get().id;

/** By the machine's own cryptography, with the key of the JWKS: none of the code that signed. */
function expectSigned(note: string): void {
  const [text, line = ""] = note.split("\n\n");
  const [, name, signature = ""] = line.trimEnd().split(" ");
  const { kty, crv, x } = ctx.tokens.jwks.keys[0]!;
  const key = createPublicKey({ key: { kty, crv, x }, format: "jwk" });
  expect(name).toBe(`holdfast/${instanceId()}`);
  const bytes = Buffer.from(signature, "base64").subarray(4);
  expect(verifySignature(null, Buffer.from(`${text}\n`), key, bytes)).toBe(true);
}

describe("anchoring", () => {
  test("appends every entry once, in the order of commits, and signs what is there", async () => {
    expect(ctx.reader.log.newestCheckpoint()).toBeNull();
    const warrants = await opened(3);
    must(await settle(stage, stage.operator, warrants[1]!, "refund"));
    expect(await anchor(ctx)).toBe(4);
    const hashes = ctx.reader.log.entryHashes(0, 10).map((hash) => hash.toHex());
    expect(hashes).toEqual(
      [0, 1, 2]
        .map((at) => ctx.reader.trace.entry(warrants[at]!, 0)!.entryHash)
        .concat(ctx.reader.trace.entry(warrants[1]!, 1)!.entryHash),
    );
    const { number, size, root, note } = newest();
    expect([number, size]).toEqual([1, 4]);
    const text = parseSignedNote(note)!.text;
    expect(parseCheckpoint(text)).toEqual({
      ...{ origin: `holdfast/${instanceId()}`, size, root, extensions: [] },
    });
    expectSigned(note);
  });

  test("signs nothing where the log did not grow", async () => {
    await anchor(ctx);
    expect(ctx.reader.log.newestCheckpoint()).toBeNull();
    await opened(1);
    await anchor(ctx);
    await anchor(ctx);
    expect(newest().number).toBe(1);
    await opened(1);
    await anchor(ctx);
    expect([newest().number, newest().size]).toEqual([2, 2]);
  });

  test("is refused to nobody else: two processes give no entry two leaves, and no leaf two entries", async () => {
    const other = createTestContext({ tokens: ctx.tokens }, ctx.folder);
    const warrants = await opened(450);
    const both: readonly Context[] = [ctx, other, ctx, other];
    const done = await Promise.all(both.map(anchor));
    expect(done.reduce((sum, count) => sum + count)).toBe(450);
    await anchor(ctx);
    const { size, root } = newest();
    expect([size, new Set(ctx.reader.log.entryHashes(0, 1_000).map((hash) => hash.toHex())).size]).toEqual([
      450, 450,
    ]);
    for (const id of warrants.slice(0, 5)) {
      const leafIndex = ctx.reader.log.placesOf(id)[0]!.leafIndex!;
      const leaf = leafHash(ctx.reader.log.entryHashes(leafIndex, 1)[0]!);
      const proof = ctx.reader.log.inclusionProof(leafIndex, size);
      expect(verifyInclusion({ index: leafIndex, size, leaf, proof, root })).toBe(true);
    }
    await other.store.close();
  });

  test("goes on where a run was cut off between its steps", async () => {
    await opened(5);
    expect(await ctx.store.extendLog(2)).toBe(2);
    expect(ctx.reader.log.newestCheckpoint()).toBeNull();
    expect(await anchor(ctx)).toBe(3);
    expect([newest().number, newest().size]).toEqual([1, 5]);
  });
});

test("entries on both sides of one that is a leaf become leaves in their order", async () => {
  const hashes = (await opened(5)).map((id) => ctx.reader.trace.entry(id, 0)!.entryHash);
  const hash = Uint8Array.fromHex(hashes[2]!);
  ctx.ledger.change("UPDATE trace SET leaf_index = 0 WHERE entry_hash = ?", hash);
  ctx.ledger.change("INSERT INTO log_tiles (rowid, level, tile, hashes) VALUES (1, 0, 0, ?)", leafHash(hash));
  expect(await anchor(ctx)).toBe(4);
  expect(ctx.reader.log.entryHashes(0, 10).map((hash) => hash.toHex())).toEqual(
    [2, 0, 1, 3, 4].map((at) => hashes[at]!),
  );
  expect(await ctx.store.audit()).toEqual([]);
});

describe("a log whose stored hashes were changed", () => {
  const TILE = "log_tiles WHERE level = 0 AND tile = 0";
  /** Writes 32 bytes into the tile by hand, past its guard, and gives those that were there. */
  function exchange(leaf: number, hash: Uint8Array): Uint8Array {
    const [tile] = ctx.ledger.rows(`SELECT hashes FROM ${TILE}`);
    const hashes = new Uint8Array(tile?.hashes as Uint8Array);
    const before = hashes.slice(leaf * 32, (leaf + 1) * 32);
    hashes.set(hash, leaf * 32);
    ctx.ledger.unguarded(() => {
      ctx.ledger.change("UPDATE log_tiles SET hashes = ? WHERE level = 0 AND tile = 0", hashes);
    });
    return before;
  }

  test("is not signed, and says so; it is signed again once they are right", async () => {
    await opened(3);
    await anchor(ctx);
    const signed = newest();
    for (const leaf of [0, 2]) {
      const right = exchange(leaf, new Uint8Array(32));
      await opened(1);
      await expect(anchor(ctx)).rejects.toThrow("does not continue its checkpoint 1 of 3 leaves");
      expect(newest()).toEqual(signed);
      exchange(leaf, right);
    }
    await anchor(ctx);
    expect([newest().number, newest().size]).toEqual([2, 5]);
  });
});

describe("what shows an entry's place in the log", () => {
  test("is null before a checkpoint covers it, then names the first that does, and stays", async () => {
    const [id = ""] = await opened(1);
    const chainRefs = async () =>
      must(await readTrace(ctx, stage.operator, id)).data.map((entry) => entry.chain_ref);
    expect(await chainRefs()).toEqual([null]);
    await ctx.store.extendLog(10);
    expect(await chainRefs()).toEqual([null]);
    await anchor(ctx);
    must(await settle(stage, stage.operator, id, "refund"));
    const first = `local:${instanceId()}#1`;
    expect(await chainRefs()).toEqual([first, null]);
    await anchor(ctx);
    await opened(3);
    await anchor(ctx);
    expect(newest().number).toBe(3);
    expect(await chainRefs()).toEqual([first, `local:${instanceId()}#2`]);
  });

  test("is proved by a receipt for its settling entry", async () => {
    const [id = "", ...more] = await opened(5);
    must(await settle(stage, stage.operator, id, "refund"));
    expect(must(await readReceipt(ctx, id)).anchor).toBeNull();
    await anchor(ctx);
    const { anchor: shown, trace } = must(await readReceipt(ctx, id));
    const { note, root } = newest();
    expect(shown).toEqual({
      leaf_index: 5,
      tree_size: 6,
      root: root.toHex(),
      proof: expect.any(Array),
      checkpoint: note,
      chain_ref: `local:${instanceId()}#1`,
    });
    expect(trace.map((entry) => entry.chain_ref)).toEqual([shown!.chain_ref, shown!.chain_ref]);
    const proved = (entry: number) =>
      verifyInclusion({
        index: shown!.leaf_index,
        size: shown!.tree_size,
        leaf: leafHash(Buffer.from(trace[entry]!.entry_hash, "hex")),
        proof: shown!.proof.map((node) => Uint8Array.fromHex(node)),
        root: Uint8Array.fromHex(shown!.root),
      });
    expect([proved(1), proved(0)]).toEqual([true, false]);
    must(await settle(stage, stage.operator, more[0]!, "refund"));
    await anchor(ctx);
    expect(must(await readReceipt(ctx, id)).anchor).toEqual(shown);
  });
});
