import { Database } from "bun:sqlite";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { isRefusal, type Refusal, refuseField, rootMessage } from "../../core/errors.ts";
import { auditLedger } from "./audit.ts";
import type { BackupKeys } from "./backup.ts";
import { takeChecksum } from "./checksum.ts";
import { hasLedger, LEDGER_FILE, ledgerFile } from "./ledger-file.ts";
import { migrate, migrations } from "./migrate.ts";
import { publishFile, syncPath } from "./new-file.ts";

/** Where a restore works until all is checked. It is there as long as a restore runs, and after one that was cut off. */
const STAGING = "restoring";
/** What the root of a disk has of its own. */
const LOST_AND_FOUND = "lost+found";

/** A folder where a restore runs, or was cut off, has no ledger, and may not get a new one. */
export const refuseHalfRestored = (dataFolder: string): Refusal | null =>
  existsSync(join(dataFolder, STAGING)) && !hasLedger(dataFolder)
    ? refuseField(
        "HOLDFAST_DATA",
        `a restore into ${dataFolder} is under way, or was cut off: empty it then, and restore again`,
      )
    : null;

/**
 * Removes what is left of a restore that was cut off right after its ledger was in place: else a second name of the ledger
 * would stay. What is anything else stays.
 */
export function removeRestoreLeftover(dataFolder: string): void {
  const staging = join(dataFolder, STAGING);
  if (!existsSync(staging) || !hasLedger(dataFolder)) return;
  const names = readdirSync(staging);
  if (!names.every((name) => isSameFile(join(staging, name), join(dataFolder, name)))) return;
  for (const name of names) rmSync(join(staging, name));
  rmdirSync(staging);
}

function isSameFile(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) => statSync(path, { bigint: true, throwIfNoEntry: false }));
  return a?.isFile() === true && a.ino === b?.ino && a.dev === b.dev;
}

/** Of which instance the backup was, when it was made, in epoch milliseconds, and the keys that were in it. */
export type Restored = {
  readonly instanceId: string;
  readonly backedUpAt: number;
  readonly keys: BackupKeys;
};

/**
 * Puts a backup into an empty or missing data folder: its keys, then the ledger, which says of itself that it was restored.
 * Refused where anything is in the folder; where the file is no backup, not whole, or one of a newer version; and where its
 * audit fails. Nothing is in the folder then.
 *
 * @param now epoch milliseconds
 * @param keepKeys writes key files into a folder
 */
