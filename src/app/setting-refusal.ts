import { isRefusal, type Refusal, refuseField, rootCause } from "../core/errors.ts";
import { NewerLedger } from "../store/sql/ledger-version.ts";
import { OlderServer } from "../store/sqlite/ledger-version.ts";

const FOLDER_SYSCALLS = new Set(["mkdir", "open", "chmod", "write", "fsync", "link"]);

/**
 * The refusal that names the setting to change, where the machine refused the folder or the address, or the database what it was
 * asked. Rethrows other errors.
 */
export function settingRefusal(error: unknown): Refusal {
  if (isRefusal(error)) return error;
  if (error instanceof NewerLedger || error instanceof OlderServer)
    return refuseField("HOLDFAST_DATA", error.message);
  const { code = "", syscall = "", message = "" } = rootCause(error) as NodeJS.ErrnoException;
  if (code === "EADDRINUSE") {
    return refuseField("HOLDFAST_PORT", "another program listens there already; choose another with --port");
  }
  if (syscall === "listen" || code === "EADDRNOTAVAIL" || (code === "EACCES" && syscall !== "mkdir")) {
    return refuseField(
      "HOLDFAST_HOST",
      `must be an address of this machine that it may listen on (${message})`,
    );
  }
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code)) {
    return refuseField(
      "HOLDFAST_DATA",
      `the ledger in it, holdfast.db, is damaged (${message}); restore a backup into another, empty folder`,
    );
  }
  if (FOLDER_SYSCALLS.has(syscall) || code.startsWith("SQLITE_")) {
    return refuseField("HOLDFAST_DATA", `must be a folder that can be written (${message})`);
  }
  throw error;
}
