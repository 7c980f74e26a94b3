import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { restoreFolder } from "../../src/app/backups.ts";
import { openForCommands } from "../../src/app/ledger.ts";
import { startServer } from "../../src/app.ts";
import { NO_SECRETS } from "../../src/config.ts";
import { parseKey } from "../../src/core/setting-values.ts";
import { KEY_FILES, keyFile } from "../../src/platform/key-files.ts";
import { type NoteSigner, noteSignerOf } from "../../src/platform/note-keys.ts";
import { newSigningKey } from "../../src/platform/tokens.ts";
import { newPushKey } from "../../src/platform/web-push.ts";
import { rememberServer } from "../../src/services/instance.ts";
import { appendLastLine, keyIdOf, takeLastLine } from "../../src/store/sqlite/last-line.ts";
import { refuseHalfRestored } from "../../src/store/sqlite/restore.ts";
import { openAllRows } from "../support/all-rows.ts";
import { commandsOn, configOf } from "../support/backups.ts";
import type { CommandLine } from "../support/command-line.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { buildGoodLedger } from "../support/good-ledger.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { createStage } from "../support/stage.ts";

const { afterAll, beforeAll, beforeEach, describe, test } = onlyEmbedded(import.meta.path);

/** `holdfast backup` and `holdfast restore`, on a ledger with every kind of movement of money. */

const KEY = Buffer.alloc(32, "k").toString("base64");

let ctx: TestContext;
let cli: CommandLine;
/** A good backup, with the key, that no test changes. */
let good: string;
let made: Record<string, unknown>;
/** A folder for each test. */
let work: string;
let root: string;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "holdfast-backup-"));
  ctx = createTestContext();
  await buildGoodLedger(ctx);
  keyFile(ctx.folder, KEY_FILES.master, () => KEY);
  keyFile(ctx.folder, KEY_FILES.signing, newSigningKey);
  keyFile(ctx.folder, KEY_FILES.push, newPushKey);
  cli = commandsOn(ctx, ctx.folder);
  good = join(root, "good.backup");
  made = await cli.json("backup", good, "--data", ctx.folder);
});
afterAll(async () => {
  await ctx.close();
  rmSync(root, { recursive: true, force: true });
});
let sequence = 0;
beforeEach(() => {
  work = join(root, `${++sequence}`);
  mkdirSync(work);
});

/** The key that authenticates the backups of the folder, which the first of them made. */
const backupKey = (): Uint8Array =>
  parseKey(readFileSync(join(ctx.folder, "backup.key"), "utf8").trim()) ?? new Uint8Array();
const permissions = (path: string): string => (statSync(path).mode & 0o777).toString(8);
const holdsKey = (path: string): boolean => readFileSync(path).includes(KEY);

/** Every row of a folder's ledger, and apart from them the instance, which a restore changes. */
function ledgerIn(folder: string) {
  const reader = openAllRows(folder);
  const { instances, ...rest } = reader.all();
  reader.close();
  return { instances, rest };
}

/** The command must be refused, with a message that starts like this, and print nothing on stdout. */
async function refuses(start: string, ...args: readonly string[]): Promise<void> {
  const { code, out, err } = await cli.run(...args, "--json");
  const { error } = JSON.parse(err);
  expect([code, out, error.message.slice(0, start.length)]).toEqual([1, "", start]);
  const isOfAudit = start.startsWith("The audit");
  expect(error.code).toBe(isOfAudit ? "audit_disagrees" : "validation_failed");
}