export function restoreBackup(
  file: string,
  dataFolder: string,
  now: number,
  keepKeys: (folder: string, keys: BackupKeys) => void,
): Restored | Refusal {
  const occupied = refuseHalfRestored(dataFolder) ?? refuseOccupied(dataFolder);
  if (occupied) return occupied;
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) {
    return refuseField("file", `there is no file ${file}`);
  }
  mkdirSync(dataFolder, { recursive: true, mode: 0o700 });
  const staging = join(dataFolder, STAGING);
  // Of two restores at once, one fails here.
  mkdirSync(staging, { mode: 0o700 });
  try {
    const staged = ledgerFile(staging);
    copyFileSync(file, staged);
    chmodSync(staged, 0o600);
    const found = refuseChecksum(takeChecksum(staged)) ?? prepareStaged(staged, now);
    if (isRefusal(found)) return found;
    syncPath(staged);
    keepKeys(staging, found.keys);
    publishAll(staging, dataFolder, [...Object.keys(found.keys), LEDGER_FILE]);
    return found;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

function refuseOccupied(dataFolder: string): Refusal | null {
  const folder = statSync(dataFolder, { throwIfNoEntry: false });
  if (folder === undefined) return null;
  if (!folder.isDirectory()) return refuseField("HOLDFAST_DATA", `${dataFolder} is not a folder`);
  const found = readdirSync(dataFolder).find((name) => name !== LOST_AND_FOUND);
  return found === undefined
    ? null
    : refuseField(
        "HOLDFAST_DATA",
        `${dataFolder} is not empty (${found} is there), and a restore overwrites nothing; choose another folder`,
      );
}

/**
 * Makes the ledger of a copied backup: brought up to date, without what only a backup has, marked, and audited. The copy is
 * thrown away where it is refused.
 */
function prepareStaged(staged: string, now: number): Restored | Refusal {
  // Without a log beside it: what is written is in the one file.
  const raw = new Database(staged, { readwrite: true, safeIntegers: true });
  try {
    if (isNewer(raw)) return refuseNewer();
    const tables = drizzle(raw);
    migrate(raw);
    const { backedUpAt, keys } = takeOwnTables(raw);
    if (schemaOf(raw) !== schemaOfNewLedger()) {
      return refuseField("file", "its tables or their guards are not those of a ledger");
    }
    const instanceId = markRestored(raw, now);
    if (instanceId === null) return refuseField("file", "it does not say of which instance it is");
    const [problem, ...more] = auditLedger({ tables, raw });
    return problem === undefined
      ? { instanceId, backedUpAt, keys }
      : refuseField("file", `its audit fails: ${problem}; ${more.length} more`);
  } catch (error) {
    return refuseField("file", `it is damaged (${rootMessage(error)})`);
  } finally {
    raw.close();
  }
}

const refuseNewer = (): Refusal =>
  refuseField("file", "it was made by another, newer version of Holdfast; restore it with that one");

function refuseChecksum(checksum: ReturnType<typeof takeChecksum>): Refusal | null {
  if (checksum === "taken") return null;
  if (checksum === "newer") return refuseNewer();
  return refuseField(
    "file",
    checksum === "none"
      ? "it is not one that `holdfast backup` made, or is not whole"
      : "it is damaged: it is not as `holdfast backup` made it",
  );
}

const isNewer = (raw: Database): boolean => {
  const known = new Set(migrations().map(({ hash }) => hash));
  const applied = raw.query<{ hash: string }, []>("SELECT hash FROM __drizzle_migrations").all();
  return applied.some(({ hash }) => !known.has(hash));
};

/**
 * What only a backup has. Nothing of it is left in the file then: a ledger is copied to places that its keys are not.
 */
function takeOwnTables(raw: Database): { readonly backedUpAt: number; readonly keys: BackupKeys } {
  const label = raw.query<{ created_at: bigint }, []>("SELECT created_at FROM backup").get();
  if (!label) throw new Error("it does not say when it was made");
  const rows = raw.query<{ name: string; text: string }, []>("SELECT name, text FROM backup_keys").all();
  raw.run("PRAGMA secure_delete = ON");
  raw.run("DROP TABLE backup_keys");
  raw.run("DROP TABLE backup");
  return {
    backedUpAt: Number(label.created_at),
    keys: Object.fromEntries(rows.map(({ name, text }) => [name, text])),
  };
}

/** Tables, indexes and triggers as they were written: without its triggers a ledger's guards are gone. */
const schemaOf = (raw: Database): string =>
  JSON.stringify(
    raw
      .query<{ type: string; name: string; sql: string | null }, []>(
        "SELECT type, name, sql FROM sqlite_master ORDER BY type, name",
      )
      .all()
      .filter(({ type, name }) => !name.startsWith("sqlite_") && !isOfReplication(type, name)),
  );

/** Litestream keeps two tables of its own in whatever it replicates. */
const isOfReplication = (type: string, name: string): boolean =>
  type === "table" && name.startsWith("_litestream_");

function schemaOfNewLedger(): string {
  const raw = new Database(":memory:", { safeIntegers: true });
  try {
    migrate(raw);
    return schemaOf(raw);
  } finally {
    raw.close();
  }
}

/** The instance's id; null where there is not one. */
function markRestored(raw: Database, now: number): string | null {
  const [instance, another] = raw
    .query<{ id: string }, [number]>(
      "UPDATE instances SET restored_at = ?, acknowledged_at = NULL RETURNING id",
    )
    .all(now);
  return instance === undefined || another !== undefined ? null : instance.id;
}

/** All of them or none, the ledger last: until it is there the folder is nothing that a server would start on. */
function publishAll(staging: string, dataFolder: string, names: readonly string[]): void {
  const published: string[] = [];
  try {
    for (const name of names) {
      const file = join(dataFolder, name);
      if (!publishFile(join(staging, name), file)) throw new Error(`${file} was made meanwhile`);
      published.push(file);
    }
  } catch (error) {
    for (const file of published) rmSync(file);
    throw error;
  }
}
