import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
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
import { openForCommands } from "../../src/app/ledger.ts";
import { parseKey } from "../../src/core/setting-values.ts";
import { KEY_FILES, keyFile } from "../../src/platform/key-files.ts";
import { auditFolder } from "../../src/store/sqlite/audit.ts";
import { BACKUP_TABLES } from "../../src/store/sqlite/backup.ts";
import { appendLastLine, keyIdOf, takeLastLine } from "../../src/store/sqlite/last-line.ts";
import { openAllRows } from "../support/all-rows.ts";
import { commandsOn, configOf } from "../support/backups.ts";
import { type CommandLine, createCommandLine } from "../support/command-line.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { buildGoodLedger } from "../support/good-ledger.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";

const { afterAll, beforeAll, beforeEach, describe, test } = onlyEmbedded(import.meta.path);

/** Who made a backup, and what a restore does where it cannot know (docs/operating, "Restore"). */

const MASTER_KEY = Buffer.alloc(32, "k").toString("base64");
const OTHER_KEY = Buffer.alloc(32, "o");

let ctx: TestContext;
/** The command line of a machine that has the key nowhere but in the folder that is restored into. */
let elsewhere: CommandLine;
let root: string;
/** A good backup that no test changes, and the file with its key. */
let good: string;
let key: string;
/** A folder for each test. */
let work: string;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "holdfast-verified-"));
  ctx = createTestContext();
  await buildGoodLedger(ctx);
  keyFile(ctx.folder, KEY_FILES.master, () => MASTER_KEY);
  elsewhere = commandsOn(ctx);
  good = join(root, "good.backup");
  key = join(ctx.folder, "backup.key");
  await elsewhere.json("backup", good, "--data", ctx.folder);
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

const backupKey = (): Uint8Array => parseKey(readFileSync(key, "utf8").trim()) ?? new Uint8Array();
const restored = (...args: readonly string[]) =>
  elsewhere.json("restore", ...args, "--data", join(work, "data"));

/** A restore that must be refused with a message that has these parts, and leave no ledger. */
async function refuses(file: string, flags: readonly string[], ...parts: readonly string[]): Promise<void> {
  const data = join(work, "data");
  const { code, out, err } = await elsewhere.run("restore", file, ...flags, "--data", data, "--json");
  const { error } = JSON.parse(err);
  expect([code, out, error.code]).toEqual([1, "", "validation_failed"]);
  for (const part of parts) expect(error.message).toContain(part);
  expect(existsSync(data) ? readdirSync(data) : []).toEqual([]);
}

/** A copy of the good backup as somebody else made it of its content. */
function remade(change: (file: string) => void): string {
  const file = join(work, "file");
  copyFileSync(good, file);
  takeLastLine(file, [backupKey()]);
  change(file);
  return file;
}

const sha256 = (file: string): string => createHash("sha256").update(readFileSync(file)).digest("hex");
/** The form of backups before they were authenticated. */
const oldForm = (file: string): void => appendFileSync(file, `\nholdfast backup 1 ${sha256(file)}\n`);

describe("the key of backups", () => {
  test("is made by the first backup where no server has run, for its owner alone, and is in no backup", async () => {
    expect((statSync(key).mode & 0o777).toString(8)).toBe("600");
    const text = readFileSync(key, "utf8").trim();
    for (const part of [text, Buffer.from(backupKey()).toString("latin1")])
      expect(readFileSync(good).includes(part, 0, "latin1")).toBeFalse();
    const raw = new Database(good, { readonly: true });
    expect(raw.query("SELECT name FROM backup_keys").all()).toEqual([{ name: "master.key" }]);
    raw.close();
  });

  test("is not made by a backup once a server has run: that server may have another one", async () => {
    const folder = join(work, "served");
    await elsewhere.json("restore", good, "--key", key, "--data", folder);
    rmSync(join(folder, "backup.key"));
    const raw = new Database(join(folder, "holdfast.db"));
    raw.run("UPDATE instances SET base_url = 'https://pay.example'");
    raw.close();
    const { code, err } = await elsewhere.run("backup", join(work, "b"), "--data", folder, "--json");
    expect([code, JSON.parse(err).error.message]).toEqual([
      1,
      expect.stringContaining("HOLDFAST_BACKUP_KEY: there is no backup.key in"),
    ]);
    const given = commandsOn(ctx, "missing", { backupKey: OTHER_KEY });
    expect(await given.json("backup", join(work, "b"), "--data", folder)).toMatchObject({
      backup_key_id: keyIdOf(OTHER_KEY),
    });
    expect(readdirSync(folder)).not.toContain("backup.key");
  });

  test("is named to people, with what a restore elsewhere needs", async () => {
    const { out } = await elsewhere.run("backup", join(work, "b"), "--data", ctx.folder);
    expect(out).toContain(
      `A restore elsewhere needs the key that authenticates it (${keyIdOf(backupKey())})`,
    );
  });

  test("that is no key is refused by name", async () => {
    const wrong = join(work, "wrong.key");
    writeFileSync(wrong, "c2hvcnQ=");
    await refuses(
      good,
      ["--key", wrong],
      "--key: must be a file such as backup.key, with 32 bytes in base64",
    );
    await refuses(good, ["--key", join(work, "none")], "--key: cannot read");
    mkdirSync(join(work, "folder"));
    writeFileSync(join(work, "folder", "backup.key"), "short");
    const { err } = await elsewhere.run("restore", good, "--data", join(work, "folder"));
    expect(err).toContain("backup.key in");
    expect(err).toContain("is not a key");
  });
});