describe("backup", () => {
  test("says what it made, in one file that only its owner reads", () => {
    const { id } = ctx.reader.instance.get() ?? {};
    expect(made).toEqual({
      object: "backup",
      file: good,
      bytes: statSync(good).size,
      keys: ["master.key", "signing.key", "push.key"],
      encrypted: false,
      backup_key_id: keyIdOf(backupKey()),
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      instance_id: id,
      audit: "ok",
    });
    expect(permissions(good)).toBe("600");
    expect(holdsKey(good)).toBeTrue();
    expect(readdirSync(root).filter((name) => name.startsWith("good"))).toEqual(["good.backup"]);
  });

  test("says to people which keys are in it, and what is lost without them", async () => {
    const withKeys = await cli.run("backup", join(work, "a"), "--data", ctx.folder);
    expect(withKeys.out).toContain(
      "master.key is in it, not encrypted: whoever has the file can read the webhook",
    );
    expect(withKeys.out).toContain(
      "signing.key is in it, not encrypted: whoever has the file can sign vouchers, receipts and checkpoints",
    );
    expect(withKeys.out).toContain(
      "push.key is in it, not encrypted: whoever has the file can send push notices as this instance",
    );
    const without = await cli.run("backup", join(work, "b"), "--without-keys", "--data", ctx.folder);
    expect(without.out).toContain(
      "master.key is not in it. Keep that key, or the value of HOLDFAST_MASTER_KEY",
    );
    expect(without.out).toContain(
      "signing.key is not in it. Keep that key, or the value of HOLDFAST_SIGNING_KEY",
    );
    expect(holdsKey(join(work, "b"))).toBeFalse();
  });

  test("without one of the keys says which it holds, and a restore warns of the other", async () => {
    const [data, file, again] = [join(work, "data"), join(work, "b"), join(work, "again")];
    await cli.json("restore", good, "--data", data);
    rmSync(join(data, "master.key"));
    expect(await cli.json("backup", file, "--data", data)).toMatchObject({
      keys: ["signing.key", "push.key"],
    });
    const { out } = await cli.run("restore", file, "--data", again);
    expect(out).toContain("master.key was not in it: put it into the folder, or set HOLDFAST_MASTER_KEY");
    expect(out).not.toContain("signing.key was not in it");
    expect(readdirSync(again).sort()).toEqual(["backup.key", "holdfast.db", "push.key", "signing.key"]);
  });

  test("overwrites nothing", async () => {
    const file = join(work, "taken");
    writeFileSync(file, "dear");
    await refuses(`file: ${file} is there already`, "backup", file, "--data", ctx.folder);
    expect(readFileSync(file, "utf8")).toBe("dear");
    expect(readdirSync(work)).toEqual(["taken"]);
  });

  test("that cannot write says so, and leaves nothing", async () => {
    const file = join(work, "no", "such", "folder");
    await refuses(`file: ${file} cannot be written (ENOENT`, "backup", file, "--data", ctx.folder);
    expect(readdirSync(work)).toEqual([]);
  });

  describe("of a ledger that disagrees with itself", () => {
    let folder: string;
    beforeEach(async () => {
      folder = join(work, "data");
      await cli.json("restore", good, "--data", folder);
      change(join(folder, "holdfast.db"), "UPDATE warrant_counts SET count = count + 1");
    });
    const errorIn = (err: string) => JSON.parse(err).error;

    test("is made where it was asked for, and fails", async () => {
      const file = join(work, "bad");
      const { code, out, err } = await cli.run("backup", file, "--data", folder, "--json");
      expect([code, out, errorIn(err).code]).toEqual([1, "", "audit_disagrees"]);
      expect(errorIn(err).message).toStartWith(
        `The backup is made, in ${file}, and its audit disagrees: warrant counts of`,
      );
      expect(readdirSync(work).sort()).toEqual(["bad", "data"]);
      expect(permissions(file)).toBe("600");
    });

    test("says so to people in a sentence, with the next step", async () => {
      const { code, err } = await cli.run("backup", join(work, "bad"), "--data", folder);
      expect(code).toBe(1);
      expect(err).toStartWith("holdfast: The backup is made, in ");
      expect(err).toContain("`holdfast audit` lists them. `holdfast restore --despite-audit` takes it");
    });

    test("is made under the other name that was given, and a good one under the first", async () => {
      const files = ["backup", join(work, "file"), "--disagrees-as", join(work, "bad")];
      const { code, err } = await cli.run(...files, "--data", folder, "--json");
      expect([code, errorIn(err).message]).toEqual([
        1,
        expect.stringContaining(`in ${join(work, "bad")}, and its audit disagrees`),
      ]);
      expect(readdirSync(work).sort()).toEqual(["bad", "data"]);
      rmSync(join(work, "bad"));
      await cli.json(...files, "--data", ctx.folder);
      expect(readdirSync(work).sort()).toEqual(["data", "file"]);
    });

    test("overwrites neither of the two", async () => {
      const bad = join(work, "bad");
      writeFileSync(bad, "dear");
      const files = ["backup", join(work, "file"), "--disagrees-as", bad];
      await refuses(`file: ${bad} is there already`, ...files, "--data", ctx.folder);
      expect(readFileSync(bad, "utf8")).toBe("dear");
    });

    test("is restored despite its audit, and not without the flag that its refusal names", async () => {
      const [file, into] = [join(work, "bad"), join(work, "again")];
      await cli.run("backup", file, "--data", folder);
      const { code, err } = await cli.run("restore", file, "--data", into, "--json");
      expect([code, errorIn(err).code]).toEqual([1, "audit_disagrees"]);
      expect(errorIn(err).message).toContain("or this one as it is with --despite-audit");
      expect(existsSync(into) ? readdirSync(into) : []).toEqual([]);

      const restored = await cli.json("restore", file, "--despite-audit", "--data", into);
      expect(restored).toMatchObject({ audit: "disagrees", keys: ["master.key", "signing.key", "push.key"] });
      expect(restored.problems).toContainEqual(expect.stringContaining("warrant counts of"));
      expect(readdirSync(into).sort()).toEqual([
        "backup.key",
        "holdfast.db",
        "master.key",
        "push.key",
        "signing.key",
      ]);
      expect(ledgerIn(into).rest).toEqual(ledgerIn(folder).rest);
      const words = await cli.run("restore", file, "--despite-audit", "--data", join(work, "words"));
      expect(words.out).toContain("AND ITS AUDIT DISAGREES: warrant counts of");
    });
  });
});

