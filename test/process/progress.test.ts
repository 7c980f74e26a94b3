import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { onTerminal } from "../support/pseudo-terminal.ts";

const { afterAll, beforeAll, test } = onlyEmbedded(import.meta.path);

/** Commands that take long, on a terminal and in a pipe: here they wait for another process's transaction. */

const COMMAND = [process.execPath, resolve(import.meta.dir, "../../src/main.ts")];
const HELD_MS = 3_500;
const PROCESS_TIMEOUT_MS = 30_000;

let folder: string;
let line: readonly string[];
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-progress-"));
  const owner = ["--owner-email", "ada@example.com", "--owner-password", "correct horse"];
  const made = Bun.spawnSync([...COMMAND, "organisations", "create", "--name", "Acme", ...owner, "--json"], {
    cwd: folder,
    env: {},
  });
  const { organisation } = JSON.parse(made.stdout.toString());
  line = ["kill-switch", "on", "--organisation", organisation.id];
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs something while a transaction keeps the ledger locked, as another process would: until `release`, or a time limit. */
async function whileLocked<Answer>(
  run: (release: () => void) => Promise<Answer>,
  heldMs = HELD_MS,
): Promise<Answer> {
  const ledger = new Database(join(folder, "data/holdfast.db"));
  ledger.run("BEGIN IMMEDIATE");
  const release = (): void => {
    if (ledger.inTransaction) ledger.run("ROLLBACK");
  };
  const timer = setTimeout(release, heldMs);
  try {
    return await run(release);
  } finally {
    clearTimeout(timer);
    release();
    ledger.close();
  }
}

const STEP = "holdfast: kill-switch, ";
const ANSWER = "Acme opens no new warrants; those that are open go on.";

/** Runs the command on a terminal. The ledger is free once the progress is shown. */
const onLockedLedger = (env = {}) =>
  whileLocked(
    (release) =>
      onTerminal([...COMMAND, ...line], {
        cwd: folder,
        env,
        onWritten: (written) => {
          if (written.includes(STEP)) release();
        },
      }),
    PROCESS_TIMEOUT_MS,
  );

test(
  "a terminal shows what runs, in no colour, and then the answer alone",
  async () => {
    const { code, written } = await onLockedLedger();
    expect(code).toBe(0);
    expect(written).toMatch(/^(?:holdfast: kill-switch, \d s<clear>\r)+<clear>Acme opens/);
    expect(written.split("<clear>").at(-1)).toStartWith(`${ANSWER}\r\n`);
    expect(written).not.toContain("\u001b");
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "a terminal that cannot clear a line gets a whole line",
  async () => {
    const { written } = await onLockedLedger({ TERM: "dumb" });
    expect(written).toMatch(/^holdfast: kill-switch, \d s\r\nAcme opens/);
    expect(written).not.toContain("\u001b");
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "nothing of it with --json, even on a terminal",
  async () => {
    const { written } = await whileLocked(() => onTerminal([...COMMAND, ...line, "--json"], { cwd: folder }));
    expect(JSON.parse(written)).toMatchObject({ object: "organisation" });
  },
  PROCESS_TIMEOUT_MS,
);

test(
  "nothing of it in a pipe",
  async () => {
    const { out, err } = await whileLocked(async () => {
      const child = Bun.spawn([...COMMAND, ...line], {
        cwd: folder,
        env: { TERM: "xterm-256color" },
        stdout: "pipe",
        stderr: "pipe",
      });
      const [out, err] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      return { out, err };
    });
    expect([err, out.split("\n")[0]]).toEqual(["", ANSWER]);
  },
  PROCESS_TIMEOUT_MS,
);
