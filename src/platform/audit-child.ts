import { setPriority } from "node:os";

/** Audits in a process of their own: they read the whole ledger, at once and for as long as it takes. */
export type AuditChild = {
  /** Every disagreement, one message each. Rejects where there was no audit. */
  audit(): Promise<readonly string[]>;
  /** Ends an audit that is under way, which then finds nothing. */
  stop(): void;
};

/** An audit that has not ended by then will not. */
const AUDIT_MS_MAX = 60 * 60 * 1_000;
const PRIORITY_LOWERED = 10;

/** @param command how this executable is started so that it calls `runAuditChild` on the right folder */
export function createAuditChild(command: readonly string[]): AuditChild {
  let child: Bun.Subprocess | null = null;
  let stopped = false;
  return {
    async audit() {
      if (stopped) return [];
      const running = Bun.spawn([...command], {
        // Nothing of the server's is inherited: no secrets, and no settings.
        env: {},
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
        timeout: AUDIT_MS_MAX,
        killSignal: "SIGKILL",
      });
      child = running;
      const [found, said, code] = await Promise.all([
        new Response(running.stdout).text(),
        new Response(running.stderr).text(),
        running.exited,
      ]);
      child = null;
      if (stopped) return [];
      if (code !== 0) throw new Error(`the audit was not made (${code}): ${said.trim()}`);
      return JSON.parse(found) as string[];
    },
    stop() {
      stopped = true;
      child?.kill("SIGKILL");
    },
  };
}

/** The hidden audit command: tells its parent what the audit found, and ends. */
export async function runAuditChild(audit: () => readonly string[]): Promise<never> {
  try {
    setPriority(PRIORITY_LOWERED);
  } catch {
    // Some systems forbid it.
  }
  await Bun.write(Bun.stdout, JSON.stringify(audit()));
  process.exit(0);
}