describe("restore on another machine", () => {
  test("is refused without the key, with what would help", () =>
    refuses(
      good,
      [],
      `--key: the backup was made with the key ${keyIdOf(backupKey())}`,
      "that key is not here",
      "--key FILE",
      "--unverified",
    ));

  test("is refused with another key", async () => {
    const other = join(work, "other.key");
    writeFileSync(other, OTHER_KEY.toString("base64"));
    await refuses(good, ["--key", other], "the key that is here is another", "--key FILE", "--unverified");
  });

  test("takes the key that is given, keeps it in the folder, and marks nothing", async () => {
    chmodSync(good, 0o644);
    expect(await restored(good, "--key", key)).toMatchObject({
      verified: true,
      backup_key_id: keyIdOf(backupKey()),
    });
    expect(readFileSync(join(work, "data", "backup.key"), "utf8")).toBe(readFileSync(key, "utf8"));
    expect((statSync(join(work, "data", "holdfast.db")).mode & 0o777).toString(8)).toBe("600");
    const reader = openAllRows(join(work, "data"));
    expect(reader.all().instances?.[0]).toMatchObject({ restored_unverified_at: null });
    reader.close();
  });

  test("takes the key that is in the folder already, and that of the environment, of which it keeps no file", async () => {
    mkdirSync(join(work, "data"));
    copyFileSync(key, join(work, "data", "backup.key"));
    expect(await restored(good)).toMatchObject({ verified: true });
    const given = commandsOn(ctx, "missing", { backupKey: backupKey() });
    const folder = join(work, "given");
    expect(await given.json("restore", good, "--data", folder)).toMatchObject({ verified: true });
    expect(readdirSync(folder).sort()).toEqual(["holdfast.db", "master.key"]);
  });
});

describe("a backup that is not as it was made is refused by name, also with --unverified:", () => {
  const CHANGES: readonly (readonly [what: string, part: string, change: () => string])[] = [
    [
      "one cut off",
      "or is cut off: its last line is missing",
      () => {
        copyFileSync(good, join(work, "file"));
        truncateSync(join(work, "file"), statSync(good).size - 1);
        return join(work, "file");
      },
    ],
    [
      "one with something added",
      "something was added after its last line",
      () => {
        copyFileSync(good, join(work, "file"));
        appendFileSync(join(work, "file"), "more");
        return join(work, "file");
      },
    ],
    [
      "one with a flipped bit",
      "it is damaged, or was changed",
      () => {
        const bytes = readFileSync(good);
        bytes[5_000]! ^= 1;
        writeFileSync(join(work, "file"), bytes);
        return join(work, "file");
      },
    ],
    [
      "one that was changed, with its digest made anew and the old code",
      "its last line is not of this key",
      () => {
        const line = readFileSync(good).toString("latin1").slice(-300).split("\n").at(-2) ?? "";
        return remade((file) => {
          const raw = new Database(file);
          raw.run("UPDATE organisations SET name = 'Mallory'");
          raw.close();
          appendFileSync(file, `\n${line.replace(/sha256 [0-9a-f]{64}/, `sha256 ${sha256(file)}`)}\n`);
        });
      },
    ],
    [
      "a last line of no form",
      "it is damaged, or was changed",
      () => remade((file) => appendFileSync(file, "\nholdfast backup 2 trust me\n")),
    ],
  ];
  for (const [what, part, change] of CHANGES) {
    test(what, async () => {
      const file = change();
      await refuses(file, ["--key", key], part);
      await refuses(file, ["--key", key, "--unverified"], part);
    });
  }
});

