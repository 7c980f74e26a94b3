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
import type { AuditAction } from "../../core/audit-entry.ts";
import { isRefusal, type Refusal, refuse, refuseField, rootMessage } from "../../core/errors.ts";
import { firstOf } from "../../core/first-of.ts";
import { BACKUP_KEY_FILE } from "../../core/instance.ts";
import { isoTime } from "../../core/time.ts";
import { auditLedger } from "./audit.ts";
import { BACKUP_TABLES, type BackupKeys } from "./backup.ts";
import { type LastLine, takeLastLine } from "./last-line.ts";
import { hasLedger, LEDGER_FILE, ledgerFile } from "./ledger-file.ts";
import { newerLedger, newerTables } from "./ledger-version.ts";
import { migrate } from "./migrate.ts";
import { makeFolder, publishFile, syncPath } from "./new-file.ts";
import { schemaDifferences } from "./schema.ts";

/**
 * The folder in which a restore works until everything is checked, and a copy from PostgreSQL too. It exists while one runs, and after
 * one was cut off.
 */
const STAGING = "restoring";
/** A folder that the root of a disk may have, and the key of backups, which may be there before what it verifies. */
const MAY_BE_THERE = ["lost+found", BACKUP_KEY_FILE];

/**
 * Refuses a folder in which a restore runs or was cut off: it has no ledger yet, and must not get a new one.
 */
export const refuseHalfRestored = (dataFolder: string): Refusal | null =>
  existsSync(join(dataFolder, STAGING)) && !hasLedger(dataFolder)
    ? refuseField(
        "HOLDFAST_DATA",
        `a restore or a copy into ${dataFolder} is under way, or was cut off: empty it then, and begin again`,
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
  /** The id of the key that it was verified with; null where it was not verified. */
  readonly verifiedBy: string | null;
};

/** What is restored, and what of it is accepted. */
export type RestoreWhat = {
  readonly file: string;
  /** Whether a backup whose audit disagrees is restored too. */
  readonly despiteAudit: boolean;
  /** Whether a backup is restored too of which no key here says who made it. */
  readonly unverified: boolean;
};

/** What a backup is restored with. */
export type RestoreMeans = {
  /** The keys that a backup may be verified with, 32 bytes each. */
  readonly backupKeys: readonly Uint8Array[];
  /** Decrypts a file in its place; leaves one as it is that is not encrypted. */
  decrypt(file: string): Promise<Refusal | null>;
  /** Writes the key files of a backup into a folder, and perhaps the key that verified it. Answers the names of those it wrote. */
  keepKeys(folder: string, restored: Restored): readonly string[];
  newAuditEntryId(): string;
  /** The version of this executable. */
  readonly version: string;
};

/**
 * Puts a backup into an empty or missing data folder: its keys, then the ledger, which is marked as restored.
 * Refused where the folder contains anything; where the file is not a backup, is incomplete, or comes from a
 * newer version; where no key verifies it, or its audit disagrees, unless that is accepted. Nothing of the file is
 * opened before it is verified, or that is accepted. After a refusal the folder is as it was.
 *
 * @param now epoch milliseconds
 */
export async function restoreBackup(
  what: RestoreWhat,
  dataFolder: string,
  now: number,
  means: RestoreMeans,
): Promise<Restored | Refusal> {
  const { file, unverified } = what;
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) {
    return refuseField("file", `there is no file ${file}`);
  }
  return inStaging(dataFolder, async (staging) => {
    const staged = ledgerFile(staging);
    copyFileSync(file, staged);
    chmodSync(staged, 0o600);
    const line = takeLastLine(staged, means.backupKeys);
    const refused = refuseLine(line, unverified, means) ?? (await means.decrypt(staged));
    if (refused) return refused;
    const verifiedBy = line.is === "verified" ? line.keyId : null;
    const { newAuditEntryId, version } = means;
    const found = prepareStaged(staged, what, { now, verifiedBy, newAuditEntryId, version });
    if (isRefusal(found)) return found;
    syncPath(staged);
    publishAll(staging, dataFolder, [...means.keepKeys(staging, found), LEDGER_FILE]);
    return found;
  });
}

/**
 * Makes a ledger in a folder of its own inside an empty or missing data folder. The work moves it out when it is complete: until then
 * no server starts on the data folder. Refused where that contains anything; after a refusal it is as it was.
 */
export async function inStaging<Made>(
  dataFolder: string,
  work: (staging: string) => Promise<Made | Refusal>,
): Promise<Made | Refusal> {
  const occupied = refuseHalfRestored(dataFolder) ?? refuseOccupied(dataFolder);
  if (occupied) return occupied;
  const isNew = !existsSync(dataFolder);
  makeFolder(dataFolder);
  const staging = join(dataFolder, STAGING);
  // Where two work at once, one of them fails here.
  mkdirSync(staging, { mode: 0o700 });
  try {
    return await work(staging);
  } finally {
    rmSync(staging, { recursive: true, force: true });
    if (isNew && readdirSync(dataFolder).length === 0) rmdirSync(dataFolder);
  }
}

function refuseOccupied(dataFolder: string): Refusal | null {
  const folder = statSync(dataFolder, { throwIfNoEntry: false });
  if (folder === undefined) return null;
  if (!folder.isDirectory()) return refuseField("HOLDFAST_DATA", `${dataFolder} is not a folder`);
  const found = readdirSync(dataFolder).find((name) => !MAY_BE_THERE.includes(name));
  return found === undefined
    ? null
    : refuseField(
        "HOLDFAST_DATA",
        `${dataFolder} is not empty (${found} is there), and nothing is overwritten; choose another folder`,
      );
}

