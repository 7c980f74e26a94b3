import { readSync } from "node:fs";
import { setPriority } from "node:os";
import { withReserve } from "./descriptors.ts";

/** Audits run in a process of their own, since an audit reads the whole ledger without a pause. */
export type AuditChild = {
  /** Every disagreement, one message each. Rejects where the audit could not be made. */
  audit(): Promise<readonly string[]>;
  /** Ends an audit that is under way: it was not made. */
  end(): void;
  /** Ends an audit that is under way, which then finds nothing, and lets no other begin. */
  stop(): void;
};

/** What a child is given besides its command: a line that it reads with `readInput`, and its whole environment. */
type Given = { readonly input?: string; readonly env?: Readonly<Record<string, string>> };

/** An audit that takes longer is killed. */
const AUDIT_MS_MAX = 60 * 60 * 1_000;
const PRIORITY_LOWERED = 10;

/** @param command how this executable is started so that it calls `runAuditChild` on the right folder */
export function createAuditChild(command: readonly string[], { input, env = {} }: Given = {}): AuditChild {
  let child: Bun.Subprocess | null = null;
  let stopped = false;
  return {
    async audit() {
      if (stopped) return [];
      const running = withReserve("this thread", () =>
        Bun.spawn([...command], {
          // The child inherits nothing: no secrets, and no settings.
          env: { ...env },
          // It closes when the server ends, and the child sees that.
          stdin: "pipe",
          stdout: "pipe",
          stderr: "pipe",
          timeout: AUDIT_MS_MAX,
          killSignal: "SIGKILL",
        }),
      );
      child = running;
      if (input !== undefined) {
        running.stdin.write(input);
        // What a child has not read that ended at once is said by its exit code.
        void Promise.resolve(running.stdin.flush()).catch(() => {});
      }
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
    end: () => child?.kill("SIGKILL"),
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

const NEWLINE = 10;

/** The line that the parent gives. Only a child that is given one may ask: any other would wait without end. */
export function readInput(): string {
  const bytes: number[] = [];
  const byte = Buffer.alloc(1);
  while (readSync(0, byte) > 0 && byte[0] !== NEWLINE) bytes.push(byte[0] ?? 0);
  return Buffer.from(bytes).toString();
}

/** Stdin ends when the parent has ended. A thread of its own reads it, since the audit keeps the main thread busy. */
const WATCH = `
  const { readSync } = require("node:fs");
  while (readSync(0, Buffer.alloc(1)) > 0);
  process.kill(process.pid, "SIGKILL");
`;

const endWithParent = (): void => void new Worker(URL.createObjectURL(new Blob([WATCH])));
