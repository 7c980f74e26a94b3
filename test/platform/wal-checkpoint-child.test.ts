import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { WAL_CHECKPOINT_ARGUMENT } from "../../src/app/children.ts";
import { walCheckpointJob } from "../../src/app/wal-checkpoint.ts";
import { DEFAULTS } from "../../src/config.ts";
import { createWalCheckpointChild } from "../../src/platform/wal-checkpoint-child.ts";
import type { SqliteStore } from "../../src/store/sqlite/store.ts";
import { createWalCheckpoint } from "../../src/store/sqlite/wal-checkpoint.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { createStage } from "../support/stage.ts";

const { afterEach, beforeEach, test } = onlyEmbedded(import.meta.path);

const SELF = [process.execPath, resolve(import.meta.dir, "../../src/main.ts")];
const FAILING = [process.execPath, "-e", "process.exit(3)", "--"];

let ctx: TestContext;
beforeEach(async () => {
  ctx = createTestContext();
  await createStage(ctx);
});
afterEach(() => ctx.close());

const LOG_BYTES_LONG = 4 * 1_024 * 1_024;

/** Makes the log longer than the job lets it grow. */
function writeMuch(): void {
  const other = new Database(join(ctx.folder, "holdfast.db"));
  other.run("PRAGMA wal_autocheckpoint = 0");
  other.run("CREATE TABLE filler (text TEXT)");
  other.run("INSERT INTO filler VALUES (?)", ["x".repeat(2 * LOG_BYTES_LONG)]);
  // The audit at the end finds a table that is not Holdfast's.
  other.run("DROP TABLE filler");
  other.close();
  expect(statSync(join(ctx.folder, "holdfast.db-wal")).size).toBeGreaterThan(LOG_BYTES_LONG);
}

/** How many pages are in the log. */
function logPages(): number {
  const other = new Database(join(ctx.folder, "holdfast.db"));
  const { log } = other.query("PRAGMA wal_checkpoint(PASSIVE)").get() as { log: number };
  other.close();
  return log;
}

test("the child copies the log, and the writer then starts it anew", async () => {
  writeMuch();
  const { job, stop } = walCheckpointJob(
    { ...DEFAULTS, data: ctx.folder },
    SELF,
    (ctx.store as SqliteStore).finishWalCheckpoint,
  );
  await job.run(ctx);
  await ctx.store.probe();
  expect(logPages()).toBeLessThan(10);
  await stop();
});

test("without a child the writer copies the log, and the job fails", async () => {
  writeMuch();
  const { job, stop } = walCheckpointJob(
    { ...DEFAULTS, data: ctx.folder },
    FAILING,
    (ctx.store as SqliteStore).finishWalCheckpoint,
  );
  expect(job.run(ctx)).rejects.toThrow("the process that copies the write-ahead log ended");
  await job.run(ctx).catch(() => {});
  await ctx.store.probe();
  expect(logPages()).toBeLessThan(10);
  await stop();
});

test("a short log is left to the child", async () => {
  let finished = 0;
  const { job, stop } = walCheckpointJob({ ...DEFAULTS, data: ctx.folder }, SELF, () => {
    finished += 1;
  });
  await job.run(ctx);
  expect(finished).toBe(0);
  await stop();
});

test("pages that a reader still needs stay in the log", async () => {
  const reader = new Database(join(ctx.folder, "holdfast.db"), { readonly: true });
  const checkpoint = createWalCheckpoint(ctx.folder);
  checkpoint();
  await ctx.store.probe();
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM warrants").get();
  const read = checkpoint();
  writeMuch();
  expect(checkpoint()).toBe(read);
  reader.run("COMMIT");
  reader.close();
  expect(checkpoint()).toBe(logPages());
});

test("a child that ended is replaced, and a stopped one does nothing", async () => {
  const child = createWalCheckpointChild([...FAILING]);
  for (let count = 0; count < 2; count++)
    expect(await child.checkpoint().catch((error: Error) => error.message)).toContain("ended");
  await child.stop();
  expect(await child.checkpoint()).toBe(0);
});

test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
  "the child leaves %s to its parent, and goes on",
  async (signal) => {
    let hear: (said: unknown) => void = () => {};
    const child = Bun.spawn([...SELF, WAL_CHECKPOINT_ARGUMENT, ctx.folder], {
      stdio: ["ignore", "ignore", "ignore"],
      ipc: (said) => hear(said),
      onExit: () => hear("gone"),
    });
    const asked = () =>
      new Promise((resolve) => {
        hear = resolve;
        child.send("checkpoint");
      });
    expect(await asked()).toEqual({ pages: expect.any(Number) });
    child.kill(signal);
    expect(await asked()).toEqual({ pages: expect.any(Number) });
    child.disconnect();
    expect(await child.exited).toBe(0);
  },
);
