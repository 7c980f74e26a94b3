import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createProgram, type Json, SOURCE } from "../crash/program.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";

const { afterEach, beforeEach, test } = onlyEmbedded(import.meta.path);

/** A server that cannot start says why, ends, and leaves nothing behind. And what a start repairs. */

const PROCESS_TIMEOUT_MS = 30_000;
/** A refused start takes about a second; one that hangs would never end. */
const END_MS = 10_000;

let root: string;
let data: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-start-"));
  data = join(root, "data");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const keyFiles = (): readonly string[] =>
  readdirSync(data)
    .filter((name) => name.endsWith(".key"))
    .sort();

/** Starts a server, which must be refused, and gives the message. */
async function refusal(settings: Readonly<Record<string, string>> = {}): Promise<string> {
  const child = Bun.spawn([...SOURCE, "serve", "--json"], {
    cwd: root,
    env: { HOLDFAST_DATA: "data", HOLDFAST_PORT: "0", ...settings },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: END_MS,
    killSignal: "SIGKILL",
  });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  expect([child.exitCode, child.signalCode, out]).toEqual([1, null, ""]);
  const { code, message } = JSON.parse(err).error;
  expect(code).toBe("validation_failed");
  return message;
}

/** Runs `use` with a program, and ends its processes afterwards. */
async function withProgram<Answer>(
  work: (program: ReturnType<typeof createProgram>) => Promise<Answer>,
  settings: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const program = createProgram(SOURCE, root, settings);
  try {
    return await work(program);
  } finally {
    await program.killAll();
  }
}

/** A folder that a server has been on. */
const serveOnce = (settings = {}): Promise<void> =>
  withProgram(async (program) => {
    const server = await program.serve();
    expect(await server.stop()).toBe(0);
  }, settings);

test(
  "a ledger of a newer version is left alone by every command, and by the server",
  async () => {
    await withProgram(async (program) => {
      const owner = ["--owner-email", "ada@example.com", "--owner-password", "correct horse battery"];
      await program.command("organisations", "create", "--name", "Acme", ...owner);
      const ledger = new Database(join(data, "holdfast.db"));
      ledger.run("UPDATE instances SET version = '9.1.0', oldest_writer = '9.0.0'");
      ledger.close();
    });
    const newer =
      "HOLDFAST_DATA: the ledger in it was written by Holdfast 9.1.0, and may be opened by 9.0.0 or newer";
    expect(await refusal()).toStartWith(newer);
    for (const line of [
      ["organisations", "list"],
      ["audit"],
      ["jobs", "run", "retention"],
      ["backup", "x"],
    ]) {
      const { exitCode, stderr } = Bun.spawnSync([...SOURCE, ...line], {
        cwd: root,
        env: { HOLDFAST_DATA: "data" },
      });
      expect([exitCode, stderr.toString()]).toEqual([1, expect.stringContaining(newer.replace(/^.*: /, ""))]);
    }
    expect(Bun.spawnSync([...SOURCE, "--version"]).exitCode).toBe(0);
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "a broken key file or ledger is named, the process ends, and the folder is free again",
  async () => {
    await serveOnce();
    const good = join(root, "good");
    const WRONG = [
      ["master.key", "short", "master.key in data is not a key: it must be 32 bytes in base64"],
      [
        "signing.key",
        "nope",
        "signing.key in data: the signing key must be Ed25519 keys in PEM, a private one first",
      ],
      [
        "push.key",
        "nope",
        "push.key in data is not a key: it must be a private key of P-256, 32 bytes in base64",
      ],
      ["backup.key", "nope", "backup.key in data is not a key: it must be 32 bytes in base64"],
      ["witness.key", "nope", "witness.key in data is not a key: it must be 32 bytes in base64"],
      ["holdfast.db", "neither empty nor a ledger".repeat(100), "the ledger in it, holdfast.db, is damaged"],
    ] as const;
    for (const [name, text, problem] of WRONG) {
      copyFileSync(join(data, name), good);
      writeFileSync(join(data, name), text);
      const message = await refusal();
      expect(message.slice(0, 15 + problem.length)).toBe(`HOLDFAST_DATA: ${problem}`);
      copyFileSync(good, join(data, name));
    }
    await serveOnce();
  },
  PROCESS_TIMEOUT_MS,
);

/** Mounts a disk of so many bytes on a folder. Answers whether this user may. */
const mountDisk = (folder: string, size: string): boolean =>
  Bun.spawnSync(["mount", "-t", "tmpfs", "-o", `size=${size}`, "tmpfs", folder]).success;
const unmount = (folder: string): void => void Bun.spawnSync(["umount", folder]);

function mayMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-disk-"));
  const may = mountDisk(folder, "64k");
  if (may) unmount(folder);
  rmSync(folder, { recursive: true });
  return may;
}

