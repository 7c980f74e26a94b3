import { accessSync, constants, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import type { CopyPlace } from "../../src/store/postgres/audit.ts";

const MEMORY = "/dev/shm";
const MEMORY_BYTES_MIN = 1024 ** 3;

/** Where the ledgers of tests are. No test needs them after a crash of the machine, and syncing them to a disk took a third of the tests' time. */
export const TEMPORARY = hasRoom(MEMORY) ? MEMORY : tmpdir();

function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    accessSync(folder, constants.W_OK);
    return bavail * bsize >= MEMORY_BYTES_MIN;
  } catch {
    return false;
  }
}

/** Where a ledger in a database is copied to be audited, however much space is there. */
export const copiesIn = (folder: string): CopyPlace => ({ folder, freeBytes: () => null });
