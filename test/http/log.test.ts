import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { parseCheckpoint } from "../../src/core/checkpoint.ts";
import { parseSignedNote } from "../../src/core/signed-note.ts";
import { createShell, type Shell } from "../../src/http/shell.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { signStatement } from "../../src/services/solvency/sign.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { noFault } from "../support/no-fault.ts";
import { must } from "../support/organisations.ts";
import { createCaller, createStage, open, type Stage, warrantIn } from "../support/stage.ts";

/** The log as monitors read it: C2SP tlog-checkpoint and tlog-tiles (docs/witnesses, "The log"). */

const ENTRIES = 300;
const PREFIX = "/.well-known/holdfast";

let ctx: TestContext;
let stage: Stage;
let shell: Shell;
beforeAll(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx);
  shell = createShell(ctx, {
    docsUrl: "http://localhost:8080/docs",
    rateLimits: { read: 1_000, write: 1_000, bench: 1_000 },
    trustedProxies: [],
    onFault: noFault,
  });
});
afterAll(() => ctx?.close());

const ask = (path: string, method = "GET") =>
  shell(new Request(`http://localhost:8080${PREFIX}/${path}`, { method }), () => "192.0.2.1");
const statusOf = async (path: string) => (await ask(path)).status;
const bytesAt = async (path: string): Promise<Buffer> => {
  const response = await ask(path);
  expect([path, response.status]).toEqual([path, 200]);
  return Buffer.from(await response.arrayBuffer());
};
const sha256 = (...parts: readonly (Uint8Array | string)[]) =>
  parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();

/** RFC 6962, from the leaves' hashes alone. */
function rootOver(hashes: readonly Buffer[]): Buffer {
  if (hashes.length === 1) return hashes[0]!;
  let half = 1;
  while (half * 2 < hashes.length) half *= 2;
  return sha256("\x01", rootOver(hashes.slice(0, half)), rootOver(hashes.slice(half)));
}
const hashesIn = (tile: Buffer) =>
  Array.from({ length: tile.length / 32 }, (_, at) => tile.subarray(at * 32, (at + 1) * 32));

test("before the first checkpoint there is nothing", async () => {
  expect(await statusOf("checkpoint")).toBe(404);
  expect(await statusOf("tile/0/000")).toBe(404);
});

test("a monitor computes the checkpoint's root from the entries, and from the tiles", async () => {
  const caller = await createCaller(stage);
  const opened = await Promise.all(Array.from({ length: ENTRIES }, () => open(stage, caller)));
  await anchor(ctx);
  const response = await ask("checkpoint");
  expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expect(response.headers.get("cache-control")).toBe("public, max-age=2");
  const note = await response.text();
  const { size, root } = parseCheckpoint(parseSignedNote(note)!.text)!;
  expect(size).toBe(ENTRIES);

  const bundles = [await bytesAt("tile/entries/000"), await bytesAt(`tile/entries/001.p/${ENTRIES - 256}`)];
  const entries = bundles.flatMap((bundle) =>
    Array.from({ length: bundle.length / 34 }, (_, at) => bundle.subarray(at * 34, (at + 1) * 34)),
  );
  expect(entries.every((entry) => entry.readUInt16BE(0) === 32)).toBe(true);
  const leaves = entries.map((entry) => sha256("\0", entry.subarray(2)));
  expect(rootOver(leaves).equals(root)).toBe(true);
  const first = ctx.reader.trace.entry(warrantIn(opened[0]!).id, 0)!.entryHash;
  expect(entries.map((entry) => entry.toString("hex", 2))).toContain(first);

  const tiles = [await bytesAt("tile/0/000"), await bytesAt(`tile/0/001.p/${ENTRIES - 256}`)];
  expect(tiles.flatMap(hashesIn).map(String)).toEqual(leaves.map(String));
  expect((await bytesAt("tile/1/000.p/1")).equals(rootOver(leaves.slice(0, 256)))).toBe(true);
  const { headers } = await ask("tile/0/000");
  expect(headers.get("content-type")).toBe("application/octet-stream");
  expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect((await ask("tile/0/000", "HEAD")).status).toBe(200);
  // An earlier checkpoint's tile is still there.
  expect((await bytesAt("tile/0/000.p/7")).equals(tiles[0]!.subarray(0, 7 * 32))).toBe(true);
});

test("only what a checkpoint covers is shown, under its one path", async () => {
  const caller = await createCaller(stage);
  await open(stage, caller);
  expect(await ctx.store.extendLog(10)).toBe(1);
  for (const path of [
    ...[
      "tile/0/001.p/45",
      "tile/entries/001.p/45",
      "tile/0/001",
      "tile/1/000",
      "tile/1/000.p/2",
      "tile/2/000.p/1",
    ],
    ...["tile/0/002", "tile/0/x001/000", "tile/64/000", "tile/00/000", "tile/-1/000", "tile/data/000"],
    ...[
      "tile/0/0",
      "tile/0/0000",
      "tile/0/x000/000",
      "tile/0/000.p/0",
      "tile/0/000.p/256",
      "tile/0/000.p/01",
    ],
    ...["tile/0/000.p/", "tile/0/000.p", "tile/0/000/001", "tile/0/x001/x000/x000/x000/000", "tile/0/%2e%2e"],
  ])
    expect([path, await statusOf(path)]).toEqual([path, 404]);
  await anchor(ctx);
  expect(await statusOf("tile/0/001.p/45")).toBe(200);
});

test("a statement of solvency is an entry of the log, and whoever asks gets it byte for byte", async () => {
  for (const path of ["solvency", "solvency/1"]) expect([path, await statusOf(path)]).toEqual([path, 404]);
  must(await signStatement(ctx));
  await open(stage, await createCaller(stage));
  must(await signStatement(ctx));
  const newest = await ask("solvency");
  expect(newest.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expect(newest.headers.get("cache-control")).toBe("public, max-age=2");
  const notes = [await bytesAt("solvency/1"), await bytesAt("solvency/2")];
  expect(await newest.text()).toBe(notes[1]!.toString());
  const { size, root } = parseCheckpoint(parseSignedNote(await (await ask("checkpoint")).text())!.text)!;
  const bundles = [await bytesAt("tile/entries/000"), await bytesAt(`tile/entries/001.p/${size - 256}`)];
  const entries = bundles.flatMap((bundle) =>
    Array.from({ length: bundle.length / 34 }, (_, at) => bundle.subarray(at * 34 + 2, (at + 1) * 34)),
  );
  expect(rootOver(entries.map((entry) => sha256("\0", entry))).equals(root)).toBe(true);
  const places = notes.map((note) => entries.findIndex((entry) => entry.equals(sha256(note))));
  expect(places).toEqual([size - 3, size - 1]);
  for (const path of ["solvency/0", "solvency/3", "solvency/01", "solvency/x", "solvency/-1", "solvency/1e0"])
    expect([path, await statusOf(path)]).toEqual([path, 404]);
});