test.skipIf(!mayMount())(
  "a first start on a full disk says so, and ends",
  async () => {
    mkdirSync(data);
    mountDisk(data, "64k");
    try {
      expect(await refusal()).toMatch(
        /^HOLDFAST_DATA: must be a folder that can be written \(.*(is full|no space left)/,
      );
    } finally {
      unmount(data);
    }
  },
  PROCESS_TIMEOUT_MS,
);

/** An organisation with two endpoints, made beside a server. */
const makeEndpoints = (settings = {}, served = true): Promise<readonly string[]> =>
  withProgram(async (program) => {
    const owner = ["--owner-email", "ada@example.com", "--owner-password", "correct horse battery"];
    const server = served ? await program.serve() : null;
    const { organisation } = await program.command("organisations", "create", "--name", "Acme", ...owner);
    const account = ["--organisation", organisation.id, "--mode", "live"];
    const create = (): Promise<Json> =>
      program.command("webhooks", "create", ...account, "--url", "https://hook.example/");
    const made = [await create(), await create()];
    await server?.stop();
    return made.map(({ id }) => id);
  }, settings);

test(
  "a master key that is lost is not replaced in silence: the endpoints that need it are named, and no key is made",
  async () => {
    const endpoints = await makeEndpoints();
    rmSync(join(data, "master.key"));
    for (const name of ["signing", "push", "backup", "witness"]) rmSync(join(data, `${name}.key`));
    const lost = await refusal();
    expect(lost).toStartWith(
      "HOLDFAST_MASTER_KEY: is not set, and there is no master.key in data: nothing could be sent to",
    );
    for (const part of [...endpoints, "Put the old master.key back", "`holdfast webhooks disable`"])
      expect(lost).toContain(part);
    expect(keyFiles()).toEqual([]);
    // This command works without the key: it is how an operator gets out of this.
    await withProgram(async (program) => {
      for (const id of endpoints) await program.command("webhooks", "disable", id);
    });
    await serveOnce();
    expect(keyFiles()).toEqual(["backup.key", "master.key", "push.key", "signing.key", "witness.key"]);
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "another master key, given or in the folder, is refused as long as one endpoint was encrypted with the old one",
  async () => {
    const keys = [1, 2].map((byte) => Buffer.alloc(32, byte).toString("base64"));
    const [HOLDFAST_MASTER_KEY, other] = keys as [string, string];
    const [kept, disabled] = await makeEndpoints({ HOLDFAST_MASTER_KEY });
    await withProgram((program) => program.command("webhooks", "disable", disabled!));
    const given = await refusal({ HOLDFAST_MASTER_KEY: other });
    expect(given).toStartWith(
      "HOLDFAST_MASTER_KEY: is not the key that these webhook secrets were encrypted with",
    );
    expect([given.includes(kept!), given.includes(disabled!)]).toEqual([true, false]);
    for (const key of keys) expect(given).not.toContain(key);
    writeFileSync(join(data, "master.key"), other);
    expect(await refusal()).toContain("master.key in data is not the key that");
    await serveOnce({ HOLDFAST_MASTER_KEY });
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "before a server has run, the first secret makes the master key, and the server takes it",
  async () => {
    await makeEndpoints({}, false);
    expect(keyFiles()).toEqual(["master.key"]);
    const made = readFileSync(join(data, "master.key"), "utf8");
    await serveOnce();
    expect(readFileSync(join(data, "master.key"), "utf8")).toBe(made);
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "later commands make no keys: a secret is encrypted with the server's or not at all, and a backup says which it has",
  async () => {
    const HOLDFAST_MASTER_KEY = Buffer.alloc(32, 1).toString("base64");
    const [id] = await makeEndpoints({ HOLDFAST_MASTER_KEY });
    for (const name of ["signing", "push"]) rmSync(join(data, `${name}.key`));
    await withProgram(async (program) => {
      const { organisation_id } = await program
        .command("webhooks", "deliveries", id!)
        .then(() =>
          program.command("organisations", "list").then(({ data: [one] }) => ({ organisation_id: one.id })),
        );
      const again = program.command(
        ...["webhooks", "create", "--organisation", organisation_id, "--mode", "live"],
        ...["--url", "https://hook.example/"],
      );
      await expect(again).rejects.toThrow("HOLDFAST_MASTER_KEY: there is no master.key in data");
      await program.command("jobs", "run", "deadlines");
      expect(await program.command("backup", "a.backup")).toMatchObject({ keys: [] });
      expect(keyFiles()).toEqual(["backup.key", "witness.key"]);
    });
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "what a restore that was interrupted at its very end left is removed, and nothing else",
  async () => {
    await serveOnce();
    const staging = join(data, "restoring");
    mkdirSync(staging);
    linkSync(join(data, "holdfast.db"), join(staging, "holdfast.db"));
    await serveOnce();
    expect([existsSync(staging), existsSync(join(data, "holdfast.db"))]).toEqual([false, true]);
    mkdirSync(staging);
    writeFileSync(join(staging, "holdfast.db"), "another");
    await serveOnce();
    expect(readdirSync(staging)).toEqual(["holdfast.db"]);
  },
  PROCESS_TIMEOUT_MS,
);