describe("restore", () => {
  test("gives back every row, and the keys in files of their own, not in the ledger", async () => {
    const folder = join(work, "data");
    const restored = await cli.json("restore", good, "--data", folder);
    expect(restored).toEqual({
      object: "restore",
      file: good,
      data_folder: folder,
      keys: ["master.key", "signing.key", "push.key"],
      backed_up_at: made.created_at,
      restored_at: expect.stringMatching(/^\d{4}-.*Z$/),
      instance_id: made.instance_id,
      verified: true,
      backup_key_id: made.backup_key_id,
      audit: "ok",
      problems: [],
    });
    expect(readdirSync(folder).sort()).toEqual([
      "backup.key",
      "holdfast.db",
      "master.key",
      "push.key",
      "signing.key",
    ]);
    expect(readFileSync(join(folder, "master.key"), "utf8").trim()).toBe(KEY);
    expect([
      permissions(folder),
      ...readdirSync(folder).map((name) => permissions(join(folder, name))),
    ]).toEqual(["700", "600", "600", "600", "600", "600"]);
    expect(holdsKey(join(folder, "holdfast.db"))).toBeFalse();

    const [before, after] = [ledgerIn(ctx.folder), ledgerIn(folder)];
    expect(after.rest).toEqual(before.rest);
    expect(Object.keys(after.rest)).not.toContain("backup_keys");
    expect(after.instances).toEqual([
      {
        ...before.instances?.[0],
        restored_at: BigInt(Date.parse(String(restored.restored_at))),
        acknowledged_at: null,
      },
    ]);
    const beside = await openForCommands(configOf(folder));
    expect(await beside.ctx.store.audit()).toEqual([]);
    const totals = await beside.ctx.store.read((reader) => reader.balances.totals());
    expect(totals).toEqual(ctx.reader.balances.totals());
    await beside.close();
  });

  test("loses the key that cosigned before, since it may have signed more than the backup knows", async () => {
    const { key } = await ctx.witness.signer();
    await rememberServer(ctx);
    expect(ctx.reader.instance.get()).toMatchObject({ witnessKey: key.id, lostWitnessKeys: [] });
    const [file, folder] = [join(work, "a.backup"), join(work, "data")];
    await cli.run("backup", file, "--data", ctx.folder);
    await cli.run("restore", file, "--data", folder);
    expect(ledgerIn(folder).instances).toMatchObject([
      { witness_key: null, lost_witness_keys: JSON.stringify([key.id]) },
    ]);
    // A server that has it all the same does not make it good again.
    const beside = await openForCommands(configOf(folder));
    const as = async (signer: () => Promise<NoteSigner>) => {
      await rememberServer({ ...beside.ctx, witness: { ...beside.ctx.witness, signer } });
      return ledgerIn(folder).instances;
    };
    expect(await as(ctx.witness.signer)).toMatchObject([{ witness_key: null }]);
    const other = noteSignerOf(key.name, "cosignature", new Uint8Array(32).fill(1));
    expect(await as(async () => other)).toMatchObject([{ witness_key: other.key.id }]);
    await beside.close();
  });

  test("of a backup without keys makes no key, and says how to give them", async () => {
    const file = join(work, "bare.backup");
    await cli.run("backup", file, "--without-keys", "--data", ctx.folder);
    const folder = join(work, "data");
    const { code, out } = await cli.run("restore", file, "--data", folder);
    expect([code, readdirSync(folder).sort()]).toEqual([0, ["backup.key", "holdfast.db"]]);
    expect(out).toContain("master.key was not in it: put it into the folder, or set HOLDFAST_MASTER_KEY");
    expect(out).toContain("signing.key was not in it: put it into the folder, or set HOLDFAST_SIGNING_KEY");
    expect(out).toContain("vouchers and receipts that were signed before no longer verify");
    expect(out).toContain("push.key was not in it: put it into the folder, or set HOLDFAST_PUSH_KEY");
    expect(out).toContain("everybody adds their devices for push notices again");
  });

  test("takes a folder that exists and is empty, apart from the disk's own lost+found", async () => {
    const folder = join(work, "data");
    mkdirSync(join(folder, "lost+found"), { recursive: true });
    await cli.json("restore", good, "--data", folder);
    expect(readdirSync(folder).sort()).toEqual([
      "backup.key",
      "holdfast.db",
      "lost+found",
      "master.key",
      "push.key",
      "signing.key",
    ]);
  });

  test("works the same for a ledger that Litestream replicates", async () => {
    const [data, file] = [join(work, "data"), join(work, "b.backup")];
    await cli.json("restore", good, "--data", data);
    change(join(data, "holdfast.db"), "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)");
    await cli.json("backup", file, "--data", data);
    await cli.json("restore", file, "--data", join(work, "again"));
    expect(readdirSync(join(work, "again")).sort()).toEqual([
      "backup.key",
      "holdfast.db",
      "master.key",
      "push.key",
      "signing.key",
    ]);
  });

  for (const name of ["holdfast.db", "master.key", "server.lock", "notes.txt", ".hidden"]) {
    test(`refuses a folder with ${name} in it, and leaves that as it was`, async () => {
      writeFileSync(join(work, name), "dear");
      await refuses(`HOLDFAST_DATA: ${work} is not empty (${name}`, "restore", good, "--data", work);
      expect(readdirSync(work)).toEqual([name]);
      expect(readFileSync(join(work, name), "utf8")).toBe("dear");
    });
  }

  test("refuses a folder that is a file", async () => {
    const file = join(work, "file");
    writeFileSync(file, "dear");
    await refuses(`HOLDFAST_DATA: ${file} is not a folder`, "restore", good, "--data", file);
    expect(readFileSync(file, "utf8")).toBe("dear");
  });

  test("that was interrupted leaves a folder that a server, a command and a restore refuse", async () => {
    mkdirSync(join(work, "restoring"));
    copyFileSync(good, join(work, "restoring", "holdfast.db"));
    writeFileSync(join(work, "master.key"), KEY);
    const refused = { refused: "validation_failed", message: expect.stringContaining("was cut off") };
    expect(refuseHalfRestored(work)).toEqual(refused as never);
    expect(await startServer(configOf(work))).toEqual(refused as never);
    const input = { file: good, despiteAudit: false, unverified: false, key: null, passphrase: null };
    expect(await restoreFolder(configOf(work), NO_SECRETS, ctx.folder, input)).toEqual(refused as never);
    expect(readdirSync(work).sort()).toEqual(["master.key", "restoring"]);
  });
});

