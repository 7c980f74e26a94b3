import type { ErrorCode } from "../core/errors.ts";
import { withReserve } from "./descriptors.ts";

/** Backups run in a process of their own, so that none holds up a request. */
export type BackupChild = {
  /**
   * Makes a backup in `file`, or in `disagreesFile` where its audit disagrees. Answers what disagrees, or null.
   * Rejects with the child's message where it failed, and where it took too long.
   */
  make(file: string, disagreesFile: string): Promise<string | null>;
  /** Ends a backup that is under way. */
  stop(): void;
};

/** A backup that takes longer is killed: perhaps its disk hangs. */
const BACKUP_MS_MAX = 6 * 60 * 60 * 1_000;

/** @param command how this executable is started, up to the file's name */
export function createBackupChild(
  command: readonly string[],
  dataFolder: string,
  limitMs = BACKUP_MS_MAX,
): BackupChild {
  let child: Bun.Subprocess | null = null;
  let stopped = false;
  return {
    async make(file, disagreesFile) {
      if (stopped) return null;
      // A process that waits for a hanging disk cannot be killed, and another one would hang too.
      if (child) throw new Error("the previous backup still hangs");
      const running = withReserve("this thread", () =>
        Bun.spawn(
          [...command, "backup", file, "--disagrees-as", disagreesFile, "--json", "--data", dataFolder],
          { stdin: "ignore", stdout: "ignore", stderr: "pipe" },
        ),
      );
      child = running;
      const ended = Promise.all([new Response(running.stderr).text(), running.exited]).finally(() => {
        child = null;
      });
      const late = Promise.withResolvers<never>();
      const timer = setTimeout(() => {
        running.kill("SIGKILL");
        late.reject(new Error(`the backup did not end within ${limitMs / 1_000} s`));
      }, limitMs);
      try {
        const [said, code] = await Promise.race([ended, late.promise]);
        if (code === 0 || stopped) return null;
        const disagreement = disagreementIn(said);
        if (disagreement === null) throw new Error(`the backup failed (${code}): ${said.trim()}`);
        return disagreement;
      } finally {
        clearTimeout(timer);
      }
    },
    stop() {
      stopped = true;
      child?.kill();
    },
  };
}

/** The message in the child's error where the audit of the copy disagrees; null where it failed in another way. */
function disagreementIn(said: string): string | null {
  try {
    const { error } = JSON.parse(said) as { error?: { code?: unknown; message?: unknown } };
    const code: ErrorCode = "audit_disagrees";
    return error?.code === code ? String(error.message) : null;
  } catch {
    return null;
  }
}
