/** Backups in a process of their own, so that none holds up a request. */
export type BackupChild = {
  /** Makes one. Rejects with what the child said where it failed. */
  make(file: string): Promise<void>;
  /** Ends a backup that is under way. */
  stop(): void;
};

/** @param command how this executable is started, up to the file's name */
export function createBackupChild(command: readonly string[], dataFolder: string): BackupChild {
  let child: Bun.Subprocess | null = null;
  let stopped = false;
  return {
    async make(file) {
      if (stopped) return;
      const running = Bun.spawn([...command, "backup", file, "--json", "--data", dataFolder], {
        stdin: "ignore",
        stdout: "ignore",
        stderr: "pipe",
      });
      child = running;
      const [said, code] = await Promise.all([new Response(running.stderr).text(), running.exited]);
      child = null;
      if (code !== 0 && !stopped) throw new Error(`the backup failed (${code}): ${said.trim()}`);
    },
    stop() {
      stopped = true;
      child?.kill();
    },
  };
}
