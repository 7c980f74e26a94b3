import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createBackupChild } from "../../src/platform/backup-child.ts";
import { openTestLedger } from "../support/ledger.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { makeOrganisation } from "../support/organisations.ts";
import { openServerFolder, type ServerFolder } from "../support/server-process.ts";
import { createStage } from "../support/stage.ts";

const { afterEach, beforeEach, test } = onlyEmbedded(import.meta.path);

/** Backups beside a server that is a process of its own, and under load. */

const MAIN = resolve(import.meta.dir, "../../src/main.ts");
const PROCESS_TIMEOUT_MS = 60_000;

let folder: ServerFolder;
/** The folder for backups and for the ledgers that are restored from them. */
let beside: string;
beforeEach(async () => {
  folder = await openServerFolder();
  beside = `${folder.folder}/beside`;
  mkdirSync(beside);
});
afterEach(() => folder.close());

async function holdfast(...args: readonly string[]): Promise<Record<string, unknown>> {
  const child = Bun.spawn([process.execPath, MAIN, ...args, "--json"], {
    cwd: beside,
    env: {},
    stdout: "pipe",
    stderr: "pipe",
    timeout: PROCESS_TIMEOUT_MS,
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  expect([code, err]).toEqual([0, ""]);
  return JSON.parse(out);
}

test(
  "a backup under load has every open that was acknowledged before it began, and its ledger balances",
  async () => {
    const { client } = await folder.start("1");
    const home = await makeOrganisation(folder.ctx, client);
    const body = {
      amount: "1", // so little that the funds outlast the load on any machine
      payee: "acme",
      deadline: new Date(Date.now() + 3_600_000).toISOString(),
      spec: { clauses: [{ kind: "http.status", equals: 200 }] },
    };
    const acknowledged: string[] = [];
    const enough = Promise.withResolvers<void>();
    let stopped = false;
    const load = Array.from({ length: 8 }, async () => {
      while (!stopped) {
        const opened = await client.post("/v1/warrants", body, { as: home.live.as });
        expect(opened.status).toBe(201);
        acknowledged.push(opened.body.id);
        if (acknowledged.length >= 100) enough.resolve();
      }
    });
    await enough.promise;
    const before = [...acknowledged];
    const backup = await holdfast("backup", "a.backup", "--data", folder.folder);
    const after = acknowledged.length;
    stopped = true;
    await Promise.all(load);
    expect(after).toBeGreaterThan(before.length);
    expect(backup).toMatchObject({
      object: "backup",
      keys: ["master.key", "signing.key", "push.key"],
      audit: "ok",
    });

    const key = join(folder.folder, "backup.key");
    await holdfast("restore", "a.backup", "--data", "restored", "--key", key);
    expect(await holdfast("audit", "--data", "restored")).toMatchObject({ ok: true });
    const { reader, close } = openTestLedger(join(beside, "restored"));
    const lost = before.filter((id) => reader.warrants.find(id) === null);
    const live = { organisationId: home.id, mode: "live" } as const;
    const { balance } = reader.balances.list(live)[0]!;
    const { held = 0 } = reader.warrants.countsByState();
    close();
    expect(lost).toEqual([]);
    expect(held).toBeGreaterThanOrEqual(before.length);
    expect(balance).toEqual({
      available: 1_000_000n - BigInt(held),
      held: BigInt(held),
      paid: 0n,
    });
    expect(await folder.ctx.store.audit()).toEqual([]);
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "an encrypted backup holds nothing in the clear, and is restored with its passphrase and key alone",
  async () => {
    await createStage(folder.ctx);
    await folder.start("1");
    const passphrase = join(beside, "passphrase");
    writeFileSync(passphrase, "five words drawn at random\n");
    const made = await holdfast("backup", "a", "--passphrase-file", passphrase, "--data", folder.folder);
    expect(made).toMatchObject({ encrypted: true, keys: ["master.key", "signing.key", "push.key"] });
    const bytes = readFileSync(join(beside, "a"));
    // As the tools of age make it, so that a guess costs them a second and 256 MiB.
    expect(bytes.toString("latin1", 0, 60)).toMatch(
      /^age-encryption\.org\/v1\n-> scrypt [A-Za-z0-9+/]{22} 18\n/,
    );
    for (const text of ["SQLite format 3", "CREATE TABLE", "PRIVATE KEY"])
      expect([text, bytes.includes(text)]).toEqual([text, false]);
    const key = ["--key", join(folder.folder, "backup.key")];
    const restored = await holdfast(
      ...["restore", "a", "--passphrase-file", passphrase, "--data", "restored", ...key],
    );
    expect(restored).toMatchObject({
      verified: true,
      audit: "ok",
      keys: ["master.key", "signing.key", "push.key"],
    });
    expect(await holdfast("audit", "--data", "restored")).toMatchObject({ ok: true });
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "the nightly backup's child makes the file; where it cannot, the error has its message",
  async () => {
    const child = createBackupChild([process.execPath, MAIN], folder.folder);
    const file = join(beside, "holdfast-20300115T030000Z.backup");
    const other = join(beside, "holdfast-20300115T030000Z.disagrees.backup");
    expect(await child.make(file, other)).toBeNull();
    expect(readdirSync(beside)).toEqual(["holdfast-20300115T030000Z.backup"]);
    await expect(child.make(file, other)).rejects.toThrow("is there already");
    // A server that stops does not wait for a backup.
    const cutOff = child.make(join(beside, "late"), other);
    child.stop();
    await cutOff;
    await child.make(join(beside, "later"), other);
    expect([existsSync(join(beside, "late")), existsSync(join(beside, "later"))]).toEqual([false, false]);
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "where the audit of the nightly backup disagrees, its child makes the file that says so, and answers what disagrees",
  async () => {
    await createStage(folder.ctx);
    const raw = new Database(join(folder.folder, "holdfast.db"));
    raw.run(
      "INSERT INTO warrant_counts (scope, agent, state, count) SELECT position, 0, 'held', 7 FROM scopes",
    );
    const child = createBackupChild([process.execPath, MAIN], folder.folder);
    const [file, other] = [join(beside, "a.backup"), join(beside, "a.disagrees.backup")];
    const disagreement = await child.make(file, other);
    raw.run("DELETE FROM warrant_counts");
    raw.close();
    expect(disagreement).toStartWith(`The backup is made, in ${other}, and its audit disagrees: `);
    expect(readdirSync(beside)).toEqual(["a.disagrees.backup"]);
  },
  PROCESS_TIMEOUT_MS,
);

test("a backup that does not end is a failure, and so is the next one while it cannot be ended", async () => {
  const gate = join(beside, "gate");
  Bun.spawnSync(["mkfifo", gate]);
  const hangs = ["sh", "-c", `exec cat '${gate}'`];
  const child = createBackupChild(hangs, folder.folder, 200);
  const first = child.make(join(beside, "one"), join(beside, "other"));
  await expect(child.make(join(beside, "two"), join(beside, "other"))).rejects.toThrow(
    "the previous backup still hangs",
  );
  await expect(first).rejects.toThrow("the backup did not end within 0.2 s");
});