describe("--unverified", () => {
  const audited = (folder: string): readonly unknown[] => {
    const raw = new Database(join(folder, "holdfast.db"), { readonly: true });
    try {
      return raw
        .query(
          "SELECT organisation_id, actor_kind, subject FROM audit_entries WHERE action = 'ledger.restored_unverified'",
        )
        .all();
    } finally {
      raw.close();
    }
  };

  test("restores what no key verifies, and marks it: in the answer, the instance and each organisation's audit log", async () => {
    const answer = await restored(good, "--unverified");
    expect(answer).toMatchObject({ verified: false, backup_key_id: null, audit: "ok" });
    const folder = join(work, "data");
    expect(readdirSync(folder).sort()).toEqual(["holdfast.db", "master.key"]);
    const opened = await openForCommands(configOf(folder));
    const instance = await opened.ctx.store.read((reader) => reader.instance.get());
    expect(instance.restoredUnverifiedAt).toBe(Date.parse(String(answer.restored_at)));
    const organisations = openAllRows(folder);
    expect(audited(folder)).toEqual(
      (organisations.all().organisations ?? []).map((organisation) => ({
        organisation_id: (organisation as { id: string }).id,
        actor_kind: "machine",
        subject: instance.id,
      })),
    );
    organisations.close();
    expect(audited(folder)).not.toEqual([]);
    const cli = createCommandLine(opened.ctx);
    const { out } = await cli.run("restore", "acknowledge");
    expect(out).toContain(`The backup that was restored on ${answer.restored_at} was not verified`);
    expect(await cli.json("restore", "acknowledge")).toMatchObject({
      restored_unverified_at: answer.restored_at,
    });
    expect(await opened.ctx.store.audit()).toEqual([]);
    await opened.close();
    const words = await elsewhere.run("restore", good, "--unverified", "--data", join(work, "words"));
    expect(words.out).toContain("NO KEY SAYS WHO MADE THIS BACKUP");
  });

  test("stays marked through a later backup and a verified restore", async () => {
    const answer = await restored(good, "--unverified");
    const [file, again] = [join(work, "later"), join(work, "again")];
    await elsewhere.json("backup", file, "--data", join(work, "data"));
    const later = await elsewhere.json(
      "restore",
      file,
      "--key",
      join(work, "data", "backup.key"),
      "--data",
      again,
    );
    expect(later).toMatchObject({ verified: true });
    const reader = openAllRows(again);
    expect(reader.all().instances?.[0]).toMatchObject({
      restored_unverified_at: BigInt(Date.parse(String(answer.restored_at))),
    });
    reader.close();
  });

  test("marks nothing where the key is here after all", async () => {
    expect(await restored(good, "--unverified", "--key", key)).toMatchObject({ verified: true });
    expect(audited(join(work, "data"))).toEqual([]);
  });

  test("is what a backup of the first form needs, which anybody could have made", async () => {
    const file = remade(oldForm);
    await refuses(
      file,
      ["--key", key],
      "it is of an older form, which does not say who made it; --unverified",
    );
    expect(await restored(file, "--key", key, "--unverified")).toMatchObject({ verified: false });
  });

  test("finds damage in a backup of the first form", async () => {
    const file = remade(oldForm);
    const bytes = readFileSync(file);
    bytes[5_000]! ^= 1;
    writeFileSync(file, bytes);
    await refuses(file, ["--unverified"], "it is damaged, or was changed");
  });
});

