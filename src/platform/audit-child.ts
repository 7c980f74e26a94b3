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
        // Open for as long as the server is there.
        stdin: "pipe",
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

/** The hidden audit command: writes what the audit found for its parent, and ends. If its parent ends first, it ends at once. */
export async function runAuditChild(audit: () => Promise<readonly string[]>): Promise<never> {
  endWithParent();
  try {
    setPriority(PRIORITY_LOWERED);
  } catch {
    // Some systems forbid it.
  }
  await Bun.write(Bun.stdout, JSON.stringify(await audit()));
  process.exit(0);
}

/** Whoever holds the other end of stdin is gone when there is no more to read. A thread of its own hears it: the audit never waits. */
const WATCH = `
  const { readSync } = require("node:fs");
  while (readSync(0, Buffer.alloc(1)) > 0);
  process.kill(process.pid, "SIGKILL");
`;

const endWithParent = (): void => void new Worker(URL.createObjectURL(new Blob([WATCH])));
