import { accessSync, constants, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ledgerFile } from "../../src/store/sqlite/ledger-file.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { connect } from "../../src/store/sqlite/open.ts";

/** The file of a migrated ledger without a row. A copy costs little beside migrating, and hundreds of tests need a ledger. */
let migrated: Uint8Array | null = null;

/** Makes a data folder with a ledger in it that has all tables and no row yet. */
export function newLedgerFolder(): string {
  migrated ??= migratedFile();
  const folder = newFolder();
  writeFileSync(ledgerFile(folder), migrated);
  return folder;
}

const newFolder = (): string => mkdtempSync(join(ROOT, "holdfast-test-"));

const MEMORY = "/dev/shm";
const MEMORY_BYTES_MIN = 1024 ** 3;

/** No test needs these ledgers after a crash of the machine, and syncing them to a disk took a third of the tests' time. */
const ROOT = hasRoom(MEMORY) ? MEMORY : tmpdir();

function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    accessSync(folder, constants.W_OK);
    return bavail * bsize >= MEMORY_BYTES_MIN;
  } catch {
    return false;
  }
}

function migratedFile(): Uint8Array {
  const folder = newFolder();
  const { raw } = connect(ledgerFile(folder), { readonly: false });
  migrate(raw);
  // What is in the write-ahead log is part of this too.
  const file = raw.serialize();
  raw.close();
  rmSync(folder, { recursive: true });
  return file;
}