/** What somebody may plant in a file, besides what SQLite's statements make. */
describe("what is not a ledger's is refused before it runs, whatever its name and whoever signed:", () => {
  const RAN = "SELECT RAISE(ABORT, 'it ran')";
  const ENDLESS =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, i AS hash, i AS created_at FROM n";
  const trigger = (name: string, on: string) => `CREATE TRIGGER ${name} ${on} BEGIN ${RAN}; END`;
  const PLANTED: readonly (readonly [
    named: string,
    statements: readonly string[],
    renamed?: readonly [string, string],
  ])[] = [
    ["trigger more", [trigger("more", "AFTER UPDATE ON instances")]],
    ["trigger _litestream_seq", [trigger("_litestream_seq", "AFTER UPDATE ON instances")]],
    [
      "trigger sqlite_evil",
      [trigger("qqlite_evil", "AFTER UPDATE ON instances")],
      ["qqlite_evil", "sqlite_evil"],
    ],
    ["trigger late", [trigger("late", "AFTER INSERT ON __drizzle_migrations")]],
    [
      "trigger postings_are_not_changed",
      [
        "DROP TRIGGER postings_are_not_changed",
        trigger("postings_are_not_changed", "BEFORE UPDATE ON postings"),
      ],
    ],
    ["view _litestream_view", [`CREATE VIEW _litestream_view AS ${ENDLESS}`]],
    [
      "view __drizzle_migrations",
      ["ALTER TABLE __drizzle_migrations RENAME TO gone", `CREATE VIEW __drizzle_migrations AS ${ENDLESS}`],
    ],
    ["table _litestream_seq", ["CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER, more)"]],
    ["table _litestream_more", ["CREATE TABLE _litestream_more (a)"]],
    ["table words", ["CREATE VIRTUAL TABLE words USING fts5(a)"]],
    ["index more", ["CREATE INDEX more ON instances(id)"]],
    ["index sqlite_more", ["CREATE INDEX qqlite_more ON instances(id)"], ["qqlite_more", "sqlite_more"]],
    [
      "the rows of __drizzle_migrations",
      ["UPDATE __drizzle_migrations SET created_at = 9999999999999 WHERE rowid = 2"],
    ],
    [
      "the rows of __drizzle_migrations",
      [
        `UPDATE __drizzle_migrations SET hash = (SELECT hash FROM __drizzle_migrations AS other
          WHERE other.rowid = 5 - __drizzle_migrations.rowid) WHERE rowid IN (2, 3)`,
      ],
    ],
    ["table __drizzle_migrations", ["DROP TABLE __drizzle_migrations"]],
    ["table checks", ["ALTER TABLE checks ADD COLUMN more"]],
  ];
  for (const [named, statements, renamed] of PLANTED) {
    test(named, async () => {
      const file = remade((path) => {
        const raw = new Database(path);
        for (const statement of statements) raw.run(statement);
        raw.close();
        if (renamed) {
          const text = readFileSync(path)
            .toString("latin1")
            .replaceAll(...renamed);
          writeFileSync(path, text, "latin1");
        }
        appendLastLine(path, backupKey());
      });
      const start = "file: its tables or their guards are not those of a ledger:";
      await refuses(file, ["--key", key], start, named);
    });
  }

  test("in a ledger of an older version, before its tables are changed", async () => {
    const old = (file: string, ...planted: readonly string[]): string => {
      const kept = readFileSync(join(import.meta.dir, "../store/ledgers/0.1.0.db.gz"));
      writeFileSync(file, Bun.gunzipSync(kept));
      const raw = new Database(file);
      for (const statement of [...BACKUP_TABLES, "INSERT INTO backup (created_at) VALUES (1)", ...planted])
        raw.run(statement);
      raw.close();
      oldForm(file);
      return file;
    };
    const planted = old(join(work, "planted"), trigger("more", "AFTER INSERT ON __drizzle_migrations"));
    await refuses(
      planted,
      ["--unverified"],
      "not those of a ledger: trigger more is not as Holdfast makes it",
    );
    expect(await restored(old(join(work, "plain")), "--unverified")).toMatchObject({ audit: "ok" });
  });

  test("and the audit of a ledger that has it, and its backup when it is made, say so", async () => {
    const folder = join(work, "planted");
    await elsewhere.json("restore", good, "--key", key, "--data", folder);
    const raw = new Database(join(folder, "holdfast.db"));
    raw.run(trigger("sold", "AFTER INSERT ON postings"));
    raw.close();
    expect(auditFolder(folder)).toEqual(["trigger sold is not as Holdfast makes it"]);
    const file = join(work, "b");
    const { code, err } = await elsewhere.run("backup", file, "--data", folder, "--json");
    expect([code, JSON.parse(err).error.code]).toEqual([1, "audit_disagrees"]);
    expect(JSON.parse(err).error.message).toContain(
      "its audit disagrees: trigger sold is not as Holdfast makes it",
    );
    expect(existsSync(file)).toBeTrue();
  });
});