/** Changes a database as a hostile or careless person might. */
function change(file: string, ...statements: readonly string[]): void {
  const raw = new Database(file, { readwrite: true });
  raw.run("PRAGMA ignore_check_constraints = ON");
  for (const statement of statements) raw.run(statement);
  raw.close();
}

describe("restore refuses, with nothing in the folder,", () => {
  const NO_BACKUP = "file: it is not one that `holdfast backup` made";
  const NEWER = `file: it was made by another, newer version of Holdfast than this, which is ${packageJson.version};`;
  const WRITTEN_BY = "file: the ledger in it was written by Holdfast 9.1.0, and";
  const TABLES = "file: its tables or their guards are not those of a ledger";
  const changed =
    (...statements: readonly string[]) =>
    (file: string) => {
      copyFileSync(good, file);
      takeLastLine(file, [backupKey()]);
      change(file, ...statements);
      appendLastLine(file, backupKey());
    };
  const cut = (bytes: (size: number) => number) => (file: string) => {
    copyFileSync(good, file);
    truncateSync(file, bytes(statSync(good).size));
  };
  function flipped(file: string): void {
    const bytes = readFileSync(good);
    bytes[bytes.length - 200]! ^= 1;
    writeFileSync(file, bytes);
  }
  const newer = (file: string): void =>
    writeFileSync(
      file,
      readFileSync(good).toString("latin1").replace("\nholdfast backup 2 ", "\nholdfast backup 3 "),
      "latin1",
    );
  const FILES: readonly (readonly [what: string, start: string, make: (file: string) => void])[] = [
    ["a missing file", "file: there is no file", () => {}],
    ["a folder", "file: there is no file", (file) => mkdirSync(file)],
    ["an empty file", NO_BACKUP, (file) => writeFileSync(file, "")],
    ["another file", NO_BACKUP, (file) => writeFileSync(file, "SQLite format 3\0".repeat(1_000))],
    ["a flipped bit", "file: it is damaged", flipped],
    ["another database", NO_BACKUP, (file) => new Database(file).run("CREATE TABLE t (a)")],
    ["a ledger that is no backup", NO_BACKUP, (file) => copyFileSync(join(ctx.folder, "holdfast.db"), file)],
    ["a table of its own missing", TABLES, changed("DROP TABLE backup")],
    ["one cut after a page", NO_BACKUP, cut(() => 4_096)],
    ["one cut in the middle", NO_BACKUP, cut((size) => Math.floor(size / 2))],
    ["one that lacks its last page", NO_BACKUP, cut((size) => size - 4_096)],
    ["one that lacks its last byte", NO_BACKUP, cut((size) => size - 1)],
    [
      "a changed count",
      "The audit of this backup disagrees: warrant counts of",
      changed("UPDATE warrant_counts SET count = count + 1"),
    ],
    [
      "a changed deposit, its guard gone",
      TABLES,
      changed("DROP TRIGGER deposits_are_not_changed", "UPDATE deposits SET amount = amount + 1"),
    ],
    ["a newer form", NEWER, newer],
    [
      "newer tables",
      `${WRITTEN_BY} has changes that this, which is ${packageJson.version}, does not know`,
      changed(
        "INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('ff', 9999999999999)",
        "UPDATE instances SET version = '9.1.0', oldest_writer = '9.0.0'",
      ),
    ],
    [
      "the same tables, which only a newer version may write",
      `${WRITTEN_BY} may be opened by 9.0.0 or newer; this is ${packageJson.version}`,
      changed("UPDATE instances SET version = '9.1.0', oldest_writer = '9.0.0'"),
    ],
    ["a missing guard", TABLES, changed("DROP TRIGGER postings_are_not_changed")],
    [
      "a trigger too many",
      TABLES,
      changed("CREATE TRIGGER more AFTER UPDATE ON instances BEGIN DELETE FROM checks; END"),
    ],
    ["no instance", "file: it does not say of which instance", changed("DELETE FROM instances")],
    ["no keys table", TABLES, changed("DROP TABLE backup_keys")],
  ];
  for (const [what, start, make] of FILES) {
    test(what, async () => {
      const [file, folder] = [join(work, "file"), join(work, "data")];
      make(file);
      await refuses(start, "restore", file, "--data", folder);
      expect(existsSync(folder)).toBeFalse();
    });
  }

  test("what is wrong besides its audit, also with --despite-audit", async () => {
    for (const [what, start, make] of FILES.filter(([each]) => each !== "a changed count")) {
      const [file, folder] = [join(work, `file ${what}`), join(work, `data ${what}`)];
      make(file);
      await refuses(start, "restore", file, "--despite-audit", "--data", folder);
      expect(existsSync(folder)).toBeFalse();
    }
  });

  test("a key whose name is not that of a key file", async () => {
    const [file, folder] = [join(work, "file"), join(work, "data")];
    changed("UPDATE backup_keys SET name = '../escaped' WHERE name = 'master.key'")(file);
    const { code, err } = await cli.run("restore", file, "--data", folder, "--json");
    expect([code, JSON.parse(err).error.message]).toEqual([1, '"../escaped" is not the name of a key file']);
    expect([existsSync(folder), existsSync(join(work, "escaped"))]).toEqual([false, false]);
  });
});

