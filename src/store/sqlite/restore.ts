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
import { isRefusal, type Refusal, refuse, refuseField, rootMessage } from "../../core/errors.ts";
import { auditLedger } from "./audit.ts";
import type { BackupKeys } from "./backup.ts";
import { takeChecksum } from "./checksum.ts";
import { hasLedger, LEDGER_FILE, ledgerFile } from "./ledger-file.ts";
import { migrate, migrations } from "./migrate.ts";
import { makeFolder, publishFile, syncPath } from "./new-file.ts";

/**
 * The folder in which a restore works until everything is checked. It exists while a restore runs, and after
 * one was cut off.
 */
const STAGING = "restoring";
/** A folder that the root of a disk may have. */
const LOST_AND_FOUND = "lost+found";

/**
 * Refuses a folder in which a restore runs or was cut off: it has no ledger yet, and must not get a new one.
 */
export const refuseHalfRestored = (dataFolder: string): Refusal | null =>
  existsSync(join(dataFolder, STAGING)) && !hasLedger(dataFolder)
    ? refuseField(
        "HOLDFAST_DATA",
        `a restore into ${dataFolder} is under way, or was cut off: empty it then, and restore again`,
      )
    : null;

/**
 * Removes what a restore left that was cut off right after its ledger was in place. Otherwise the ledger
 * would keep a second name. Files that are not copies of the folder's own stay.
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

/** The id of the instance, when the backup was made, in epoch milliseconds, and the keys in it. */
export type Restored = {
  readonly instanceId: string;
  readonly backedUpAt: number;
  readonly keys: BackupKeys;
  /** What its audit found. */
  readonly problems: readonly string[];
};

/**
 * Puts a backup into an empty or missing data folder: its keys, then the ledger, which is marked as restored.
 * Refused where the folder contains anything; where the file is not a backup, is incomplete, or comes from a
 * newer version; and where its audit disagrees, unless that is accepted. After a refusal the folder is empty.
 *
 * @param despiteAudit whether a backup whose audit disagrees is restored too
 * @param now epoch milliseconds
 * @param keepKeys writes key files into a folder
 */
export function restoreBackup(
  { file, despiteAudit }: { readonly file: string; readonly despiteAudit: boolean },
  dataFolder: string,
  now: number,
  keepKeys: (folder: string, keys: BackupKeys) => void,
): Restored | Refusal {
  const occupied = refuseHalfRestored(dataFolder) ?? refuseOccupied(dataFolder);
  if (occupied) return occupied;
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) {
    return refuseField("file", `there is no file ${file}`);
  }
  makeFolder(dataFolder);
  const staging = join(dataFolder, STAGING);
  // Where two restores run at once, one of them fails here.
  mkdirSync(staging, { mode: 0o700 });
  try {
    const staged = ledgerFile(staging);
    copyFileSync(file, staged);
    chmodSync(staged, 0o600);
    const found = refuseChecksum(takeChecksum(staged)) ?? prepareStaged(staged, despiteAudit, now);
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
 * Turns the copy of a backup into a ledger: migrates it, removes the backup's own tables, marks it as
 * restored, and audits it. After a refusal the copy is deleted.
 */
function prepareStaged(staged: string, despiteAudit: boolean, now: number): Restored | Refusal {
  // The copy has no write-ahead log, so everything is in this one file.
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
    const problems = auditLedger({ tables, raw });
    return problems.length === 0 || despiteAudit
      ? { instanceId, backedUpAt, keys, problems }
      : refuseDisagreeing(problems);
  } catch (error) {
    return refuseField("file", `it is damaged (${rootMessage(error)})`);
  } finally {
    raw.close();
  }
}

const refuseDisagreeing = ([problem, ...more]: readonly string[]): Refusal =>
  refuse(
    "audit_disagrees",
    `The audit of this backup disagrees: ${problem}; ${more.length} more. Restore another one, or this one as it is with --despite-audit.`,
  );

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
 * Takes the tables that only a backup has out of the file. `secure_delete` overwrites the keys in it, since a
 * ledger may be copied to places where its keys must not be.
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

/** The definitions of all tables, indexes and triggers. A ledger without its triggers would be unguarded. */
const schemaOf = (raw: Database): string =>
  JSON.stringify(
    raw
      .query<{ type: string; name: string; sql: string | null }, []>(
        "SELECT type, name, sql FROM sqlite_master ORDER BY type, name",
      )
      .all()
      .filter(({ type, name }) => !name.startsWith("sqlite_") && !isOfReplication(type, name)),
  );

/** Litestream adds two tables of its own to every database that it replicates. */
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

/** Marks the instance as restored, and gives its id; null unless there is exactly one instance. */
function markRestored(raw: Database, now: number): string | null {
  const [instance, another] = raw
    .query<{ id: string }, [number]>(
      "UPDATE instances SET restored_at = ?, acknowledged_at = NULL RETURNING id",
    )
    .all(now);
  return instance === undefined || another !== undefined ? null : instance.id;
}

/**
 * Moves all files into the folder, or none. The ledger comes last: without it no server starts on the folder.
 */
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