type Mark = { readonly now: number; readonly verifiedBy: string | null } & Pick<
  RestoreMeans,
  "newAuditEntryId" | "version"
>;

/**
 * Turns the copy of a backup into a ledger: migrates it, removes the backup's own tables, marks it as
 * restored, and audits it. After a refusal the copy is deleted.
 */
function prepareStaged(staged: string, { despiteAudit }: RestoreWhat, mark: Mark): Restored | Refusal {
  // The copy has no write-ahead log, so everything is in this one file.
  const raw = new Database(staged, { readwrite: true, safeIntegers: true });
  try {
    raw.run("PRAGMA trusted_schema = OFF");
    // Before anything is written: what somebody planted would run then.
    const differences = schemaDifferences(raw, BACKUP_TABLES);
    if (differences === "newer") return refuseField("file", newerTables(raw, mark.version));
    if (differences.length > 0) return refuseSchema(differences);
    const newer = newerLedger(raw, mark.version);
    if (newer) return refuseField("file", newer.message);
    migrate(raw);
    const { backedUpAt, keys } = takeOwnTables(raw);
    const instanceId = markRestored(raw, mark);
    if (instanceId === null) return refuseField("file", "it does not say of which instance it is");
    const problems = auditLedger({ tables: drizzle(raw), raw });
    return problems.length === 0 || despiteAudit
      ? { instanceId, backedUpAt, keys, problems, verifiedBy: mark.verifiedBy }
      : refuseDisagreeing(problems);
  } catch (error) {
    return refuseField("file", `it is damaged (${rootMessage(error)})`);
  } finally {
    raw.close();
  }
}

const refuseDisagreeing = (problems: readonly string[]): Refusal =>
  refuse(
    "audit_disagrees",
    `The audit of this backup disagrees: ${firstOf(problems)}. Restore another one, or this one as it is with --despite-audit.`,
  );

const refuseSchema = (differences: readonly string[]): Refusal =>
  refuseField("file", `its tables or their guards are not those of a ledger: ${firstOf(differences)}`);

/** Why a file with this last line is not restored; null where it is. */
function refuseLine(
  line: LastLine,
  unverified: boolean,
  { backupKeys, version }: Pick<RestoreMeans, "backupKeys" | "version">,
): Refusal | null {
  switch (line.is) {
    case "verified":
      return null;
    case "unknown":
      return unverified ? null : refuseUnverified(line.keyId, backupKeys.length > 0);
    case "newer":
      return refuseField(
        "file",
        `it was made by another, newer version of Holdfast than this, which is ${version}; restore it with that one`,
      );
    case "missing":
      return refuseField(
        "file",
        "it is not one that `holdfast backup` made, or is cut off: its last line is missing",
      );
    case "followed":
      return refuseField(
        "file",
        "it is not as `holdfast backup` made it: something was added after its last line",
      );
    case "forged":
      return refuseField("file", "it is not as `holdfast backup` made it: its last line is not of this key");
    case "damaged":
      return refuseField("file", "it is damaged, or was changed: it is not as `holdfast backup` made it");
  }
}

function refuseUnverified(keyId: string | null, hasKey: boolean): Refusal {
  const next = "--unverified restores it all the same, and marks the ledger so";
  if (keyId === null)
    return refuseField("file", `it is of an older form, which does not say who made it; ${next}`);
  const why = hasKey ? "and the key that is here is another" : "and that key is not here";
  return refuseField(
    "--key",
    `the backup was made with the key ${keyId}, ${why}: give the ${BACKUP_KEY_FILE} of the folder that it was made of, as --key FILE; ${next}`,
  );
}

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

/** A key that cosigned before the backup may have cosigned after it too. The copy does not know what, so the key is lost to it. */
const LOSE_WITNESS_KEY = `lost_witness_keys = CASE WHEN witness_key IS NULL THEN lost_witness_keys
  ELSE json_insert(lost_witness_keys, '$[#]', witness_key) END, witness_key = NULL`;

/** Marks the instance as restored, and gives its id; null unless there is exactly one instance. */
function markRestored(raw: Database, { now, verifiedBy, newAuditEntryId }: Mark): string | null {
  const [instance, another] = raw
    .query<{ id: string }, [number]>(
      `UPDATE instances SET restored_at = ?, acknowledged_at = NULL, ${LOSE_WITNESS_KEY} RETURNING id`,
    )
    .all(now);
  if (instance === undefined || another !== undefined) return null;
  if (verifiedBy !== null) return instance.id;
  raw.query("UPDATE instances SET restored_unverified_at = ?").run(now);
  const action: AuditAction = "ledger.restored_unverified";
  const after = JSON.stringify({ object: "instance", id: instance.id, restored_unverified_at: isoTime(now) });
  const insert = raw.query(
    "INSERT INTO audit_entries (id, organisation_id, actor_kind, action, subject, after, recorded_at) VALUES (?, ?, 'machine', ?, ?, ?, ?)",
  );
  // It affects every organisation, and each sees its own audit log alone.
  for (const { id } of raw.query<{ id: string }, []>("SELECT id FROM organisations").all()) {
    insert.run(newAuditEntryId(), id, action, instance.id, after, now);
  }
  return instance.id;
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