test("acknowledge changes nothing where nothing was restored", async () => {
  const before = ctx.reader.instance.get();
  expect(await cli.json("restore", "acknowledge")).toMatchObject({
    object: "instance",
    restored_at: null,
    acknowledged_at: null,
  });
  expect(ctx.reader.instance.get()).toEqual(before);
});

test("declare marks a ledger that something else has brought back, once, until it is acknowledged", async () => {
  const { key } = await ctx.witness.signer();
  await rememberServer(ctx);
  const declared = await cli.json("restore", "declare");
  expect(declared).toMatchObject({
    object: "instance",
    restored_at: expect.any(String),
    acknowledged_at: null,
  });
  expect(ctx.reader.instance.get()).toMatchObject({ witnessKey: null, lostWitnessKeys: [key.id] });
  const { organisationId } = await createStage(ctx, { funds: "0" });
  const fund = ["balances", "fund", "--organisation", organisationId, "--mode", "live", "--amount", "1"];
  expect((await cli.run(...fund, "--json")).err).toContain("restore_unacknowledged");
  expect(await cli.json("restore", "declare")).toEqual(declared);

  expect(await cli.json("restore", "acknowledge")).toMatchObject({ acknowledged_at: expect.any(String) });
  expect((await cli.run(...fund)).code).toBe(0);
});
