import { expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WAL_CHECKPOINT_ARGUMENT } from "../../src/app/children.ts";
import { startServer } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import { must } from "../support/organisations.ts";
import { testSettings } from "../support/server.ts";

/** Stands for a disk that hangs: a child in a system call on it does not end before that returns, whatever the signal. */
test("a stop does not wait for ever for the child that copies the log", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-stuck-"));
  const spawn = Bun.spawn as (command: string[], options: object) => Bun.Subprocess;
  const isStarted = Promise.withResolvers<void>();
  const spied = spyOn(Bun, "spawn").mockImplementation(((command: string[], options: object) => {
    if (!command.includes(WAL_CHECKPOINT_ARGUMENT)) return spawn(command, options);
    const child = spawn(command, { ...options, onExit: () => {} });
    isStarted.resolve();
    Object.defineProperty(child, "exited", { value: new Promise(() => {}) });
    return child;
  }) as never);
  const server = must(await startServer(must(readConfig(testSettings(folder), {}))));
  try {
    await isStarted.promise;
    const startedAt = performance.now();
    const stopped = await Promise.race([server.stop().then(() => true), Bun.sleep(20_000).then(() => false)]);
    expect(stopped).toBe(true);
    // The stop has waited for the child. Without this check the test would prove nothing.
    expect(performance.now() - startedAt).toBeGreaterThan(9_000);
  } finally {
    spied.mockRestore();
    rmSync(folder, { recursive: true, force: true });
  }
}, 30_000);
