/**
 * `bun run monitor`: the log of a running server, read by a monitor in Go (`monitor.go`) with that project's own packages for signed
 * notes and tiled logs. Debian has both: golang-go and golang-golang-x-mod-dev.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatCheckpoint } from "../../src/core/checkpoint.ts";
import { formatSignedNote, formatVerifierKey, signText } from "../../src/core/signed-note.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { signStatement } from "../../src/services/solvency/sign.ts";
import { ownLogOf } from "../../src/services/witness/own-log.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { createCaller, createStage, open } from "../support/stage.ts";

const TEST_MS = 120_000;
/** A full tile, and some of the next. */
const ENTRIES = 300;
const LATER = 250;
const LOG = "/.well-known/holdfast";

let folder: string;
let service: Service;
let key: string;
/** The checkpoint of the first entries, in a file. */
let older: string;
/** What somebody between the log and its monitor makes of an answer. */
let altered: (path: string, answer: Uint8Array) => Uint8Array = (_, answer) => answer;
const between = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch({ url }) {
    const { pathname } = new URL(url);
    const answer = await fetch(service.url + pathname);
    return new Response(altered(pathname, await answer.bytes()), { status: answer.status });
  },
});

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-monitor-"));
  const built = Bun.spawnSync(
    ["go", "build", "-o", join(folder, "monitor"), join(import.meta.dir, "monitor.go")],
    {
      env: {
        ...process.env,
        GO111MODULE: "off",
        CGO_ENABLED: "0", // Debian's Go comes without a C compiler
        GOPATH: "/usr/share/gocode",
        GOCACHE: join(folder, "cache"),
      },
    },
  );
  if (!built.success) throw new Error(built.stderr.toString());
  service = await startTestServer({ CHECKPOINT_MS: "3600000" });
  const stage = await createStage(service.ctx);
  const caller = await createCaller(stage);
  const opens = (count: number) => Promise.all(Array.from({ length: count }, () => open(stage, caller)));
  await opens(ENTRIES);
  await anchor(service.ctx);
  older = join(folder, "older");
  writeFileSync(older, await (await fetch(`${service.url}${LOG}/checkpoint`)).bytes());
  // One of them is a statement of solvency, which is an entry as all others are.
  await opens(100);
  await signStatement(service.ctx);
  await opens(LATER - 101);
  await anchor(service.ctx);
  const { keys } = await ownLogOf(service.ctx);
  key = formatVerifierKey(keys[0]!);
}, TEST_MS);
afterAll(async () => {
  await between.stop(true);
  await service?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Its exit code and what it says. */
async function said(...args: readonly string[]): Promise<string> {
  const child = Bun.spawn([join(folder, "monitor"), between.url.origin, ...args], {
    stdout: "pipe",
    stderr: "pipe",
  });
  const text = (await child.stdout.text()) + (await child.stderr.text());
  return `${await child.exited} ${text.trim()}`;
}

const flipped = (bytes: Uint8Array, at: number): Uint8Array => bytes.with(at, bytes[at]! ^ 1);

test("the log as it is agrees with all that it shows, and continues what it had shown", async () => {
  expect(await said(key, older)).toBe(`0 ${ENTRIES + LATER} entries agree`);
});

test.each([
  ["an entry", "/tile/entries/000", 40, /^1 the entries have the root/],
  ["an entry of the last bundle", "/tile/entries/002.p/38", 40, /^1 the entries have the root/],
  // Debian's version of the package does not look at every tile that has a parent. The program then does.
  ["a hash of a tile", "/tile/0/000", 7, /^1 .*(inconsistent|another leaf)/],
  ["a hash of the tile above", "/tile/1/000.p/2", 7, /^1 .*inconsistent/],
  ["the checkpoint's name", "/checkpoint", 0, /^1 .*(unverifiable|invalid|no verifiable)/],
  ["the checkpoint's size", "/checkpoint", 36, /^1 .*invalid/],
])("%s that was altered is seen", async (_, path, at, problem) => {
  altered = (asked, answer) => (asked === LOG + path ? flipped(answer, at) : answer);
  const answer = await said(key);
  altered = (_, same) => same;
  expect(answer).toMatch(problem);
});

test("a log that does not continue what its key had signed before is seen", async () => {
  const { origin, keys } = await ownLogOf(service.ctx);
  const text = formatCheckpoint({ origin, size: ENTRIES, root: new Uint8Array(32), extensions: [] });
  const line = await signText(text, keys[0]!, service.ctx.tokens.signBytes);
  const forked = join(folder, "forked");
  writeFileSync(forked, formatSignedNote({ text, lines: [line] }));
  expect(await said(key, forked)).toMatch(/^1 .*(invalid|inconsistent|proof)/);
});
