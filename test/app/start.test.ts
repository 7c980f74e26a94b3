import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openForCommands } from "../../src/app/ledger.ts";
import { startServer } from "../../src/app.ts";
import { NO_SECRETS, readConfig } from "../../src/config.ts";
import { newPushKey } from "../../src/platform/web-push.ts";
import { createCommandLine } from "../support/command-line.ts";
import { must } from "../support/organisations.ts";
import { testSettings } from "../support/server.ts";
import { createTestLog } from "../support/test-log.ts";
import { until } from "../support/until.ts";

const TOKEN = "the-token-of-a-prometheus";

test("a server is ready before it starts its children, and starts them then", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-start-"));
  const spawn = spyOn(Bun, "spawn");
  const config = must(readConfig(testSettings(folder), {}));
  const { url, stop } = must(await startServer(config, { ...NO_SECRETS, metricsToken: TOKEN }));
  try {
    expect(spawn).not.toHaveBeenCalled();
    const evaluators = async () => {
      const response = await fetch(`${url}/metrics`, { headers: { Authorization: `Bearer ${TOKEN}` } });
      const lines = (await response.text()).split("\n");
      return lines.filter((line) => line.startsWith("holdfast_evaluator_children{"));
    };
    const wanted = ['{pool="verify"} 2', '{pool="bench"} 1'].map(
      (series) => `holdfast_evaluator_children${series}`,
    );
    await until("the children run", async () => Bun.deepEquals(await evaluators(), wanted));
  } finally {
    spawn.mockRestore();
    await stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a link that a command writes leads to the server that ran on its folder", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-start-"));
  try {
    const settings = { ...testSettings(folder), BASE_URL: "https://pay.example" };
    const { stop } = must(await startServer(must(readConfig(settings, {}))));
    await stop();
    const { ctx, close } = await openForCommands(must(readConfig({ DATA: folder }, {})));
    try {
      const cli = createCommandLine(ctx);
      const owner = ["--owner-email", "ada@example.com", "--owner-password", "correct horse"];
      const made = await cli.json("organisations", "create", "--name", "Acme", ...owner);
      const link = await cli.json("users", "reset-password", (made.owner as { id: string }).id);
      expect(link.url).toStartWith("https://pay.example/reset-password#");
    } finally {
      await close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

describe("the files of a server", () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "holdfast-files-"));
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const permissions = (path: string): string => (statSync(path).mode & 0o777).toString(8);
  /** Starts a server on the folder, stops it, and gives what it warned of. */
  async function warningsAt(folder: string, settings = {}): Promise<readonly Record<string, unknown>[]> {
    const written: string[] = [];
    const stderr = spyOn(process.stderr, "write").mockImplementation(
      (text) => written.push(String(text)) > 0,
    );
    try {
      const { stop } = must(
        await startServer(must(readConfig({ ...testSettings(folder), ...settings }, {}))),
      );
      await stop();
    } finally {
      stderr.mockRestore();
    }
    return written.map((line) => JSON.parse(line)).filter(({ level }) => level === "warning");
  }

  test("are its owner's alone, also where the umask forbids nothing", async () => {
    const folder = join(root, "data");
    const umask = process.umask(0);
    try {
      expect(await warningsAt(folder)).toEqual([]);
    } finally {
      process.umask(umask);
    }
    expect(permissions(folder)).toBe("700");
    for (const name of [
      "holdfast.db",
      "server.lock",
      "master.key",
      "signing.key",
      "push.key",
      "backup.key",
      "witness.key",
    ])
      expect([name, permissions(join(folder, name))]).toEqual([name, "600"]);
  });

  test("a lock that others may open is closed to them; a folder that they may look into is warned of, with what to type", async () => {
    const folder = join(root, "it's data");
    await warningsAt(folder);
    chmodSync(folder, 0o750);
    chmodSync(join(folder, "server.lock"), 0o644);
    expect(await warningsAt(folder)).toEqual([
      expect.objectContaining({
        message: `other users of this machine may look into the data folder: type chmod 700 '${root}/it'\\''s data'`,
        mode: "750",
      }),
    ]);
    expect(permissions(join(folder, "server.lock"))).toBe("600");
    expect(permissions(folder)).toBe("750");
  });

  test("the key of backups is made once, or comes from the environment; a file that holds none is refused", async () => {
    const [folder, given] = [join(root, "data"), join(root, "given")];
    await warningsAt(folder);
    const made = readFileSync(join(folder, "backup.key"), "utf8");
    await warningsAt(folder);
    expect(readFileSync(join(folder, "backup.key"), "utf8")).toBe(made);
    const config = must(readConfig(testSettings(given), {}));
    const { stop } = must(await startServer(config, { ...NO_SECRETS, backupKey: new Uint8Array(32) }));
    await stop();
    expect(() => statSync(join(given, "backup.key"))).toThrow("ENOENT");
    writeFileSync(join(given, "backup.key"), "short");
    expect(await startServer(config)).toEqual({
      refused: "validation_failed",
      message: `HOLDFAST_DATA: backup.key in ${given} is not a key: it must be 32 bytes in base64`,
    });
  });

  test("the key of web push is made once, or comes from the environment; one that is none is refused, and not shown", async () => {
    const [folder, given] = [join(root, "data"), join(root, "given")];
    await warningsAt(folder);
    const made = readFileSync(join(folder, "push.key"), "utf8");
    expect(Buffer.from(made, "base64")).toHaveLength(32);
    await warningsAt(folder);
    expect(readFileSync(join(folder, "push.key"), "utf8")).toBe(made);
    const config = must(readConfig(testSettings(given), {}));
    const pushKey = Buffer.from(newPushKey(), "base64");
    const { stop } = must(await startServer(config, { ...NO_SECRETS, pushKey }));
    await stop();
    expect(() => statSync(join(given, "push.key"))).toThrow("ENOENT");
    // No number of the curve.
    expect(await startServer(config, { ...NO_SECRETS, pushKey: Buffer.alloc(32, 255) })).toEqual({
      refused: "validation_failed",
      message: "HOLDFAST_PUSH_KEY: is no private key of P-256",
    });
  });

  test("the key that cosigns, of a witness that was restored with it, is warned of", async () => {
    const folder = join(root, "data");
    await warningsAt(folder);
    const raw = new Database(join(folder, "holdfast.db"));
    raw.run("UPDATE instances SET lost_witness_keys = json_array(witness_key), witness_key = NULL");
    raw.close();
    // It matters only to a witness.
    expect(await warningsAt(folder)).toEqual([]);
    const { verifierKey } = createTestLog("holdfast/ins_other", []);
    expect(await warningsAt(folder, { WITNESS_FOR: verifierKey })).toEqual([
      expect.objectContaining({
        message: expect.stringContaining("this witness was restored with its former key"),
      }),
    ]);
  });

  test("of a ledger that was restored unverified are warned of at each start", async () => {
    const folder = join(root, "data");
    await warningsAt(folder);
    const raw = new Database(join(folder, "holdfast.db"));
    raw.run("UPDATE instances SET restored_at = 1, acknowledged_at = 2, restored_unverified_at = 1");
    raw.close();
    expect(await warningsAt(folder)).toEqual([
      expect.objectContaining({
        message: "the ledger was restored from a backup that no key verified",
        restored_unverified_at: "1970-01-01T00:00:00.001Z",
      }),
    ]);
  });
});
